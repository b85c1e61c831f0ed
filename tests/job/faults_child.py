"""A job without Spark that is killed at fault points and started again: pipeline, Delta store and dead letters.

`python -m tests.job.faults_child FOLDER` imports once and forks for every case, so a case costs its work only. It reads
one JSON line a case, `[app, what is lost, fault]`, and answers with one: what the tables, open rows, clocks, ledger and
dead letters are after the restart. What Spark adds (its checkpoint, its tasks) is the real job's test.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.hosts.pipeline import Pipeline
from rollup.program import Program, compile_app
from rollup.sources.base import DEAD
from rollup.stores.base import Rewrite
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.delta.store import DeltaStore
from rollup.stores.faults import point
from tests.job.contents import contents

APP = """define stream S (k string, v double, n long, ts long);

@BufferSize('1')
define aggregation A from S select k, sum(v) as s, avg(v) as m, sum(n) as t, min(v) as lo, n as newest
group by k aggregate by ts every sec ... hour;

@OutOfOrder('correct')
define aggregation B from S[v > 1.0] select k, count() as c, max(n) as most
group by k aggregate by ts every sec, min;
"""
PLAIN = """define stream S (k string, v double, n long, ts long);
define aggregation A from S select k, sum(v) as s, avg(v) as m, count() as c, n as newest
group by k aggregate by ts every sec ... hour;
"""
BATCHES, EVENTS, BEGIN = 6, 40, 1_600_001_910_000
FORGOTTEN = BEGIN + 10_000
"""Seconds before it are deleted after the fourth batch, as retention does."""


def events(number: int, late: bool) -> pa.Table:
    """A batch: three keys, every fifth event late if wanted, values that add without rounding."""
    rows = range(number * EVENTS, number * EVENTS + EVENTS)
    times = [BEGIN + i * 733 - (7_000 if late and i % 5 == 0 else 0) for i in rows]
    columns = {"k": [f"k{i % 3}" for i in rows], "v": [i % 8 / 4 for i in rows], "n": list(rows), "ts": times}
    return pa.table(columns | {"__arrival": list(rows), "__received": [0] * EVENTS})


def work(folder: Path, app: str, query: str) -> None:
    """Process what is left, as the Spark host does: a batch is done when its callback has returned."""
    engine, dead, program = ColumnEngine(threads=1), DeadLetters(folder), compile_app(app)
    pipelines = [
        Pipeline(aggregation, store(program, name, engine, folder), engine)
        for name, aggregation in program.aggregations.items()
    ]
    for pipeline in pipelines:
        pipeline.start()
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "done.json"
    for number in range(json.loads(checkpoint.read_text()) if checkpoint.exists() else 0, BATCHES):
        point("batch.begin")
        for pipeline in pipelines:
            mark = pipeline.source.get("S")
            if mark is None or mark["query"] != query or mark["batch"] < number:
                advance(engine, pipeline, number, query, late=app is APP)
        dead.append(pa.table([["S"], ["no record"], [f"f:{number}"], ["{"]], schema=DEAD), query, number)
        if number == 3 and app is APP:
            retain(pipelines[0])
        for pipeline in pipelines:
            if number % 2:
                pipeline.store.maintain(5.0)  # type: ignore[attr-defined]
        point("batch.end")
        checkpoint.write_text(json.dumps(number + 1))


def store(program: Program, name: str, engine: ColumnEngine, folder: Path) -> DeltaStore:
    """A store that puts files together early."""
    made = DeltaStore(program.aggregations[name], engine, folder)
    made.compact_after = 2
    return made


def advance(engine: ColumnEngine, pipeline: Pipeline, number: int, query: str, late: bool) -> None:
    """One batch into one aggregation."""
    with engine.tables({"batch": events(number, late)}):
        folded = pipeline.partials.fold(engine, "batch")

        def refold(steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
            return [pipeline.partials.fold_by_step(engine, "batch", steps, suspects)]

        pipeline.advance([folded], refold, {"S": {"query": query, "batch": number, "arrivals": (number + 1) * EVENTS}})


def retain(pipeline: Pipeline) -> None:
    """Delete the oldest seconds, unless that is done."""
    if pipeline.store.snapshot().rows(Duration.SECONDS, None, FORGOTTEN).num_rows:
        pipeline.rewrite({Duration.SECONDS: Rewrite(None, FORGOTTEN, pipeline.aggregation.table_schema.empty_table())})


def forked(action: Callable[[], None]) -> int:
    """Run something in a forked process; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def case(folder: Path, app: str, fault: str | None, between: Callable[[Path], str]) -> dict[str, Any]:
    """Run, killed at a fault; do something between; run to the end; say what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    def first() -> None:
        if fault is not None:
            os.environ["ROLLUP_FAULT"] = fault
        work(folder, app, "q1")

    killed = forked(first)
    query, again, answer = "q1", 0, folder / "result.json"
    if fault is not None:
        query = between(folder)
        again = forked(lambda: work(folder, app, query))
    forked(lambda: answer.write_text(json.dumps(contents(folder, compile_app(app)))) and None)
    return {"fault": fault, "killed": killed, "again": again, "result": json.loads(answer.read_text())}


def nothing_lost(folder: Path) -> str:
    """Checkpoint and records are there: the same query goes on."""
    return "q1"


def checkpoint_lost(folder: Path) -> str:
    """A new query reads everything again."""
    (folder / "done.json").unlink(missing_ok=True)
    return "q2"


def records_lost(folder: Path) -> str:
    """Only the tables and the checkpoint are left."""
    shutil.rmtree(folder / "_rollup")
    return "q1"


def both_lost(folder: Path) -> str:
    """Only the tables are left."""
    records_lost(folder)
    return checkpoint_lost(folder)


def warm(folder: Path) -> None:
    """Import here what a run imports on its way, so that the forks need not; no thread survives a fork."""
    names = folder / "modules.json"
    forked(lambda: (work(folder / "warm", APP, "q1"), names.write_text(json.dumps(sorted(sys.modules))), None)[-1])
    for name in json.loads(names.read_text()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for app in (APP, PLAIN):
        compile_app(app)


APPS = {"late": APP, "plain": PLAIN}
LOSSES = {None: nothing_lost, "checkpoint": checkpoint_lost, "records": records_lost, "both": both_lost}


def main(folder: Path) -> None:
    """Cases as they are asked for, one JSON line each."""
    warm(folder)
    for line in sys.stdin:
        app, lost, fault = json.loads(line)
        print(json.dumps(case(folder / "case", APPS[app], fault, LOSSES[lost])), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
