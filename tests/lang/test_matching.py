"""`like` and `regexp` take a time that grows with the text, whatever the pattern; `like` means what it always has."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollup
from rollup.core.errors import PlanError
from rollup.engine.operators import like
from tests.profiles import examples

SIGNS = st.text("ab%_\\\n.é", max_size=8)


def oracle(text: str, pattern: str) -> bool:
    """The same by trying everything."""
    if not pattern:
        return not text
    head, rest = pattern[0], pattern[1:]
    if head == "%":
        return any(oracle(text[begin:], rest) for begin in range(len(text) + 1))
    if head == "\\":
        head, rest = rest[:1], rest[1:]
        return text.startswith(head) and oracle(text[len(head) :], rest)
    return bool(text) and head in ("_", text[0]) and oracle(text[1:], rest)


@examples(1000)
@given(SIGNS, SIGNS)
def test_like_is_what_trying_everything_says(text: str, pattern: str) -> None:
    assert like(text, pattern, "\\") == oracle(text, pattern)


LINE = "an error of some other error, here and there, over and over " * 80


@pytest.mark.parametrize("of", [1, 400], ids=["on rows", "over columns"])
@pytest.mark.parametrize(
    "condition",
    [
        "like '%error%o%e%r%timeout'",
        "like '%a%b%c%d%e%f'",
        "regexp '(\\\\w+\\\\s?,?)*!'",
        "regexp '(a|an|n)*(e|er|r)*!'",
    ],
)
def test_a_pattern_that_does_not_match_ends_at_once(condition: str, of: int) -> None:
    engine = rollup.Engine()
    engine.deploy(f"create schema S(line string); @name('out') select line from S where line {condition};")
    engine.send("S", [{"line": f"{LINE}{n}"} for n in range(of)])
    assert engine.heard() == []


@pytest.mark.parametrize("pattern", ["(a)\\\\1", "a(?=b)", "(?<!a)b", "(a"])
def test_an_expression_that_would_need_another_time_is_refused_at_its_place(pattern: str) -> None:
    engine = rollup.Engine()
    engine.deploy("create schema S(line string);")
    with pytest.raises(PlanError, match=re.escape("the regular expression `")) as refused:
        engine.deploy(f"select line from S where line regexp '{pattern}';")
    assert (refused.value.line, refused.value.column) == (1, 38) and "RE2" in str(refused.value.hint)
