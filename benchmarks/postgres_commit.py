"""The PostgreSQL store alone: a batch of 100 closed rows (aim: below 10 ms at the median), 100,000 rows, a question.

``python -m benchmarks.postgres_commit`` (``--smoke`` for a tiny run). The server is a private one with
its usual, durable settings: every commit waits for the disk.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import psycopg2
import pyarrow as pa

from benchmarks.common import emit, machine, percentile
from rollup.aggregation.state import State
from rollup.core.calendar import Duration, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.lang.siddhi.apps import parse_query
from rollup.plan.aggregation import Aggregation
from rollup.program import compile_app
from rollup.retrieval.questions import plan
from rollup.stores.base import Commit
from rollup.stores.databases import store_of
from rollup.stores.postgres.server import PgServer

BENCH = "postgres_commit"
FIRST = 1_514_764_800_000
APP = """define stream S (symbol string, price double, quantity long, ts long);
define aggregation {name} from S select symbol, avg(price) as avgPrice, sum(quantity) as total
group by symbol aggregate by ts every sec ... year;"""


def rows(aggregation: Aggregation, schema: pa.Schema, first: int, seconds: int, keys: int, level: Duration) -> pa.Table:
    """Rows of a level for `seconds` from `first` on and `keys` keys."""
    times = [bucket_start(first + 1000 * i, level) for i in range(seconds) for _ in range(keys)]
    names = [f"SYM{k:05d}" for _ in range(seconds) for k in range(keys)]
    made: dict[str, object] = {"AGG_TIMESTAMP": times, "AGG_TIMEZONE": ["+00:00"] * len(times), "symbol": names}
    for name in schema.names[3:]:
        made[name] = [float(i) if schema.field(name).type == pa.float64() else i for i in range(len(times))]
    return pa.table({name: pa.array(made[name]).cast(schema.field(name).type) for name in schema.names})


def commit(aggregation: Aggregation, number: int, seconds: int, keys: int) -> Commit:
    """A batch that closes `seconds * keys` rows and leaves the next second and its minute open."""
    first = FIRST + number * seconds * 1000
    empty = State.empty(aggregation)
    opened = {
        level: rows(aggregation, aggregation.state_schema, first + seconds * 1000, 1, keys, level)
        for level in (Duration.SECONDS, Duration.MINUTES)
    }
    state = State(empty.clocks | {Duration.SECONDS: first}, {**empty.open, **opened})
    return Commit(
        number,
        state,
        {Duration.SECONDS: rows(aggregation, aggregation.table_schema, first, seconds, keys, Duration.SECONDS)},
    )


def timed(store_url: str, name: str, seconds: int, keys: int, times: int) -> list[float]:
    """Milliseconds of each commit, the first few left out."""
    aggregation = compile_app(APP.format(name=name)).aggregations[name]
    store = store_of(aggregation, ColumnEngine(threads=2), store_url)
    store.load()
    found = list[float]()
    for number in range(1, times + 4):
        batch = commit(aggregation, number, seconds, keys)
        begin = time.perf_counter()
        store.commit(batch)
        found.append((time.perf_counter() - begin) * 1000)
    question = plan(
        parse_query(f"from {name} on symbol == 'SYM00001' within '2018-01-01 **:**:**' per 'days'"), {name: aggregation}
    )
    asked = list[float]()
    for _ in range(times):
        begin = time.perf_counter()
        store.snapshot().answer(question)
        asked.append((time.perf_counter() - begin) * 1000)
    emit(BENCH, f"a day of one key after {name}", percentile(asked, 50), "ms", temperature="hot", aim=25)
    return found[3:]


def inserted(dsn: str, times: int) -> list[float]:
    """Milliseconds of a transaction of one row: what waiting for the disk costs whatever a commit writes."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    found = list[float]()
    with connection.cursor() as cursor:
        cursor.execute("create table one (x int)")
        for _ in range(times):
            begin = time.perf_counter()
            cursor.execute("insert into one values (1)")
            found.append((time.perf_counter() - begin) * 1000)
    connection.close()
    return found


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true")
    smoke = parser.parse_args().smoke
    machine(BENCH)
    with tempfile.TemporaryDirectory(prefix="rollup-bench-") as folder:
        Path(folder).chmod(0o755)
        with PgServer(Path(folder)) as server:
            small = timed(server.url, "Small", 1, 100, 20 if smoke else 200)
            emit(BENCH, "the disk alone: one row inserted", percentile(inserted(server.dsn, 50), 50), "ms")
            emit(BENCH, "commit of 100 closed rows", percentile(small, 50), "ms", temperature="hot", aim=10)
            emit(BENCH, "commit of 100 closed rows, 99th percentile", percentile(small, 99), "ms", temperature="hot")
            large = timed(server.url, "Large", 10 if smoke else 100, 1000, 3)
            emit(
                BENCH,
                f"commit of {10_000 if smoke else 100_000} closed rows",
                percentile(large, 50),
                "ms",
                temperature="hot",
            )


if __name__ == "__main__":
    main()
