"""Bucket arithmetic said three times: in SQL, in rollup.core.calendar, and by the oracle's zoneinfo. All must agree.

Random instants in zones with awkward midnights (Havana and Sao Paulo skip or repeat them, Lord Howe shifts half an
hour, Samoa lost a day), across the end of the offset scale, before 1970, and close to each change of the clocks.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from rollup.core import buckets
from rollup.core.calendar import Duration, bucket_end, bucket_start, parse_timestamp
from rollup.core.dialects import to_sql
from tests.aggregation.rig import shared_engine
from tests.oracle import local_time as time
from tests.profiles import examples

FIXED = ("+00:00", "+05:30", "-03:30", "-11:00", "+14:00")
NAMED = (
    "America/Havana",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Asia/Kathmandu",
    "Pacific/Apia",
)
CHANGES = [
    1_520_740_800_000 + 5 * 3_600_000,  # Havana, 11 March 2018: midnight is skipped
    1_541_307_600_000,  # Havana, 4 November 2018: the hour after midnight comes twice
    1_541_300_400_000,  # Sao Paulo, 4 November 2018: midnight is skipped
    1_518_919_200_000,  # Sao Paulo, 18 February 2018: the hour before midnight comes twice
    1_538_839_800_000,  # Lord Howe, 7 October 2018: half an hour forward
    1_522_508_400_000,  # Lord Howe, 1 April 2018: half an hour back
    1_325_239_200_000,  # Apia: 30 December 2011 does not exist
    0,
]
INSTANTS = st.one_of(
    st.integers(-1_500_000_000_000, 4_000_000_000_000),
    st.builds(
        lambda change, hours, ms: change + hours * 1_800_000 + ms,
        st.sampled_from(CHANGES),
        st.integers(-100, 100),
        st.sampled_from([-1, 0, 1]),
    ),
)


@cache
def _query(level: Duration, zone: str | None) -> str:
    where = exp.column("z") if zone is None else exp.Literal.string(zone)
    begin = buckets.start(exp.column("t"), level, where)
    ends = [buckets.end(exp.column("b"), level, where, count).as_(f"e{count}") for count in (1, 4)]
    inner = exp.select("*", begin.as_("b")).from_("rows")
    return to_sql(exp.select("t", "z", "b", *ends).from_(inner.subquery("i")))


def _check(level: Duration, rows: list[tuple[int, str]], literal: str | None) -> None:
    table = pa.table({"t": pa.array([t for t, _ in rows], pa.int64()), "z": [z for _, z in rows]})
    for row in shared_engine().run(_query(level, literal), rows=table).to_pylist():
        t, zone, begin = row["t"], row["z"], row["b"]
        assert begin == bucket_start(t, level, zone), (t, zone)
        assert begin <= t < row["e1"], (t, zone)
        for count in (1, 4):
            assert row[f"e{count}"] == bucket_end(begin, level, zone, count), (t, zone, count)


@pytest.mark.parametrize("level", Duration)
@examples(6)
@given(rows=st.lists(st.tuples(INSTANTS, st.sampled_from(FIXED + NAMED)), min_size=1, max_size=40))
def test_sql_cuts_as_the_calendar_does_in_the_zone_of_the_row(level: Duration, rows: list[tuple[int, str]]) -> None:
    _check(level, rows, None)


@pytest.mark.parametrize("zone", FIXED + NAMED)
@pytest.mark.parametrize("level", Duration)
@examples(2)
@given(instants=st.lists(INSTANTS, min_size=1, max_size=40))
def test_sql_cuts_as_the_calendar_does_in_a_zone_known_to_the_plan(
    level: Duration, zone: str, instants: list[int]
) -> None:
    _check(level, [(t, zone) for t in instants], zone)


@examples(300)
@given(t=INSTANTS, zone=st.sampled_from(FIXED + NAMED), level=st.sampled_from(Duration), count=st.integers(-3, 5))
@example(t=1_520_740_800_000 + 5 * 3_600_000, zone="America/Havana", level=Duration.DAYS, count=1)
def test_the_calendar_agrees_with_the_oracle(t: int, zone: str, level: Duration, count: int) -> None:
    begin = bucket_start(t, level, zone)
    assert begin == time.start(t, int(level), zone)
    assert bucket_end(begin, level, zone, count) == time.end(begin, int(level), zone, count)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("zone", NAMED)
def test_around_every_change_of_the_clocks_buckets_lie_end_to_end(zone: str, change: int) -> None:
    for level in Duration:
        begin = bucket_start(change - min(level.width_ms or 86_400_000, 86_400_000) * 3, level, zone)
        for _ in range(8):
            end = bucket_end(begin, level, zone)
            assert begin < end and bucket_start(end, level, zone) == end, (zone, level.name, begin)
            assert bucket_start(end - 1, level, zone) == begin, (zone, level.name, begin)
            begin = end


@pytest.mark.parametrize("zone", FIXED + NAMED)
def test_sql_reads_the_wall_clock_as_the_calendar_does(zone: str) -> None:
    """Quarter hours around every change of the clocks, also those that come twice or not at all."""
    walls = sorted(
        {change // 900_000 * 900_000 + quarter * 900_000 for change in CHANGES for quarter in range(-120, 120)}
    )
    query = exp.select("w", buckets.instant(exp.column("w"), exp.Literal.string(zone)).as_("t")).from_("walls")
    found = shared_engine().run(to_sql(query), walls=pa.table({"w": pa.array(walls, pa.int64())})).to_pylist()
    wanted = {
        wall: parse_timestamp(f"{datetime.fromtimestamp(wall // 1000, UTC):%Y-%m-%d %H:%M:%S} {zone}")[0]
        for wall in walls
    }
    assert {row["w"]: row["t"] for row in found} == wanted
