"""SiddhiQL: which plan a text becomes, and where and how a wrong text is refused.

Cases as text (siddhi_cases.txt: title, app or query, then the plan's summary or `! line:column message`) so that adding
one needs no Python. Fuzz: whatever is done to the tokens of right texts, only RollupError comes out, with a position
inside the text when it has one.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lark import UnexpectedInput
from lark.lexer import BasicLexer, LexerThread

from rollup.core.errors import RollupError
from rollup.lang.siddhi.apps import parse_query, siddhi_grammar
from rollup.lang.siddhi.constants import constants_of
from rollup.plan.aggregation import Aggregation
from rollup.program import Program, compile_app
from rollup.retrieval.questions import Ask, plan
from tests.lang.breaking import broken
from tests.profiles import examples

FOR_QUERIES = (
    "define stream S (k string, v int, d double, ts long); define aggregation A from S "
    "select k, sum(v) as total, avg(d) as mean group by k aggregate by ts every sec ... day;"
)


def _cases() -> list[tuple[str, str, str]]:
    blocks = (Path(__file__).parent / "siddhi_cases.txt").read_text(encoding="utf-8").split("\n# ")
    read: list[tuple[str, str, str]] = []
    for block in blocks:
        title, rest = block.removeprefix("# ").split("\n", 1)
        text, expected = rest.split("\n=>\n")
        read.append((title, text, expected.strip("\n")))
    return read


CASES = _cases()
KNOWN: dict[str, str] = {}
"""Cases that fail, with the reason; a case that starts to pass fails the run until it is taken out."""
MARKED = [
    pytest.param(
        *case, id=case[0], marks=[pytest.mark.xfail(strict=True, reason=KNOWN[case[0]])] if case[0] in KNOWN else []
    )
    for case in CASES
]


@cache
def asked() -> Program:
    """The app that on-demand queries are put to."""
    return compile_app(FOR_QUERIES)


def read(text: str) -> str:
    """The summary of what a text becomes: an on-demand query when it starts like one, an app otherwise."""
    if re.match(r"\s*(explain\s+)?from\b(?!.*\binsert\b)", text, re.IGNORECASE | re.DOTALL):
        return query_summary(plan(parse_query(text), asked().aggregations))
    return app_summary(compile_app(text))


def query_summary(ask: Ask) -> str:
    """Aggregation, range, level, and the clauses that are there."""
    selection = ask.selection
    names = "*" if selection.items is None else ", ".join(item.name for item in selection.items)
    clauses = [
        name
        for name in ("group_by", "having", "order_by", "limit", "offset")
        if getattr(selection, name) not in (None, ())
    ]
    extra = [
        *(["on"] if ask.on is not None else []),
        *clauses,
        *([f"fill {ask.fill}"] if ask.fill else []),
        *(["explain"] if ask.explain else []),
    ]
    return f"{ask.aggregation.name} [{ask.start}, {ask.end}) per {ask.per.plural} select {names}" + (
        f" with {', '.join(extra)}" if extra else ""
    )


def app_summary(program: Program) -> str:
    """A line a query between streams, then four lines an aggregation."""
    derived = [f"{d.source} -> {d.target}" for d in program.derivations]
    joins = [f"{j.source.stream} {j.kind} join {j.retrieval.aggregation} -> {j.target}" for j in program.joins]
    return "\n".join([*derived, *joins, *(line for a in program.aggregations.values() for line in _aggregation(a))])


def _aggregation(a: Aggregation) -> list[str]:
    levels = f"{a.levels[0].plural} ... {a.levels[-1].plural}" if len(a.levels) > 1 else a.levels[0].plural
    source = f"{a.stream} filtered" if a.filter is not None else a.stream
    return [
        f"{a.name}: {source}, time {a.clock}, {levels}, buffer {a.buffer}, {a.policy}",
        f"  keys: {', '.join(f'{key.name} {key.type}' for key in a.keys) or 'none'}",
        f"  columns: {', '.join(value.name for value in a.values)}",
        f"  gives: {', '.join(f'{output.name} {output.type}' for output in a.outputs)}",
    ]


@pytest.mark.parametrize(("title", "text", "expected"), MARKED)
def test_each_case_of_the_text_file_is_planned_or_refused_as_written(title: str, text: str, expected: str) -> None:
    if not expected.startswith("!"):
        assert read(text) == expected
        return
    place, message = expected[2:].split(" ", 1)
    with pytest.raises(RollupError) as refused:
        read(text)
    found = refused.value
    assert message in str(found)
    assert place == (f"{found.line}:{found.column}" if found.line is not None else "-")


RIGHT = [text for _, text, expected in CASES if not expected.startswith("!")]
TOKEN = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\w+|\.\.\.|[=!<>]=|\S")
JUNK = [
    "select",
    "from",
    "define",
    "every",
    "by",
    "(",
    ")",
    "[",
    "]",
    "@",
    "'",
    '"',
    "`",
    ";",
    ",",
    "...",
    ".",
    "*",
    "-",
    "1e999",
    "99999999999999999999",
    "é",
    "\x00",
    "null",
    "within",
    "per",
    "'weeks'",
    "sum",
    "count",
    "#",
    "--",
    "/*",
    "*/",
    "aggregation",
    "\n",
    "2147483648",
    "0x",
    "'2018-13-**'",
]


@examples(200)
@given(broken(RIGHT, TOKEN, JUNK))
@example("")
@example(";")
@example("define aggregation")
def test_whatever_is_done_to_a_text_only_our_error_comes_out(text: str) -> None:
    try:
        read(text)
    except RollupError as problem:
        lines = text.split("\n")
        assert problem.message
        if problem.line is not None and problem.column is not None:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 2


def test_the_text_file_holds_both_kinds_of_cases() -> None:
    refused = [title for title, _, expected in CASES if expected.startswith("!")]
    assert len(refused) >= 25 and len(CASES) - len(refused) >= 20
    assert len({title for title, _, _ in CASES}) == len(CASES)


_PIECES = st.lists(st.sampled_from([*"ab15.eEfLd \n'`-/*@#", '"', "within", "12L", "/*"]), max_size=12).map("".join)


@examples(30)
@given(st.sampled_from([text for _, text, _ in CASES]) | _PIECES)
def test_constants_are_found_where_the_grammars_own_lexer_finds_them(text: str) -> None:
    try:
        found = list(LexerThread.from_text(BasicLexer(siddhi_grammar().lexer_conf), text).lex(None))
    except UnexpectedInput:
        found = []
    constants = [str(token) for token in found if token.type in ("STRING", "LONG", "INTEGER", "FLOAT", "DOUBLE")]
    assert [constant.text for constant in constants_of(text)] == constants
