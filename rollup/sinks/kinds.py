"""The kinds of sinks a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollup.core.options import Provider, complete, delta_place, place, provider, settings, text, whole
from rollup.sinks.base import Sink


@dataclass(frozen=True)
class SinkProvider(Provider):
    """A kind of sink; for `rollup plan`, `guarantee` says how often a row of statements arrives there, and `keyed` what
    becomes of the changes of a table."""

    guarantee: str = ""
    keyed: str = "every change is a row"


KINDS: dict[str, SinkProvider] = {
    "files": SinkProvider(
        "rollup.sinks.files:FileSink",
        {"path": place},
        ("path",),
        "exactly once, one file a commit, named by its rows",
    ),
    "console": SinkProvider(
        "rollup.sinks.console:ConsoleSink", {}, (), "at least once: after a crash the last commit is printed again"
    ),
    "kafka": SinkProvider(
        "rollup.sinks.kafka:KafkaSink",
        {"servers": text, "topic": text, "timeout": whole(1), "options": settings},
        ("servers", "topic"),
        "at least once: after a crash the last commit is sent again",
        "every change is a message whose key is that of the table",
    ),
    "delta": SinkProvider(
        "rollup.sinks.delta:DeltaSink",
        {"path": delta_place},
        ("path",),
        "exactly once, by the transaction of each append",
        "merged: the last row of each key",
    ),
    "postgres": SinkProvider(
        "rollup.sinks.sql:SqlSink",
        dict.fromkeys(("url", "table", "username", "password"), text),
        ("url", "table"),
        "exactly once, in one transaction with the number of its rows",
        "merged: the last row of each key",
    ),
}


def sink(name: str, options: Mapping[str, Any]) -> Sink:
    """The sink that options of a configuration describe. Raises ConfigError."""
    where = f"[sinks.{name}]"
    found = provider(where, options, KINDS)
    complete(where, options, found.needed)
    return found.made(options)
