"""Questions from Python: `rollup.query(conf, text)` and what the command line, the gateway and Spark share of it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.checkpoint.records import identity
from rollup.conf import Conf, load
from rollup.core.columns import ColumnEngine
from rollup.core.nesting import nests
from rollup.retrieval.explain import explain
from rollup.retrieval.plan_cache import Planner
from rollup.retrieval.questions import Ask
from rollup.stores.base import Snapshot, Store
from rollup.stores.registry import open_store

if TYPE_CHECKING:
    from rollup.ask_sql import SqlAsker

Parameters = Mapping[str, Any] | Sequence[Any] | None
_SIDDHI = re.compile(r"(?:\s+|--[^\n]*\n|/\*.*?\*/)*(?:explain\s+)?from\b", re.IGNORECASE | re.DOTALL)


class Asker:
    """Answers questions about the aggregations of a configuration; opens stores for reading only when asked."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.program = conf.program()
        self.engine = ColumnEngine()
        self._stores: dict[str, Store] = {}
        self._lock = threading.Lock()
        self._planner = Planner(self.program.aggregations)

    @nests
    def query(self, text: str, parameters: Parameters = None) -> pa.Table:
        """The answer to a question in SiddhiQL or SQL. Raises a RollupError before any data is read."""
        if is_question(text):
            return self.answer(self._planner.ask(text))
        return self._sql.query(text, parameters)

    def answer(self, ask: Ask) -> pa.Table:
        """The answer to a checked question."""
        snapshot = self.snapshot(ask.aggregation.name)
        return explain(snapshot, ask) if ask.explain else snapshot.answer(ask)

    @cached_property
    def _sql(self) -> SqlAsker:
        from rollup.ask_sql import SqlAsker

        return SqlAsker(self.engine, self.program.aggregations, self.snapshot)

    def snapshot(self, name: str) -> Snapshot:
        """The newest commit of an aggregation."""
        return self.store(name).snapshot()

    def store(self, name: str) -> Store:
        """The store of an aggregation."""
        with self._lock:
            if name not in self._stores:
                self._stores[name] = open_store(self.conf, self.program.aggregations[name], self.engine)
            return self._stores[name]


def is_question(text: str) -> bool:
    """Whether a text is SiddhiQL, which begins with `from`; everything else is SQL.

    >>> is_question("EXPLAIN from A within '2018-**-** **:**:**' per 'days'"), is_question("select 1")
    (True, False)
    """
    return _SIDDHI.match(text) is not None


def query(conf: Conf | Asker | Path | str, text: str, parameters: Parameters = None) -> pa.Table:
    """Ask the aggregations of a configuration (its path, or what `rollup.open` gave); an Arrow table.

    `text` is SiddhiQL (`from A within … per … select …`) or a SELECT with `A WITHIN … PER …` as a table; `parameters`
    are those of the SELECT: a list for `?` and `$1`, a mapping for `$name`. AGG_TIMESTAMP is in milliseconds since the
    epoch. Raises a RollupError that names what is wrong with the question.
    """
    return opened(conf).query(text, parameters)


def opened(conf: Conf | Asker | Path | str) -> Asker:
    """What answers questions about a configuration; kept for a path that is asked again, until a file of it changes."""
    if isinstance(conf, Asker):
        return conf
    if isinstance(conf, Conf):
        return Asker(conf)
    path = Path(conf).resolve()
    with _lock:
        known = _kept.pop(path, None)
        if known is None or known[0] != _identities(path, known[1].conf.app):
            seen = identity(path)  # before it is read: what changes meanwhile is then read again by the next question
            found = load(path)
            seen = (*seen, *identity(found.app))
            known = seen, Asker(found)
        _kept[path] = known
        for oldest in list(_kept)[:-_MOST]:
            del _kept[oldest]
        return known[1]


def _identities(path: Path, app: Path) -> tuple[int, ...]:
    return (*identity(path), *identity(app))


_lock = threading.Lock()
_kept: dict[Path, tuple[tuple[int, ...], Asker]] = {}
_MOST = 16
