"""What the tests of the job share: an app, its configuration in a folder, and running it in this process or another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rollup
from rollup.ask import Asker
from rollup.conf import Conf, load
from rollup.stores.dead_letters import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rollup.hosts.spark.driver import SparkHost

ROOT = Path(__file__).resolve().parents[2]
TRADES = """define stream Trades (symbol string, price double, quantity long, ts long);

define aggregation TradeAgg
from Trades
select symbol, sum(quantity) as total, min(price) as low, max(price) as high, avg(price) as mean, count() as events
group by symbol
aggregate by ts every sec ... year;
"""

SINKS = """[sinks.Counts]
kind = "delta"
path = "counts"
[sinks.Falls]
kind = "files"
path = "falls"
[sinks.Sums]
kind = "postgres"
url = "sqlite:///{folder}/out.db"
table = "sums"
"""
"""A sink of each kind that needs no server, for the streams Counts, Falls and Sums; `folder` is the job's."""
EVENTS = [("a", 1.5, 3, 1_514_764_800_000), ("b", 2.0, 4, 1_514_764_860_000), ("a", 3.0, 5, 1_514_768_400_000)]
"""Three trades of TRADES, in three minutes; the first two seconds are over when the last has come."""


def trades_in(folder: Path) -> dict[str, Any]:
    """The options of a source over a new folder `in` of files, which has `EVENTS` in one."""
    (folder / "in").mkdir(parents=True)
    write_trades(folder / "in" / "one.json", EVENTS)
    return {"kind": "json", "path": "in"}


def write_trades(path: Path, trades: Sequence[tuple[str, float, int, int]]) -> None:
    """A file of JSON lines, one for each trade."""
    names = ("symbol", "price", "quantity", "ts")
    path.write_text("\n".join(json.dumps(dict(zip(names, trade, strict=True))) for trade in trades))


def command(*words: object) -> tuple[int, str]:
    """A command of `rollup`: its exit code and standard error."""
    ended = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", *map(str, words)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
    )
    return ended.returncode, ended.stderr


class Job:
    """A configuration in a folder of its own; `run` runs it on the session of the tests, `process` as a user does."""

    def __init__(
        self,
        folder: Path,
        *sources: Mapping[str, Any],
        app: str = TRADES,
        streams: tuple[str, ...] = ("Trades",),
        more: str = "",
        top: str = "",
        store: str = 'kind = "delta"\npath = "tables"',
        name: str = "job.toml",
    ) -> None:
        self.folder = folder
        self.path = folder / name
        (folder / "app.siddhi").write_text(app)
        tables = [f'app = "app.siddhi"\ncheckpoint = "checkpoint"\n{top}']
        for stream, options in zip(streams, sources, strict=True):
            tables.append(
                "\n".join([f"[sources.{stream}]", *(f"{name} = {_toml(value)}" for name, value in options.items())])
            )
        tables.append(f"[store]\n{store}")
        self.path.write_text("\n\n".join([*tables, more]) + "\n")

    @property
    def conf(self) -> Conf:
        """The configuration, read anew."""
        return load(self.path)

    def host(self, spark: SparkSession) -> SparkHost:
        """A host on the tests' session."""
        from rollup.hosts.reporting.progress import Reporter
        from rollup.hosts.spark.driver import SparkHost

        return SparkHost(self.conf, spark, Reporter(terminal=False))

    def run(self, spark: SparkSession) -> None:
        """Process all that is there."""
        self.host(spark).run(once=True)

    def run_until(self, spark: SparkSession, enough: Callable[[], bool], seconds: float = 60) -> None:
        """Stream until something is so."""
        host = self.host(spark)
        failed: list[BaseException] = []

        def work() -> None:
            try:
                host.run()
            except BaseException as problem:
                failed.append(problem)

        thread = threading.Thread(target=work)
        thread.start()
        deadline = time.monotonic() + seconds
        try:
            while not enough():
                assert not failed, failed
                assert time.monotonic() < deadline, "not so in time"
                time.sleep(0.2)
        finally:
            host.stop()
            thread.join()
        assert not failed, failed

    def letters(self) -> list[dict[str, Any]]:
        """The dead letters, in order of position."""
        return sorted(
            DeadLetters(self.conf.tables).read().to_pylist(), key=lambda letter: (letter["position"], letter["reason"])
        )

    def committed(self) -> bool:
        """Whether there is a commit to read."""
        return any((self.folder / "tables" / "_rollup").glob("*/commit-*.json"))

    def process(self, *arguments: str, fault: str | None = None, **more: Any) -> subprocess.Popen[str]:
        """`rollup run` as a process of its own."""
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **({"ROLLUP_FAULT": fault} if fault else {})}
        command = [sys.executable, "-m", "rollup.cli.main", "run", str(self.path), *arguments]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )

    def finish(self, *arguments: str, fault: str | None = None, seconds: float = 540) -> tuple[int, str]:
        """`rollup run` to its end: exit code and standard error."""
        process = self.process(*arguments, fault=fault)
        try:
            _, said = process.communicate(timeout=seconds)
        finally:
            if process.poll() is None:
                process.kill()
        return process.returncode, said


def answers(
    conf: Conf | Asker, columns: str, per: str = "seconds", aggregation: str = "TradeAgg"
) -> list[tuple[Any, ...]]:
    """The rows of the whole past at a level, sorted."""
    text = f"from {aggregation} within 0L, 253402300799000L per '{per}' select {columns}"
    found = rollup.query(conf, text)
    return sorted(zip(*(found[name].to_pylist() for name in found.schema.names), strict=True), key=repr)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(inner)}" for name, inner in value.items()) + " }"
    return json.dumps(value)
