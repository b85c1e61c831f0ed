"""A slow, obvious re-statement of `define aggregation`: one event at a time, every bucket keeps its events.

Nothing is merged: a row is a list of events, and a column is computed from that list when somebody looks. So there is
no partial, no batch and no SQL in which the fast pipeline's mistakes could be repeated. Where the rulings leave a
definition open, it is this:

* the root clock is the greatest bucket start seen, each bucket cut in the declared zone, or else its event's own;
* a bucket leaves the buffer when that clock reaches the start of the bucket B + 1 units after it;
* a moved event goes to the bucket, in its own zone, that holds clock - B units; it keeps its own event time;
* a level's clock is the greatest bucket start handed to it; its bucket closes when that clock reaches its end;
* after a rebuild, events whose bucket starts before the end of the newest stored root bucket are re-sent ones, until
  the first event at or after it.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlglot import exp

from rollup.plan.app import AggregationDef, Item
from tests.oracle import local_time as time
from tests.oracle.expressions import Int, NotExpressible, evaluate
from tests.oracle.values import BASE, FINAL

RowKey = tuple[int, str, tuple[Any, ...]]
GMT = "+00:00"


class Event(NamedTuple):
    """An event that has been read: its time, its place in the order of arrival, its zone, keys and attributes."""

    ts: int
    arrival: int
    zone: str
    keys: tuple[Any, ...]
    row: Mapping[str, Any]


class Refused(Exception):
    """An event that cannot be read."""


@dataclass(frozen=True)
class Options:
    """What the annotations say."""

    buffer: int = 0
    policy: str = "merge"
    zone: str | None = None

    @classmethod
    def of(cls, definition: AggregationDef) -> Options:
        """Read from a definition that is known to be right."""
        given = {a.name.lower(): a.values.get("", "").lower() for a in definition.annotations}
        zone = next((a.values[""] for a in definition.annotations if a.name == "zone"), None)
        ignore = given.get("ignoreeventsolderthanbuffer") == "true"
        return cls(int(given.get("buffersize", 0)), given.get("outoforder", "drop" if ignore else "merge"), zone)


class Oracle:
    """One aggregation: its tables, its open rows, its clocks and its ledger, as events by row."""

    def __init__(self, definition: AggregationDef, attributes: Mapping[str, str], zone: str = GMT) -> None:
        self.definition, self.attributes = definition, attributes
        self.options = Options.of(definition)
        self.zone = self.options.zone or zone
        self.levels = [int(level) for level in definition.levels]
        self.keys = [_key_name(node) for node in definition.selection.group_by]
        self.tables: dict[int, dict[RowKey, list[Event]]] = {level: defaultdict(list) for level in self.levels}
        self.ledger: Counter[tuple[int, str, tuple[Any, ...], str]] = Counter()
        self.forget()

    def forget(self) -> None:
        """Only the tables survive."""
        self.open: dict[int, dict[RowKey, list[Event]]] = {level: defaultdict(list) for level in self.levels}
        self.clocks: dict[int, int | None] = dict.fromkeys(self.levels)
        self.resume: int | None = None

    @property
    def root(self) -> int:
        """The finest level."""
        return self.levels[0]

    # events

    def send(self, values: list[Any], arrival: int, received: int) -> None:
        """One event of the stream. Raises Refused when it does not fit or has no time."""
        if len(values) != len(self.attributes):
            raise Refused(f"{len(values)} values")
        row = {name: typed(kind, value) for (name, kind), value in zip(self.attributes.items(), values, strict=True)}
        where = self.definition.source.filter
        if where is not None and evaluate(where, lambda node: row[node.name]) is not True:
            return
        ts, zone = self._time(row, received)
        if self.definition.by is None and self.clocks[self.root] is not None:
            self.tick(received)  # the timers of the buckets that have ended fire before the event is seen
        keys = tuple(evaluate(node, lambda node: row[node.name]) for node in self.definition.selection.group_by)
        self.admit(Event(ts, arrival, zone, keys, row))

    def _time(self, row: Mapping[str, Any], received: int) -> tuple[int, str]:
        if self.definition.by is None:
            return received, self.zone
        found = evaluate(self.definition.by, lambda node: row[node.name])
        if isinstance(found, int):
            return found, self.zone
        try:
            instant, own = time.stamp(found, self.zone)
            return instant, self.options.zone or own
        except time.NoTime as problem:
            raise Refused(str(problem)) from None

    def admit(self, event: Event) -> None:
        """The buffer: the event's own bucket, or what the policy says of one that is too late."""
        bucket, root = time.start(event.ts, self.root, event.zone), self.root
        if self.resume is not None and bucket < self.resume:
            self.ledger[bucket, event.zone, event.keys, "resent"] += 1
            return
        self.resume = None
        clock = self.clocks[root]
        self.clocks[root] = clock = bucket if clock is None else max(clock, bucket)
        if self._leaves(root, bucket, event.zone) <= clock:
            kind = {"merge": "moved", "drop": "dropped", "correct": "corrected"}[self.options.policy]
            self.ledger[bucket, event.zone, event.keys, kind] += 1
            if kind == "dropped":
                return
            if kind == "moved":
                bucket = self._oldest(clock, event.zone)
        self.open[root][bucket, event.zone, event.keys].append(event)
        self._close(root)

    def _leaves(self, level: int, bucket: int, zone: str) -> int:
        """The clock at which a bucket closes at its level."""
        return time.later(bucket, level, zone, self.options.buffer + 1 if level == self.root else 1)

    def _oldest(self, clock: int, zone: str) -> int:
        """The oldest bucket of the buffer, in a zone."""
        if self.root < time.DAY:
            return time.start(clock - self.options.buffer * time.WIDTHS[self.root], self.root, zone)
        return time.later(time.start(clock, self.root, zone), self.root, zone, -self.options.buffer)

    def _close(self, level: int) -> None:
        """Write what the level's clock has passed, oldest first, and hand each row to the next level."""
        clock, above = self.clocks[level], next((up for up in self.levels if up > level), None)
        if clock is None:
            return
        done = sorted(
            (key for key in self.open[level] if self._leaves(level, key[0], key[1]) <= clock), key=lambda key: key[0]
        )
        for key in done:
            events = self.open[level].pop(key)
            self.tables[level][key] += events
            if above is not None:
                self._hand(above, key, events)
        if above is not None:
            self._close(above)

    def _hand(self, level: int, key: RowKey, events: list[Event]) -> None:
        bucket, zone, keys = key
        known = self.clocks[level]
        self.clocks[level] = bucket if known is None else max(known, bucket)
        self.open[level][time.start(bucket, level, zone), zone, keys] += events

    def tick(self, now: int) -> None:
        """The wall clock, for aggregations by arrival time: it moves the clock of every level."""
        bucket = time.start(now, self.root, self.zone)
        for level in self.levels:
            self.clocks[level] = max(bucket, self.clocks[level] or bucket)
        for level in self.levels:
            self._close(level)

    def rebuild(self) -> None:
        """Open rows out of the tables alone, from the coarsest level down; what was open at the root is lost."""
        self.forget()
        for finer, level in reversed(list(zip(self.levels, self.levels[1:], strict=False))):
            newest = _newest(self.tables[level])
            for (bucket, zone, keys), events in self.tables[finer].items():
                begin = time.start(bucket, level, zone)
                if zone not in newest or begin > newest[zone]:
                    self.open[level][begin, zone, keys] += events
            self.clocks[level] = max(_newest(self.tables[finer]).values(), default=None)
            self._close(level)
        ends = [time.end(bucket, self.root, zone) for zone, bucket in _newest(self.tables[self.root]).items()]
        self.resume = max(ends, default=None)

    # rows

    def stored(self, level: int) -> list[dict[str, Any]]:
        """The rows of a level's table by column name."""
        return [self._row(key, events) for key, events in self.tables[level].items()]

    def running(self, level: int) -> list[dict[str, Any]]:
        """The open rows of a level by column name."""
        return [self._row(key, events) for key, events in self.open[level].items()]

    def _row(self, key: RowKey, events: list[Event]) -> dict[str, Any]:
        bucket, zone, keys = key
        events = _in_time(events)
        row = {"AGG_TIMESTAMP": bucket, "AGG_TIMEZONE": zone, **dict(zip(self.keys, keys, strict=True))}
        for item in self.items():
            calls = aggregates(item.expression)
            for call in calls:
                row |= _base(call, events)
            if not calls and not self._is_key(item):
                row[item.name] = _value(item.expression, events[-1])
        return {**row, "AGG_EVENTS": len(events)}

    def columns(self) -> list[str]:
        """The names of a row's columns, also when there is none."""
        nothing = Event(0, 0, GMT, tuple(None for _ in self.keys), dict.fromkeys(self.attributes))
        return list(self._row((0, GMT, nothing.keys), [nothing]))

    def buckets(self, level: int, low: int, high: int) -> list[dict[str, Any]]:
        """`within low, high per level`: stored and open rows, one row a bucket and keys, with the outputs' values."""
        found: dict[tuple[int, tuple[Any, ...]], list[Event]] = defaultdict(list)
        for (bucket, _, keys), events in self.tables[level].items():
            found[bucket, keys] += events
        for finer in (known for known in self.levels if known <= level):
            for (bucket, zone, keys), events in self.open[finer].items():
                found[time.start(bucket, level, zone), keys] += events
        return [self._answer(*key, events) for key, events in found.items() if low <= key[0] < high]

    def _answer(self, bucket: int, keys: tuple[Any, ...], events: list[Event]) -> dict[str, Any]:
        events, known = _in_time(events), dict(zip(self.keys, keys, strict=True))
        row: dict[str, Any] = {"AGG_TIMESTAMP": bucket}
        for item in self.items():
            if aggregates(item.expression):
                row[item.name] = evaluate(
                    item.expression, lambda node: known[node.name], lambda call: _final(call, events)
                )
            else:
                row[item.name] = (
                    known[item.expression.name] if self._is_key(item) else _value(item.expression, events[-1])
                )
        return {**row, "AGG_EVENTS": len(events)}

    def items(self) -> Iterable[Item]:
        """The select list."""
        chosen = self.definition.selection.items
        return chosen if chosen is not None else [Item(name, exp.column(name)) for name in self.attributes]

    def _is_key(self, item: Item) -> bool:
        return isinstance(item.expression, exp.Column) and item.expression.name in self.keys


