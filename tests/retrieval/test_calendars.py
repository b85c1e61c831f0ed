"""Periods that a table lists, `per 'fiscal'`: the 4-4-5 weeks of a fiscal year, seasons, sales; each beside plain Python."""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rollup
from rollup.conf import load
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from tests.retrieval.trades import STORES, app, delta_host, host_of

ZONE = "America/New_York"
FIRST = date(2017, 12, 31)
WEEKS = (4, 4, 5) * 8
DAYS = [FIRST + timedelta(weeks=weeks) for weeks in accumulate(WEEKS, initial=0)]
FISCAL = list(zip(DAYS, (day - timedelta(days=1) for day in DAYS[1:]), strict=False))
"""Two fiscal years of 4-4-5 weeks, as the first and the last day of each period."""
SALES = [FISCAL[2], FISCAL[5], FISCAL[11]]
"""Periods with gaps between them."""
Rows = Sequence[tuple[date, date]]
Event = tuple[str, int, int]


def drawn(seed: int) -> list[Event]:
    """Events of the two years, many of them about the edges of periods."""
    draw, found = Random(seed), list[Event]()
    for _ in range(200):
        edge = datetime.combine(draw.choice(DAYS), datetime.min.time(), ZoneInfo(ZONE))
        away = draw.choice((1, 3_600_000, 86_400_000)) * draw.randint(-9, 9)
        found.append((draw.choice("ab"), draw.randint(1, 99), int(edge.timestamp() * 1000) + away))
    return found


def told(events: Sequence[Event], rows: Rows, zone: str = ZONE) -> dict[tuple[date, str], int]:
    """The sum by period and key: each event counts in the period that has its local day."""
    found = defaultdict[tuple[date, str], int](int)
    for key, value, ts in events:
        day = datetime.fromtimestamp(ts / 1000, UTC).astimezone(ZoneInfo(zone)).date()
        for first, last in rows:
            if first <= day <= last:
                found[first, key] += value
    return dict(found)


def shown(table: pa.Table, zone: str = ZONE) -> dict[tuple[date, str], int]:
    """The same of an answer, whose buckets begin with the days."""
    starts = [
        datetime.fromtimestamp(row["AGG_TIMESTAMP"] / 1000, UTC).astimezone(ZoneInfo(zone)) for row in table.to_pylist()
    ]
    assert all(start.time() == datetime.min.time() for start in starts)
    return {(start.date(), row["k"]): row["total"] for start, row in zip(starts, table.to_pylist(), strict=True)}


def listed(folder: Path, rows: Rows, name: str = "fiscal", more: str = "") -> None:
    """A table of periods in CSV."""
    lines = ["name,from,to", *(f"P{number},{first},{last}" for number, (first, last) in enumerate(rows, 1))]
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    conf = folder / "conf.toml"
    conf.write_text(conf.read_text() + f'[tables.{name}]\npath = "{name}.csv"\n{more}')


@pytest.fixture(params=STORES)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> LocalHost:
    """A job over each kind of store."""
    return host_of(request, tmp_path, app("correct"), ZONE)


def test_periods_of_a_table_are_exact(job: LocalHost, tmp_path: Path) -> None:
    events = drawn(1)
    for at in range(0, len(events), 50):
        job.send("S", events[at : at + 50])
    listed(tmp_path, FISCAL)
    listed(tmp_path, SALES, "sales")
    ask = rollup.open(tmp_path / "conf.toml")
    within = "within '2017-12-01', '2020-02-01' per"
    every = told(events, FISCAL)
    assert shown(ask.query(f"from A {within} 'fiscal' select AGG_TIMESTAMP, k, total")) == every
    assert shown(ask.query(f"from A {within} 'sales' select AGG_TIMESTAMP, k, total")) == told(events, SALES)
    sql = "select AGG_TIMESTAMP, k, total from A within '2017-12-01', '2020-02-01' per 'fiscal'"
    assert shown(ask.query(sql)) == every
    merged = ask.query(f"from A {within} 'fiscal' select AGG_TIMESTAMP, merge(total) as total group by AGG_TIMESTAMP")
    by_period = defaultdict[date, int](int)
    for (first, _), total in every.items():
        by_period[first] += total
    assert merged["total"].to_pylist() == [by_period[first] for first in sorted(by_period)]
    tokyo = ask.query(f"from A {within} 'fiscal in Asia/Tokyo' select AGG_TIMESTAMP, k, total")
    assert shown(tokyo, "Asia/Tokyo") == told(events, FISCAL, "Asia/Tokyo")
    filled = ask.query(f"from A {within} 'fiscal by ()' fill(zero, range) select AGG_TIMESTAMP, total")
    assert filled["total"].to_pylist() == [by_period.get(first, 0) for first, _ in FISCAL]
    before = ask.query(f"from A {within} 'sales by ()' select AGG_TIMESTAMP, total, previous(total) as before")
    totals = [sum(told(events, [row]).values()) for row in SALES]
    assert before.select(["total", "before"]).to_pylist() == [
        {"total": now, "before": ago} for now, ago in zip(totals, [None, *totals], strict=False)
    ]
    named = ask.query(
        f"select f.name, sum(t.total) as total from A {within} 'fiscal' t join fiscal f"
        ' on cast(t.AGG_TIME as date) = cast(f."from" as date) group by 1'
    )
    numbers = {f"P{number}": by_period[first] for number, (first, _) in enumerate(FISCAL, 1) if first in by_period}
    assert {row["name"]: row["total"] for row in named.to_pylist()} == numbers


