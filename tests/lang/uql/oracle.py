"""UQL one row at a time, as slowly and as plainly as the rulings say it. Reference for the steps over columns.

A row is (key, x, t, begin, end); t in whole seconds. A window is a list of rows; results are (key, n, sum, first, last).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One row of the input."""

    key: str
    x: float | None
    t: int
    begin: bool
    end: bool


Result = tuple[Any, ...]


def results(rows: list[Row], grouped: bool = True) -> list[Result]:
    """The groups of one window, in order of first appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.key if grouped else "", []).append(row)
    return [_result(key, members) for key, members in groups.items()]


def _result(key: str, rows: list[Row]) -> Result:
    present = [row.x for row in rows if row.x is not None]
    total = 0.0
    for value in present:
        total += value
    return key, len(rows), total if present else None, rows[0].x, rows[-1].x, min(present, default=None)


def slices(rows: list[Row], width: int, every: int, grouped: bool = True, lowest: int | None = None) -> list[Result]:
    """Windows [k * every, k * every + width) of t, those that hold a row."""
    windows: dict[int, list[Row]] = {}
    given: list[Result] = []
    clock: int | None = None
    for row in rows:
        holding = [k for k in range((row.t - width) // every, row.t // every + 1) if 0 <= row.t - k * every < width]
        holding = [k for k in holding if lowest is None or k >= lowest]
        still_open = [k for k in holding if clock is None or k * every + width > clock]
        if holding and not still_open and clock is not None:
            still_open = [next(k for k in count((clock - width) // every - 2) if k * every + width > clock)]
        for k in still_open:
            windows.setdefault(k, []).append(row)
        clock = row.t if clock is None else max(clock, row.t)
        for k in sorted(k for k in windows if k * every + width <= clock):
            given += results(windows.pop(k), grouped)
    for k in sorted(windows):
        given += results(windows[k], grouped)
    return given


def growing(rows: list[Row], width: int) -> list[Result]:
    """One window that only grows, given at each multiple of the width at which it has grown."""
    given: list[Result] = []
    window: list[Row] = []
    grown, clock = False, None
    for row in rows:
        if clock is not None and row.t // width > clock // width and grown:
            given += results(window)
            grown = False
        window.append(row)
        grown = True
        clock = row.t if clock is None else max(clock, row.t)
    return given + (results(window) if grown else [])


@dataclass
class _Session:
    number: int
    key: str
    begin: int
    rows: list[Row] = field(default_factory=list)


def sessions(
    rows: list[Row], inclusive: bool, life: int | None, grouped: bool, after: int | None = None
) -> list[Result]:
    """Sessions by begin and end; `after`: they end at t >= t.start + after, whatever `end` says."""
    open_: dict[str, _Session] = {}
    given: list[Result] = []
    clock: int | None = None
    number = 0
    for row in rows:
        clock = row.t if clock is None else max(clock, row.t)
        if life is not None:
            for session in sorted(open_.values(), key=lambda session: session.number):
                if clock >= session.begin + life:
                    given += results(open_.pop(session.key).rows, grouped)
        key = row.key if grouped else ""
        session = open_.get(key)
        if session is not None:
            ends = row.end if after is None else row.t >= session.begin + after
            if ends:
                given += results(open_.pop(key).rows + ([row] if inclusive else []), grouped)
            else:
                session.rows.append(row)
                continue
        if row.begin:
            open_[key] = _Session(number, key, row.t, [row])
            number += 1
    for session in sorted(open_.values(), key=lambda session: session.number):
        given += results(session.rows, grouped)
    return given
