"""Our side of the benchmarks: the job and the retrieval as a user runs them, through the command line and the library.

Everything that knows how rollup is called stands in this file; the benchmarks know only these functions.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, Stopwatch

APP = """define stream Trades (symbol string, price double, quantity long, ts long);

define aggregation TradeAgg
from Trades
select symbol, avg(price) as avgPrice, sum(quantity) as total, min(price) as low, max(price) as high, count() as events
group by symbol
aggregate by ts every sec ... year;
"""
AGGREGATION = "TradeAgg"
LIVE_APP = APP.replace("count() as events", "count() as events, max(ts) as newest")
STATEMENTS = """
@lang('epl') {
@name('Dear') select symbol, price from Trades(price > 137.8);
@name('Large') select symbol, price * quantity as paid from Trades(price * quantity > 17000);
@name('K7') select symbol, price, quantity from Trades(symbol = 'k7', quantity > 120);
@name('Cheap') select symbol, sum(quantity) as q from Trades(price < 10.3)#length(1000) group by symbol;
@name('Recent') select symbol, avg(price) as p from Trades(quantity = 7)#time(10 sec) group by symbol;
@name('Busy') select symbol, count(*) as n from Trades(quantity > 125)#time(1 sec) group by symbol having count(*) > 5;
@name('Extremes') select symbol, min(price) as low, max(price) as high
  from Trades(quantity = 9)#length(500) group by symbol;
@name('Fall') select a.symbol as symbol, a.price as high, b.price as low
  from pattern [every a=Trades(price > 137) -> b=Trades(symbol = a.symbol, price < 11) where timer:within(10 sec)];
@name('Rise') select a.symbol as symbol, a.price as low, b.price as high
  from pattern [every a=Trades(price < 11) -> b=Trades(symbol = a.symbol, price > 137) where timer:within(10 sec)];
@name('Pairs') select a.price as low, b.price as high
  from Trades(price < 10.2)#time(1 sec) as a, Trades(price > 137.8)#time(1 sec) as b where a.symbol = b.symbol;
}
"""
"""Ten statements beside the aggregation of a live job."""


class OursFailed(Exception):
    """Our job ended badly; the message holds the end of what it said."""


@dataclass(frozen=True)
class CascadeRun:
    """Rates in events/s of one run of the job, and what they come from (seconds)."""

    hot_rate: float | None
    total_rate: float
    events: int
    batches: int
    hot_seconds: float
    total_seconds: float
    counted: int | None


# --- plug: the configuration file and the command line of the job ----------------------------------------------------


def write_conf(
    folder: Path,
    files: Sequence[Path],
    batch_files: int = 4,
    store: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    kind: str = "parquet",
) -> Path:
    """Write the app and the configuration for a job over files; returns the TOML file.

    It writes into a Delta store beside it, or into the `store` with these options; `settings` are Spark's.
    """
    app, conf = folder / "trades.siddhi", folder / "bench.toml"
    options = store or {"kind": "delta", "path": folder / "store"}
    where = "\n".join(f'{name} = "{value}"' for name, value in options.items())
    lines = [f'"{name}" = "{value}"' for name, value in (settings or {}).items()]
    spark = "\n".join(["\n[spark]", *lines, ""]) if lines else ""
    app.write_text(APP)
    conf.write_text(f"""app = "{app}"
checkpoint = "{folder / "checkpoint"}"

[sources.Trades]
kind = "{kind}"
path = "{files[0].parent}"
max_files_per_batch = {batch_files}

[store]
{where}
{spark}""")
    return conf


def run_command(conf: Path, metrics: Path) -> list[str]:
    """The command that runs the job over everything that is there, then ends."""
    return [sys.executable, "-m", "rollup.cli.main", "run", str(conf), "--once", "--metrics-json", str(metrics)]


def ours_open(conf: Path) -> Any:
    """What ``ours_query`` needs of a store, opened once and asked by several threads."""
    import rollup  # loading it is part of a cold answer

    return rollup.open(conf)


def ours_query(conf: Any, text: str) -> Any:
    """Answer one ``within … per …`` question as an Arrow table; ``conf`` is a path or what ``ours_open`` gave."""
    import rollup

    return rollup.query(conf, text)


def level_path(folder: Path, level: str) -> Path:
    """The Delta table of one level (``seconds`` … ``years``) in the store that ``write_conf`` set up."""
    return folder / "store" / f"{AGGREGATION}_{level.upper()}"


# Columns of those tables, for the same question as a plain Spark SQL group-by.
LEVEL_COLUMNS = {
    "time": "AGG_TIMESTAMP",
    "sum": "AGG_SUM_price",
    "count": "AGG_COUNT_price",
    "total": "AGG_SUM_quantity",
    "low": "AGG_MIN_price",
    "high": "AGG_MAX_price",
    "events": "AGG_COUNT",
}


def write_live_conf(folder: Path, bootstrap: str, topic: str, statements: bool = False) -> Path:
    """Write the app and the configuration for a job from a Kafka topic of JSON events; returns the TOML file."""
    return _topic_conf(folder, LIVE_APP + STATEMENTS * statements, bootstrap, topic, "")


def write_topic_conf(folder: Path, bootstrap: str, topic: str, batch_events: int) -> Path:
    """The same for a job that catches up with a topic, at most so many events a batch."""
    return _topic_conf(folder, APP, bootstrap, topic, f"max_events_per_batch = {batch_events}")


def _topic_conf(folder: Path, text: str, bootstrap: str, topic: str, more: str) -> Path:
    app, conf = folder / "live.siddhi", folder / "live.toml"
    app.write_text(text)
    conf.write_text(f"""app = "{app}"
