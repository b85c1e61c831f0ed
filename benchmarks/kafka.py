"""The job from a Kafka topic of JSON events beside Spark's own `from_json` and group-by of the same topic.

``python -m benchmarks.kafka`` (``--smoke`` for a moment): 4 M events on a real broker that shares the two cores, 4 and
16 partitions, 100 and 10,000 keys, with and without events that are late; batches of a million. ``--bounds`` also
prints what Spark's source alone and the way to Python leave room for.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

from benchmarks.common import emit, machine, run_module, scratch, value_of
from benchmarks.ours import CascadeRun, OursFailed, run_job, summarise, write_topic_conf
from benchmarks.topics import Topic, filled

BENCH = "kafka"
AIM = 2.5


def ours(topic: Topic, batch_events: int, folder: Path) -> CascadeRun:
    """Our job over the whole topic, sec…year into Delta. Raises OursFailed when an event is missing."""
    metrics = folder / "metrics.jsonl"
    seconds = run_job(write_topic_conf(folder, topic.bootstrap, topic.name, batch_events), metrics)
    lines = [json.loads(row) for row in metrics.read_text().splitlines()]
    late = sum(sum(line["late"].values()) for line in lines)
    run = summarise(lines, seconds, late)
    if run.events != topic.events:
        raise OursFailed(f"our job read {run.events} of {topic.events} events")
    return run


def compare(topic: Topic, batch_events: int, bounds: bool) -> None:
    """Both sides over one topic, one after the other."""
    of = {"partitions": topic.partitions, "keys": topic.keys, "lateness": topic.late}
    with scratch("kafka") as folder:
        found = ours(topic, batch_events, folder)
    emit(
        BENCH, "sec…year into Delta", found.hot_rate, "events/s", temperature="hot", late=found.counted,
        batches=found.batches, **of,
    )  # fmt: skip
    emit(BENCH, "sec…year into Delta", found.total_rate, "events/s", temperature="cold", **of)
    for what in ("grouped", "source", "python") if bounds else ("grouped",):
        words = [topic.bootstrap, topic.name, "--batch-events", batch_events, "--what", what]
        theirs = value_of(run_module("benchmarks.peers.spark_kafka", *words), "hot")
        if theirs and found.hot_rate:
            ratio = found.hot_rate / theirs
            aim = {"aim": AIM} if what == "grouped" else {}
            emit(BENCH, f"ours / spark {what}", ratio, "ratio", ratio=ratio, peer=f"spark {what}", **aim, **of)


def main() -> int:
    """Command line; exit code 1 when our side failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="20,000 events: proves that it runs")
    parser.add_argument("--events", type=int, default=4_000_000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--keys", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--late", type=int, nargs="+", choices=(0, 1), default=[0, 1])
    parser.add_argument("--bounds", action="store_true", help="also what Spark's source alone can do")
    options = parser.parse_args()
    machine(BENCH)
    events = 20_000 if options.smoke else options.events
    runs = [(2, 10, 1)] if options.smoke else itertools.product(options.partitions, options.keys, options.late)
    for partitions, keys, late in runs:
        try:
            with filled(events, partitions, keys, bool(late)) as topic:
                compare(topic, max(1, events // 4), options.bounds)
        except OursFailed as error:
            emit(BENCH, "rollup", None, "events/s", error=str(error))
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
