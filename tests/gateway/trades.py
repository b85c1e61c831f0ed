"""A small Delta store of trades made in this process, and an endpoint before it in a thread of its own."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql

from rollup.conf import Conf, load
from rollup.gateway.servers.options import ServeOptions
from rollup.gateway.servers.serve import DeltaEndpoint, endpoint
from rollup.hosts.local import LocalHost
from rollup.statements.committed.commits import FOLDER, Commits
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from tests.servers.postgres import PostgresServer

T = TypeVar("T")
APP = """
define stream Trades (symbol string, price double, volume long, ts long);
define aggregation TradeAgg from Trades
select symbol, sum(price) as total, avg(price) as avgPrice, min(price) as low, max(price) as high, count() as trades
group by symbol aggregate by ts every sec ... year;
"""
KEEPING = (
    APP.rstrip().rstrip(";")
    + """;
@PrimaryKey('k') define stream Totals (k string, total double);
define table Highest (symbol string, price double);
define stream Limits (symbol string, price double);
from Limits select symbol, price insert into Highest;
define window Recent (symbol string, price double) length(2) output all events;
from Trades select symbol, price insert into Recent;
@lang('epl') {
  create window Last#unique(symbol) as (symbol string, price double, n int);
  insert into Last select symbol, price, 1 as n from Trades;
  create table Sums(symbol string primary key, total sum(double), seen window(*) @type(Trades));
  into table Sums select sum(price) as total, window(*) as seen from Trades#length(2) group by symbol;
}
@lang('epl') {
  create window `a "b"#c`#keepall as (`it's` string, yes boolean);
  insert into `a "b"#c` select symbol as `it's`, price > 1 as yes from Trades;
  create window TradeAgg#keepall as (symbol string);
}
@lang('sql') {
  UPSERT INTO Totals SELECT STREAM symbol, SUM(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS UNBOUNDED PRECEDING)
  FROM Trades
}
@lang('sql', into='Seen') { SELECT STREAM s.symbol, t.total FROM Trades AS s JOIN Totals AS t ON s.symbol = t.k }
"""
)
"""The same aggregation beside named windows and tables of several languages."""
ROLES = Path(__file__).parents[2] / "ddl" / "gateway_roles.sql"
PASSWORD = "ann's {password}"
JANUARY, FEBRUARY = "'2018-01-** **:**:**'", "'2018-02-** **:**:**'"


def at(text: str) -> int:
    """Milliseconds since the epoch of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def trade(symbol: str, price: float, second: int) -> tuple[Any, ...]:
    """A trade on the first of January."""
    return symbol, price, 1, at(f"2018-01-01T00:00:{second:02d}")


def events(month: str, days: int = 28, symbols: str = "AB") -> list[tuple[Any, ...]]:
    """Three trades a day and symbol: prices are the day of the month, doubled for the second symbol."""
    return [
        (symbol, float(day * (index + 1)), 1, at(f"{month}-{day:02d}T{hour}:00:00"))
        for day in range(1, days + 1)
        for hour in ("09", "12", "15")
        for index, symbol in enumerate(symbols)
    ]


def configuration(folder: Path, app: str = APP, serve: str = "port = 0") -> Conf:
    """A configuration with a Delta store in `folder/tables` and the user ann."""
    (folder / "app.siddhi").write_text(app)
    (folder / "secret").write_text(PASSWORD + "\n")
    path = folder / "rollup.toml"
    path.write_text(
        'app = "app.siddhi"\ncheckpoint = "state/checkpoint"\n[store]\nkind = "delta"\npath = "tables"\n'
        f'[serve]\n{serve}\n[serve.users]\nann = {{ password_file = "secret" }}\n'
    )
    return load(path)


def before_postgres(folder: Path, dsn: str, app: str = APP) -> Conf:
    """A configuration whose store is a database, in which ann may only read."""
    (folder / "app.siddhi").write_text(app)
    (folder / "rollup.toml").write_text(
        f'app = "app.siddhi"\ncheckpoint = "state/checkpoint"\n[store]\nkind = "sql"\nurl = "{dsn}"\n'
        "[serve]\nport = 0\n[serve.users]\nann = {}\n"
    )
    return load(folder / "rollup.toml")


def let_ann_read(dsn: str) -> None:
    """Make the role that clients log in with; it takes rights from PUBLIC in every database of the server."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        names = {"role": "ann", "database": dsn.rpartition("/")[2], "schema": "public", "owner": "rollup"}
        parts = {key: sql.Identifier(value) for key, value in names.items()}
        admin.execute(sql.SQL(ROLES.read_text()).format(password=sql.Literal(PASSWORD), **parts))


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that the private server's user can reach, which pytest's own are not when we are root."""
    with tempfile.TemporaryDirectory(prefix="rollup-serve-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def host(conf: Conf) -> LocalHost:
    """A job in this process that writes the configuration's store."""
    program = conf.program()
    commits = None if program.statements is None else Commits(conf.tables / "_rollup" / FOLDER)
    return LocalHost(program, lambda aggregation, engine: DeltaStore(aggregation, engine, conf.tables), commits)


def places_of_errors(login: Mapping[str, Any], prepared: bool) -> None:
    """Assert that an error of the server points into the text that a client has sent, where that is known."""
    one = f"select {{}} from TradeAgg within {JANUARY} per 'days' where {{}} = 1 order by {{}}"
    rest = (
        f"a join (select 1 where {{}} = 1) c on true join TradeAgg within {JANUARY} per 'days' b on true where {{}} = 1"
    )
    two = f"select {{}} from TradeAgg within {JANUARY} per 'days' {rest}"
    with psycopg.connect(**login, autocommit=True) as client:
        for form in (one, two):
            for wrong in range(3):
                text = form.format(*("nobody" if place == wrong else str(place + 1) for place in range(3)))
                with pytest.raises(psycopg.errors.UndefinedColumn) as caught:
                    client.execute(text.encode(), prepare=prepared)
                place = None if form is two and wrong == 1 else str(text.index("nobody") + 1)
                assert caught.value.diag.statement_position == place, text


class Serving:
    """`with Serving(conf) as serving:` serves until the block ends; `serving.login()` is for the drivers."""

    def __init__(self, conf: Conf, options: ServeOptions | None = None) -> None:
        self.endpoint = endpoint(conf, options)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def delta(self) -> DeltaEndpoint:
        assert isinstance(self.endpoint, DeltaEndpoint)
        return self.endpoint

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def __enter__(self) -> Serving:
        self._thread.start()
        self.run(self.endpoint.start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.endpoint.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def login(self, **other: Any) -> Mapping[str, Any]:
        """Keyword arguments of psycopg2 and psycopg."""
        return {
            "host": "127.0.0.1",
            "port": self.endpoint.port,
            "user": "ann",
            "password": PASSWORD,
            "dbname": "rollup",
        } | other


@contextmanager
def served(kind: str, app: str, send: Callable[[LocalHost], None]) -> Generator[dict[str, Any]]:
    """The log-in of ann at an endpoint before a store that `send` has filled: "delta", or "postgresql" on a server of its own."""
    with folder() as made:
        if kind == "delta":
            conf = configuration(made, app)
            send(host(conf))
            with Serving(conf) as serving:
                yield dict(serving.login())
            return
        with PostgresServer() as server:
            dsn = server.new_database()
            conf = before_postgres(made, dsn, app)
            send(LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn)))
            let_ann_read(dsn)
            with Serving(conf) as serving:
                yield dict(serving.login(dbname=serving.endpoint.database))
