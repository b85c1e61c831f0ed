"""A toy store: an aggregation's commits in one pickle, replaced whole."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollup.core.columns import ColumnEngine
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Commit, Loaded
from rollup.stores.memory import MemorySnapshot, MemoryStore


class Shelf(MemoryStore):
    """Tables in memory, and beside them in a file. Options: `path`, a folder."""

    def __init__(self, aggregation: Aggregation, engine: ColumnEngine, options: Mapping[str, Any]) -> None:
        super().__init__(aggregation, engine)
        self._file = Path(options["path"]) / f"{aggregation.name}.pickle"

    def load(self) -> Loaded | None:
        self._take_up()
        return super().load()

    def commit(self, commit: Commit) -> None:
        super().commit(commit)
        draft = self._file.with_suffix(".draft")
        self._file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(pickle.dumps((self.tables, self.ledgers, self.last, self.at)))
        draft.rename(self._file)

    def snapshot(self) -> MemorySnapshot:
        self._take_up()
        return super().snapshot()

    def _take_up(self) -> None:
        if self._file.exists():
            self.tables, self.ledgers, self.last, self.at = pickle.loads(self._file.read_bytes())
