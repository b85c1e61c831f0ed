"""Windows that overlap are merged from panes: beside a plain truth, row by row, with when each group leaves."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from rollup.engine.flows.flow import AT, END
from rollup.engine.flows.panes import Merged
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session, Standing
from tests.conformance.uql.targets import reopened

EPOCH = datetime(1970, 1, 1)
COLUMNS = {"rowtime": "TIMESTAMP", "k": "VARCHAR", "u": "INTEGER"}
SHAPES = [(10, 60, 0), (60, 90, 0), (60, 150, 7), (40, 60, 0), (20, 20, 5), (60, 30, 0)]
VALUES = (
    "COUNT(*) AS c, COUNT(u) AS n, SUM(u) AS s, MIN(u) AS l, MAX(u) AS h, AVG(u) AS a, SUM(u) FILTER (WHERE u > 3) AS f"
)


def _query(emit: int, retain: int, align: int, values: str = VALUES) -> str:
    hop = f"HOP(rowtime, INTERVAL '{emit}' SECOND, INTERVAL '{retain}' SECOND, TIME '00:00:{align:02d}')"
    return f"SELECT STREAM HOP_START(rowtime) AS w, k, {values} FROM S GROUP BY {hop}, k"


def _rows(seed: int, slack: bool = False) -> list[list[Any]]:
    chance = random.Random(seed)
    now, rows = datetime(1969, 12, 31, 23, 50), list[list[Any]]()
    for _ in range(chance.randrange(1, 60)):
        now += timedelta(seconds=chance.choice([0, 0, 1, 5, 20, 20, 70, 400]))
        back = timedelta(seconds=chance.randrange(30)) if slack else timedelta()
        rows.append([str(now - back), chance.choice(["a", "b", None]), chance.choice([None, 1, 2, 5, 2_000_000_000])])
    return rows


def _truth(rows: list[list[Any]], emit: int, retain: int, align: int) -> list[tuple[list[Any], int]]:
    """Each group of each window with the row at which it is complete: the first whose time has reached the end."""
    times = [datetime.fromisoformat(row[0]) for row in rows]
    seconds = [(time - EPOCH) // timedelta(seconds=1) for time in times]
    windows: dict[int, dict[Any, list[Any]]] = {}
    for row, second in zip(rows, seconds, strict=True):
        start = (second - align) // emit * emit + align
        while start + retain > second:
            windows.setdefault(start, {}).setdefault(row[1], []).append(row[2])
            start -= emit
    found: list[tuple[list[Any], int]] = []
    for start in sorted(windows):
        at = next((place for place, second in enumerate(seconds) if second >= start + retain), END)
        for key, units in windows[start].items():
            known = [unit for unit in units if unit is not None]
            mean = sum(known) / len(known) if known else None
            some = [unit for unit in known if unit > 3]
            values = [
                len(units),
                len(known),
                sum(known) if known else None,
                min(known, default=None),
                max(known, default=None),
                mean,
            ]
            found.append(([EPOCH + timedelta(seconds=start), key, *values, sum(some) if some else None], at))
    return found


def _standing(query: str, slack: str | None = None) -> tuple[Session, Standing]:
    table: dict[str, Any] = {"columns": COLUMNS, "kind": "stream", "monotonic": {"rowtime": "increasing"}}
    session = Session(Model.of({"tables": {"S": table | ({"slack": slack} if slack else {})}}))
    standing = session.prepare(query).standing
    assert standing is not None
    return session, standing


def _given(session: Session, standing: Standing, rows: list[list[Any]], seed: int) -> list[tuple[list[Any], int]]:
    """What leaves, with where, of rows that come in random pieces, with a new process before every piece."""
    chance, states, at = random.Random(seed), standing.start(), 0
    found: list[tuple[list[Any], int]] = []
    while at <= len(rows):
        end = min(len(rows), at + chance.choice([1, 2, 7, 60]))
        ended = end == len(rows)
        arrivals = {"s": session.arrivals("S", rows[at:end], range(at, end), ended=ended)}
        states, output, refused = standing.step(states, arrivals, session.engine)
        assert not refused
        found += [([v for k, v in row.items() if k != AT], row[AT]) for row in output.to_pylist()]
        states = dict(zip(states, reopened(tuple(states.values())), strict=True))
        at = end if not ended else len(rows) + 1
    return found


@pytest.mark.parametrize(("emit", "retain", "align"), SHAPES)
@pytest.mark.few(3)
def test_every_group_of_every_window_leaves_once_when_it_is_complete_with_the_values_of_its_rows(
    emit: int, retain: int, align: int
) -> None:
    session, standing = _standing(_query(emit, retain, align))
    merged = any(isinstance(node, Merged) for node in standing.nodes.values())
    assert merged == (retain > emit)
    for seed in range(3):
        rows = _rows(seed)
        assert _given(session, standing, rows, seed) == _truth(rows, emit, retain, align), seed


def test_rows_out_of_order_within_the_slack_are_in_their_windows_however_they_are_cut() -> None:
    session, standing = _standing(_query(10, 60, 0), "30 seconds")
    for seed in range(2):
        rows = _rows(seed, slack=True)
        found = _given(session, standing, rows, seed)
        assert found == _given(session, standing, rows, seed + 100)
        expected = [row for row, _ in _truth(sorted(rows, key=lambda row: row[0]), 10, 60, 0)]
        assert sorted(map(str, (row for row, _ in found))) == sorted(map(str, expected))


@pytest.mark.parametrize(
    "value", ["COUNT(DISTINCT u)", "SUM(u / 2e0)", "STDDEV_POP(u)", "SUM(u * EXTRACT(SECOND FROM HOP_START(rowtime)))"]
)
def test_an_aggregate_that_is_not_merged_exactly_keeps_the_rows_of_its_windows(value: str) -> None:
    session, plain = _standing(_query(10, 60, 0, f"COUNT(*) AS c, {value} AS v"))
    assert not any(isinstance(node, Merged) for node in plain.nodes.values())
    rows = _rows(4)
    counts = [([*row[:2], row[2]], at) for row, at in _given(session, plain, rows, 1)]
    assert counts == [(row[:3], at) for row, at in _truth(rows, 10, 60, 0)]


def test_groups_over_merged_windows_close_by_the_windows_time() -> None:
    inner = _query(10, 60, 0, "COUNT(*) AS c").replace("SELECT STREAM", "SELECT")
    outer = "SELECT STREAM FLOOR(w TO MINUTE) AS m, SUM(c) AS s"
    session, standing = _standing(f"{outer} FROM ({inner}) GROUP BY FLOOR(w TO MINUTE)")
    rows = _rows(7)
    found = _given(session, standing, rows, 3)
    sums: dict[datetime, int] = {}
    for (start, _, count, *_), _ in _truth(rows, 10, 60, 0):
        minute = start.replace(second=0)
        sums[minute] = sums.get(minute, 0) + count
    assert [row for row, _ in found] == [[minute, total] for minute, total in sums.items()]
