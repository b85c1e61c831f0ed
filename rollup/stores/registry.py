"""Which store a configuration or an app's @store means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.options import beside
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Store
from rollup.stores.kinds import KINDS

if TYPE_CHECKING:
    from rollup.conf import Conf


def database(conf: Conf, aggregation: Aggregation) -> str | Mapping[str, str] | None:
    """The database of an aggregation's store, None when it has another: the app's @store first, then the configuration.

    Raises StoreError for an @store that is none of ours.
    """
    if aggregation.store:
        if aggregation.store.get("type") != "rdbms":
            said = (
                "lacks its type" if "type" not in aggregation.store else f"has the type {aggregation.store['type']!r}"
            )
            raise StoreError(
                f"the @store of {aggregation.name} {said}",
                hint="type='rdbms' with jdbc.url; without @store the tables go where [store] says",
            )
        return {
            name: beside(value, conf.path.parent) if name in ("url", "jdbc.url") else value
            for name, value in aggregation.store.items()
        }
    return conf.store if conf.store["kind"] == "sql" else None


def open_store(conf: Conf, aggregation: Aggregation, engine: ColumnEngine) -> Store:
    """The store of one aggregation: the app's `@store(type='rdbms', …)` first, then the configuration's."""
    declared = database(conf, aggregation) if aggregation.store else None
    if declared is not None:
        return KINDS["sql"].made(aggregation, engine, declared)
    return KINDS[conf.store["kind"]].made(aggregation, engine, conf.store)
