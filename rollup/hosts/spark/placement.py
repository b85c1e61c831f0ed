"""Where the step of a batch runs: in the driver while it is small, in shards inside Spark tasks when it is not.

In shards the driver holds buckets, watermarks and file names, never rows with keys. The tasks that read a batch leave
its partial rows split by key in the exchange folder. A second job, one task a shard, makes data files of the tables and
files of open rows of them. The driver's commit names these files. `[cascade]` of a configuration says which:

    [cascade]
    host = "auto"               # auto, driver or shards
    rows = 4_000_000            # auto: partial rows of a batch and open rows together that one driver may hold
    shards = 16                 # default: four a core
    exchange = "exchange"       # a folder that all executors share; default <tables>/_rollup/_exchange
"""

from __future__ import annotations

import difflib
import json
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import structlog
from deltalake.transaction import AddAction

from rollup.aggregation.admission import Admitted, admit, tick
from rollup.aggregation.cascade import Cascade, Closed
from rollup.aggregation.state import State
from rollup.checkpoint.records import home
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.pipeline import Advance, Pipeline
from rollup.hosts.spark.tasks.shard_step import (
    ShardResult,
    ShardSpec,
    Split,
    fingerprint,
    open_skeleton,
    run_shard,
    shifted,
    skeleton,
    split,
)
from rollup.plan.aggregation import Aggregation
from rollup.program import Declaration, Program
from rollup.stores.base import Filed, FiledStore, Rewrite, Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Run = Callable[[ShardSpec], Sequence[ShardResult]]
Look = Callable[[pa.Table, pa.Table], Sequence["pa.Table | Split"]]
_HOSTS = ("auto", "driver", "shards")
_A_CORE, _MOST = 4, 4096
ROWS = 4_000_000
"""Rows, of a batch and open together, up to which the step stays in the driver; docs/scale.md has what they take."""


@dataclass(frozen=True)
class Placing:
    """The `[cascade]` table of a configuration."""

    host: str
    rows: int
    shards: int | None
    exchange: Path

    @classmethod
    def of(cls, conf: Conf) -> Placing:
        """Raises ConfigError naming the key that is wrong and what is allowed."""
        given, known = dict(conf.cascade), ("host", "rows", "shards", "exchange")
        for key in given:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(known)}"
                raise ConfigError(f"{conf.path}: [cascade] has no `{key}`", hint=hint)
        host, rows, shards = given.get("host", "auto"), given.get("rows", ROWS), given.get("shards")
        if host not in _HOSTS:
            raise ConfigError(f"{conf.path}: [cascade] host is {host!r}", hint=f"one of {', '.join(_HOSTS)}")
        for key, number, most in (("rows", rows, 2**63 - 1), ("shards", 1 if shards is None else shards, _MOST)):
            if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= most:
                raise ConfigError(
                    f"{conf.path}: [cascade] {key} is {number!r}", hint=f"a whole number from 1 to {most}"
                )
        folder = conf.path.parent / given["exchange"] if "exchange" in given else home(conf.local, "_exchange")
        return cls(host, rows, shards, folder)


@dataclass(frozen=True)
class ShardedState(State):
    """A state whose rows are in shards: `open` has their buckets, as rows of the skeleton; `counted` their number."""

    counted: Mapping[Duration, int] | None = None

    @property
    def open_rows(self) -> Mapping[Duration, int]:
        return super().open_rows if self.counted is None else self.counted


def pipeline_of(
    conf: Conf,
    program: Program,
    aggregation: Aggregation,
    store: Store,
    engine: ColumnEngine,
    spark: Callable[[], SparkSession],
    told: bool = False,
) -> Pipeline:
    """The pipeline of an aggregation on Spark. Raises ConfigError when shards are wanted where that cannot be.

    `told`: statements read what it closes, so its step stays in the driver.
    """
    placing = Placing.of(conf)
    if told:
        if placing.host == "shards":
            raise ConfigError(
                f"{conf.path}: [cascade] host is 'shards', but statements read what {aggregation.name} closes",
                hint="auto or driver",
            )
        return Pipeline(aggregation, store, engine)
    if placing.host != "driver" and (filed := store.filed) is not None:
        return SizedPipeline(
            aggregation,
            filed,
            engine,
            placing,
            program.rollups,
            lambda spec: run_on(spark(), spec),
            lambda: cores(spark()),
        )
    if placing.host == "shards":
        raise ConfigError(
            f"{conf.path}: [cascade] host is 'shards', but {aggregation.name} is not in a store of files, as Delta is",
            hint="auto or driver",
        )
    return Pipeline(aggregation, store, engine)


