"""An event that another one causes has the time of its cause: streams that stateless queries feed, in every language.

The job is the real one over a model of Spark (`tests.job.model_spark`); what is expected is worked out by hand.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rollup.hosts.local import LocalHost
from tests.job.jobs import Job
from tests.job.model_spark import ModelSpark

MINUTE = 60_000
START = 1_700_000_000_000
EVENTS = [("o", 1, START), ("o", 2, START + MINUTE), ("s", 2, START + 5 * MINUTE), ("o", 3, START + 12 * MINUTE)]
EVENTS.append(("x", 0, START + 30 * MINUTE))
LONG = "@time('ts') define stream Ev (kind string, id int, ts long);\n"
TEXT = "@time('ts') define stream Ev (kind string, id int, ts string);\n"
BY_AGGREGATION = """define stream Ev (kind string, id int, ts long);
define aggregation A from Ev select count() as n aggregate by ts every min ... day;
"""
ORDERS = "define stream Orders (id int);\nfrom Ev[kind=='o'] select id insert into Orders;\n"
CHAIN = """define stream Wide (kind string, id int);
from Ev select kind, id insert into Wide;
define stream Some (id int);
from Wide[kind=='o'] select id insert into Some;
define stream Orders (id int);
from Some select id insert into Orders;
"""
TWO_WAYS = """define stream Orders (id int);
from Ev[kind=='o' and id < 2] select id insert into Orders;
from Ev[kind=='o' and id >= 2] select id insert into Orders;
"""
OWN_TIME = """@time('at') define stream Orders (id int, at long);
from Ev[kind=='o'] select id, ts as at insert into Orders;
"""
OUT = "define stream Late (id int, at long);\n"
SIDDHI = OUT + (
    "from every t=Orders -> not Ev[kind=='s' and id == t.id] for 10 min"
    " select t.id as id, eventTimestamp() as at insert into Late;\n"
)
EPL = OUT + (
    "@lang('epl') { insert into Late select t.id as id, current_timestamp() as at from pattern [\n"
    "every t=Orders -> (timer:interval(10 min) and not Ev(kind='s', id=t.id))]; }\n"
)
LATE = [(1, START + 10 * MINUTE), (3, START + 22 * MINUTE)]
"""The orders without a shipment in ten minutes, each at the instant at which that was so."""


def job_over(folder: Path, app: str, events: Sequence[tuple[Any, ...]], each: int = 2) -> list[tuple[Any, ...]]:
    """What the sink of a job has that takes up after every file of some events."""
    source = {"kind": "json", "path": "in"}
    (folder / "in").mkdir(parents=True)
    job = Job(folder, source, app=app, streams=("Ev",), more='[sinks.Late]\nkind = "files"\npath = "out"')
    for place in range(0, len(events), each):
        rows = [dict(zip(("kind", "id", "ts"), event, strict=True)) for event in events[place : place + each]]
        (folder / "in" / f"{place:04}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        job.run(ModelSpark())  # type: ignore[arg-type]
    files = (folder / "out").glob("*.parquet")
    return sorted(
        (tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist()), key=lambda r: r[-1]
    )


def at_a_terminal(app: str, events: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What the local host inserts."""
    host = LocalHost.of(app)
    host.send("Ev", events)
    return [tuple(row.values()) for name, table in host.emitted if name == "Late" for row in table.to_pylist()]


@pytest.mark.parametrize("language", [SIDDHI, EPL])
@pytest.mark.parametrize("derived", [ORDERS, CHAIN, TWO_WAYS, OWN_TIME])
@pytest.mark.parametrize("stream", [LONG, BY_AGGREGATION])
@pytest.mark.few(6)
def test_the_time_of_a_derived_stream_is_that_of_its_source(
    tmp_path: Path, stream: str, derived: str, language: str
) -> None:
    app = stream + derived + language
    assert at_a_terminal(app, EVENTS) == LATE
    assert job_over(tmp_path, app, EVENTS) == LATE


@pytest.mark.parametrize("derived", [ORDERS, CHAIN])
def test_so_is_that_of_a_source_whose_times_are_texts(tmp_path: Path, derived: str) -> None:
    events = [(kind, number, datetime.fromtimestamp(at / 1000, UTC).isoformat()) for kind, number, at in EVENTS]
    app = TEXT + derived + SIDDHI
    assert at_a_terminal(app, events) == LATE
    assert job_over(tmp_path, app, events) == LATE


SQL = """@lang('sql', into='Late') {
  SELECT STREAM COUNT(*) AS id, TUMBLE_START(rowtime, INTERVAL '10' MINUTE) AS at FROM Orders
  GROUP BY TUMBLE(rowtime, INTERVAL '10' MINUTE)
}
"""
UQL = "@lang('uql') { from Orders window slice 10 minutes based on rowtime aggregate count() as n append n to Late }\n"
WINDOW = "from Orders#window.time(10 min) select count() as n insert into Late;\n"
JOIN = "from Orders#window.time(4 min) as o join Ev#window.time(4 min) as e on o.id == e.id select o.id as id insert into Late;\n"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (SQL, [(2, 1_699_999_800_000)]),
        (UQL, [(2,)]),
        (WINDOW, [(1,), (2,), (1,)]),
    ],
)
def test_windows_of_every_language_over_a_derived_stream_go_by_the_events(
    tmp_path: Path, statement: str, expected: list[tuple[Any, ...]]
) -> None:
    app = LONG + ORDERS + statement
    assert at_a_terminal(app, EVENTS) == expected
    assert sorted(job_over(tmp_path, app, EVENTS, each=1)) == sorted(expected)


def test_a_derived_stream_meets_its_source_at_the_time_of_the_events(tmp_path: Path) -> None:
    app = LONG + ORDERS + JOIN
    expected = [(1,), (2,), (2,), (3,)]  # each order with the event it is of, and the shipment of 2 just not with it
    assert at_a_terminal(app, [*EVENTS[:2], ("s", 2, START + 4 * MINUTE), *EVENTS[3:]]) == expected
    events = [*EVENTS[:2], ("s", 2, START + 4 * MINUTE), *EVENTS[3:]]
    assert sorted(job_over(tmp_path, app, events, each=1)) == expected
