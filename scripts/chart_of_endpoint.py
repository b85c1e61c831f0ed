"""Draws docs/images/bi-chart.png the way a BI tool would: a driver, a connection to `rollup serve`, a query, a chart.

    python scripts/chart_of_endpoint.py [docs/images/bi-chart.png]

It makes a store of two symbols over a quarter in a folder of its own, serves it, and asks it through psycopg.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import threading
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import psycopg

from rollup.conf import Conf, load
from rollup.gateway.servers.serve import DeltaEndpoint
from rollup.hosts.local import LocalHost
from rollup.stores.delta.store import DeltaStore

APP = """
define stream Trades (symbol string, price double, ts long);
define aggregation TradeAgg from Trades select symbol, min(price) as low, avg(price) as mean, max(price) as high
group by symbol aggregate by ts every sec ... year;
"""
START, HOUR = 1_514_764_800_000, 3_600_000
QUERY = """
SELECT "AGG_TIME", low, mean, high FROM TradeAgg WITHIN %s, %s PER %s t WHERE symbol = %s ORDER BY 1
"""


def _conf(folder: Path) -> Conf:
    (folder / "app.siddhi").write_text(APP)
    (folder / "secret").write_text("chart")
    (folder / "rollup.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "state/checkpoint"\n[store]\nkind = "delta"\npath = "tables"\n'
        '[serve]\nport = 0\n[serve.users]\nann = { password_file = "secret" }\n'
    )
    return load(folder / "rollup.toml")


def _price(symbol: str, hour: int) -> float:
    base, swing = (40.0, 3.0) if symbol == "WSO2" else (52.0, 5.0)
    return base + swing * math.sin(hour / 190) + 2.5 * math.sin(hour / 3.8 + len(symbol)) + hour / 600


def _draw(port: int, target: Path) -> None:
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    login = {"host": "127.0.0.1", "port": port, "user": "ann", "password": "chart", "dbname": "rollup"}
    with psycopg.connect(**login) as connection:
        for symbol, colour in (("WSO2", "#1f6fb4"), ("IBM", "#c9542d")):
            rows = connection.execute(QUERY, ("2018-01-01 00:00:00", "2018-04-01 00:00:00", "days", symbol)).fetchall()
            times, low, mean, high = zip(*rows, strict=True)
            axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
            axes.plot(times, mean, color=colour, label=f"{symbol}: mean, and lowest to highest price of the day")
    axes.set_title(
        "TradeAgg within '2018-01-01', '2018-04-01' per 'days', asked over the PostgreSQL protocol", fontsize=11
    )
    axes.margins(y=0.22)
    axes.legend(frameon=False, loc="upper left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=110)


def main() -> None:
    """Make the store, serve it, draw."""
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/bi-chart.png")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        conf = _conf(folder)
        host = LocalHost(conf.program(), lambda aggregation, engine: DeltaStore(aggregation, engine, conf.tables))
        host.send("Trades", [(s, _price(s, h), START + h * HOUR) for h in range(90 * 24) for s in ("WSO2", "IBM")])
        endpoint = DeltaEndpoint(conf)
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(endpoint.start(), loop).result()
        try:
            _draw(endpoint.port, target)
        finally:
            asyncio.run_coroutine_threadsafe(endpoint.close(), loop).result()


if __name__ == "__main__":
    main()
