"""StreamCruncher's windows against a slow oracle: lists that are gone through anew in every cycle, as the rules say it.

Random windows, keys, filters, aggregates and statuses over random events; the kernel runs once as it is and once with a
new process between inputs. Rows of one cycle are compared as a set.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from rollup.engine.rows.cycles.running import Batch
from rollup.lang.streamcruncher.kernel import Cruncher

BEST = {"highest": 1, "lowest": -1}


class Event(NamedTuple):
    """An event: its time need not be that of its arrival."""

    id: int
    at: int
    k: str
    v: int | None


class Query(NamedTuple):
    """What a query asks; `most`, `group`: max and update group, of the windows that have them."""

    kind: str
    size: int
    most: int | None
    group: bool
    keyed: bool
    status: str
    filtered: bool
    aggregated: bool
    pinned: bool

    @property
    def text(self) -> str:
        """The query."""
        window = f"{self.kind} {self.size}"
        if self.kind == "time":
            window = f"last {self.size} milliseconds" + (f" max {self.most}" if self.most else "")
        elif self.kind in BEST:
            window += " using v" + (" with update group k" if self.group else "")
        words = f"with {'pinned ' if self.pinned else ''}count(id) as n, sum(v) as s, max(v) as m, count(id) entrance only as e"
        selected = f"{'k, ' if self.keyed else ''}n, s, m, e" if self.aggregated else "id"
        parts = [f"partition {'by k ' if self.keyed else ''}store {window}", words if self.aggregated else ""]
        parts.append("where v > 1" if self.filtered else "")
        return f"select {selected} from t ({' '.join(parts)}) as x where x.$row_status is {self.status};"


@dataclass
class Window:
    """The rows that are in and those that wait; `old`: those that were too old when they came; `entered`: how many ever."""

    query: Query
    rows: list[Event] = field(default_factory=list[Event])
    waiting: list[Event] = field(default_factory=list[Event])
    old: set[int] = field(default_factory=set[int])
    entered: int = 0
    shown: tuple[Any, ...] | None = None

    def due(self) -> list[int]:
        """The instants at which rows leave by themselves."""
        timed = self.query.kind == "time"
        return [row.at + self.query.size for row in self.rows if row.id not in self.old] if timed else []

    def cycle(self, now: int) -> tuple[list[Event], list[Event]]:
        """Who comes and who leaves."""
        before, kind = list(self.rows), self.query.kind
        if kind in BEST:
            self._compete(BEST[kind])
        elif kind == "time":
            self._expire(now)
        else:
            free = self.query.size if kind == "latest" else self.query.size - len(self.rows) or 1
            came, self.waiting = self.waiting[:free], self.waiting[free:]
            self.rows = came if kind == "latest" else [*self.rows, *came][-self.query.size :]
        new = [row for row in self.rows if row not in before]
        self.entered += len(new)
        return new, [row for row in before if row not in self.rows]

    def _compete(self, sign: int) -> None:
        for row in self.waiting:
            if row.v is None:
                continue
            self.rows = [each for each in self.rows if not self.query.group or each.k != row.k] + [row]
            if len(self.rows) > self.query.size:
                worst = min(sign * (each.v or 0) for each in self.rows)
                self.rows.remove(next(each for each in self.rows if sign * (each.v or 0) == worst))
        self.waiting = []

    def _expire(self, now: int) -> None:
        self.rows = [row for row in self.rows if now - row.at < self.query.size]
        count, most = len(self.waiting), self.query.most
        if most is not None:
            count = min(count, most - len(self.rows))
            if not count and self.waiting:
                count = min(len(self.waiting), most)
                self.rows = self.rows[count:]
        came, self.waiting = self.waiting[:count], self.waiting[count:]
        self.rows += came
        self.old = {row.id for row in came if now - row.at >= self.query.size}


Found = list[tuple[int, list[tuple[Any, ...]]]]


class Oracle:
    """A query over one stream."""

    def __init__(self, query: Query) -> None:
        self.query, self.found = query, Found()
        self._windows = dict[Any, Window]()

    def submit(self, now: int, events: Sequence[Event]) -> None:
        """The events of an instant, after everything that is due before it."""
        self.advance(now - 1)
        taken = [event for event in events if not self.query.filtered or (event.v or 0) > 1]
        for event in taken:
            self._windows.setdefault(event.k if self.query.keyed else None, Window(self.query)).waiting.append(event)
        if taken or now in self._due():
            self._run(now)

    def advance(self, to: int) -> None:
        """Every cycle that comes by itself."""
        while (due := min(self._due(), default=to + 1)) <= to:
            self._run(due)

    def _due(self) -> list[int]:
        return [due for window in self._windows.values() for due in window.due()]

    def _run(self, now: int) -> None:
        waits = True
        while waits:
            rows = [row for key in list(self._windows) for row in self._rows(key, now)]
            self.found += [(now, sorted(rows, key=repr))] if rows else []
            waits = any(window.waiting for window in self._windows.values())

    def _rows(self, key: Any, now: int) -> list[tuple[Any, ...]]:
        window = self._windows[key]
        new, dead = window.cycle(now)
        gone = not window.rows and not window.waiting and not self.query.pinned
        if gone:
            del self._windows[key]
        if self.query.aggregated:
            return self._changed(key, window, bool(new or dead), gone)
        return [(row.id,) for row in {"new": new, "dead": dead, "not dead": window.rows}[self.query.status]]

    def _changed(self, key: Any, window: Window, touched: bool, gone: bool) -> list[tuple[Any, ...]]:
        values, before = [row.v for row in window.rows if row.v is not None], window.shown
        summed = (sum(values), max(values)) if values else (None, None)
        after = (*([key] if self.query.keyed else []), len(window.rows), *summed, window.entered)
        changed = touched and (gone or after != before)
        if changed:
            window.shown = None if gone else after
        rows = {"new": window.shown if changed else None, "dead": before if changed else None, "not dead": window.shown}
        row = rows[self.query.status]
        return [] if row is None else [row]


def _drawn(chance: random.Random) -> tuple[Query, list[tuple[int, list[Event]]]]:
    kind = chance.choice(["last", "time", "latest", "highest", "lowest"])
    aggregated = chance.random() < 0.4
    query = Query(
        kind, chance.choice([3, 7, 20] if kind == "time" else [1, 2, 3, 5]),
        chance.choice([None, 1, 2, 3]) if kind == "time" else None, kind in BEST and chance.random() < 0.4,
        chance.random() < 0.5, chance.choice(["new", "dead", "not dead"]), chance.random() < 0.3, aggregated,
        aggregated and chance.random() < 0.4,
    )  # fmt: skip
    now, number, script = 0, 0, list[tuple[int, list[Event]]]()
    for _ in range(chance.randrange(1, 25)):
        now += chance.choice([1, 1, 2, 5, 30])
        events = list[Event]()
        for _ in range(chance.choice([1, 1, 1, 2, 5, 9])):
            number += 1
            at, v = now - chance.choice([0, 0, 0, 0, 2, 9, 50]), chance.choice([None, 0, 1, 2, 3, 4])
            events.append(Event(number, at, chance.choice("ab"), v))
        script.append((now, events))
    return query, script


def _kernel(query: Query, found: Found, columns: int | None) -> Cruncher:
    made = Cruncher(columns=columns)
    made.define("t", {"id": "long", "at": "ts", "k": "str", "v": "int"}, "at")

    def heard(batch: Batch) -> None:
        found.append((batch.at, sorted(batch.rows, key=repr)))

    made.register(query.text, heard)
    return made


@pytest.mark.long
@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(30))
def test_windows_give_what_the_oracle_gives(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        query, script = _drawn(chance)
        oracle, found, restarted = Oracle(query), Found(), Found()
        one, other = _kernel(query, found, None), _kernel(query, restarted, 1)
        for now, events in script:
            oracle.submit(now, events)
            one.submit("t", events, now)
            other.submit("t", events, now)
            if chance.random() < 0.2:
                states = other.snapshot()
                other = _kernel(query, restarted, 1)
                other.restore(states)
        end = script[-1][0] + 100
        for each in (oracle, one, other):
            each.advance(end)
        assert found == oracle.found, query.text
        assert restarted == oracle.found, query.text
