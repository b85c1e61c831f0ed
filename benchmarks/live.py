"""Freshness: from an event's arrival at a real Kafka broker to its being readable, p50 and p99.

Three processes beside the broker: a producer that writes the moment of sending into each event, our job as a user
runs it, and this one, a reader that asks the store for the newest event it can see whenever there is a new commit. An
event counts as readable when an answer that holds it has arrived, so the reader's own time is part of the figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from benchmarks.common import ROOT, Line, emit, machine, percentile, scratch
from benchmarks.ours import live_command, newest_commit, newest_readable, ours_open, write_live_conf

BENCH = "live"
POLL = 0.01  # seconds between two looks of the reader for a new commit
START_LIMIT = 120  # seconds within which the first event must become readable
AIMS = {50: 500.0, 99: 1200.0}  # milliseconds
STATEMENTS_AIMS = {50: 700.0, 99: 1500.0}  # with ten statements beside the aggregation
Step = tuple[int, int]  # when an answer arrived and the newest event it held, both epoch milliseconds


def latencies(steps: Sequence[Step]) -> list[float]:
    """Milliseconds until readable of one event for each millisecond of sending that the steps cover.

    A step covers the events sent after the newest one of the step before it, up to its own newest.

    >>> latencies([(1000, 900), (1010, 902), (1020, 902)])
    [109.0, 108.0]
    """
    found: list[float] = []
    for (_, before), (seen, newest) in pairwise(steps):
        found += [float(seen - sent) for sent in range(before + 1, newest + 1)]
    return found


@contextmanager
def process(command: Sequence[str], output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process whose output goes to a file, asked to end (SIGTERM) afterwards and killed if it does not."""
    with output.open("wb") as file:
        started = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(timeout=60)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


class JobEnded(Exception):
    """The job ended, or showed no event in time; the message holds the end of what it said."""


def watch(conf: Path, job: subprocess.Popen[bytes], output: Path, warm: float, seconds: float) -> list[Step]:
    """Ask after each commit until ``warm + seconds`` after the first answer; the steps of the last ``seconds``."""
    store, began = ours_open(conf), now()
    steps, seen = list[Step](), -1
    while not steps or now() - steps[0][0] < (warm + seconds) * 1000:
        if job.poll() is not None or (not steps and now() - began > START_LIMIT * 1000):
            raise JobEnded(output.read_text(errors="replace")[-1500:])
        commit = newest_commit(conf)
        if commit == seen:
            time.sleep(POLL)
            continue
        seen, newest = commit, newest_readable(store, began)
        if newest is not None:
            steps.append((now(), newest))
    return [step for step in steps if step[0] >= steps[0][0] + warm * 1000]


def now() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


def produce_command(bootstrap: str, topic: str, rate: int, seconds: float) -> list[str]:
    """The command of the producer, which may run longer than needed and is then told to stop."""
    arguments = [bootstrap, topic, "--rate", str(rate), "--seconds", str(seconds + START_LIMIT)]
    return [sys.executable, "-m", "benchmarks.live_producer", *arguments]


def measure(rate: int, warm: float, seconds: float, folder: Path, statements: bool) -> tuple[list[Step], Line]:
    """Run broker, job and producer; returns the reader's steps and what the producer says it sent."""
    from tests.servers.kafka import KafkaBroker

    with KafkaBroker() as broker:
        topic = broker.new_topic(partitions=2)
        conf = write_live_conf(folder, broker.bootstrap, topic, statements)
        job_log, sent_log = folder / "job.log", folder / "producer.log"
        with process(live_command(conf, folder / "metrics.jsonl"), job_log) as job:
            command = produce_command(broker.bootstrap, topic, rate, warm + seconds)
            with process(command, sent_log):
                steps = watch(conf, job, job_log, warm, seconds)
    return steps, json.loads(sent_log.read_text().splitlines()[-1])


def report(steps: Sequence[Step], sent: Line, wanted: int, aims: Mapping[int, float]) -> None:
    """Print the percentiles with their aims, and the rate that was really sent."""
    spent = latencies(steps)
    emit(BENCH, "events sent", sent["rate"], "events/s", wanted=wanted, unacknowledged=sent["unacknowledged"])
    for percent, aim in aims.items():
        value = percentile(spent, percent)
        emit(
            BENCH, f"arrival to readable, p{percent}", value, "ms", temperature="hot", aim=aim, ratio=aim / value,
            peer="aim", events_per_second=wanted, answers=len(steps), worst=max(spent),
        )  # fmt: skip


def main() -> int:
    """Command line; exit code 1 when the job failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="1,000 events/s for 5 s: proves that it runs")
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--warm", type=float, default=30, help="seconds left out at the start")
    parser.add_argument("--statements", action="store_true", help="ten statements beside the aggregation")
    options = parser.parse_args()
    rate, warm, seconds = (1_000, 2, 5) if options.smoke else (options.rate, options.warm, options.seconds)
    machine(BENCH)
    try:
        with scratch("live") as folder:
            aims = STATEMENTS_AIMS if options.statements else AIMS
            report(*measure(rate, warm, seconds, folder, options.statements), rate, aims)
    except JobEnded as error:
        emit(BENCH, "rollup", None, "ms", error=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
