"""Correlation: which identities are present in which partitions, and the alerts that follow.

A pattern without `not` fires in the cycle in which all of its partitions hold the identity. One with `not` must become
true by arrivals alone, with none of its `not` partitions holding the identity then or before, outlive that cycle, and
fires when one of its present events leaves. A pattern that has fired for an identity fires again only after all of the
identity's events in the partitions that it names are gone; other partitions do not concern it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rollup.engine.row import Row, comparable
from rollup.engine.rows.cycles.partitions import Seen
from rollup.engine.rows.windows.base import Host


@dataclass(frozen=True)
class Present:
    """A pattern: the partitions that must hold the identity, and those that must not."""

    present: frozenset[int]
    absent: frozenset[int]


@dataclass(frozen=True)
class CorrelationSpec:
    """By partition the place of the identity; the patterns in their order; the alert's columns as (partition, place)."""

    identity: tuple[int, ...]
    patterns: tuple[Present, ...]
    columns: tuple[tuple[int, int], ...]


@dataclass
class Known:
    """What is known of an identity: its rows by partition, and by pattern whether it is armed, tainted, has fired."""

    rows: dict[int, Row] = field(default_factory=dict[int, Row])
    armed: set[int] = field(default_factory=set[int])
    tainted: set[int] = field(default_factory=set[int])
    fired: set[int] = field(default_factory=set[int])


class Correlation:
    """The identities that some partition holds."""

    def __init__(self, spec: CorrelationSpec, host: Host) -> None:
        self._spec, self._host = spec, host
        self._known: dict[Any, Known] = {}

    def cycle(self, seen: Sequence[Seen]) -> list[Row]:
        """The alerts of a cycle, pattern by pattern: first everything leaves, then everything comes."""
        found: list[list[Row]] = [[] for _ in self._spec.patterns]
        left = set[Any]()
        for place, part in enumerate(seen):
            for row in part.dead:
                self._leaves(place, row, found)
                left.add(self._identity(place, row))
        touched = dict[Any, None]()
        for place, part in enumerate(seen):
            for row in part.new:
                touched[self._comes(place, row)] = None
        for identity in touched:
            self._decide(self._known[identity], found)
        for identity in left:
            if identity in self._known and not self._known[identity].rows:
                del self._known[identity]
        return [row for rows in found for row in rows]

    def _identity(self, place: int, row: Row) -> Any:
        return comparable(row.values[self._spec.identity[place]])

    def _leaves(self, place: int, row: Row, found: list[list[Row]]) -> None:
        known = self._known.get(self._identity(place, row))
        if known is None or place not in known.rows:
            return
        for number, pattern in enumerate(self._spec.patterns):
            if number in known.armed and place in pattern.present:
                known.armed.discard(number)
                self._fire(number, pattern, known, found)
        del known.rows[place]
        for number, pattern in enumerate(self._spec.patterns):
            if not any(each in known.rows for each in pattern.present | pattern.absent):
                for marks in (known.armed, known.tainted, known.fired):
                    marks.discard(number)

    def _comes(self, place: int, row: Row) -> Any:
        identity = self._identity(place, row)
        known = self._known.setdefault(identity, Known())
        known.rows[place] = row
        for number, pattern in enumerate(self._spec.patterns):
            if place in pattern.absent:
                known.tainted.add(number)
                known.armed.discard(number)
        return identity

    def _decide(self, known: Known, found: list[list[Row]]) -> None:
        for number, pattern in enumerate(self._spec.patterns):
            if number in known.fired or number in known.tainted or not pattern.present <= known.rows.keys():
                continue
            if pattern.absent:
                known.armed.add(number)
            else:
                self._fire(number, pattern, known, found)

    def _fire(self, number: int, pattern: Present, known: Known, found: list[list[Row]]) -> None:
        if number in known.fired:
            return
        known.fired.add(number)
        values = [
            known.rows[place].values[column] if place in pattern.present else None
            for place, column in self._spec.columns
        ]
        found[number].append(self._host.row(values))

    def snapshot(self) -> Any:
        """What is known of each identity."""
        return [
            [identity, list(known.rows.items()), known.armed, known.tainted, known.fired]
            for identity, known in self._known.items()
        ]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        self._known = {
            comparable(identity): Known(dict(rows), set(armed), set(tainted), set(fired))
            for identity, rows, armed, tainted, fired in state
        }
