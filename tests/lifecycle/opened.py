"""An aggregation of a configuration opened by its store, whoever wrote it: what the tests of replay compare and damage.

Also the commands of the runbooks that need a source of their own: blocks marked with its word, ```sh topic fails 2.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from rollup.conf import Conf, load
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.untyped import pc
from rollup.hosts.pipeline import Pipeline
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.stores.base import Rewrite, Store
from rollup.stores.registry import open_store
from tests.job.jobs import answers

COLUMNS = "AGG_TIMESTAMP, symbol, avgPrice, total, high, lastPrice"


@dataclass
class Opened:
    """The first aggregation of a configuration, as its newest commit has it."""

    conf: Conf
    aggregation: Aggregation
    engine: ColumnEngine
    store: Store
    pipeline: Pipeline

    @classmethod
    def of(cls, path: Path) -> Opened:
        """Open the aggregation of a configuration file."""
        conf, engine = load(path), ColumnEngine(threads=2)
        aggregation = next(iter(conf.program().aggregations.values()))
        store = open_store(conf, aggregation, engine)
        pipeline = Pipeline(aggregation, store, engine)
        pipeline.start()
        return cls(conf, aggregation, engine, store, pipeline)


def everything(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What every level answers; doubles rounded, as their sums depend on the order."""
    conf = load(path)
    return {
        per: [tuple(round(v, 6) if isinstance(v, float) else v for v in row) for row in answers(conf, COLUMNS, per)]
        for per in ("seconds", "minutes", "hours", "days", "months", "years")
    }


def spoil(path: Path, start: int, end: int, level: Duration = Duration.SECONDS) -> int:
    """Make a stored row of a level wrong, in a range of time, as a foreign hand would; the start of its bucket."""
    opened = Opened.of(path)
    rows = opened.store.snapshot().rows(level, start, end).sort_by(TIMESTAMP)
    at = rows[TIMESTAMP][rows.num_rows // 2].as_py()
    bucket = rows.filter(pc.equal(rows[TIMESTAMP], at))
    wrong = pc.add(bucket["AGG_SUM_quantity"], 1)
    bucket = bucket.set_column(bucket.schema.get_field_index("AGG_SUM_quantity"), "AGG_SUM_quantity", wrong)
    opened.pipeline.rewrite({level: Rewrite(at, at + 1, bucket.cast(rows.schema))})
    return int(at)


def commands(page: str, word: str) -> list[tuple[list[str], int]]:
    """The commands of a runbook's blocks that are marked with a word, in order, and their exit codes."""
    text = (Path(__file__).parents[2] / "docs" / "runbooks" / page).read_text()
    blocks = re.findall(rf"^```sh {word}(?: fails (\d))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks, f"{page} has no command for {word}"
    return [
        (shlex.split(line), int(code or 0)) for code, lines in blocks for line in lines.splitlines() if line.strip()
    ]
