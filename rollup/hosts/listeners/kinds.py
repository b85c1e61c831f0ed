"""The kinds of listeners a configuration may ask for. A new one is its file and a line here."""

from __future__ import annotations

from typing import Any, NamedTuple

from rollup.conf import Conf
from rollup.core.entries import loaded
from rollup.core.packages import needed_by


class Kind(NamedTuple):
    """A kind of listener: the table and key of the configuration that ask for it, its class, extra, and its library's logger."""

    table: str
    key: str
    entry: str
    extra: str
    logger: str


KINDS = (
    Kind("telemetry", "lineage", "rollup.hosts.listeners.lineage:Lineage", "telemetry", "openlineage"),
    Kind("telemetry", "traces", "rollup.hosts.listeners.traces:Traces", "telemetry", "opentelemetry"),
    Kind("store", "iceberg", "rollup.hosts.listeners.iceberg:Iceberg", "iceberg", "pyiceberg"),
)


def wanted(conf: Conf) -> list[Kind]:
    """The kinds of listeners that a configuration asks for."""
    return [kind for kind in KINDS if kind.key in getattr(conf, kind.table)]


def classes(conf: Conf) -> list[tuple[Kind, Any]]:
    """The classes of the listeners that a configuration asks for. Raises ConfigError where a package of one is missing."""
    found = list[tuple[Kind, Any]]()
    for kind in wanted(conf):
        with needed_by(f"[{kind.table}] {kind.key}", kind.extra):
            found.append((kind, loaded(kind.entry)))
    return found
