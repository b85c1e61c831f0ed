"""A job with statements in it: all ways in (SiddhiQL, EPL, a file beside the app) and out (Delta, files, a database, an
aggregation), with windows, half-matched patterns and what an aggregation closes. What it gives is known by hand."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.job.jobs import Job, answers

NOON = 1_700_000_040_000
MINUTE = 60_000
APP = """define stream Trades (symbol string, price double, ts long);
define aggregation Agg from Trades select symbol, sum(price) as total, count() as n group by symbol
aggregate by ts every sec ... day;

@sink(type='delta', path='means')
define stream Means (symbol string, mean double);
from Trades[symbol == 'a']#window.length(2) select symbol, avg(price) as mean insert into Means;

@sink(type='file', path='rising')
define stream Rising (symbol string, first double, last double);
@lang('epl') {
  insert into Rising select a.symbol as symbol, a.total as first, c.total as last from pattern [
    every a=Agg_MINUTES -> b=Agg_MINUTES(symbol = a.symbol, total > a.total)
      -> c=Agg_MINUTES(symbol = a.symbol, total > b.total)];
}

define stream Jumps (symbol string, price double, ts long);
define aggregation JumpAgg from Jumps select symbol, count() as n group by symbol aggregate by ts every sec ... day;

@PrimaryKey('symbol') @sink(type='delta', path='sums')
define stream Sums (symbol string, total double);
@lang('sql') {
  UPSERT INTO Sums
  SELECT STREAM symbol, SUM(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS UNBOUNDED PRECEDING) FROM Trades
}
@sink(type='file', path='before') define stream Before (symbol string, price double, total double);
@lang('sql', into='Before') {
  SELECT STREAM t.symbol, t.price, s.total FROM Trades AS t LEFT JOIN Sums AS s ON s.symbol = t.symbol WHERE t.price <> 1
}
"""
JUMPS = """// further than 5 up within 10 seconds
insert into Jumps select b.symbol as symbol, b.price as price, b.ts as ts
from pattern [every a=Trades -> b=Trades(symbol = a.symbol, price > a.price + 5) where timer:within(10 sec)];
"""
BY_SYMBOL = """create context PerSymbol partition by symbol from Trades;
context PerSymbol insert into Jumps select b.symbol as symbol, b.price as price, b.ts as ts
from pattern [every a=Trades -> b=Trades(price > a.price + 5) where timer:within(10 sec)];
"""
"""The same of each symbol apart."""
HELD = """@sink(type='file', path='held') define stream Held (price double, total double);
@lang('sql', into='Held') {
  SELECT STREAM q.price, m.total FROM Trades AS q
  LEFT JOIN Agg_MINUTES FOR SYSTEM_TIME AS OF q.rowtime AS m ON q.symbol = m.symbol WHERE q.symbol = 'a'
}
"""
"""Each event of a with the total of the minute before."""
KEYED = """@sink(type='file', path='slices') define stream Slices (symbol string, total double);
@sink(type='file', path='left') define stream Left (symbol string, price double);
@lang('uql') {
  from Trades group by symbol window slice 60 seconds based on rowtime aggregate sum(price) as total
  append symbol, total to Slices
}
@lang('streamcruncher', into='Left') {
  select symbol, price from Trades (partition by symbol store last 2) as w where w.$row_status is dead;
}
"""
"""Two languages more that have keys: the minutes, and what is no longer one of the last two of its symbol."""
MINUTES = """INSERT INTO Minutes
SELECT STREAM TUMBLE_END(rowtime, INTERVAL '1' MINUTE) AS ended, symbol, SUM(price) AS total FROM Trades
GROUP BY TUMBLE(rowtime, INTERVAL '1' MINUTE), symbol
"""


def write_events(folder: Path, files: int) -> None:
    """A file a minute: every minute has more of a than the one before, and one jump of b."""
    folder.mkdir(parents=True, exist_ok=True)
    for minute in range(files):
        at = NOON + minute * MINUTE
        rows = [("a", float(minute + 1), at), ("b", 1.0, at + 1000), ("b", 10.0, at + 2000), ("b", 1.0, at + 30_000)]
        table = pa.Table.from_pylist([dict(zip(("symbol", "price", "ts"), row, strict=True)) for row in rows])
        file = folder / f"{minute:04}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1_600_000_000 + minute, 1_600_000_000 + minute))


def job(folder: Path, files: int, per_batch: int = 1, shards: int | None = None, more: str = "") -> Job:
    """The job in a folder, over so many files; with `shards`, jumps and minutes are found in shards. `more`: of the app."""
    folder.mkdir(parents=True, exist_ok=True)
    write_events(folder / "in", files)
    (folder / "jumps.epl").write_text(JUMPS if shards is None else BY_SYMBOL)
    (folder / "minutes.sql").write_text(MINUTES)
    source = {"kind": "parquet", "path": "in", "max_files_per_batch": per_batch}
    sink = f'[sinks.Minutes]\nkind = "postgres"\nurl = "sqlite:///{folder / "out.db"}"\ntable = "minutes"'
    top = 'statements = ["jumps.epl", "minutes.sql"]' + ("" if shards is None else f"\nstatement_shards = {shards}")
    return Job(folder, source, app=APP + more, top=top, more=sink)


def results(found: Job) -> dict[str, Any]:
    """What the sinks and the aggregations have."""
    rising = in_files(found, "rising")
    means, sums = (DeltaTable(str(found.folder / sink)).to_pyarrow_table().to_pylist() for sink in ("means", "sums"))
    with sqlite3.connect(found.folder / "out.db") as database:
        minutes = database.execute("select ended, symbol, total from minutes").fetchall()
    return {
        "rising": sorted([row["symbol"], row["first"], row["last"]] for row in rising),
        "means": sorted([row["symbol"], row["mean"]] for row in means),
        "minutes": sorted([list(row) for row in minutes]),
        "sums": sorted([row["symbol"], row["total"]] for row in sums),
        "before": sorted([row["symbol"], row["price"], row["total"]] for row in in_files(found, "before")),
        "jumps": _rows(found, "symbol, n", "JumpAgg"),
        "totals": _rows(found, "symbol, total", "Agg"),
    }


def in_files(found: Job, sink: str) -> list[dict[str, Any]]:
    """What a sink of files has."""
    files = sorted((found.folder / sink).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def _rows(found: Job, columns: str, name: str) -> list[Any]:
    return sorted(list(row) for row in answers(found.conf, columns, "minutes", name))


def expected_keyed(files: int) -> dict[str, list[tuple[str, float]]]:
    """Of KEYED, sorted: the last minute is open, and so is the instant of the last event, which is the last 1.0 of b."""
    left = [("a", m + 1.0) for m in range(files - 2)] + [("b", price) for price in (1.0, 10.0, 1.0)] * (files - 1)
    slices = [(symbol, v) for m in range(files - 1) for symbol, v in (("a", m + 1.0), ("b", 12.0))]
    return {"slices": sorted(slices), "left": sorted(left)}


def expected(files: int) -> dict[str, Any]:
    """Worked out: minute m of a has m + 1 and of b 12; the last minute is still open."""
    rising = [["a", float(m + 1), float(m + 3)] for m in range(files - 3)]
    closed = [
        [NOON + (m + 1) * MINUTE, symbol, v] for m in range(files - 1) for symbol, v in (("a", m + 1.0), ("b", 12.0))
    ]
    return {
        "rising": rising,
        "means": [["a", 1.0], *(["a", m + 0.5] for m in range(1, files))],
        "minutes": sorted(closed),
        "sums": [["a", files * (files + 1) / 2], ["b", 12.0 * files]],
        "before": [["a", m + 1.0, m * (m + 1) / 2] for m in range(1, files)]
        + [["b", 10.0, 12.0 * m + 1] for m in range(files)],
        "jumps": [["b", 1]] * files,
        "totals": [["a", float(m + 1)] for m in range(files)] + [["b", 12.0]] * files,
    }
