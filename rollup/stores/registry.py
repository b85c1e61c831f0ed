"""Which store a configuration or an app's @store means."""

from __future__ import annotations

from collections.abc import Mapping

from rollup.aggregation.engine import Engine
from rollup.conf import Conf
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Store
from rollup.stores.delta import DeltaStore


def database(conf: Conf, aggregation: Aggregation) -> str | Mapping[str, str] | None:
    """The database of an aggregation's store, None when it has another: the app's @store first, then the configuration."""
    if aggregation.store.get("type") == "rdbms":
        return aggregation.store
    return conf.store if conf.store["kind"] == "sql" else None


def open_store(conf: Conf, aggregation: Aggregation, engine: Engine) -> Store:
    """The store of one aggregation: the app's `@store(type='rdbms', …)` first, then the configuration's."""
    options = database(conf, aggregation)
    if options is None:
        return DeltaStore(aggregation, engine, conf.store["path"])
    from rollup.stores.postgres import store_of

    return store_of(aggregation, engine, options)
