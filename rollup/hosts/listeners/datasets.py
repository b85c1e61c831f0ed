"""The names of data in OpenLineage: a namespace (the system that has it) and a name in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.objects import ObjectPath, at
from rollup.plan.aggregation import Aggregation
from rollup.program import Program
from rollup.sources.topics.ranges import PATTERN, topics_of
from rollup.stores.registry import database

_SCHEMA = {"postgres": ("public",)}
"""The schema in which a database has tables whose names say none."""
_PORTS = {"postgres": 5432, "mysql": 3306, "mariadb": 3306}
"""Where the servers listen when nothing else is said."""


class Dataset(NamedTuple):
    """A folder, table or topic.

    >>> of_path("s3://bucket/tables/TradeAgg_SECONDS")
    Dataset(namespace='s3://bucket', name='tables/TradeAgg_SECONDS')
    """

    namespace: str
    name: str


def of_path(path: Path | str) -> Dataset:
    """A folder of this machine, or what lies below a name in an object store."""
    found = at(path)
    if isinstance(found, ObjectPath):
        return Dataset(str(found).removesuffix(f"/{found.key}"), found.key)
    return Dataset("file", str(found))


def of_table(options: str | Mapping[str, str], table: str) -> Dataset:
    """A table of a database that a URL or the options of a store name, without who may read it.

    >>> of_table("postgresql://ann:secret@db:5433/trades", "alerts")
    Dataset(namespace='postgres://db:5433', name='trades.public.alerts')
    """
    from rollup.stores.sql.options import StoreOptions

    found = StoreOptions.of(options).url
    system = found.get_backend_name().replace("postgresql", "postgres")
    place = "" if found.host is None else f"{found.host}:{found.port or _PORTS.get(system, '')}".rstrip(":")
    return Dataset(f"{system}://{place}", ".".join([str(found.database), *_SCHEMA.get(system, ()), table]))


def of_catalog(options: Mapping[str, Any]) -> Dataset:
    """A table of a catalog of Iceberg, without who may read it.

    >>> of_catalog({"table": "lake.trades", "uri": "postgresql+psycopg2://ann:secret@db:5433/lake"})
    Dataset(namespace='postgresql+psycopg2://db:5433/lake', name='lake.trades')
    >>> of_catalog({"table": "lake.trades", "catalog": "lake"})
    Dataset(namespace='iceberg://lake', name='lake.trades')
    """
    uri = options.get("uri") or options.get("properties", {}).get("uri")
    if uri is None:
        return Dataset(f"iceberg://{options.get('catalog', 'default')}", options["table"])
    scheme, _, rest = uri.partition("://")
    place = rest.partition("?")[0]
    server, slash, name = place.partition("/")
    return Dataset(f"{scheme}://{server.rpartition('@')[2]}{slash}{name}", options["table"])


def _given(options: Mapping[str, Any]) -> Iterator[Dataset]:
    """Those that the options of a source or a sink name; none where nothing is stored (`rate`, `console`)."""
    if "path" in options:
        yield of_path(options["path"])
    elif "url" in options:
        yield of_table(
            {name: options[name] for name in ("url", "username", "password") if name in options}, options["table"]
        )
    elif options.get("kind") == "iceberg":
        yield of_catalog(options)
    elif "servers" in options:
        server = options["servers"].split(",")[0].strip().rpartition("//")[2]
        for topic in topics_of(options) or filter(None, [options.get(PATTERN)]):
            yield Dataset(f"kafka://{server}", topic)


def source(conf: Conf, stream: str) -> Sequence[Dataset]:
    """The data that the source of a stream reads; none for a stream that has no source."""
    return list(_given(conf.sources.get(stream, {})))


def sources(conf: Conf) -> Sequence[Dataset]:
    """The data that the sources of a configuration read."""
    return [each for stream in conf.sources for each in source(conf, stream)]


def sinks(conf: Conf) -> Sequence[Dataset]:
    """The data that the sinks of a configuration write."""
    return [each for options in conf.sinks.values() for each in _given(options)]


def of_level(conf: Conf, aggregation: Aggregation, level: Duration) -> Dataset:
    """The table of a level, in the store of its aggregation."""
    name, options = aggregation.table(level), database(conf, aggregation)
    return of_path(conf.tables / name) if options is None else of_table(options, name)


def levels(conf: Conf, program: Program) -> Sequence[Dataset]:
    """The tables of all levels of all aggregations."""
    return [of_level(conf, each, level) for each in program.aggregations.values() for level in each.levels]
