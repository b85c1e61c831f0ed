"""Statements on rows in the driver and in shards: a SiddhiQL partition with windows and a pattern, as a Spark job.

Run as ``python -m benchmarks.statement_shards``: JSON lines with the hot batches' rate of each, in one run, and the
ratio. Two cores take at most twice what one takes; what is divided and put together again is the driver's.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

from benchmarks.common import Events, emit, event_files, machine, scratch

BENCH = "statement_shards"
APP = """@time('ts') define stream Trades (symbol string, price double, quantity long, ts long);
partition with (symbol of Trades) begin
  from Trades#window.time(10 sec) select symbol, avg(price) as mean, max(price) as top output last every 1 sec
    insert into Means;
  from every a=Trades[price > 127.0] -> b=Trades[price < 11.0] within 10 sec select a.symbol as symbol, b.ts as ts
    insert into Falls;
end;
"""


def run(events: Events, shards: int | None) -> float:
    """Events a second of the hot batches."""
    from rollup.conf import load
    from rollup.hosts.reporting.progress import Reporter
    from rollup.hosts.spark.driver import SparkHost

    with scratch(f"{BENCH}-{shards}") as folder:
        conf = _conf(folder, events, shards)
        job = SparkHost(load(conf), reporter=Reporter(folder / "metrics.jsonl", terminal=False))
        job.run(once=True)
        batches = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        given = {} if job.statements is None else dict(job.statements.running.counts)
        rates = [batch["events"] / batch["seconds"] for batch in batches]
        about = {"shards": shards or "driver", "first": rates[0], "batches": len(rates), "given": given}
        emit(BENCH, "rate", median(rates[1:]), "events/s", **about)
        job.spark.stop()
        return median(rates[1:])


def _conf(folder: Path, events: Events, shards: int | None) -> Path:
    (folder / "app.siddhi").write_text(APP)
    path = folder / "job.toml"
    path.write_text(
        'app = "app.siddhi"\ncheckpoint = "checkpoint"\n'
        + ("" if shards is None else f"statement_shards = {shards}\n")
        + f'[sources.Trades]\nkind = "parquet"\npath = "{events.files[0].parent}"\nmax_files_per_batch = 1\n'
        + '[store]\nkind = "delta"\npath = "tables"\n'
    )
    return path


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--shards", type=int, nargs="+", default=[2, 8])
    arguments = parser.parse_args()
    machine(BENCH)
    events = event_files(arguments.keys, arguments.events)
    driver = run(events, None)
    for shards in arguments.shards:
        emit(BENCH, "ratio", run(events, shards) / driver, "", shards=shards)


if __name__ == "__main__":
    main()
