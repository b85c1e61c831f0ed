"""Every window with every select, output rate and context: `python -m benchmarks.grid`.

Says how many of the statements run over columns, and for those on rows the first reasons against it. With
`ESPER_CLASSPATH=… --beside N` a sample of N of those on rows (`--seed`) is measured beside Esper as `benchmarks.survey`
does it: the statement, microseconds of the processor for an event, ours and Esper's, and the share; then the quartiles.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.engine import esper
from benchmarks.shapes import Shape
from benchmarks.survey import KEYS, cost, placed
from rollup.core.errors import RollupError

WINDOWS = (
    "", "#length(100)", "#length_batch(100)", "#time(1 sec)", "#time_batch(1 sec)", "#time_accum(100 msec)",
    "#ext_timed(current_timestamp(), 1 sec)", "#time_order(current_timestamp() + volume, 1 sec)",
    "#timetolive(current_timestamp() + volume)", "#time_length_batch(1 sec, 100)", "#keepall", "#lastevent",
    "#unique(symbol)", "#firstevent", "#firstunique(symbol)", "#firstlength(100)", "#firsttime(1 sec)",
    "#sort(10, price)", "#rank(symbol, 10, price)", "#groupwin(symbol)#length(10)", "#groupwin(symbol)#time(1 sec)",
    "#expr(current_count < 100)", "#expr_batch(current_count >= 100)", "#length(100)#unique(symbol)",
    "#unique(symbol)#length(100) retain-union", "#length(10)#time(1 sec)",
)  # fmt: skip
SELECTS = (
    "select symbol, price from S{}",
    "select irstream symbol, price from S{}",
    "select symbol, price, avg(price) as a from S{}",
    "select count(*) as n, sum(price) as s from S{}",
    "select symbol, sum(price) as s, max(volume) as m from S{} group by symbol",
    "select symbol, price, sum(price) as s from S{} group by symbol",
)
RATES = (
    "", "last every 1 sec", "snapshot every 1 sec", "all every 1 sec", "first every 1 sec", "every 1 sec",
    "last every 10 events", "every 10 events",
)  # fmt: skip
CONTEXTS = ("", "context C ")


def statements() -> Iterator[str]:
    """The texts."""
    for context, select, window, rate in product(CONTEXTS, SELECTS, WINDOWS, RATES):
        yield f"{context}{select.format(window)}{f' output {rate}' if rate else ''}"


def on_rows() -> dict[str, str]:
    """Those that run on rows, with the reason; says how many there are of each."""
    found, refused, count = dict[str, str](), 0, 0
    for text in statements():
        try:
            executor, reason = placed(Shape(text, KEYS))
        except RollupError:
            refused += 1
            continue
        count += 1
        if executor == "rows":
            found[text] = reason
    print(f"{count} statements, {count - len(found)} over columns, {len(found)} on rows; {refused} are none")
    for reason, several in Counter(found.values()).most_common():
        print(f"{several:5}  {reason}")
    return found


def beside(texts: list[str], classpath: str) -> None:
    """A line for each."""
    shares = list[float]()
    for text in texts:
        shape = Shape(text, KEYS)
        own, theirs = cost(shape), 1e6 / esper(shape, classpath).processor
        shares.append(theirs / own)
        print(f"{own:8.2f} {theirs:8.3f} {shares[-1]:7.3f}  {text}", flush=True)
    quartiles = ", ".join(f"{each:.3f}" for each in np.percentile(shares, (0, 25, 50, 75, 100)))
    print(f"least, quartiles and greatest share of Esper's: {quartiles}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", type=int, default=0, help="so many of those on rows beside Esper")
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    if given.beside and "ESPER_CLASSPATH" not in os.environ:
        sys.exit("ESPER_CLASSPATH must name Esper's jars")
    texts = list(on_rows())
    random.Random(given.seed).shuffle(texts)
    if given.beside:
        beside(texts[: given.beside], os.environ["ESPER_CLASSPATH"])
