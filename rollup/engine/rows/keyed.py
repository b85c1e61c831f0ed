"""A condition that names a table's key is answered by the key, so an event costs the same however many rows the table has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rollup.engine.compiling import Evaluate, compiled_row
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Expr, Field
from rollup.engine.row import Row, Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.joining import equality


class Keyed(Protocol):
    """A store that may have a key."""

    @property
    def keys(self) -> tuple[int, ...]:
        """The places of its key; none: it has none, or one row at most."""
        ...

    def find(self, key: tuple[object, ...]) -> Row | None:
        """The row of a key."""
        ...


class ByKey:
    """What a condition says that a store's row, the input at `place`, must equal; the inputs before it are known."""

    def __init__(self, where: Expr | None, place: int) -> None:
        pairs = [pair for part in conjuncts(where) if (pair := equality(part, place)) is not None]
        self._equals = {own.index: known for known, own in pairs if isinstance(own, Field)}
        self._key: Evaluate | None = None

    def rows(self, store: Keyed, r: Rows, e: Environment) -> Sequence[Row] | None:
        """The rows that may fulfil the condition; None: any of them may."""
        if not store.keys or not self._equals.keys() >= set(store.keys):
            return None
        if self._key is None:
            self._key = compiled_row([self._equals[place] for place in store.keys])
        row = store.find(self._key(r, (), e))
        return () if row is None else (row,)
