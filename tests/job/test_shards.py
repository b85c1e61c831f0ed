"""The step in shards against the step in the driver: the same events, batches and tasks must leave the same.

The first tests run both in this process, over random events, setups, shard counts and changes of place, because what is
decided over all keys (clocks, second looks) is exactly what a shard cannot see. Then a batch is broken off between its
two halves, and last both hosts run as Spark jobs and everything on disk is compared.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from rollup.aggregation.cascade import Cascade
from rollup.conf import Conf
from rollup.core.errors import ConfigError, StoreError
from rollup.hosts.spark.placement import Placing, ShardedState, SizedPipeline, shift
from rollup.hosts.spark.tasks.shard_step import (
    ShardResult,
    ShardSpec,
    Split,
    fingerprint,
    open_skeleton,
    run_shard,
    split,
)
from rollup.program import Declaration
from rollup.stores.delta.store import DeltaStore
from tests.aggregation.rig import ALL_SETUPS, Outputs, Rig, Row, Setup, events, rig
from tests.aggregation.test_invariance import run, same
from tests.job.contents import contents
from tests.job.jobs import Job
from tests.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVERY = ALL_SETUPS[:: max(1, len(ALL_SETUPS) // 24)]


class ShardedRig(Rig):
    """A rig whose pipeline steps in shards, one after the other in this process, over a Delta store in a folder."""

    def __init__(self, setup: Setup, folder: Path, host: str = "shards", rows: int = 1, shards: int = 3) -> None:
        whole = rig(setup)
        self.setup, self.engine, self.aggregation, self.names, self.schema = (
            setup,
            whole.engine,
            whole.aggregation,
            whole.names,
            whole.schema,
        )
        self.folder, self.broken, self.ran = folder, False, 0
        self.cascade = Cascade(self.aggregation)
        self.restart(host, rows, shards)

    def restart(self, host: str = "shards", rows: int = 1, shards: int = 3) -> None:
        """The same folder, taken up by a new pipeline."""
        placing = Placing(host, rows, shards, self.folder / "exchange")
        store = DeltaStore(self.aggregation, self.engine, self.folder)
        self.pipeline = SizedPipeline(
            self.aggregation, store, self.engine, placing, Declaration(self.setup.app), self._run, lambda: 1
        )
        self.pipeline.start()

    def send(self, rows: Sequence[Row], first: int, tasks: Sequence[int]) -> None:
        """As `Rig.send`, with the partial rows split by the tasks when the pipeline asks for it."""
        plain, pipeline = super(), self.pipeline
        advance = pipeline.advance

        def parts(tables: Sequence[pa.Table]) -> list[pa.Table | Split]:
            if pipeline.split is None:
                return list(tables)
            return [split(self.engine, self.aggregation, table, *pipeline.split) for table in tables]

        def divided(folded: list[pa.Table], refold: Any, source: Any) -> Any:
            # Arrivals of a file are numbered by its base: the driver adds it, here as there.
            moved = [shift(shift(part, -100), 100) for part in parts(folded)]
            return advance(moved, lambda steps, suspects: parts(refold(steps, suspects)), source)

        pipeline.advance = divided  # type: ignore[method-assign]
        try:
            plain.send(rows, first, tasks)
        finally:
            del pipeline.advance

    def _run(self, spec: ShardSpec) -> list[ShardResult]:
        self.ran += 1
        found = [run_shard(self.engine, self.cascade, spec, shard) for shard in reversed(range(spec.shards))]
        if self.broken:
            raise InterruptedError
        return found

    def outputs(self) -> Outputs:
        """What the store has, open rows of all shards together."""
        snapshot = self.pipeline.store.snapshot()
        state, root = snapshot.loaded().state, self.aggregation.root
        tables = {}
        for level in self.aggregation.levels:
            rows = snapshot.rows(level).cast(self.aggregation.state_schema)
            tables[int(level)] = self._by_identity(self.cascade.merge(self.engine, root, [rows]))
        ledger: Counter[Any] = Counter()
        for row in snapshot.ledger().to_pylist():
            ledger[row["AGG_TIMESTAMP"], row["AGG_TIMEZONE"], (row["k"], row["g"]), row["AGG_KIND"]] += row[
                "AGG_EVENTS"
            ]
        running = {int(level): self._by_identity(rows) for level, rows in state.open.items()}
        return Outputs(
            tables, running, {int(level): clock for level, clock in state.clocks.items()}, ledger, state.resume
        )


@pytest.fixture
def folder() -> Any:
    """A folder in memory where there is such a place: these tests write many small files."""
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    yield place
    shutil.rmtree(place)


@st.composite
def sequences(draw: st.DrawFn) -> tuple[Setup, list[Row], list[int], list[int]]:
    """A setup, events, the places where batches are cut, and the task that folds each event."""
    setup = draw(st.sampled_from(EVERY))
    rows = draw(events(setup))
    cuts = sorted(draw(st.sets(st.integers(1, len(rows)), max_size=3)) - {len(rows)})
    return setup, rows, cuts, draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))


def in_driver(setup: Setup, rows: list[Row], cuts: list[int], tasks: list[int]) -> Outputs:
    """What the driver makes of it."""
    run(rig(setup).fresh(), rows, cuts, tasks)
    return rig(setup).outputs()


@examples(4)
@given(sequences(), st.integers(1, 5))
def test_shards_leave_what_the_driver_leaves(drawn: tuple[Setup, list[Row], list[int], list[int]], shards: int) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        sharded = ShardedRig(drawn[0], Path(name), shards=shards)
        run(sharded, *drawn[1:])
        assert sharded.pipeline.sharded
        same(sharded.outputs(), in_driver(*drawn))
        assert not list((Path(name) / "exchange").rglob("*.arrow")), "exchanged files are removed with their batch"


@examples(6)
@given(sequences(), st.data())
def test_the_step_may_move_between_driver_and_shards_at_any_batch(
    drawn: tuple[Setup, list[Row], list[int], list[int]], data: st.DataObject
) -> None:
    setup, rows, cuts, tasks = drawn
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        moving = ShardedRig(setup, Path(name), "driver")
        for low, high in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            if data.draw(st.booleans()):
                moving.restart(
                    data.draw(st.sampled_from(["auto", "driver", "shards"])),
                    data.draw(st.integers(1, 12)),
                    data.draw(st.integers(1, 4)),
                )
            moving.send(rows[low:high], low, tasks[low:high])
        same(moving.outputs(), in_driver(*drawn))


PLAIN = Setup(buffer=1, policy="correct")
DAY = 86_400_000


def trades(count: int, start: int = 0) -> list[Row]:
    """Events of ten keys, one a second, every seventh a minute late."""
    return [(f"k{n % 10}", n % 3, n, n, 0.5 * n, "x", (start + n - 60 * (n % 7 == 6)) * 1000) for n in range(count)]


def test_auto_moves_up_for_a_large_batch_and_back_after_a_small_one(folder: Path) -> None:
    rows = [(f"k{n}", 1, n, n, 0.5, "x", 1000 * (n // 100)) for n in range(400)]
    auto = ShardedRig(Setup("sec", buffer=0), folder, "auto", 150)
    auto.send(rows[:20], 0, [0] * 20)
    assert not auto.pipeline.sharded and auto.ran == 0
    auto.send(rows[20:], 20, [0] * 380)
    assert auto.ran == 1, "a batch beyond the limit goes to the shards, though its tasks did not know"
    assert auto.pipeline.state.open_rows[auto.aggregation.root] == 100, "what is open is counted where it is"
    auto.send([("a", 1, 1, 1, 0.5, "x", DAY)], 400, [0])
    assert not auto.pipeline.sharded
    auto.send([("a", 1, 1, 1, 0.5, "x", 2 * DAY)], 401, [0])
    assert auto.ran == 2
    everything = [*rows, ("a", 1, 1, 1, 0.5, "x", DAY), ("a", 1, 1, 1, 0.5, "x", 2 * DAY)]
    same(auto.outputs(), in_driver(Setup("sec", buffer=0), everything, [20, 400, 401], [0] * 402))


def test_a_batch_broken_off_before_its_commit_comes_again_and_leaves_no_trace(folder: Path) -> None:
    rows, sharded = trades(200), ShardedRig(PLAIN, folder)
    sharded.send(rows[:100], 0, [0, 1] * 50)
    sharded.broken = True
    with pytest.raises(InterruptedError):
        sharded.send(rows[100:], 100, [0, 1] * 50)
    sharded.broken = False
    sharded.restart()
    assert isinstance(sharded.pipeline.state, ShardedState)
    sharded.send(rows[100:], 100, [0, 1] * 50)
    same(sharded.outputs(), in_driver(PLAIN, rows, [100], [0, 1] * 100))
    table = DeltaTable(str(folder / "A_SECONDS"))
    on_disk = {path.name for path in (folder / "A_SECONDS").rglob("*.parquet")}
    named = {Path(path).name for path in table.file_uris()}
    assert named < on_disk, "the broken batch has left files that nobody names"
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
    assert {path.name for path in (folder / "A_SECONDS").rglob("*.parquet")} == named
    sharded.pipeline.store.records.tidy()  # type: ignore[attr-defined]
    record = sharded.pipeline.store.records.newest()  # type: ignore[attr-defined]
    kept = {name for number in sharded.pipeline.store.records.numbers() for name in _open_files(sharded, number)}  # type: ignore[attr-defined]
    assert {path.name for path in sharded.pipeline.store.records.folder.glob("open-*.arrow")} == kept  # type: ignore[attr-defined]
    assert record.split


def _open_files(sharded: ShardedRig, number: int) -> list[str]:
    record = sharded.pipeline.store.records.read(number)  # type: ignore[attr-defined]
    return [name for table in record.open for name in record.files(table)]


def test_an_empty_batch_moves_the_mark_and_no_file(folder: Path) -> None:
    sharded = ShardedRig(PLAIN, folder)
    sharded.send(trades(20), 0, [0] * 20)
    before = _open_files(sharded, sharded.pipeline.number)
    sharded.pipeline.advance([], lambda steps, suspects: [], {"S": {"query": "q", "batch": 7, "arrivals": 20}})
    assert sharded.ran == 1 and _open_files(sharded, sharded.pipeline.number) == before
    sharded.restart()
    assert sharded.pipeline.source["S"]["batch"] == 7


def test_stored_rows_are_rewritten_without_touching_open_ones(folder: Path) -> None:
    from rollup.stores.base import Rewrite

    sharded, root = ShardedRig(PLAIN, folder), rig(PLAIN).aggregation.root
    sharded.send(trades(50), 0, [0] * 50)
    before = sharded.outputs()
    sharded.pipeline.rewrite({root: Rewrite(None, None, sharded.aggregation.table_schema.empty_table())})
    after = sharded.outputs()
    assert before.tables[int(root)] and not after.tables[int(root)]
    assert after.running == before.running
    whole = sharded.pipeline.store.snapshot().loaded().state
    sharded.pipeline.rewrite({}, whole)
    assert sharded.pipeline.sharded and sharded.outputs() == after
    sharded.send(trades(50, 50), 50, [0] * 50)
    driver = rig(PLAIN).fresh()
    run(driver, [*trades(50), *trades(50, 50)], [50], [0] * 100)
    assert sharded.outputs().running == driver.outputs().running


def test_the_driver_knows_the_buckets_of_open_rows_without_holding_them(folder: Path) -> None:
    sharded = ShardedRig(PLAIN, folder)
    sharded.send(trades(100), 0, [0] * 100)
    record = sharded.pipeline.store.records.newest()  # type: ignore[attr-defined]
    for level in sharded.aggregation.levels:
        rows, count = open_skeleton(
            sharded.aggregation, sharded.pipeline.store.records, record.files(level.table_suffix)
        )  # type: ignore[attr-defined]
        assert count == sharded.pipeline.state.open_rows[level]
        assert (
            rows.sort_by("AGG_TIMESTAMP").to_pylist()
            == sharded.pipeline.state.open[level].sort_by("AGG_TIMESTAMP").to_pylist()
        )


def test_an_executor_with_another_hash_is_refused(folder: Path) -> None:
    sharded = ShardedRig(PLAIN, folder)
    spec = ShardSpec(Declaration(""), "A", str(folder), 1, "00000000", 1, {}, None, {}, [], [], {})
    assert fingerprint(sharded.engine) != "00000000"
    with pytest.raises(StoreError, match="another way than the driver"):
        run_shard(sharded.engine, sharded.cascade, spec, 0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hosts": "auto"}, "did you mean `host`"),
        ({"host": "cluster"}, "one of auto, driver, shards"),
        ({"shards": 0}, "from 1 to 4096"),
        ({"rows": "many"}, "a whole number from 1"),
    ],
)
def test_a_wrong_placing_is_refused_by_name(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    conf = Conf(
        tmp_path / "job.toml",
        tmp_path / "app",
        tmp_path / "checkpoint",
        {},
        {"kind": "delta", "path": str(tmp_path)},
        cascade=given,
    )
    with pytest.raises(ConfigError) as problem:
        Placing.of(conf)
    assert said in str(problem.value) or said in str(problem.value.hint)


LATE_TRADES = """define stream Trades (symbol string, price double, quantity long, ts long);

