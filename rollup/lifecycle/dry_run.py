"""An app is run on nothing before it runs on something: what its SQL cannot do is said when it is read.

One empty batch of each source's stream goes through the queries, the first and the second look of every aggregation, its
cascade, and a question per level. That takes no data and some milliseconds; a day later it would stop a stream.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pyarrow as pa

from rollup.aggregation.partials import STEP
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import PlanError, RollupError
from rollup.hosts.pipeline import Pipeline
from rollup.lang.siddhi.apps import parse_query
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation
from rollup.plan.app import StreamDef
from rollup.program import Program
from rollup.retrieval.questions import plan
from rollup.retrieval.requests import Requests
from rollup.stores.memory import MemoryStore

_STEPS = pa.schema([("__from", pa.int64()), (STEP, pa.int64())])
_SUSPECTS = pa.schema([(TIMESTAMP, pa.int64()), (ZONE, pa.string())])


def dry_run(program: Program) -> None:
    """Raise PlanError, with the part of the app and the reason, when an empty batch cannot go through all of it."""
    engine = ColumnEngine(threads=1)
    try:
        empty = {name: _nothing(stream) for name, stream in program.streams.items()}
        for derivation in program.derivations:
            with _said(f"the query into {derivation.target}"):
                engine.run(derivation.statement("sent"), sent=empty[derivation.source])
        for name, aggregation in program.aggregations.items():
            with _said(f"aggregation {name}"):
                _aggregate(engine, aggregation, empty[aggregation.stream])
        for join in program.joins:
            with _said(f"the join with {join.retrieval.aggregation}"):
                stream = program.streams[join.source.stream]
                requests = Requests.of(join, stream, program.aggregations[join.retrieval.aggregation])
                engine.run(to_sql(requests.inputs()), events=empty[stream.name])
    finally:
        engine.close()


def _aggregate(engine: ColumnEngine, aggregation: Aggregation, events: pa.Table) -> None:
    pipeline = Pipeline(aggregation, MemoryStore(aggregation, engine), engine)
    pipeline.start()
    partials = pipeline.partials
    with engine.tables({"batch": events}):
        folded = partials.fold(engine, "batch")
        partials.time.refused(engine, "batch", partials.time.zones(engine, "batch"))
        partials.fold_by_step(engine, "batch", _STEPS.empty_table(), _SUSPECTS.empty_table())
    pipeline.cascade.merge(engine, aggregation.root, [folded.select(aggregation.state_schema.names)])
    pipeline.advance([folded], lambda steps, suspects: [], {})
    for level in aggregation.levels:
        question = parse_query(f"from {aggregation.name} within 0L, 1000L per '{level.plural}'")
        pipeline.store.snapshot().answer(plan(question, {aggregation.name: aggregation}))


def _nothing(stream: StreamDef) -> pa.Table:
    columns = [(name, kind.arrow) for name, kind in stream.attributes.items()]
    return pa.schema([*columns, ("__arrival", pa.int64()), ("__received", pa.int64())]).empty_table()


@contextmanager
def _said(what: str) -> Generator[None]:
    try:
        yield
    except RollupError:
        raise
    except Exception as problem:
        reason = (str(problem).splitlines() or [type(problem).__name__])[0]
        raise PlanError(
            f"{what} cannot run: {reason}", hint="an empty batch was tried; write what it names in another way"
        ) from None
