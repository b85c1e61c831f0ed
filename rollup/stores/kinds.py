"""The kinds of stores a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

import re
from typing import Any

from rollup.core.lengths import length
from rollup.core.options import Provider, delta_place, text, url


def _schema(value: Any) -> str | None:
    """The name of a schema in a catalog of Spark's."""
    found = isinstance(value, str) and re.fullmatch(r"\w+(\.\w+)?", value)
    return None if found else "a schema, trades, or one of a catalog, main.trades"


KINDS: dict[str, Provider] = {
    "delta": Provider(
        "rollup.stores.delta.store:delta_store",
        {"path": delta_place, "keep_files": length, "keep_log": length, "catalog": _schema},
        ("path",),
    ),
    "sql": Provider(
        "rollup.stores.databases:store_of",
        {"url": url, **dict.fromkeys(("username", "password", "partition"), text)},
        ("url",),
    ),
}
"""Each entry makes the store of an aggregation: `(aggregation, engine, options) -> Store`."""
