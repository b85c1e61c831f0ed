"""A job over files without Spark: the same fold, pipeline, store, leases, chores and marks, one batch a call.

It also writes the streaming query's log as Spark does, so that replay and recovery read the real format. As a program,
`python -m tests.lifecycle.filejob CONF` is a job process that tests can stop, resume and kill.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.conf import Conf, load
from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError
from rollup.hosts.pipeline import Pipeline
from rollup.lifecycle.book import Book
from rollup.lifecycle.change import Change, settle
from rollup.lifecycle.lease.holding import Lease
from rollup.lifecycle.lease.places import lease_of
from rollup.lifecycle.maintenance.between_batches import Chores
from rollup.lifecycle.replay.raw import Folded, RawFile, RawSource
from rollup.lifecycle.status import newest_state
from rollup.stores.registry import open_store

APP = """
define stream Trades (symbol string, price double, quantity long, ts long);
{annotations}define aggregation TradeAgg from Trades
select symbol, avg(price) as avgPrice, sum(quantity) as total, max(price) as high, price as lastPrice{extra}
group by symbol aggregate by ts every sec ... year;
"""
QUERY = "11111111-2222-3333-4444-555555555555"
MIDNIGHT = 1_514_764_800_000
"""2018-01-01 00:00:00."""
DELTA = 'kind = "delta"\npath = "tables"\n'


@dataclass
class Place:
    """A configuration in a folder, with its files of events."""

    root: Path
    annotations: str = ""
    extra: str = ""
    files: int = 0
    store: str = DELTA
    """The lines of [store] in the configuration."""

    def write(self) -> Place:
        """Write app and configuration."""
        (self.root / "incoming").mkdir(parents=True, exist_ok=True)
        (self.root / "app.siddhi").write_text(APP.format(annotations=self.annotations, extra=self.extra))
        (self.root / "rollup.toml").write_text(
            'app = "app.siddhi"\ncheckpoint = "checkpoint"\n'
            f'[sources.Trades]\nkind = "parquet"\npath = "incoming"\n[store]\n{self.store}'
        )
        return self

    @property
    def conf(self) -> Conf:
        """The configuration, read anew."""
        return load(self.root / "rollup.toml")

    def add(self, *events: tuple[str, float, int, int]) -> Path:
        """Put a whole file of events there, also under a running job: symbol, price, quantity, time (ms)."""
        names = ("symbol", "price", "quantity", "ts")
        types = (pa.string(), pa.float64(), pa.int64(), pa.int64())
        path = self.root / "incoming" / f"part-{self.files:05d}.parquet"
        columns = [pa.array([event[i] for event in events], kind) for i, kind in enumerate(types)]
        aside = self.root / path.name
        pq.write_table(pa.table(columns, names=list(names)), aside)
        aside.rename(path)
        self.files += 1
        return path


class FileJob:
    """The job in progress."""

    def __init__(self, conf: Conf, lease: Lease | None = None, accept: bool = False, name: str | None = None) -> None:
        self.conf = conf
        self.program = conf.program()
        aggregations = self.program.aggregations
        self.aggregation = next(iter(aggregations.values())) if name is None else aggregations[name]
        self.engine = ColumnEngine(threads=2)
        self.store: Any = open_store(conf, self.aggregation, self.engine)
        self.pipeline = Pipeline(self.aggregation, self.store, self.engine)
        self.book = Book.of(conf, self.aggregation.name)
        self.change: Change = settle(self.book, self.store, self.aggregation, newest_state(self.store), accept)
        self.raw = RawSource(conf, self.program, self.aggregation)
        self.chores = Chores(conf, self.program, self.pipeline)
        self.lease = lease
        self.pipeline.start()

    def run(self) -> FileJob:
        """Take every file that is there and not taken yet, one a batch."""
        while self.step():
            pass
        return self

    def step(self) -> bool:
        """One batch of one file; whether there was one."""
        mark = self.pipeline.source.get("Trades", {"batch": -1, "arrivals": 0})
        number = mark["batch"] + 1
        file = self._planned(number)
        if file is None:
            return False
        folded = self.raw.fold([file], {"Trades": mark["arrivals"]})

        def refold(steps: pa.Table, suspects: pa.Table, folded: Folded = folded) -> list[pa.Table]:
            return self.raw.second_look(folded, steps, suspects)

        source = {"query": QUERY, "batch": number, "arrivals": mark["arrivals"] + folded.events}
        self.pipeline.advance(folded.partials, refold, {"Trades": source})
        commits = self.conf.checkpoint / "Trades" / "commits"
        commits.mkdir(exist_ok=True)
        (commits / str(number)).write_text("v1\n{}")
        return True

    def _planned(self, number: int) -> RawFile | None:
        """The file of a batch as the query's log has it, which is written before the batch, as Spark does."""
        home = self.conf.checkpoint / "Trades"
        log = home / "sources" / "0"
        log.mkdir(parents=True, exist_ok=True)
        (home / "offsets").mkdir(exist_ok=True)
        (home / "metadata").write_text(json.dumps({"id": QUERY}))
        if not (log / str(number)).exists():
            known = {json.loads(path.read_text().splitlines()[1])["path"] for path in log.iterdir()}
            there = sorted(Path(self.conf.sources["Trades"]["path"]).glob("*.parquet"))
            new = next((path for path in there if path.as_uri() not in known), None)
            if new is None:
                return None
            entry = {"path": new.as_uri(), "timestamp": new.stat().st_mtime_ns // 1_000_000, "batchId": number}
            (log / str(number)).write_text("v1\n" + json.dumps(entry))
        (home / "offsets" / str(number)).write_text(f'v1\n{{}}\n{{"logOffset":{number}}}')
        row = json.loads((log / str(number)).read_text().splitlines()[1])
        return RawFile("Trades", row["path"].removeprefix("file://"), row["timestamp"], number)


def main(conf: str, pause: float, takeover: float) -> None:
    """Run until killed or fenced; says on standard output when it waits for the lease or holds it and what it committed."""
    found = load(conf)
    lease = lease_of(found, found.program().aggregations["TradeAgg"], "run", takeover)
    waits = False
    while not lease.take():
        if not waits:
            print("waits", flush=True)
        waits = True
        time.sleep(0.05)
    print("holds the lease", flush=True)
    job = FileJob(found, lease)
    while True:
        if job.step():
            print(f"commit {job.pipeline.number}", flush=True)
        if job.chores.waiting:
            job.chores.run()
        time.sleep(pause)


if __name__ == "__main__":
    try:
        main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))
    except RollupError as problem:
        print(f"{type(problem).__name__}: {problem}", flush=True)
        raise SystemExit(2) from None
