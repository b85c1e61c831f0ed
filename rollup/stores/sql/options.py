"""The options of `@store(type='rdbms', jdbc.url=…, username=…, password=…)` as SQLAlchemy takes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from rollup.core.errors import StoreError

_JDBC = re.compile(r"jdbc:(?P<kind>[a-z0-9]+):(?P<rest>.+)", re.IGNORECASE)
_PLACE = re.compile(r"//(?P<host>\[[^\]]+\]|[^:/?]+)?(?::(?P<port>\d+))?(?:/(?P<database>[^?;]*))?(?:\?(?P<query>.*))?")
_ORACLE = re.compile(r"thin:@(?://)?(?P<host>[^:/]+)(?::(?P<port>\d+))?[:/](?P<database>\w[\w.]*)")
_DRIVERS = {
    "postgresql": "postgresql+psycopg2",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
    "oracle": "oracle+oracledb",
    "sqlite": "sqlite",
}
_PACKAGES = {"postgresql": "psycopg2-binary", "mysql": "pymysql", "oracle": "oracledb"}
_KNOWN = (
    "type",
    "kind",
    "url",
    "jdbc.url",
    "username",
    "password",
    "jdbc.driver.name",
    "partition",
)
_JDBC_ONLY = {
    "user",
    "password",
    "ssl",
    "rewriteBatchedInserts",
    "currentSchema",
    "ApplicationName",
    "useSSL",
    "serverTimezone",
}


@dataclass(frozen=True)
class StoreOptions:
    """Where a store is: a SQLAlchemy URL, and whether its fine levels are partitioned."""

    url: sa.URL
    partition: str | None = None

    @property
    def dialect(self) -> str:
        """`postgresql`, `sqlite`, `mysql` or `oracle`."""
        return self.url.get_backend_name()

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    @property
    def driver_hint(self) -> str:
        """What to install when the driver is missing."""
        package = _PACKAGES.get(self.dialect)
        return f"pip install {package}" if package else f"a URL of {', '.join(_DRIVERS)}"

    @classmethod
    def of(cls, options: str | Mapping[str, str]) -> StoreOptions:
        """Raises StoreError naming the option that is wrong or missing.

        >>> options = {"jdbc.url": "jdbc:mysql://localhost:3306/TestDB", "username": "root", "password": "root"}
        >>> StoreOptions.of(options).shown
        'mysql+pymysql://root:***@localhost:3306/TestDB'
        """
        if isinstance(options, str):
            return cls(_url(options, "url"))
        for option in options:
            if option not in _KNOWN:
                raise StoreError(f"@store: unknown option {option!r}", hint=f"known are {', '.join(_KNOWN)}")
        option = next((name for name in ("jdbc.url", "url") if name in options), None)
        if option is None:
            raise StoreError(
                "@store(type='rdbms'): the option jdbc.url is missing",
                hint="jdbc.url='jdbc:postgresql://host:5432/database'",
            )
        url = _url(options[option], option)
        changes = {
            key: options[name] for key, name in (("username", "username"), ("password", "password")) if name in options
        }
        return cls(url.set(**changes), options.get("partition"))  # type: ignore[arg-type]


def _url(text: str, option: str) -> sa.URL:
    match = _JDBC.fullmatch(text.strip())
    try:
        url = sa.make_url(text) if match is None else _from_jdbc(match["kind"].lower(), match["rest"])
    except (ArgumentError, ValueError):
        url = None
    if url is None:
        raise StoreError(
            f"@store: {option}={_hidden(text)!r} is no database URL", hint="jdbc:postgresql://host:5432/database"
        )
    kind = url.get_backend_name()
    if kind not in _DRIVERS:
        raise StoreError(f"@store: {option} names the database {kind!r}", hint=f"known are {', '.join(_DRIVERS)}")
    return url.set(drivername=_DRIVERS[kind]) if kind == "mariadb" or "+" not in url.drivername else url


def _from_jdbc(kind: str, rest: str) -> sa.URL | None:
    if kind == "sqlite":
        return sa.URL.create("sqlite", database=rest)
    match = (_ORACLE if kind == "oracle" else _PLACE).fullmatch(rest)
    if match is None or kind not in _DRIVERS:
        return sa.URL.create(kind) if kind not in _DRIVERS else None
    found = match.groupdict()
    given = dict(parse_qsl(found.get("query") or ""))
    query = {name: value for name, value in given.items() if name not in _JDBC_ONLY}
    if kind == "postgresql" and "currentSchema" in given:
        query["options"] = f"-csearch_path={given['currentSchema']}"
    return sa.URL.create(
        _DRIVERS[kind],
        username=given.get("user"),
        password=given.get("password"),
        host=found["host"] or "localhost",
        port=int(found["port"]) if found["port"] else None,
        database=found["database"] or None,
        query=query,
    )


def _hidden(text: str) -> str:
    """The text without the password that may stand in it."""
    return re.sub(r"(?<=password=)[^&;]+|(?<=:)[^:@/]+(?=@)", "***", text)
