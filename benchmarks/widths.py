"""Widths, zones and merges that no level stores, beside the question of the level that each is put together from.

``python -m benchmarks.widths`` asks them by turns of the retrieval benchmark's store, so that both have the machine as
it is, and prints the ratio of their medians.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
from dataclasses import dataclass
from typing import Any

from benchmarks.common import Stopwatch, emit, machine
from benchmarks.ours import ours_open, ours_query
from benchmarks.ours_retrieval import Rollup
from benchmarks.questions import KEYS

BENCH = "widths"
_RANGE = "within '2018-01-01 00:00:00', '2019-01-07 00:00:00' per "
"""Whole weeks, and the open buckets at their end."""
_OF, _ALL = f"from TradeAgg on symbol == '{{key}}' {_RANGE}", f"from TradeAgg {_RANGE}"
_SHOWN = " select AGG_TIMESTAMP, symbol, avgPrice, total"
_MERGED = " select AGG_TIMESTAMP, merge(avgPrice) as avgPrice, merge(total) as total group by AGG_TIMESTAMP"


@dataclass(frozen=True)
class Pair:
    """A question, that of the level it reads, and the times as long that it may take."""

    name: str
    asked: str
    native: str
    aim: float


PAIRS = [
    Pair("a year per weeks, 1 key", f"{_OF}'weeks'{_SHOWN}", f"{_OF}'days'{_SHOWN}", 1.5),
    Pair(f"a year per weeks, {KEYS} keys", f"{_ALL}'weeks'{_SHOWN}", f"{_ALL}'days'{_SHOWN}", 1.5),
    Pair(
        "a year per days of New York, 1 key", f"{_OF}'days in America/New_York'{_SHOWN}", f"{_OF}'hours'{_SHOWN}", 1.5
    ),
    Pair(
        f"a year per days of New York, {KEYS} keys",
        f"{_ALL}'days in America/New_York'{_SHOWN}",
        f"{_ALL}'hours'{_SHOWN}",
        1.5,
    ),
    Pair(f"a year per days, merged over {KEYS} keys", f"{_ALL}'days'{_MERGED}", f"{_ALL}'days'{_SHOWN}", 2.0),
    Pair(f"a year per hours, merged over {KEYS} keys", f"{_ALL}'hours'{_MERGED}", f"{_ALL}'hours'{_SHOWN}", 2.0),
]


def milliseconds(store: Any, text: str) -> tuple[float, int]:
    """How long a question takes, and the rows of its answer."""
    watch = Stopwatch()
    rows = int(ours_query(store, text).num_rows)
    return watch.total() * 1000, rows


def main() -> int:
    """Command line; exit code 1 when a question has no rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    machine(BENCH)
    store = ours_open(Rollup().prepare(options.rows))
    for pair in PAIRS:
        spent: dict[str, list[float]] = {pair.asked: [], pair.native: []}
        rows = dict[str, int]()
        for turn, text in itertools.product(range(options.runs + 1), spent):
            took, rows[text] = milliseconds(store, text.format(key=f"k{turn % KEYS}"))
            if turn:
                spent[text].append(took)
        if not all(rows.values()):
            return 1
        asked, native = (statistics.median(spent[text]) for text in (pair.asked, pair.native))
        emit(
            BENCH, pair.name, asked, "ms", native_ms=native, ratio=asked / native, aim=pair.aim,
            answer_rows=rows[pair.asked], native_rows=rows[pair.native], store_rows=options.rows,
        )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
