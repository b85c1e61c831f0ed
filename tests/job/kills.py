"""A harness that kills jobs: random apps of two to four aggregations, random moments, and other disturbances.

`python -m tests.job.kills FOLDER --kills 100 --seed 1 [--postgres] [--spark] [--shards] [--retention] [--statements]` prints one JSON line a round: an app, how
often it was killed, and whether in the end its tables, open rows, late events and dead letters are those of a run that nothing
interrupted. Beside plain kills: a lock that makes one aggregation's commits wait in PostgreSQL, one aggregation of a
Delta store taken back some commits. With `--spark` it is `rollup run`, killed with its JVM; without, the same job in a
forked process over a model of Spark (`tests.job.model_spark`), where a kill costs a second.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import psycopg2
import pyarrow.parquet as pq
from deltalake import DeltaTable

import rollup
from rollup.checkpoint.records import RecordFolder
from rollup.program import compile_app
from tests.job.jobs import Job, answers

STREAM = "define stream {name} (k string, v double, n long, ts long);\n"
MERGED = """from S[v > 0.5] select k, v, n, ts insert into T;
from R select k, v, n, ts insert into T;
"""
AGGREGATIONS = (
    "define aggregation {a} from {s} select k, sum(v) as s, count() as c, n as newest group by k aggregate by ts every sec ... hour;",
    "@BufferSize('2')\ndefine aggregation {a} from {s} select k, avg(v) as m, sum(n) as t group by k aggregate by ts every sec, min;",
    "@IgnoreEventsOlderThanBuffer('true')\ndefine aggregation {a} from {s} select k, max(n) as m, sum(v) as s group by k aggregate by ts every sec ... day;",
    "@OutOfOrder('correct')\ndefine aggregation {a} from {s}[v > 1.0] select k, min(v) as lo, max(n) as hi, count() as c group by k aggregate by ts every sec, min, hour;",
    "@OutOfOrder('correct')\ndefine aggregation {a} from T select sum(n) as t, count() as c aggregate by ts every sec ... hour;",
)
"""The last one is fed by both streams. Which of two streams comes first is nobody's promise, so it corrects and has sums."""
PURGED = (
    "@OutOfOrder('correct')\n@purge(enable='true', interval='1 sec', @retentionPeriod(sec='120 sec', min='24 hours',"
    " hours='all'))\ndefine aggregation {a} from {s} select k, sum(v) as s, count() as c, n as newest group by k"
    " aggregate by ts every sec, min, hour;"
)
"""Which of its seconds are gone is a matter of when somebody looked; all others must be there, and all minutes."""
STATEMENTS = """
define stream Counts (k string, c long);
define stream Falls (k string, a long, b long);
define stream Newest (k string, n long, s double);
define window Last (k string, n long) length(7);
from S select k, count() as c group by k insert into Counts;
from every a=S[v > 3.0] -> b=S[k == a.k and v < 0.5] within 5 sec select a.k as k, a.n as a, b.n as b insert into Falls;
from S#window.lengthBatch(50) select k, n, sum(v) as s group by k insert into Newest;
from S select k, n insert into Last;
"""
SINKS = """
[sinks.Counts]
kind = "delta"
path = "counts"
[sinks.Falls]
kind = "files"
path = "falls"
[sinks.Newest]
kind = "postgres"
url = "{url}"
table = "{table}"
"""
"""Where statements go: a table of Delta, files, a database."""
BEGIN = 1_600_001_910_000
FILES, ROWS = 90, 20


