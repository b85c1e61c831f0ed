"""ClickHouse's answers to the retrieval questions, over the tables its chain of views made on disk.

The store is loaded once per scale and kept. It is merged to one part a table first, which is the best it can have.
Answers are taken as Arrow and read in full.
"""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

from benchmarks.common import Stopwatch, cache_dir, emit
from benchmarks.peers.clickhouse import LEVELS, ddl, insert, open_store
from benchmarks.questions import Question, clickhouse_sql, store_events
from benchmarks.timing import BENCH, main


class ClickHouse:
    """The engine in this process (``chdb``)."""

    name = "clickhouse"

    def prepare(self, rows: int) -> Path:
        """Load all six tables through the chain of views unless they are there."""
        folder = cache_dir() / f"clickhouse-year-{rows}"
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _load(folder / "data", rows)
            (folder / "complete").touch()
        return folder / "data"

    def open(self, folder: Path) -> Any:
        """A connection a thread, made at its first question: threads that share one wait for each other."""
        return _Connections(folder)

    def ask(self, store: Any, question: Question) -> int:
        """The whole answer as an Arrow table."""
        return store.rows(clickhouse_sql(question))


class _Connections(threading.local):
    def __init__(self, folder: Path) -> None:
        import chdb  # here, so that loading it is part of a cold answer

        self._connection = chdb.connect(str(folder))

    def rows(self, sql: str) -> int:
        return int(self._connection.query(sql, "ArrowTable").num_rows)


def _load(folder: Path, rows: int) -> None:
    folder.mkdir(parents=True)
    watch, events = Stopwatch(), store_events(rows)
    store = open_store(folder, tuned=True)
    for statement in ddl():
        store.query(statement)
    insert(store, events.files)
    for level in LEVELS:
        store.query(f"OPTIMIZE TABLE agg_{level} FINAL")
    store.close()
    emit(BENCH, "store loaded", watch.total(), "s", peer=ClickHouse.name, store_rows=events.events)


if __name__ == "__main__":
    main(ClickHouse())
