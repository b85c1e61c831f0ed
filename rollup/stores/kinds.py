"""The kinds of stores a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

from typing import Any

from rollup.core.options import Provider, place, text


def length(value: Any) -> str | None:
    """A check of options: a length of time. What reads one is loaded when one is given."""
    from rollup.plan.retention import length as check

    return check(value)


KINDS: dict[str, Provider] = {
    "delta": Provider(
        "rollup.stores.delta.store:delta_store", {"path": place, "keep_files": length, "keep_log": length}, ("path",)
    ),
    "sql": Provider(
        "rollup.stores.databases:store_of",
        dict.fromkeys(("url", "username", "password", "partition"), text),
        ("url",),
    ),
}
"""Each entry makes the store of an aggregation: `(aggregation, engine, options) -> Store`."""
