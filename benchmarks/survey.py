"""What users write, beside Esper: `ESPER_CLASSPATH=… python -m benchmarks.survey [TOPIC or STATEMENT'S NAME …]`.

For each statement of `benchmarks.written`: where it runs, and the processor's time of an event, ours and that of
Esper's thread, so that a busy machine spoils neither; batches of 10,000, after both have warmed up. `share` is Esper's
time in ours: above 1 we are quicker. Aims: 0.1 on rows, 3 over columns.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.engine import BATCH, deployed, esper, events
from benchmarks.shapes import Shape
from benchmarks.written import WRITTEN

KEYS = 100
SECONDS = float(os.environ.get("BENCH_SECONDS", "1"))
LONGEST = 20.0
"""So many seconds may one statement take."""


def cost(shape: Shape) -> float:
    """Microseconds of the processor for an event: the least of the batches after the warm-up."""
    engine, _ = deployed(shape, 1)
    table, at = next(events(KEYS, 300))
    engine.send("S", table, at=np.zeros_like(at))  # goes over to columns
    spent, best = 0.0, float("inf")
    for number, (table, at) in enumerate(events(KEYS, BATCH)):
        before = time.process_time()
        engine.send("S", table, at=at)
        took = time.process_time() - before
        spent += took
        if number > 1 or spent > LONGEST:
            best = min(best, took)
        if (number > 3 and spent > SECONDS) or spent > LONGEST:
            break
    return best / BATCH * 1e6


def placed(shape: Shape) -> tuple[str, str]:
    """Where a module runs, and the first reason against columns."""
    reasons = [each.reason for each in deployed(shape, 1)[0].plan() if each.reason is not None]
    return ("rows", reasons[0]) if reasons else ("columns", "")


def wanted(names: list[str]) -> Iterator[tuple[str, str, str]]:
    """Topic, name and text of the statements asked for."""
    for topic, statements in WRITTEN.items():
        for name, text in statements.items():
            if not names or topic in names or name in names:
                yield topic, name, text


def main(names: list[str], classpath: str) -> None:
    """A line for each statement."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'topic':12} {'statement':18} {'executor':8} {'µs':>9} {'Esper µs':>9} {'share':>7}")
    for topic, name, text in wanted(names):
        shape = Shape(text, KEYS)
        executor, reason = placed(shape)
        own, theirs = cost(shape), 1e6 / esper(shape, classpath).processor
        print(f"{topic:12} {name:18} {executor:8} {own:9.3f} {theirs:9.3f} {theirs / own:7.3f}  {reason}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"topics ({', '.join(WRITTEN)}) or statements; all")
    given = parser.parse_args()
    found = {name for topic, statements in WRITTEN.items() for name in (topic, *statements)}
    unknown = [name for name in given.names if name not in found]
    if unknown:
        parser.error(f"unknown {unknown[0]!r}: one of {', '.join(WRITTEN)}, or a statement of theirs")
    if "ESPER_CLASSPATH" not in os.environ:
        sys.exit("ESPER_CLASSPATH must name Esper's jars")
    main(given.names, os.environ["ESPER_CLASSPATH"])
