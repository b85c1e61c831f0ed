"""Mistakes that are made often, as text: each is refused with the place and with what to write instead.

A new one is two lines in mistakes.txt. A message without a cure is a failure of its own, whatever it says.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from rollup.ask_sql import SqlAsker
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.lang.siddhi.apps import parse_query
from rollup.program import compile_app
from rollup.retrieval.questions import plan

STREAM = "define stream S (k string, v int, ts long)"
ASKED = """define stream S (k string, v int, d double, ts long);
define aggregation A from S select k, sum(v) as total, avg(d) as mean, count() as n
group by k aggregate by ts every sec ... day;"""


@cache
def host() -> LocalHost:
    """What questions are put to."""
    made = LocalHost.of(ASKED)
    made.send("S", [("a", 1, 1.0, 1_514_764_800_000)])
    return made


def told(text: str) -> str:
    """The message for a text: an app, a question, or SQL. Fails when it is accepted."""
    one = host()
    try:
        if re.match(r"(define|create|//|#|@|…)", text):
            compile_app(text.replace("…", STREAM, 1))
        elif re.match(r"(from|form|explain)\b", text):
            plan(parse_query(text), one.program.aggregations)
        else:
            SqlAsker(one.engine, one.program.aggregations, lambda name: one.stores[name].snapshot()).query(text)
    except RollupError as problem:
        return str(problem)
    raise AssertionError(f"{text} is accepted")


def _cases() -> list[tuple[str, str]]:
    blocks = (Path(__file__).parent / "mistakes.txt").read_text(encoding="utf-8").strip().split("\n\n")[1:]
    return [tuple(block.split("\n=> ")) for block in blocks]  # type: ignore[misc]


CASES = _cases()


@pytest.mark.parametrize(("text", "message"), CASES, ids=[text for text, _ in CASES])
def test_a_mistake_is_told_what_to_write_instead(text: str, message: str) -> None:
    assert told(text) == message
    assert re.search(r"\(.{3,}\)$", message), "a message without a cure"


def test_there_are_a_hundred_mistakes_of_all_three_kinds() -> None:
    assert len(CASES) == len({text for text, _ in CASES}) >= 100
    assert sum(text.lower().startswith("select") for text, _ in CASES) >= 10
    assert sum(text.startswith("from") for text, _ in CASES) >= 30
