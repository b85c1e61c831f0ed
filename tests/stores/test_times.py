"""`timestamp` and `date` on every store: buckets, extremes, keys and filters are those of Python's times over the events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from rollup.cli.query import Format, show
from rollup.core.errors import PlanError
from rollup.gateway.rewriting.catalog import aggregation_ddl
from rollup.program import compile_app
from rollup.retrieval.plan_cache import Planner
from tests.stores.conftest import Open

BERLIN = ZoneInfo("Europe/Berlin")
APP = """
define stream S (k string, at timestamp, seen timestamp, day date);
@OutOfOrder('correct') @zone('Europe/Berlin')
define aggregation Agg from S[seen >= '1969-12-31T23:30:00+01:00']
select day, min(seen) as first, max(seen) as newest, last(seen) as late, distinctCount(seen) as kinds, max(day) as latest, count() as events,
    max(convert(seen, 'long')) as ms
group by day aggregate by at every hour ... year;
@OutOfOrder('correct') @zone('Europe/Berlin')
define aggregation ByDay from S select seen, count() as events group by seen aggregate by day every day ... month;
"""
START = datetime(1969, 12, 30, 12, tzinfo=UTC)


def _events() -> list[tuple[str, datetime, datetime, date]]:
    choose = random.Random(7)

    def instant() -> datetime:
        return START + timedelta(microseconds=choose.randrange(3 * 86_400_000_000))

    seen = [instant() for _ in range(12)]
    return [
        ("a", instant(), choose.choice(seen), (START + timedelta(days=choose.randrange(4))).date()) for _ in range(60)
    ]


def _hour(at: datetime) -> int:
    return int(at.replace(minute=0, second=0, microsecond=0).timestamp() * 1000)


def _expected(events: Sequence[Sequence[Any]]) -> dict[str, Any]:
    late = max(enumerate(events), key=lambda each: (each[1][1].timestamp() * 1000 // 1, each[0]))[1]
    seen = [event[2] for event in events]
    return {
        "first": min(seen),
        "newest": max(seen),
        "late": late[2],
        "kinds": len(set(seen)),
        "latest": max(event[3] for event in events),
        "events": len(events),
        "ms": (max(seen) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1),
    }


def test_answers_are_those_of_pythons_times(opened: Open) -> None:
    events = _events()
    for batch in (events[:20], events[20:40], events[40:]):
        opened(APP).send("S", batch)
    asked = opened(APP)
    good = [event for event in events if event[2] >= datetime(1969, 12, 31, 22, 30, tzinfo=UTC)]
    groups = dict[tuple[int, date], list[Any]]()
    for event in good:
        groups.setdefault((_hour(event[1]), event[3]), []).append(event)
    found = asked.query("from Agg within '1969-01-01', '1971-01-01' per 'hours' select *").to_pylist()
    assert {(row.pop("AGG_TIMESTAMP"), row.pop("day")): row for row in found} == {
        place: _expected(mine) for place, mine in groups.items()
    }
    some = date(1970, 1, 1)
    (merged,) = asked.query(
        f"from Agg on day == '{some}' within '1969-01-01', '1971-01-01' per 'hours' select merge(first) as first, merge(newest) as newest, merge(kinds) as kinds"
    ).to_pylist()
    wanted = _expected([event for event in good if event[3] == some])
    assert merged == {name: wanted[name] for name in merged}
    bound = max(row["newest"] for row in found) - timedelta(hours=9)
    rows = asked.query(
        f"from Agg within '1969-01-01', '1971-01-01' per 'hours' select newest having newest > '{bound}'"
    )
    assert sorted(rows["newest"].to_pylist()) == sorted(row["newest"] for row in found if row["newest"] > bound)
    by_day = asked.query(
        "from ByDay within '1969-01-01', '1971-01-01' per 'days' select AGG_TIMESTAMP, seen, events"
    ).to_pylist()
    counts = dict[tuple[int, datetime], int]()
    for event in events:
        midnight = datetime(event[3].year, event[3].month, event[3].day, tzinfo=BERLIN)
        place = (int(midnight.timestamp() * 1000), event[2])
        counts[place] = counts.get(place, 0) + 1
    assert {(row["AGG_TIMESTAMP"], row["seen"]): row["events"] for row in by_day} == counts


def test_a_form_that_is_known_does_not_keep_the_first_day() -> None:
    planner = Planner(compile_app(APP).aggregations)
    for day in ("1970-01-01", "1970-01-02"):
        asked = planner.ask(f"from Agg on day == '{day}' within '1970-01-01' per 'hours' select events")
        assert f"'{day}'" in asked.constant_sql(dialect="postgres")
    with pytest.raises(PlanError, match="'noon' is no date"):
        planner.ask("from Agg on day == 'noon' within '1970-01-01' per 'hours' select events")


def test_columns_are_times_and_days() -> None:
    made = compile_app(APP).aggregations["Agg"]
    assert made.table_schema.field("day").type == pa.date32()
    assert made.table_schema.field("AGG_MIN_seen").type == pa.timestamp("us", "UTC")
    shown = " ".join(aggregation_ddl(made))
    assert '"newest" timestamp with time zone' in shown and '"day" date' in shown


def test_instants_are_printed_in_the_zone(capsys: pytest.CaptureFixture[str]) -> None:
    at = [datetime(2018, 7, 1, 22, 30, tzinfo=UTC), datetime(2018, 1, 5, 0, 0, 0, 5, tzinfo=UTC)]
    answer = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC")), "day": pa.array([date(2018, 7, 1), None])})
    show(answer, Format.CSV, "Europe/Berlin")
    show(answer, Format.JSON, "Europe/Berlin")
    show(answer, Format.TABLE, "Europe/Berlin")
    said = capsys.readouterr().out
    assert "2018-07-02T00:30:00+02:00,2018-07-01" in said
    assert '{"at": "2018-01-05T01:00:00.000005+01:00", "day": null}' in said
    assert " 2018-07-02 00:30:00 │" in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from S[at > 'noon'] select k insert into T;", "'noon' is no timestamp (e.g. '2018-01-05')"),
        ("from S[day > at] select k insert into T;", "a date cannot be compared with a timestamp"),
        ("from S select at + 1 as x insert into T;", "arithmetic needs numbers, not timestamp"),
        ("from S select convert(at, 'int') as x insert into T;", "a timestamp is not converted to a int"),
        ("from S select convert(at, 'string') as x insert into T;", "a timestamp is not converted to a string"),
        ("from S#window.length(3) select k, at insert into T;", "statements carry no timestamp, which at of S is"),
        ("define aggregation A from S select sum(at) as x aggregate by at every day ... year;", "sum takes a number, not timestamp"),
    ],
)  # fmt: skip
def test_what_no_time_can_be_is_refused_when_the_app_is_read(text: str, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        compile_app("define stream S (k string, at timestamp, day date); " + text)
    assert message in str(refused.value)
