"""The kinds of stores a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rollup.core.catalogs import properties, uri
from rollup.core.lengths import length
from rollup.core.options import Provider, delta_place, text, url


def _schema(value: Any) -> str | None:
    """The name of a schema in a catalog of Spark's."""
    found = isinstance(value, str) and re.fullmatch(r"\w+(\.\w+)?", value)
    return None if found else "a schema, trades, or one of a catalog, main.trades"


def _iceberg(value: Any) -> str | None:
    """The properties of a catalog of Iceberg, as pyiceberg names them, and the namespace of the tables there."""
    if not isinstance(value, Mapping) or not isinstance(value.get("namespace"), str) or not {"uri", "type"} & {*value}:
        return 'a table with a namespace and a catalog\'s properties, { namespace = "trades", uri = "sqlite:///iceberg.db" }'
    if re.fullmatch(r"\w+(\.\w+)*", value["namespace"]) is None:
        return "a namespace, trades, or one in another, main.trades"
    return properties(value) or (None if "type" in value else uri(value["uri"]))


KINDS: dict[str, Provider] = {
    "delta": Provider(
        "rollup.stores.delta.store:delta_store",
        {"path": delta_place, "keep_files": length, "keep_log": length, "catalog": _schema, "iceberg": _iceberg},
        ("path",),
    ),
    "sql": Provider(
        "rollup.stores.databases:store_of",
        {"url": url, **dict.fromkeys(("username", "password", "partition"), text)},
        ("url",),
    ),
}
"""Each entry makes the store of an aggregation: `(aggregation, engine, options) -> Store`."""
