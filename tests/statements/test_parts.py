"""A batch whose events make more text than is held at once is taken in parts, each with a commit; nothing else changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rollup.core.columns import ColumnEngine
from rollup.engine import room
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.sinks.base import Held
from rollup.statements.committed.commits import Commits, Saved
from rollup.statements.component import Event, Refused

NOON, ENGINE = 1_700_000_040_000, ColumnEngine(threads=1)
STREAM = "define stream S (symbol string, q int); define stream T (symbol string, q int);\n"
OWN_OUT = "define stream Out (v string, n long);\n"
STATEMENTS = {
    "epl": "@lang('epl') { insert into Out select symbol.repeat(q) as v, count(*) as n from S; }",
    "siddhi": "from S select str:replace(symbol, 'x', 'xxxxxxxxxx') as v, count() as n insert into Out;",
    "sql": "@lang('sql', into='Out') { SELECT STREAM REPEAT(symbol, q) AS v, COUNT(*) OVER (ORDER BY rowtime ROWS "
    "UNBOUNDED PRECEDING) AS n FROM S }",
    "streamcruncher": OWN_OUT + "@lang('streamcruncher', into='Out') { select repeat(symbol, q) as v, 1 as n from S"
    " (partition store last 3) as w where w.$row_status is new; }",
}  # fmt: skip
"""Statements that make ten times of a text, where q is 10, and count it."""
TEXT, BOUND = "x" * 10_000, 1 << 20
BAD = 2_000_000
"""So often repeated the text is too long for one event."""


class _Crash(Exception):
    pass


class _Kept(Commits):
    """Commits, of which the one with the number `fails` ends the process behind it."""

    fails = 0

    def write(self, saved: Saved) -> None:
        super().write(saved)
        if saved.number == self.fails:
            raise _Crash


class _Outlet:
    """Keeps the rows, in the pieces in which they came."""

    place, tells = "a place", False

    def __init__(self) -> None:
        self.pieces: list[list[dict[str, Any]]] = []

    def held(self, line: str) -> None:
        pass

    def forget(self, line: str, rows: int) -> bool:
        return False

    def write(self, rows: Any, line: str, held: Held) -> None:
        before = sum(map(len, self.pieces))
        self.pieces.append(rows.to_pylist()[max(0, before - (held.rows - rows.num_rows)) :])


class _Job:
    """Statements that are taken up from their last commit."""

    def __init__(self, folder: Path, text: str, outlet: _Outlet) -> None:
        self.commits = _Kept(folder)
        self.running = Running(compile_app(STREAM + text), {}, self.commits, {"Out": outlet})  # type: ignore[dict-item]
        self.refused = list[list[Refused]]()

    def batch(self, events: Sequence[Event], stream: str = "S", number: int = 1) -> None:
        self.running.start(ENGINE)
        marks = {**self.running.source, stream: {"query": stream, "batch": number, "arrivals": 100}}
        aside = lambda refused: self.refused.append(list(refused))  # noqa: E731
        for _ in self.running.advancing(ENGINE, events, marks, aside, of=stream):
            pass


def events(bad: Sequence[int] = ()) -> list[Event]:
    """Of three events two make a long text, those in `bad` one that no event may make; the last one moves the clock."""
    times = [BAD if n in bad else 10 if n % 3 else 1 for n in range(60)]
    found = [(TEXT if often > 1 else str(n), often) for n, often in enumerate(times)]
    return [Event((n, 0), NOON + n, "S" if n < 60 else "T", one) for n, one in enumerate([*found, ("t", 1)])]


def texts(given: Sequence[Event]) -> list[str]:
    """What the statements make of them, in plain Python."""
    return [event.values[0] * event.values[1] for event in given if event.values[1] != BAD and event.stream == "S"]


@pytest.mark.parametrize("language", STATEMENTS)
def test_each_part_makes_no_more_text_than_is_held_at_once(
    language: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(room, "MOST_AT_ONCE", BOUND)
    outlet, given = _Outlet(), events()
    job = _Job(tmp_path, STATEMENTS[language], outlet)
    job.batch(given)
    rows = [row for piece in outlet.pieces for row in piece]
    assert [row["v"] for row in rows] == texts(given) and not job.refused
    if language != "streamcruncher":
        assert [row["n"] for row in rows] == list(range(1, 61)), "a part goes on from the one before"
    assert all(sum(len(row["v"]) for row in piece) < BOUND + 60 * 10 for piece in outlet.pieces)
    assert job.running.number == len(outlet.pieces) >= 4 and job.running.source["S"]["batch"] == 1


def test_one_event_makes_as_much_text_as_it_may(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(room, "MOST_AT_ONCE", 50_000)
    outlet, given = _Outlet(), events()
    job = _Job(tmp_path, STATEMENTS["epl"], outlet)
    job.batch(given)
    assert [row["v"] for piece in outlet.pieces for row in piece] == texts(given) and not job.refused


@pytest.mark.parametrize("fails", [1, 2, 3])
@pytest.mark.parametrize("between", [False, True])
def test_after_a_crash_the_rest_of_the_batch_is_taken(
    fails: int, between: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also where a batch of another stream comes first; what was refused is told once, with all of the batch."""
    monkeypatch.setattr(room, "MOST_AT_ONCE", BOUND)
    outlet, given, bad = _Outlet(), events((5, 50)), (5, 50)
    job = _Job(tmp_path, STATEMENTS["epl"], outlet)
    job.commits.fails = fails
    with pytest.raises(_Crash):
        job.batch(given)
    assert not job.refused and not job.running.source, "the batch is to come again"
    again = _Job(tmp_path, STATEMENTS["epl"], outlet)
    if between:
        again.batch([Event((n, 0), NOON + 60_000, "T", ("y", 1)) for n in range(100)], "T")
    again.batch(given)
    assert [row["v"] for piece in outlet.pieces for row in piece] == texts(given)
    assert [[each.event.key[0] for each in told] for told in again.refused] == [list(bad)]
    assert not again.commits.newest().begun
