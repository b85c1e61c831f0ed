"""Which partial matches hold which rows, for a pattern of which each match makes those go that share an event with it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from rollup.engine.rows.patterns.state import Match, State, ids


class Holders:
    """The states that wait with what has been bound, by the numbers of its rows.

    Only what follows something, and what gathers matches, holds rows that nothing above it holds: a match is asked of
    these alone, however many others there are.
    """

    def __init__(self) -> None:
        self._by_row: dict[int, dict[State, None]] = {}
        self._rows: dict[State, set[int]] = {}

    def hold(self, state: State, match: Match) -> None:
        """From now on a state waits with a match."""
        rows = ids(match)
        self._rows.setdefault(state, set()).update(rows)
        for row in rows:
            self._by_row.setdefault(row, {})[state] = None

    def forget(self, state: State) -> None:
        """A state is over."""
        self._release(state, self._rows.pop(state, ()))

    def lose(self, rows: frozenset[int]) -> None:
        """What shares one of these rows goes, the oldest first, so that nothing below a state begins again before it goes."""
        holding = {state for row in rows for state in self._by_row.get(row, ())}
        for state in sorted(holding, key=attrgetter("id")):
            if not state.dead:
                state.lose(rows)
            if not state.dead:  # it goes on without them
                self._release(state, self._rows[state] & rows)
                self._rows[state] -= rows

    def _release(self, state: State, rows: Iterable[int]) -> None:
        """A state no longer waits with these rows."""
        for row in rows:
            held = self._by_row[row]
            del held[state]
            if not held:
                del self._by_row[row]
