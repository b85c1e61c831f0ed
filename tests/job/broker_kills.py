"""A harness that kills the broker under a running job, in half of the cases the job with it, and adds the events up itself.

`python -m tests.job.broker_kills FOLDER --kills 50 --seed 1` prints one JSON line a round: how often the broker and the job were
killed, and what in the end is not as it must be. `rollup run` streams from a topic of two partitions, which somebody
fills meanwhile, into two aggregations and, by statements, into four sinks: a Delta table, files, a database and a topic. What must
be there is computed here, in plain Python, from the messages that the broker has acknowledged, and from nothing of ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from confluent_kafka import Consumer, Message, TopicPartition
from deltalake import DeltaTable

from tests.job.jobs import ROOT, SINKS, Job, answers
from tests.job.kills import progress
from tests.servers.kafka import KafkaBroker

APP = """define stream S (k string, v double, n long, ts long);
define stream Counts (k string, n long, c long);
define stream Falls (k string, a long, b long);
define stream Sums (k string, n long, s double);
@OutOfOrder('correct') define aggregation A0 from S
select k, sum(v) as s, count() as c, min(v) as lo, max(n) as hi group by k aggregate by ts every sec ... day;
@OutOfOrder('correct') define aggregation A1 from S[v > 1.0]
select sum(n) as t, count() as c aggregate by ts every sec, min, hour;
from S select k, n, count() as c group by k insert into Counts;
from every a=S[v > 3.0] -> b=S[k == a.k and v < 0.5] select a.k as k, a.n as a, b.n as b insert into Falls;
from S select k, n, sum(v) as s group by k insert into Sums;
from S[v > 3.5] select k, n insert into High;
"""
MORE = """[spark]
"spark.master" = "local[2]"
"spark.driver.memory" = "1g"
"""
HIGH = """[sinks.High]
kind = "kafka"
servers = "{servers}"
topic = "{topic}"
"""
WIDTHS = {"seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
PARTITIONS, BEGIN = 2, 1_600_001_910_000
_PAUSE, _PATIENCE = 0.008, 500
"""Seconds between two messages, and those in which a job must get on, also where it starts on a busy machine."""


class Feeder:
    """Somebody who fills a topic, whether its broker is there or not; the events of a key stay in one partition."""

    def __init__(self, broker: KafkaBroker, topic: str, seed: str) -> None:
        self.acknowledged: set[tuple[int, int]] = set()
        self.failed: list[str] = []
        self._topic, self._moments, self._stop = topic, random.Random(seed), threading.Event()
        self._producer = broker.producer(message_timeout_ms=600_000, reconnect_backoff_max_ms=500)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Send no more, and wait until all is acknowledged."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(120) == 0 and not self.failed, self.failed[:3]

    def _work(self) -> None:
        number = 0
        while not self._stop.wait(_PAUSE):
            key, late = number % 5, self._moments.choice((0, 0, 0, 0, 0, 0, 0, 1_500, 9_000, 70_000))
            event = {"k": f"k{key}", "v": number * 7 % 16 / 4, "n": number, "ts": BEGIN + number * 97 - late}
            text = "{broken " + str(number) if number % 90 == 0 else json.dumps(event)
            self._producer.produce(self._topic, text, partition=key % PARTITIONS, on_delivery=self._delivered)
            self._producer.poll(0)
            number += 1

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged.add((message.partition() or 0, message.offset() or 0))


class Streaming:
    """`rollup run` in a process group of its own, started again whenever it has ended by itself, as a supervisor does."""

    def __init__(self, job: Job) -> None:
        self.job, self.said, self.ended = job, job.folder / "said.txt", Counter[str]()
        self._process: subprocess.Popen[bytes] | None = None

    def keep(self) -> None:
        """Have it run."""
        if self._process is not None and self._process.poll() is not None:
            words = self.said.read_text().strip().splitlines()
            self.ended[f"{self._process.returncode}: {words[-1][:200] if words else ''}"] += 1
            self._process = None
        if self._process is None:
            with self.said.open("wb") as output:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "rollup.cli.main", "run", str(self.job.path), "--takeover", "1"],
                    cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                )  # fmt: skip

    def kill(self) -> bool:
        """End it and its JVM as a crash does; whether it ran."""
        process, self._process = self._process, None
        if process is None:
            return False
        ran = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return ran


def one_round(folder: Path, broker: KafkaBroker, kills: int, seed: str) -> dict[str, Any]:
    """A job, a topic, and so many kills of the broker."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    moments, topic, out = random.Random(seed), broker.new_topic(PARTITIONS), broker.new_topic()
    source = {"kind": "kafka", "servers": broker.bootstrap, "topic": topic}
    more = MORE + SINKS.format(folder=folder) + HIGH.format(servers=broker.bootstrap, topic=out)
    job = Job(folder, source, app=APP, streams=("S",), more=more, top='trigger = "0 seconds"')
    feeder, run, done = Feeder(broker, topic, seed), Streaming(job), Counter[str]()
    try:
        for number in range(kills):
            _disturb(job, run, broker, moments, with_job=number % 2 == 1, done=done)
        feeder.end()
    finally:
        run.kill()
    code, said = job.finish("--once", "--takeover", "1")
    messages = _consumed(broker, topic, PARTITIONS)
    places = {(message.partition() or 0, message.offset() or 0) for message in messages}
    differ = [] if places >= feeder.acknowledged else ["the broker lost what it had acknowledged"]
    checked = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", "verify", str(job.path)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    differ += [f"verify: {checked.stdout[-500:]}{checked.stderr[-500:]}"] if checked.returncode else []
    values = [message.value() or b"" for message in messages]
    sent = [json.loads(value) for value in values if not value.startswith(b"{broken")]
    if not code:
        wanted, found = _wanted(sent), _found(job, broker, out)
        wanted["letters"] = sorted(value.decode() for value in values if value.startswith(b"{broken"))
        differ += sorted(name for name in wanted if wanted[name] != found[name])
    result = {"seed": seed, "done": dict(done), "ended": dict(run.ended), "events": len(sent), "code": code}
    return {**result, "differ": differ} | ({"said": said[-2000:]} if code else {})


