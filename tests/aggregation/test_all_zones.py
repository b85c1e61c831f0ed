"""Every zone of the pinned database, 1970 to 2040: its buckets are those of `zoneinfo`, over columns and one at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

import pyarrow as pa
import pytest
from sqlglot import exp

from rollup.core import buckets
from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from tests.aggregation.rig import shared_engine
from tests.oracle import local_time as time

DAY = 86_400_000
LATELY = ("America/Vancouver", "America/Edmonton", "Africa/Casablanca", "America/Havana", "America/St_Johns")
_CUT = (Duration.HOURS, Duration.DAYS, Duration.MONTHS, Duration.YEARS)


def _content(name: str) -> bytes:
    return files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()


def _names() -> list[str]:
    """A name of each zone: many are other names of one."""
    return sorted({_content(name): name for name in (files("tzdata") / "zones").read_text().split()}.values())


def _changes(name: str, first: int = 0, last: int = 71 * 365 * DAY) -> Iterator[int]:
    """The instants at which the clocks of a zone change."""

    def shift(at: int) -> object:
        return time.local(at, name).utcoffset()

    for low in range(first, last, 12 * DAY):
        now = shift(low)
        if shift(low + 12 * DAY) != now:
            yield low + bisect_left(range(12 * DAY), True, key=lambda ms, low=low, now=now: shift(low + ms) != now)


def _around(change: int) -> list[int]:
    """Instants close to a change: on both sides of it, of what comes twice, and of the midnights next to it."""
    hours = (-DAY, -7_200_000, -3_600_000, -60_000, 0, 59_000, 1_800_000, 3_600_000, 7_200_000, DAY)
    return [change + shift + ms for shift in hours for ms in (-1, 0)]


@cache
def _query(zone: str | None) -> str:
    where = exp.column("z") if zone is None else exp.Literal.string(zone)
    starts = [buckets.start(exp.column("t"), level, where).as_(f"s{level:d}") for level in _CUT]
    ends = [buckets.end(exp.column(f"s{level:d}"), level, where).as_(f"e{level:d}") for level in _CUT]
    ends += [buckets.start(exp.column(f"s{level:d}"), level, where).as_(f"a{level:d}") for level in _CUT]
    return to_sql(exp.select("*", *ends).from_(exp.select("*", *starts).from_("rows").subquery("i")))


def _check(engine: ColumnEngine, rows: list[tuple[int, str]], zone: str | None, step: int) -> None:
    table = pa.table({"t": pa.array([t for t, _ in rows], pa.int64()), "z": [z for _, z in rows]})
    found = engine.run(_query(zone), rows=table)
    for level in _CUT:
        assert found[f"a{level:d}"].equals(found[f"s{level:d}"]), f"the start of a bucket of {level} is in another one"
        columns = (found[name].to_pylist() for name in ("t", "z", f"s{level:d}", f"e{level:d}"))
        for number, (t, name, begin, end) in enumerate(zip(*columns, strict=True)):
            assert begin <= t < end, (t, name, level)
            if number % step == 0:
                assert begin == time.start(t, int(level), name) == bucket_start(t, level, name), (t, name, level)
                assert end == time.end(begin, int(level), name) == bucket_end(begin, level, name), (t, name, level)


@pytest.mark.parametrize("step", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_in_every_zone_buckets_around_every_change_are_those_of_zoneinfo(step: int) -> None:
    rows = [(t, name) for name in _names()[::step] for change in _changes(name) for t in _around(change)]
    assert len(rows) > 300_000 // step
    _check(shared_engine(), rows, None, 41)


@pytest.mark.parametrize("name", LATELY)
def test_zones_whose_rules_changed_lately_are_those_of_the_pinned_database(name: str) -> None:
    """Every hour and a half of 2026 and 2027, and what lies far ahead."""
    first, ahead = 1_767_225_600_000, 13_000_000_000_000
    near = range(first, first + 730 * DAY, 5_400_000)
    far = [t for change in _changes(name, ahead, ahead + 730 * DAY) for t in _around(change)]
    _check(shared_engine(), [(t, name) for t in (*near, *far)], name, 7)


@pytest.mark.parametrize(
    ("name", "instant"),
    [
        ("America/Toronto", -1_601_753_400_000 + 600_000),  # 30 March 1919: 23:30 is followed by 00:30
        ("America/St_Johns", 1_289_097_060_000 + 600_000),  # 7 November 2010: 00:01 is followed by 23:01
    ],
)
def test_clocks_that_change_over_midnight_leave_every_instant_in_its_bucket(name: str, instant: int) -> None:
    _check(shared_engine(), [(instant + minutes * 60_000, name) for minutes in range(-2000, 2000, 3)], name, 1)
