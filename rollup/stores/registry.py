"""Which store a configuration or an app's @store means."""

from __future__ import annotations

from rollup.aggregation.engine import Engine
from rollup.conf import Conf
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Store
from rollup.stores.delta import DeltaStore


def open_store(conf: Conf, aggregation: Aggregation, engine: Engine) -> Store:
    """The store of one aggregation: the app's `@store(type='rdbms', …)` first, then the configuration's."""
    if aggregation.store.get("type") == "rdbms" or conf.store["kind"] == "sql":
        from rollup.stores.postgres import store_of

        options = aggregation.store if aggregation.store.get("type") == "rdbms" else conf.store
        return store_of(aggregation, engine, options)
    return DeltaStore(aggregation, engine, conf.store["path"])