def typed(kind: str, value: Any) -> Any:
    """A value as its attribute's type holds it. Raises Refused."""
    if value is None:
        return None
    if kind in ("int", "long"):
        bits = 31 if kind == "int" else 63
        if not isinstance(value, int) or isinstance(value, bool) or not -(2**bits) <= value < 2**bits:
            raise Refused(f"{value!r} is no {kind}")
        return Int(value) if kind == "int" else int(value)
    if kind in ("double", "float"):
        return float(value) if kind == "double" else struct.unpack("f", struct.pack("f", value))[0]
    return value


def aggregates(node: exp.Expression) -> list[exp.Anonymous]:
    """The calls of aggregates in an expression, in their order."""
    found = [
        call
        for call in node.find_all(exp.Anonymous)
        if call.name.lower() in FINAL or call.name.lower() in ("hll", "quantiles", "topk")
    ]
    return sorted(found, key=lambda call: (call.meta.get("line", 0), call.meta.get("column", 0)))


def _value(node: exp.Expression, event: Event) -> Any:
    return evaluate(node, lambda column: event.row[column.name])


def _arguments(call: exp.Anonymous, events: list[Event]) -> list[Any]:
    return [_value(call.expressions[0], event) for event in events]


def _final(call: exp.Anonymous, events: list[Event]) -> Any:
    name = call.name.lower()
    if name == "count" and not call.expressions:
        return len(events)
    return FINAL[name](_arguments(call, events)) if name in FINAL else NotImplemented


def _base(call: exp.Anonymous, events: list[Event]) -> dict[str, Any]:
    name = call.name.lower()
    if name == "count" and not call.expressions:
        return {"AGG_COUNT": len(events)}
    if name not in BASE:
        raise NotExpressible(f"the stored form of {name}")
    argument = call.expressions[0]
    suffix = (
        argument.name
        if isinstance(argument, exp.Column)
        else "".join(c if c.isalnum() else "_" for c in argument.sql())
    )
    return {f"{prefix}_{suffix}": fold(_arguments(call, events)) for prefix, fold in BASE[name]}


def _in_time(events: list[Event]) -> list[Event]:
    return sorted(events, key=lambda event: (event.ts, event.arrival))


def _newest(table: Mapping[RowKey, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for bucket, zone, _ in table:
        found[zone] = max(bucket, found.get(zone, bucket))
    return found


def _key_name(node: exp.Expression) -> str:
    if not isinstance(node, exp.Column):
        raise NotExpressible("a group key that is no attribute")
    return node.name