checkpoint = "{folder / "checkpoint"}"
trigger = "0 seconds"

[sources.Trades]
kind = "kafka"
servers = "{bootstrap}"
topic = "{topic}"
{more}

[store]
kind = "delta"
path = "{folder / "store"}"
""")
    return conf


def live_command(conf: Path, metrics: Path) -> list[str]:
    """The command that runs the job until SIGTERM."""
    return [sys.executable, "-m", "rollup.cli.main", "run", str(conf), "--metrics-json", str(metrics)]


def newest_commit(conf: Path) -> int:
    """The number of the newest commit of the live job, from the names of its records; -1 before the first."""
    records = (conf.parent / "store" / "_rollup" / AGGREGATION).glob("commit-*.json")
    return max((int(record.stem.removeprefix("commit-")) for record in records), default=-1)


def newest_readable(conf: Any, since: int) -> int | None:
    """Sending time (epoch ms) of the newest event a reader gets now, asked as a reader asks; None before the first.

    ``since`` bounds the range asked for: nothing older is of interest, and of the newest only the last minute.
    """
    from rollup.core.errors import StoreError

    now = time.time_ns() // 1_000_000
    text = f"from {AGGREGATION} within {max(since, now - 60_000)}L, {now + 60_000}L per 'seconds' select newest"
    try:
        found = ours_query(conf, text).column("newest").to_pylist()
    except StoreError:  # the job has not made its first commit yet
        return None
    return max((value for value in found if value is not None), default=None)


# --- end of plug -----------------------------------------------------------------------------------------------------


def run_job(conf: Path, metrics: Path, timeout: float = 3600) -> float:
    """Run the job to its end in a process of its own; returns seconds, start-up included."""
    watch = Stopwatch()
    done = subprocess.run(
        run_command(conf, metrics), cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
    )
    if done.returncode != 0:
        raise OursFailed(f"exit code {done.returncode}: {done.stderr[-1500:]}")
    return watch.total()


def run_maintain(conf: Path, timeout: float = 3600) -> float:
    """Put the files of the store together, as a scheduler lets it be done; returns seconds, start-up included."""
    watch = Stopwatch()
    command = [sys.executable, "-m", "rollup.cli.main", "maintain", str(conf), "--seconds", str(timeout)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise OursFailed(f"exit code {done.returncode}: {done.stderr[-1500:]}")
    return watch.total()


def run_cascade(
    files: Sequence[Path],
    keys: int,
    folder: Path,
    batch_files: int = 4,
    store: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    kind: str = "parquet",
) -> dict[str, Any]:
    """Run the job over the files into an empty store under ``folder`` and return its rates (see ``CascadeRun``)."""
    metrics = folder / "metrics.jsonl"
    total_seconds = run_job(write_conf(folder, files, batch_files, store, settings, kind), metrics)
    batches = [json.loads(row) for row in metrics.read_text().splitlines() if row.strip()]
    return asdict(summarise(batches, total_seconds)) | {"keys": keys}


def summarise(batches: Sequence[dict[str, Any]], total_seconds: float, counted: int | None = None) -> CascadeRun:
    """Rates from the metrics of each batch: hot is from the end of the first that brought events to the end of the
    last, so what Spark does between batches is in it.

    >>> run = summarise([{"events": 10, "finished": 105.0}, {"events": 40, "finished": 107.0}], 10.0)
    >>> run.hot_rate, run.total_rate
    (20.0, 5.0)
    """
    full = [batch for batch in batches if batch["events"]]
    events, hot = sum(batch["events"] for batch in full), full[1:]
    hot_seconds = float(hot[-1]["finished"] - full[0]["finished"]) if hot else 0.0
    hot_rate = sum(batch["events"] for batch in hot) / hot_seconds if hot else None
    return CascadeRun(hot_rate, events / total_seconds, events, len(full), hot_seconds, total_seconds, counted)
