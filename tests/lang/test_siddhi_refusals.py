"""Statements of SiddhiQL that are refused, as text: each at its place, with what is said. A new one is three lines there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollup.core.errors import RollupError
from rollup.lang.siddhi.statements.app import SiddhiApp


def cases() -> dict[str, tuple[str, str, str]]:
    """By its title the streams before a statement, the statement, and a part of the message."""
    found, before = dict[str, tuple[str, str, str]](), ""
    _, *blocks = (Path(__file__).parent / "siddhi_refusals.txt").read_text(encoding="utf-8").strip().split("\n\n")
    for block in blocks:
        title, *lines = block.split("\n")
        if title.startswith("== "):
            (before,) = lines
        else:
            statement, said = "\n".join(lines).split("\n=> ")
            assert title not in found, f"two cases have the title {title}"
            found[title] = before, statement, said
    return found


CASES = cases()


@pytest.mark.parametrize(("before", "statement", "said"), CASES.values(), ids=CASES)
def test_a_statement_is_refused_at_its_place(before: str, statement: str, said: str) -> None:
    with pytest.raises(RollupError) as refused:
        SiddhiApp(f"{before}\n{statement}")
    assert said in str(refused.value)
    assert refused.value.line == 2
    if "not acted on" in said or "goes with what it waits for" in said:
        assert refused.value.hint, "what to write instead"


def test_no_case_is_lost() -> None:
    assert len(CASES) >= 64
