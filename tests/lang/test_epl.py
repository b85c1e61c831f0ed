"""EPL: what a text says, and where and how a wrong text is refused.

Cases as text (epl_cases.txt: title, statement or `? request`, then the tree in short or `! line:column message`), so that
adding one needs no Python; every statement of the conformance cases and of the document is read; fuzz: whatever is done
to the tokens of right texts, only SyntaxProblem comes out, with a position inside the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from rollup.core.errors import SyntaxProblem
from rollup.lang.epl.reader import read_module, read_request
from rollup.lang.epl.render import render
from rollup.lang.epl.tree.expressions import Expression
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.statements import Assignment, Grouping, Query
from rollup.lang.epl.tree.streams import Annotation, Item, View
from tests.lang.breaking import broken
from tests.profiles import examples

CONFORMANCE = Path(__file__).parents[1] / "conformance" / "epl"
REFUSED = {
    *(("stmt_invalid", name) for name in ("11", "15")),
    *(("stmt_refused_values", name) for name in ("s3", "s6", "s7")),
    ("stmt_refused_clauses", "s25"),
    *(("subq_columns", name) for name in ("s26", "s27")),
    ("win_batches_refused", "s14"),
}
"""The statements of the conformance cases whose fault is one of syntax."""


def _cases() -> list[tuple[str, str, str]]:
    blocks = (Path(__file__).parent / "epl_cases.txt").read_text(encoding="utf-8").split("\n# ")
    return [(title, *rest.split("\n=>\n")) for title, rest in (b.removeprefix("# ").split("\n", 1) for b in blocks)]  # type: ignore[misc]


CASES = _cases()


def outline(value: Any) -> str:
    """A tree in short: class and fields that are not the usual ones, expressions as text."""
    if isinstance(value, Expression):
        return render(value)
    if isinstance(value, Item):
        return outline(value.value) + (f" as {value.name}" if value.name else "")
    if isinstance(value, View):
        return f"#{value.name}({', '.join(map(outline, value.arguments))})"
    if isinstance(value, Annotation):
        return f"@{value.name}" + (f"({', '.join(f'{n}={v}' for n, v in value.values)})" if value.values else "")
    if isinstance(value, Assignment):
        return outline(value.target) + (f" = {outline(value.value)}" if value.value is not None else "")
    if isinstance(value, Grouping):
        return f"{value.kind}{outline(value.values or value.parts)}"
    if isinstance(value, tuple):
        if len(value) == 2 and isinstance(value[0], str) != isinstance(value[1], str):
            return f"{outline(value[0])}: {outline(value[1])}"
        return f"[{', '.join(map(outline, value))}]"
    return _node(value) if isinstance(value, Node) else str(value)


def _node(node: Node) -> str:
    said: list[str] = []
    by_name = isinstance(node, Query)
    for field in fields(node):
        value = getattr(node, field.name)
        if field.name == "at":
            continue
        if field.default is not MISSING and value == field.default:
            by_name = True
            continue
        said.append(f"{field.name}={outline(value)}" if by_name else outline(value))
    return f"{type(node).__name__}({', '.join(said)})"


@pytest.mark.parametrize(("title", "text", "expected"), CASES, ids=[title for title, _, _ in CASES])
def test_a_text_becomes_the_tree_or_the_message(title: str, text: str, expected: str) -> None:
    expected = expected.strip()
    if not expected.startswith("!"):
        assert outline(_body(text)) == expected
        return
    place, message = expected.removeprefix("! ").split(" ", 1)
    with pytest.raises(SyntaxProblem) as caught:
        _body(text)
    assert f"{caught.value.line}:{caught.value.column}" == place
    said = caught.value.message + (f" ({caught.value.hint})" if caught.value.hint else "")
    assert said.startswith(message)


def _body(text: str) -> Any:
    if text.startswith("? "):
        return read_request(text[2:]).request
    return read_module(text).statements[0].body


def _recorded() -> Iterator[tuple[str, str, str]]:
    """Case, statement, text; the name of a request is empty."""
    for path in sorted(CONFORMANCE.glob("*.json")):
        if path.name.startswith("stmt_invalid_"):
            continue  # one mistake a statement: that each is refused is what the case itself says
        case = json.loads(path.read_text())
        for text in case["schemas"]:
            yield case["name"], "schema", text
        for statement in [*case["epl"], *(step["deploy"] for step in case["steps"] if "deploy" in step)]:
            yield case["name"], statement["name"], statement["text"]
        for step in case["steps"]:
            if "faf" in step:
                yield case["name"], "", step["faf"]


RECORDED = list(_recorded())


def test_every_statement_of_the_cases_is_read_but_those_whose_syntax_is_wrong() -> None:
    refused: set[tuple[str, str]] = set()
    for case, name, text in RECORDED:
        try:
            read_module(text) if name else read_request(text)
        except SyntaxProblem:
            refused.add((case, name))
    assert len(RECORDED) > 900
    assert refused == REFUSED


def test_the_text_of_an_expression_reads_back_as_the_same_tree() -> None:
    seen: set[str] = set()
    for case, name, text in RECORDED:
        if not name or (case, name) in REFUSED:
            continue
        for statement in read_module(text).statements:
            seen.update(_round_trip(statement.body))
    assert len(seen) > 100


def _round_trip(body: Any) -> Iterator[str]:
    for item in getattr(body, "items", ()):
        text = render(item.value)
        if "…" in text or text.endswith("*"):
            continue
        again = read_module(f"select {text} from S").statements[0].body
        assert isinstance(again, Query)
        assert again.items[0].value == item.value, text
        yield text


def test_a_module_has_a_name_uses_and_statements_with_their_own_text() -> None:
    module = read_module("module a.b; uses x.y; import com.*; @name('one') select 1 as x from A; ; select * from B;")
    assert (module.name, module.uses) == ("a.b", ("x.y",))
    assert [statement.name for statement in module.statements] == ["one", None]
    assert [statement.text for statement in module.statements] == [
        "@name('one') select 1 as x from A",
        "select * from B",
    ]
    assert module.statements[1].at == (1, 74)


RIGHT = [text for case, name, text in RECORDED if name and (case, name) not in REFUSED]
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|\w+|->|\S")
JUNK = ["(", ")", "[", "]", "'", '"', ";", ",", ".", "*", "-", "->", "every", "select", "from", "where", "é", "\x00",
        "null", "9" * 30, "#", "@", "/*", "*/", "//", "?", "::", "5 sec", "0x", "\\", "`", "pattern [", "case", "=>"]  # fmt: skip


@examples(150)
@given(broken(RIGHT, TOKEN, JUNK))
@example("'\\u12'")
@example("select '\\")
@example(";")
def test_whatever_is_done_to_a_text_only_our_error_comes_out(text: str) -> None:
    try:
        read_module(text)
    except SyntaxProblem as problem:
        lines = text.split("\n")
        assert problem.message
        assert problem.line is not None and problem.column is not None
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 2
