"""Questions from Python: `rollup.query(conf, text)` and what the command line, the gateway and Spark share of it."""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Ask
from rollup.aggregation.shapes import Planner
from rollup.conf import Conf, load
from rollup.stores.base import Snapshot, Store
from rollup.stores.registry import open_store


class Asker:
    """Answers questions about the aggregations of a configuration; opens stores for reading only when asked."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.program = conf.program()
        self.engine = Engine()
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()
        self._planner = Planner(self.program.aggregations)

    def query(self, text: str) -> pa.Table:
        """The answer to `from A on … within … per … select …`. Raises a RollupError before any data is read."""
        return self.answer(self._planner.ask(text))

    def answer(self, ask: Ask) -> pa.Table:
        """The answer to a checked question."""
        return self.snapshot(ask.aggregation.name).answer(ask)

    def snapshot(self, name: str) -> Snapshot:
        """The newest commit of an aggregation."""
        return self.store(name).snapshot()

    def store(self, name: str) -> Store:
        """The store of an aggregation."""
        with self._lock:
            if name not in self._stores:
                self._stores[name] = open_store(self.conf, self.program.aggregations[name], self.engine)
            return self._stores[name]


def query(conf: Conf | Asker | Path | str, text: str) -> pa.Table:
    """Ask an aggregation of a configuration (its path, or what `rollup.open` gave); an Arrow table.

    AGG_TIMESTAMP is in milliseconds since the epoch. Raises a RollupError that names what is wrong with the question.
    """
    return opened(conf).query(text)


def opened(conf: Conf | Asker | Path | str) -> Asker:
    """What answers questions about a configuration; kept for a path that is asked again."""
    if isinstance(conf, Asker):
        return conf
    return Asker(conf) if isinstance(conf, Conf) else _kept(str(Path(conf).resolve()))


@lru_cache(maxsize=16)
def _kept(path: str) -> Asker:
    return Asker(load(path))