def _disturb(
    job: Job, run: Streaming, broker: KafkaBroker, moments: random.Random, *, with_job: bool, done: Counter[str]
) -> None:
    """Let the job get on, then kill the broker, and the job before or behind it; both come back in either order."""
    began = time.time_ns()
    _wait(run, lambda: progress(job) > began)
    time.sleep(moments.uniform(0, 1.5))
    first, back = moments.random() < 0.5, moments.random() < 0.5
    if with_job and first:
        done["jobs"] += run.kill()
        time.sleep(moments.uniform(0, 0.3))
    broker.kill9()
    done["kills"] += 1
    if with_job and not first:
        time.sleep(moments.uniform(0, 1.5))
        done["jobs"] += run.kill()
    if back:
        run.keep()
    time.sleep(moments.choice((0, 0, 0.5, 2, 5)))
    broker.start()
    run.keep()


def _wait(run: Streaming, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"the job does not get on: {run.said.read_text()[-2000:]}"
        run.keep()
        time.sleep(0.05)


def _consumed(broker: KafkaBroker, topic: str, partitions: int) -> list[Message]:
    """Every message of a topic, partition by partition in its order, by a client that is not ours."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False})
    found: list[Message] = []
    try:
        for partition in range(partitions):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
            consumer.assign([TopicPartition(topic, partition, low)])
            while high > low:
                some = consumer.consume(min(high - low, 10_000), timeout=30)
                assert some, f"{high - low} messages of {topic} do not come"
                low = max(low, *((message.offset() or 0) + 1 for message in some))
                found += some
    finally:
        consumer.close()
    return found


def _wanted(sent: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What must be there, added up in plain Python. Of the order only that of one key matters, which a partition keeps."""
    levels: dict[str, dict[Any, list[Any]]] = defaultdict(dict)
    counts, sums, falls, high = list[Any](), list[Any](), list[Any](), set[Any]()
    count, total, waiting = Counter[str](), defaultdict[str, float](float), defaultdict[str, list[int]](list)
    for event in sent:
        k, v, n, ts = event["k"], event["v"], event["n"], event["ts"]
        for per, width in WIDTHS.items():
            row = levels[f"A0 {per}"].setdefault((ts - ts % width, k), [0.0, 0, v, n])
            row[:] = [row[0] + v, row[1] + 1, min(row[2], v), max(row[3], n)]
            if v > 1.0 and per != "days":
                row = levels[f"A1 {per}"].setdefault((ts - ts % width,), [0, 0])
                row[:] = [row[0] + n, row[1] + 1]
        count[k] += 1
        total[k] += v
        counts.append((k, n, count[k]))
        sums.append((k, n, total[k]))
        if v < 0.5:
            falls += [(k, a, n) for a in waiting.pop(k, [])]
        if v > 3.0:
            waiting[k].append(n)
        if v > 3.5:
            high.add((k, n))
    found: dict[str, Any] = {name: sorted((*key, *row) for key, row in rows.items()) for name, rows in levels.items()}
    return {**found, "Counts": sorted(counts), "Sums": sorted(sums), "Falls": sorted(falls), "High": sorted(high)}


def _found(job: Job, broker: KafkaBroker, out: str) -> dict[str, Any]:
    """What is there. The sink in Kafka delivers at least once, so its rows are a set."""
    found: dict[str, Any] = {}
    for name, columns in (("A0", "AGG_TIMESTAMP, k, s, c, lo, hi"), ("A1", "AGG_TIMESTAMP, t, c")):
        for per in list(WIDTHS)[: 4 if name == "A0" else 3]:
            found[f"{name} {per}"] = sorted(answers(job.conf, columns, per, name))
    counts = DeltaTable(str(job.folder / "counts")).to_pyarrow_table().select(["k", "n", "c"])
    falls = pq.read_table(job.folder / "falls", columns=["k", "a", "b"])
    for name, table in (("Counts", counts), ("Falls", falls)):
        found[name] = sorted(tuple(row.values()) for row in table.to_pylist())
    with sqlite3.connect(job.folder / "out.db") as database:
        found["Sums"] = sorted(database.execute("select k, n, s from sums").fetchall())
    high = [json.loads(message.value() or b"") for message in _consumed(broker, out, 1)]
    found["High"] = sorted({(row["k"], row["n"]) for row in high})
    found["letters"] = sorted(letter["raw"] for letter in job.letters())
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--round", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given, failed = parser.parse_args(), False
    with KafkaBroker() as broker:
        for number in range(-(-given.kills // given.round)):
            kills = min(given.round, given.kills - number * given.round)
            result = one_round(given.folder / f"{given.seed}-{number}", broker, kills, f"{given.seed}-{number}")
            print(json.dumps(result), flush=True)
            failed = failed or bool(result["differ"] or result["code"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
