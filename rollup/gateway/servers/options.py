"""The `[serve]` section of a configuration: where the endpoint listens, who may log in, and what a session may use.

An example:

    [serve]
    host = "127.0.0.1"
    port = 5433
    thrift_port = 10000                # of rollup serve --thrift
    tls_cert = "server.pem"            # both or none; beyond loopback the answers travel in the open without
    tls_key = "server.key"
    statement_timeout = 300            # seconds
    row_limit = 1000000                # of one source of a query
    max_connections = 100
    user_statements = 4                # of one user that run at once; the default is two a processor
    memory_mb = 1024                   # of loaded rows
    query_mb = 2048                    # of all running queries; one may take half
    data = "tables/_rollup/_gateway"   # the private server's folder

    [serve.users]
    ann = { password_env = "ANN_PASSWORD" }
    superset = { password_file = "secrets/superset", reads = ["TradeAgg"], where = "region = 'EU'" }
"""

from __future__ import annotations

import difflib
import os
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollup.checkpoint.records import home
from rollup.conf import Conf
from rollup.core.errors import ConfigError
from rollup.core.texts import text_of
from rollup.gateway.protocol.limits import Limits
from rollup.gateway.protocol.tls import server_context
from rollup.grants import Grant, grant_of
from rollup.program import Program

_NUMBERS = {
    "port": 5433,
    "thrift_port": 10000,
    "statement_timeout": 300,
    "row_limit": 1_000_000,
    "max_connections": 100,
    "user_statements": 2 * (os.cpu_count() or 1),
    "memory_mb": 1024,
    "query_mb": 2048,
}
_LOWEST = {**dict.fromkeys(_NUMBERS, 1), "port": 0, "memory_mb": 8, "query_mb": 256}
_IDLE_IN_TRANSACTION = 3600.0
_PASSWORDS = ("password_env", "password_file")
_PASSWORD = "password_env = a variable's name, or password_file = a file"
_TEXTS = ("host", "tls_cert", "tls_key", "data")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What `[serve]` says; times in seconds. `users` are names with passwords, or without where a server has them."""

    data: Path
    host: str = "127.0.0.1"
    port: int = 5433
    thrift_port: int = 10000
    users: Mapping[str, str] = field(default_factory=dict[str, str])
    said: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """What the configuration says of each user."""
    tls: tuple[Path, Path] | None = None
    statement_timeout: int = 300
    row_limit: int = 1_000_000
    max_connections: int = 100
    user_statements: int = _NUMBERS["user_statements"]
    memory_mb: int = 1024
    query_mb: int = 2048

    @classmethod
    def of(cls, conf: Conf, *, passwords: bool = True) -> ServeOptions:
        """Raises ConfigError naming the key that is wrong; `passwords` says whether users need one here."""
        given, base = conf.serve, conf.path.parent
        _known(conf, given, (*_NUMBERS, *_TEXTS, "users"))
        numbers = {name: _number(conf, given, name) for name in _NUMBERS}
        texts = {name: _text(conf, given, name) for name in _TEXTS}
        pair = [base / texts[name] for name in ("tls_cert", "tls_key") if texts[name]]
        if len(pair) == 1:
            raise ConfigError(f"{conf.path}: [serve] tls_cert and tls_key belong together")
        data = base / texts["data"] if texts["data"] else home(conf.local, "_gateway")
        tls = (pair[0], pair[1]) if pair else None
        return cls(
            data=data,
            host=texts["host"] or "127.0.0.1",
            users=_users(conf, passwords),
            said=_said(conf),
            tls=tls,
            **numbers,
        )

    def grants(self, conf: Conf, program: Program, tables: Collection[str]) -> dict[str, Grant | None]:
        """What each user may read of a program and of the tables beside it; None: everything. Raises ConfigError."""
        return {
            user: grant_of(said, program, tuple(tables), f"{conf.path}: [serve.users] {user}:")
            for user, said in self.said.items()
        }

    @property
    def limits(self) -> Limits:
        """What a session may use."""
        return Limits(
            max_connections=self.max_connections,
            user_statements=self.user_statements,
            statement_timeout=float(self.statement_timeout),
            idle_in_transaction_timeout=_IDLE_IN_TRANSACTION,
        )

    @property
    def open_to_others(self) -> bool:
        """Whether other machines can reach the endpoint while nothing is encrypted."""
        return self.tls is None and self.host not in LOOPBACK

    def context(self) -> ssl.SSLContext | None:
        """TLS as configured. Raises ConfigError when the files cannot be used."""
        return server_context(*self.tls) if self.tls else None


def _known(conf: Conf, given: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(allowed)}"
            raise ConfigError(f"{conf.path}: [serve] has an unknown key `{key}`", hint=hint)


def _number(conf: Conf, given: Mapping[str, Any], name: str) -> int:
    value = given.get(name, _NUMBERS[name])
    if not isinstance(value, int) or isinstance(value, bool) or not _LOWEST[name] <= value < 2**31:
        raise ConfigError(f"{conf.path}: [serve] {name} is {value!r}", hint=f"a whole number from {_LOWEST[name]}")
    return value


def _text(conf: Conf, given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise ConfigError(f"{conf.path}: [serve] {name} is {value!r}, which is no text")
    return value


def _said(conf: Conf) -> dict[str, Mapping[str, Any]]:
    """What `[serve.users]` says of each user. Raises ConfigError for a key that there is not."""
    users = conf.serve.get("users", {})
    if not isinstance(users, Mapping) or not users:
        hint = 'e.g. [serve.users] and then ann = { password_env = "ANN_PASSWORD" }'
        raise ConfigError(f"{conf.path}: [serve.users] names nobody who may log in", hint=hint)
    for name, how in users.items():
        if not isinstance(how, Mapping):
            raise ConfigError(f"{conf.path}: [serve.users] {name} is {how!r}, which is no table", hint=_PASSWORD)
        for key in how:
            if key not in (*_PASSWORDS, "reads", "where"):
                raise ConfigError(
                    f"{conf.path}: [serve.users] {name} has an unknown key `{key}`",
                    hint=f"known: {', '.join(_PASSWORDS)}, reads, where",
                )
    return {str(name): how for name, how in users.items()}


def _users(conf: Conf, passwords: bool) -> dict[str, str]:
    return {name: _password(conf, name, how) if passwords else "" for name, how in _said(conf).items()}


def _password(conf: Conf, user: str, how: Mapping[str, Any]) -> str:
    if len(set(how) & set(_PASSWORDS)) != 1:
        raise ConfigError(f"{conf.path}: [serve.users] {user} says not where the password is", hint=_PASSWORD)
    if user.startswith("pg_") or user == "rollup":
        raise ConfigError(f"{conf.path}: [serve.users] the name {user} is the server's own")
    if "password_env" in how:
        found = os.environ.get(str(how["password_env"]), "")
        where = f"the variable {how['password_env']}"
    else:
        file = conf.path.parent / str(how["password_file"])
        where = f"the file {file}"
        found = text_of(file, f"the password of {user},").strip("\r\n")
    if not found:
        raise ConfigError(f"the password of {user}: {where} is empty or not set")
    return found