class SizedPipeline(Pipeline):
    """A pipeline that moves its step into shards when a batch, or what is open, becomes too large for the driver."""

    def __init__(
        self,
        aggregation: Aggregation,
        store: FiledStore,
        engine: ColumnEngine,
        placing: Placing,
        app: Declaration,
        run: Run,
        parallel: Callable[[], int],
    ) -> None:
        super().__init__(aggregation, store, engine)
        self._filed = store
        self._placing, self._app, self._run, self._parallel = placing, app, run, parallel
        self._bones = Cascade(skeleton(aggregation))
        self._exchange = placing.exchange / aggregation.name
        self._log = structlog.get_logger("rollup")

    @property
    def sharded(self) -> bool:
        """Whether the next step runs in shards."""
        return isinstance(self.state, ShardedState)

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return self._placing.shards or _A_CORE * self._parallel()

    @property
    def split(self) -> tuple[str, int] | None:
        """How tasks leave partial rows: the exchange folder and the number of shards; None when they send them."""
        return (str(self._exchange), self.shards) if self.sharded else None

    def start(self) -> None:
        """As `Pipeline.start`; open rows that are kept in shards stay where they are."""
        shutil.rmtree(self._exchange, ignore_errors=True)
        record = self._filed.records.newest()
        if record is None or not record.split:
            super().start()
            self._place(0)
            return
        loaded = self._filed.load(open_rows=False)
        assert loaded is not None
        self.number, self.state, self.source = loaded.number, loaded.state, loaded.source
        self._to_shards("open rows are kept in shards")

    def advance(self, partials: Sequence[pa.Table | Split], refold: Look, source: Mapping[str, Any]) -> Advance:
        """As `Pipeline.advance`; partial rows may have been split by the tasks that made them."""
        if self.anew(source):
            source = self.renew(source)
        rows = sum(part.rows if isinstance(part, Split) else part.num_rows for part in partials)
        self._place(rows, any(isinstance(part, Split) for part in partials))
        if not self.sharded:
            return super().advance(list(partials), lambda *asked: list(refold(*asked)), source)
        parts, again = self._splits(partials), list[Split]()

        def look(steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
            again.extend(self._splits(refold(steps, suspects)))
            return _summaries(again)

        admitted = admit(self.engine, self._bones.aggregation, self.state, _summaries(parts), look, keyed=False)
        advance = self._step_in_shards(admitted, parts, again, source)
        self._back(rows)
        return advance

    def tick(self, now: int, source: Mapping[str, Any]) -> Advance:
        """As `Pipeline.tick`."""
        if not self.sharded:
            return super().tick(now, source)
        return self._step_in_shards(tick(self._bones.aggregation, self.state, now), [], [], source)

    def rewrite(self, rewrites: Mapping[Duration, Rewrite], state: State | None = None) -> None:
        """As `Pipeline.rewrite`; a `state` has its rows whole, and is split by the next batch."""
        if not self.sharded or state is not None:
            sharded = self.sharded
            super().rewrite(rewrites, state)
            if sharded:
                self.state = self._buckets(self.state)
            return
        self._file(Filed(self.number + 1, self.state, {}, self._named(), self.source, rewrites), self.state)

    # the step

    def _step_in_shards(
        self, admitted: Admitted, parts: list[Split], again: list[Split], source: Mapping[str, Any]
    ) -> Advance:
        state, _ = self._bones.step(self.engine, self.state, admitted)
        results: Sequence[ShardResult] = []
        if parts or state.clocks != self.state.clocks:
            results = self._run(self._spec(state, parts, again))
        opened = {level: [result.open[level.table_suffix] for result in results] for level in self.aggregation.levels}
        counted = {
            level: sum(result.counted[level.table_suffix] for result in results) for level in self.aggregation.levels
        }
        named = {level.table_suffix: names for level, names in opened.items()} if results else self._named()
        after = ShardedState(state.clocks, state.open, state.resume, counted if results else self.state.open_rows)
        began = time.perf_counter()
        self._file(Filed(self.number + 1, after, _added(results), named, source), after)
        _remove((*parts, *again))
        return Advance(admitted, Closed({}, sum(result.overflows for result in results)), time.perf_counter() - began)

    def _spec(self, state: State, parts: list[Split], again: list[Split]) -> ShardSpec:
        record = self._filed.last
        opened = {
            level: [] if record is None else record.files(level.table_suffix) for level in self.aggregation.levels
        }
        return ShardSpec(
            self._app,
            self.aggregation.name,
            str(self._filed.root),
            self.shards,
            fingerprint(self.engine),
            self.number + 1,
            self.state.clocks,
            self.state.resume,
            state.clocks,
            parts,
            again,
            opened,
            self._filed.retired,
        )

    def _file(self, commit: Filed, state: State) -> None:
        self._filed.commit(commit)
        self.number, self.state, self.source = commit.number, state, commit.source

    def _named(self) -> dict[str, list[str]]:
        record = self._filed.last
        return {} if record is None else {name: record.files(name) for name in record.open}

    def _splits(self, parts: Sequence[pa.Table | Split]) -> list[Split]:
        """Every part split: those that came whole are split here, one after the other."""
        whole = (part for part in parts if not isinstance(part, Split) and part.num_rows)
        found = [part for part in parts if isinstance(part, Split)]
        found += [split(self.engine, self.aggregation, part, self._exchange, self.shards) for part in whole]
        _remove(part for part in found if not part.rows)
        return [part for part in found if part.rows]

    # the place

    def _place(self, rows: int, already: bool = False) -> None:
        """Move the step into shards before a batch that the driver should not hold."""
        size = rows + sum(self.state.open_rows.values())
        if not self.sharded and (already or self._placing.host == "shards" or size > self._placing.rows):
            self._to_shards(f"{size} rows" if self._placing.host == "auto" else "as configured")

    def _back(self, rows: int) -> None:
        """Move it back after a batch far below the limit, so that it does not go to and fro."""
        size = rows + sum(self.state.open_rows.values())
        if self._placing.host == "auto" and size < self._placing.rows // 4:
            whole = self._filed.snapshot().loaded().state
            self.state = State(self.state.clocks, whole.open, self.state.resume)
            self._log.info(
                "cascade in the driver",
                aggregation=self.aggregation.name,
                because=f"{size} rows",
                most=self._placing.rows,
            )

    def _to_shards(self, because: str) -> None:
        self._exchange.mkdir(parents=True, exist_ok=True)
        self.state = self._buckets(self.state)
        self._log.info(
            "cascade in shards",
            aggregation=self.aggregation.name,
            because=because,
            most=self._placing.rows,
            shards=self.shards,
        )

    def _buckets(self, state: State) -> ShardedState:
        """The state of the last commit without its rows."""
        named = self._named()
        found = {
            level: open_skeleton(self.aggregation, self._filed.records, named.get(level.table_suffix, []))
            for level in self.aggregation.levels
        }
        rows = {level: table for level, (table, _) in found.items()}
        return ShardedState(state.clocks, rows, state.resume, {level: count for level, (_, count) in found.items()})


def run_on(spark: SparkSession, spec: ShardSpec) -> list[ShardResult]:
    """All shards of a batch in one Spark job, a task each."""
    frame = spark.range(0, spec.shards, 1, spec.shards).mapInArrow(
        lambda batches: _tasks(spec, batches), "result string"
    )
    found = [ShardResult(**json.loads(text)) for text in frame.toArrow()["result"].to_pylist()]
    return sorted(found, key=lambda result: result.shard)


def cores(spark: SparkSession) -> int:
    """The cores that tasks of a session run on."""
    return spark.sparkContext.defaultParallelism


def shift(part: pa.Table | Split, base: int) -> pa.Table | Split:
    """Partial rows whose arrivals count from `base` instead of 0."""
    return replace(part, base=part.base + base) if isinstance(part, Split) else shifted(part, base)


def _tasks(spec: ShardSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for shard in batch.column(0).to_pylist():
            engine, cascade = _worker(spec.app, spec.name)
            with engine.use():
                result = run_shard(engine, cascade, spec, shard)
            yield pa.RecordBatch.from_arrays([pa.array([json.dumps(asdict(result))])], ["result"])


@lru_cache(maxsize=4)
def _worker(app: Declaration, name: str) -> tuple[ColumnEngine, Cascade]:
    return ColumnEngine(threads=1), Cascade(app.program().aggregations[name])


def _summaries(parts: list[Split]) -> list[pa.Table]:
    return [shifted(part.summary, part.base) for part in parts]


def _remove(parts: Iterable[Split]) -> None:
    for part in parts:
        Path(part.file).unlink(missing_ok=True)


def _added(results: Sequence[ShardResult]) -> dict[str, list[AddAction]]:
    """The data files of each table, from all shards."""
    found: dict[str, list[AddAction]] = {}
    for result in results:
        for name, files in result.added.items():
            for path, size, values, modified, stats in files:
                found.setdefault(name, []).append(AddAction(path, size, values, modified, True, stats))
    return found