@dataclass
class Round:
    """One app, its uninterrupted run, and what it goes through."""

    folder: Path
    moments: random.Random
    url: str | None = None
    spark: bool = False
    files: int = FILES
    shards: bool = False
    retention: bool = False
    statements: bool = False
    done: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.streams = ("S", "R") if self.moments.random() < 0.5 else ("S",)
        forms = list(AGGREGATIONS if len(self.streams) == 2 else AGGREGATIONS[:-1])
        chosen = self.moments.sample(forms, self.moments.randint(2, min(4, len(forms))))
        chosen += [PURGED] if self.retention else []
        texts = [form.format(a=f"A{n}", s=self.moments.choice(self.streams)) for n, form in enumerate(chosen)]
        self.app = "".join(STREAM.format(name=name) for name in self.streams)
        self.app += (MERGED if any("from T" in text for text in texts) else "") + "\n".join(texts)
        self.app += STATEMENTS if self.statements else ""
        self.names = [f"A{number}" for number in range(len(texts))]
        self.folder.mkdir(parents=True, exist_ok=True)
        for stream in self.streams:
            write_events(self.folder / stream, self.moments, self.files)

    def job(self, name: str, files: int, store: str | None = None, shards: bool = False) -> Job:
        """A job over the round's events in a folder of its own."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        sources = [
            {"kind": "json", "path": str(self.folder / stream), "max_files_per_batch": files} for stream in self.streams
        ]
        more = '[spark]\n"spark.master" = "local[2]"\n"spark.driver.memory" = "1g"'
        more += '\n[cascade]\nhost = "shards"\nshards = 3' if shards else ""
        more += SINKS.format(url=f"sqlite:///{folder / 'out.db'}", table="newest") if self.statements else ""
        lines = {} if store is None else {"store": store}
        return Job(folder, *sources, app=self.app, streams=self.streams, more=more, **lines)

    def everything(self, found: Job) -> dict[str, Any]:
        """What a job has left, as its users see it."""
        conf, result = found.conf, dict[str, Any]()
        for name, aggregation in conf.program().aggregations.items():
            columns = ["AGG_TIMESTAMP", *(key.name for key in aggregation.keys)]
            columns += [output.name for output in aggregation.outputs if output.name not in columns]
            columns += ["AGG_FINAL"]
            if aggregation.stream in self.streams:  # of two streams it is chance which event comes late
                columns += ["AGG_LATE_MOVED", "AGG_LATE_DROPPED", "AGG_LATE_CORRECTED"]
            levels = aggregation.levels[1:] if aggregation.purge is not None else aggregation.levels
            for level in levels:
                result[f"{name} {level.plural}"] = answers(conf, ", ".join(columns), level.plural, name)
        if self.statements:
            counts = DeltaTable(str(found.folder / "counts")).to_pyarrow_table()
            falls = pq.read_table(found.folder / "falls")
            with sqlite3.connect(found.folder / "out.db") as database:
                result["Newest"] = sorted(database.execute("select * from newest").fetchall())
            for name, table in (
                ("Counts", counts),
                ("Falls", falls),
                ("Last", rollup.query(conf, "select * from Last")),
            ):
                result[name] = sorted(map(str, table.to_pylist()))
        return {**result, "letters": [(letter["position"], letter["raw"]) for letter in found.letters()]}

    def start(self, found: Job) -> Run:
        """A run of a job to its end, in a process of its own."""
        return Spawned(found) if self.spark else Forked(partial(once, found.path), found.folder / "said.txt")

    def finish(self, found: Job) -> tuple[int, str]:
        """Run a job to its end."""
        run = self.start(found)
        self.wait(lambda: run.poll() is not None, 900)
        code = run.poll()
        return (-1 if code is None else code), run.end()

    def run(self, kills: int) -> dict[str, Any]:
        """Kill a job so many times, let it end, and compare."""
        whole = self.job("whole", 30)
        code, said = self.finish(whole)
        assert code == 0, said
        real = self.job(
            "real", self.moments.randint(1, 3), f'kind = "sql"\nurl = "{self.url}"' if self.url else None, self.shards
        )
        for _ in range(kills):
            self.kill(real)
        code, said = self.finish(real)
        wanted, found = (inside(partial(self.everything, one)) for one in (whole, real))
        differ = sorted(name for name in wanted if wanted[name] != found.get(name))
        result = {"app": self.app, "done": dict(self.done), "code": code, "differ": differ}
        return result | ({"said": said[-2000:]} if code else {})

    def kill(self, real: Job) -> None:
        """Run the job to a random moment, at times after somebody has gone back, or with a lock in its way."""
        if self.url is None and self.moments.random() < 0.2:
            inside(partial(go_back, real, self.moments.choice(self.names), self.moments.random()))
            self.done["back"] += 1
        if self.statements and self.moments.random() < 0.2 and real.committed():
            inside(partial(put_together, real))
            self.done["maintained"] += 1
        began, run = time.time_ns(), self.start(real)
        if self.moments.random() < 0.9:
            self.wait(lambda: run.poll() is not None or progress(real) > began)
        else:
            self.wait(lambda: run.poll() is not None, self.moments.uniform(0, 1))
        with self.locked() if self.moments.random() < 0.5 else contextlib.nullcontext():
            self.wait(lambda: run.poll() is not None, self.moments.choice((0.0, 0.05, 0.2, 0.5, 1.0)))
            self.done["kills" if run.poll() is None else "ended"] += 1
            said = run.end()
        if run.poll() not in (0, -signal.SIGKILL):
            self.done[f"exit {run.poll()}: {said[-300:]}"] += 1

    def wait(self, true: Callable[[], bool], seconds: float = 120) -> None:
        """Until something is so, or the time is over."""
        deadline = time.monotonic() + seconds
        while not true() and time.monotonic() < deadline:
            time.sleep(0.01)

    @contextlib.contextmanager
    def locked(self) -> Generator[None]:
        """Keep the commits of one aggregation waiting, where it has open rows in a database."""
        if self.url is None:
            yield
            return
        connection = psycopg2.connect(self.url)
        try:
            with contextlib.suppress(psycopg2.Error):
                connection.cursor().execute(f'lock table "{self.moments.choice(self.names)}_OPEN" in exclusive mode')
                self.done["locks"] += 1
            yield
        finally:
            connection.close()


class Run(Protocol):
    """A process that runs a job."""

    def poll(self) -> int | None:
        """Its exit code, as `subprocess` has it; None while it runs."""
        ...

    def end(self) -> str:
        """Kill it, with all that it has started; what it has said."""
        ...


class Forked:
    """An action in a fork of this process, which has imported what the action needs."""

    def __init__(self, action: Callable[[], None], said: Path) -> None:
        self.said = said
        self.code: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            with said.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            try:
                action()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)

    def poll(self) -> int | None:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def end(self) -> str:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.said.read_text() if self.said.exists() else ""


@dataclass
class Spawned:
    """`rollup run` and its JVM."""

    job: Job

    def __post_init__(self) -> None:
        self.process = self.job.process("--once", "--takeover", "1", start_new_session=True)

    def poll(self) -> int | None:
        return self.process.poll()

    def end(self) -> str:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.communicate()[1]


def once(path: Path) -> None:
    """What `rollup run --once` does, over a model of Spark."""
    from rollup.conf import load
    from rollup.hosts.reporting.progress import Reporter
    from rollup.hosts.spark.ownership import claim
    from rollup.lifecycle.job import Job as Host
    from tests.job.model_spark import ModelSpark

    conf = load(path)
    claim(conf, conf.program())
    Host(conf, ModelSpark(), Reporter(terminal=False), takeover=1.0).run(once=True)  # type: ignore[arg-type]


def inside(action: Callable[[], Any]) -> Any:
    """What an action gives, made in a fork: this process must not start threads, which no fork would have."""
    with TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        run = Forked(lambda: _write(answer, json.dumps(action())), Path(folder) / "said.txt")
        while run.poll() is None:
            time.sleep(0.01)
        assert run.poll() == 0, run.end()
        return json.loads(answer.read_text())


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def warm(statements: bool = False) -> None:
    """Import here what a job and `verify` import, and make what reads apps, so that forks need not."""
    with TemporaryDirectory() as folder:
        one = Round(Path(folder) / "warm", random.Random(1), statements=statements)
        names = Path(folder) / "names.json"

        def work() -> None:
            once((job := one.job("warm", 30)).path)
            if statements:
                one.everything(job)
                rollup_command("verify", str(job.path))
            names.write_text(json.dumps(sorted(sys.modules)))

        run = Forked(work, Path(folder) / "said.txt")
        while run.poll() is None:
            time.sleep(0.01)
        assert run.poll() == 0, run.end()
        for name in json.loads(names.read_text()):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
        if statements:
            compile_app(one.app)


def rollup_command(*words: str) -> int:
    """A command of the command line; its exit code."""
    from typer.testing import CliRunner

    from rollup.cli.main import cli

    return CliRunner().invoke(cli, list(words)).exit_code


def go_back(found: Job, name: str, how_far: float) -> None:
    """Take one aggregation of a Delta store back some commits, at most five."""
    from rollup.lifecycle.recover import recover

    conf = found.conf
    numbers = RecordFolder(conf.tables / "_rollup" / name).numbers()[1:][-6:-1]
    if numbers:
        recover(conf, conf.program().aggregations[name], to_commit=numbers[int(how_far * len(numbers))])


def put_together(found: Job) -> None:
    """What `rollup maintain` does."""
    from rollup.cli.lifecycle.maintain import maintain

    maintain(found.path)


def progress(found: Job) -> int:
    """When Spark has last noted a batch as done, in ns."""
    newest = 0
    for path in found.folder.glob("checkpoint/*/commits/[0-9]*"):
        with contextlib.suppress(FileNotFoundError):  # a start that goes back takes entries of the log away
            newest = max(newest, path.stat().st_mtime_ns)
    return newest


def write_events(folder: Path, moments: random.Random, files: int) -> None:
    """Files of JSON events in order of time, some late, a broken line here and there. Values add without rounding."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        lines = ["{broken " + str(number)] if number % 20 == 0 else []
        for i in range(number * ROWS, (number + 1) * ROWS):
            late = moments.choice((1_500, 9_000, 70_000)) if i % 11 == 0 else 0
            lines.append(json.dumps({"k": f"k{i % 5}", "v": i % 16 / 4, "n": i, "ts": BEGIN + i * 97 - late}))
        file = folder / f"{number:04d}.json"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


def rounds(
    folder: Path,
    kills: int,
    a_round: int,
    seed: int,
    new_database: Callable[[], str] | None,
    spark: bool,
    files: int,
    first: int = 0,
    shards: bool = False,
    retention: bool = False,
    statements: bool = False,
) -> list[dict[str, Any]]:
    """Rounds until there have been so many kills, one JSON line each."""
    found: list[dict[str, Any]] = []
    while (left := kills - sum(result["done"].get("kills", 0) for result in found)) > 0:
        number = f"{seed}-{first + len(found)}"
        place = folder / number
        shutil.rmtree(place, ignore_errors=True)
        url = new_database() if new_database else None
        one = Round(place, random.Random(number), url, spark, files, shards, retention, statements)
        found.append(one.run(min(a_round, left)))
        print(json.dumps({"seed": number, **found[-1]}), flush=True)
        if not found[-1]["differ"] and not found[-1]["code"]:
            shutil.rmtree(place)
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--round", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="The number of the first round.")
    parser.add_argument("--files", type=int, default=FILES, help="Files of a stream.")
    parser.add_argument("--spark", action="store_true")
    parser.add_argument("--shards", action="store_true", help="The job that is killed steps in shards.")
    parser.add_argument("--retention", action="store_true", help="One more aggregation, whose seconds are removed.")
    parser.add_argument("--statements", action="store_true", help="Statements beside, with three sinks and a window.")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not given.spark:
        warm()
    how = (given.spark, given.files, given.first, given.shards, given.retention, given.statements)
    if not given.postgres:
        found = rounds(given.folder, given.kills, given.round, given.seed, None, *how)
    else:
        from tests.servers.postgres import PostgresServer

        server = PostgresServer()
        try:
            server.start()
            found = rounds(given.folder, given.kills, given.round, given.seed, server.new_database, *how)
        finally:
            server.remove()
    sys.exit(any(result["differ"] or result["code"] for result in found))


if __name__ == "__main__":
    main()
