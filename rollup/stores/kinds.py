"""The kinds of stores a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

from rollup.core.lengths import length
from rollup.core.options import Provider, place, text, url

KINDS: dict[str, Provider] = {
    "delta": Provider(
        "rollup.stores.delta.store:delta_store", {"path": place, "keep_files": length, "keep_log": length}, ("path",)
    ),
    "sql": Provider(
        "rollup.stores.databases:store_of",
        {"url": url, **dict.fromkeys(("username", "password", "partition"), text)},
        ("url",),
    ),
}
"""Each entry makes the store of an aggregation: `(aggregation, engine, options) -> Store`."""