@pytest.mark.parametrize("form", ["texts", "days", "times", "no end"])
def test_a_table_may_have_days_or_times(tmp_path: Path, form: str) -> None:
    events = drawn(2)
    delta_host(tmp_path, app("correct"), ZONE).send("S", events)
    listed(tmp_path, FISCAL)
    if form != "texts":
        (tmp_path / "fiscal.csv").unlink()
        midnights = [datetime.combine(day, datetime.min.time(), ZoneInfo(ZONE)) for day in DAYS]
        columns = {
            "days": {"from": [first for first, _ in FISCAL], "to": [last for _, last in FISCAL]},
            "times": {"from": midnights[:-1], "to": midnights[1:]},
            "no end": {"from": DAYS},
        }
        pq.write_table(pa.table(columns[form]), tmp_path / "fiscal.parquet")
        conf = tmp_path / "conf.toml"
        conf.write_text(conf.read_text().replace("fiscal.csv", "fiscal.parquet"))
    text = "from A within '2017-12-01', '2020-02-01' per 'fiscal' select AGG_TIMESTAMP, k, total"
    assert shown(rollup.query(tmp_path / "conf.toml", text)) == told(events, FISCAL)


@pytest.mark.parametrize(
    ("rows", "per", "said"),
    [
        (None, "fisca", "unknown duration 'fisca'.*years, fiscal"),
        (None, "2 fiscal", "fiscal lists its periods, so they have no count"),
        (None, "fiscal over 7 days", "no count, origin or window"),
        (None, "fiscal in Nowhere/Town", "Nowhere"),
        ("name,begins\na,2018-01-01\n", "fiscal", "has no column `from`.*it has name, begins"),
        (
            "from,to\n2018-01-01,2018-02-01\n2018-02-01,2018-03-01\n",
            "fiscal",
            "from 2018-01-01 00:00 ends behind the beg",
        ),
        ("from,to\n2018-01-01,2017-02-01\n", "fiscal", "from 2018-01-01 00:00 ends before it begins"),
        ("from,to\n2018-02-30,2018-03-01\n", "fiscal", "2018-02-30"),
        ("from,to\n7,2018-03-01\n", "fiscal", "has 7 as an end of a period"),
        ("from\n2018-01-01\n", "fiscal", "lists no period.*the last one needs `to`"),
        (
            "from,to\n2019-01-01,2019-02-01\n",
            "fiscal",
            "no period of fiscal begins in this range.*from 2019-01-01 to 2019-02-02",
        ),
        (
            "from,to\n2018-01-01T00:00:00.5,2018-03-01\n",
            "fiscal",
            "cannot be put together.*an origin at a whole second",
        ),
    ],
)
def test_periods_that_cannot_be_are_refused_by_name(tmp_path: Path, rows: str | None, per: str, said: str) -> None:
    delta_host(tmp_path, app("correct"), "UTC").send("S", drawn(3)[:5])
    listed(tmp_path, FISCAL)
    if rows is not None:
        (tmp_path / "fiscal.csv").write_text(rows)
    with pytest.raises(RollupError, match=said):
        rollup.query(tmp_path / "conf.toml", f"from A within '2018' per '{per}' select k, total")


def test_the_level_that_is_needed_is_named(tmp_path: Path) -> None:
    delta_host(tmp_path, app("correct", 0).replace("sec ... year", "month ... year"), "UTC").send("S", drawn(3)[:5])
    listed(tmp_path, FISCAL)
    with pytest.raises(RollupError, match=r"the finest level of A is months .they would be made of days"):
        rollup.query(tmp_path / "conf.toml", "from A within '2018' per 'fiscal' select k, total")


def test_a_program_with_calendars_travels_to_tasks(tmp_path: Path) -> None:
    delta_host(tmp_path, app("correct"), ZONE)
    listed(tmp_path, FISCAL)
    declared = load(tmp_path / "conf.toml").declaration()
    calendars = pickle.loads(pickle.dumps(declared)).program().aggregations["A"].calendars
    assert len(calendars["fiscal"].spans(ZONE)) == len(FISCAL)