@BufferSize('2') @OutOfOrder('correct')
define aggregation TradeAgg
from Trades
select symbol, sum(quantity) as total, min(price) as low, max(price) as high, count() as n, last(quantity) as newest
group by symbol
aggregate by ts every sec ... year;
"""


def spark_job(folder: Path, host: str, batches: Path) -> Job:
    """A job over two batches of files, each file with late events of its own."""
    folder.mkdir()
    source = {"kind": "parquet", "path": str(batches), "max_files_per_batch": 2}
    return Job(folder, source, app=LATE_TRADES, more=f"[cascade]\nhost = {json.dumps(host)}\nshards = 3")


@pytest.mark.spark
@pytest.mark.slow
def test_two_spark_jobs_leave_the_same_on_disk(spark: SparkSession, tmp_path: Path) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for file in range(4):
        rows = trades(3000, file * 3000)
        columns = {
            "symbol": [r[0] for r in rows],
            "price": [r[4] for r in rows],
            "quantity": [r[3] for r in rows],
            "ts": [r[6] for r in rows],
        }
        path = incoming / f"part-{file}.parquet"
        pq.write_table(pa.table(columns), path)
    driver, shards = (
        spark_job(tmp_path / "driver", "driver", incoming),
        spark_job(tmp_path / "shards", "shards", incoming),
    )
    driver.run(spark)
    shards.run(spark)
    wanted = contents(driver.folder / "tables", driver.conf.program())
    found = contents(shards.folder / "tables", shards.conf.program())
    assert found == wanted
    assert wanted["TradeAgg_LATE"] and wanted["TradeAgg_HOURS"]
    assert list((shards.folder / "tables" / "_rollup" / "TradeAgg").glob("open-SECONDS-*-2of3-*.arrow"))
    assert not list((driver.folder / "tables" / "_rollup" / "TradeAgg").glob("*of3*"))
