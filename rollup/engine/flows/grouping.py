"""Groups over windows: a group is given once, when its key cannot come any more.

Rows of open groups are kept as they are, so every aggregate function works, and the answer is that of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rollup.engine.flows.beyond import BEYOND, beyond, counted, with_lost
from rollup.engine.flows.flow import (
    AT,
    END,
    NUMBER,
    Column,
    Flow,
    Ints,
    Node,
    Relational,
    State,
    column,
    empty,
    joined,
    numbered,
    positions,
)
from rollup.engine.flows.relate import aliased, latest, marked

WINDOW = "__window"
"""The start of a row's window, in microseconds."""
_CLOSES = "__closes"


@dataclass(frozen=True)
class Hops:
    """Windows of `width` that start every `every` from `origin` on, in microseconds, over the time that `time` gives."""

    time: exp.Expr
    every: int
    width: int
    origin: int = 0


@dataclass(frozen=True)
class Set:
    """One grouping set: which of the keys it has (by place), and by which of those that move it closes."""

    keys: tuple[int, ...]
    closing: tuple[int, ...]


@dataclass(frozen=True)
class Group:
    """Keys, then aggregates: the columns of the output. With `hops` the first column is the start of the window.

    `sets` are the grouping sets; keys that a set lacks are null, and each set closes by its own keys.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    keys: tuple[exp.Expr, ...]
    aggregates: tuple[exp.Expr, ...]
    sets: tuple[Set, ...]
    hops: Hops | None = None
    groupings: tuple[tuple[int, ...], ...] = ()
    """For each GROUPING(..) of the output, after the aggregates: the keys that it asks about; none: GROUP_ID()."""

    def start(self) -> State:
        """No rows are open."""
        return State({}, {BEYOND: 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow, lost = inputs[0], beyond([state])
        marks = self._marks(flow.marks, engine)
        line = latest(state.tables.get("marks"), marks)
        fresh = self._keyed(flow.rows, engine)
        tables = {"marks": line.slice(max(0, line.num_rows - 1))}
        outputs: list[pa.Table] = []
        for place, set_ in enumerate(self.sets):
            rows = joined([state.tables.get(f"open{place}"), fresh])
            closes = self._closes(rows, set_, line, flow.ended)
            done = closes >= 0
            if done.any():
                given, more = self._given(rows.filter(pa.array(done)), closes[done], set_, engine)
                outputs, lost = [*outputs, given], lost + more
            tables[f"open{place}"] = rows.filter(pa.array(~done)) if done.any() else rows
        rows = outputs[0] if len(outputs) == 1 else self._ordered(outputs, engine)
        return State(tables, {BEYOND: lost}), Flow(rows, marks, flow.ended)

    def _keyed(self, rows: pa.Table, engine: Relational) -> pa.Table:
        """The rows with their keys; with hops once for each window that they are in."""
        items = [aliased(key, out) for key, out in zip(self.keys, self._key_columns, strict=True)]
        source = exp.select(exp.Star(), *items).from_("input")
        if self.hops is None:
            keyed = source.order_by(column(NUMBER))
        else:
            window = exp.Unnest(expressions=[_starts(self.hops)])
            shown = exp.select(exp.Star(), exp.alias_(window, WINDOW, quoted=True)).from_(source.subquery("s"))
            keyed = shown.order_by(column(NUMBER), column(WINDOW))
        return engine.ask(keyed, input=numbered(rows)).drop_columns([NUMBER])

    @property
    def _key_columns(self) -> tuple[Column, ...]:
        first = 1 if self.hops is not None else 0
        return self.columns[first : first + len(self.keys)]

    def _marks(self, marks: pa.Table, engine: Relational) -> pa.Table:
        """The marks of the keys that move, and of the lowest window that is open."""
        moving = {out: key for key, out in zip(self.keys, self._key_columns, strict=True) if out.monotone}
        if self.hops is not None:
            moving[self.columns[0]] = _lowest(self.hops)
        return marked(marks, moving, engine)

    def _closes(self, rows: pa.Table, set_: Set, marks: pa.Table, ended: bool) -> Ints:
        """For each row the position at which its group is complete, -1 when it is not yet."""
        if not rows.num_rows:
            return np.empty(0, np.int64)
        found = np.full(rows.num_rows, END + 1)
        for place in set_.closing:
            windowed = place < 0
            out = self.columns[0] if windowed else self._key_columns[place]
            rising = out.monotone.rising if out.monotone else True
            values = rows.column(WINDOW if windowed else out.name)
            at = positions(marks, out.name, values, rising, reached=False, ended=ended)
            found = np.minimum(found, np.where(at < 0, END + 1, at))
        # A row may come after the mark that its group waits for (the input is ordered only by its marks).
        return np.where(found > END, -1, np.maximum(found, rows.column(AT).to_numpy()))

    def _given(self, rows: pa.Table, closes: Ints, set_: Set, engine: Relational) -> tuple[pa.Table, int]:
        """The groups of rows, and how many of their sums were lost."""
        keys = [column(out.name) for out in self._key_columns]
        mine = [keys[place] for place in set_.keys]
        first = [exp.alias_(column(WINDOW), self.columns[0].name, quoted=True)] if self.hops is not None else []
        shown = [key if i in set_.keys else self._null(i) for i, key in enumerate(keys)]
        rest = self.columns[len(first) + len(keys) :]
        values = [*self.aggregates, *(self._grouping(asked, set_) for asked in self.groupings)]
        items = [*first, *shown, *(aliased(value, out) for value, out in zip(values, rest, strict=True))]
        closed = exp.alias_(exp.Max(this=column(_CLOSES)), AT, quoted=True)
        groups = [*([column(WINDOW)] if first else []), *mine]
        order = [exp.Max(this=column(_CLOSES)), *(self._lead(set_)), exp.Min(this=column(NUMBER))]
        query = exp.select(*items, closed, *with_lost(self.aggregates)).from_("input")
        query = query.group_by(*groups).order_by(*order)
        return counted(engine.ask(query, input=numbered(rows.append_column(_CLOSES, pa.array(closes)))))

    def _lead(self, set_: Set) -> list[exp.Expr]:
        """Groups that close together come by window: by the keys that they close by."""
        return [
            column(WINDOW)
            if place < 0
            else exp.Ordered(this=column(out.name), desc=bool(out.monotone and not out.monotone.rising))
            for place in set_.closing
            for out in [self._key_columns[place] if place >= 0 else self.columns[0]]
        ]

    def _null(self, place: int) -> exp.Expr:
        out = self._key_columns[place]
        return exp.alias_(exp.cast(exp.Null(), out.type, dialect="duckdb"), out.name, quoted=True)

    def _grouping(self, asked: tuple[int, ...], set_: Set) -> exp.Expr:
        """GROUPING(a, b): a bit for each key that the set lacks, the last one the lowest. GROUP_ID(): how often the set
        was there before."""
        if not asked:
            same = [other for other in self.sets if other == set_]
            return exp.Literal.number(next(place for place, other in enumerate(same) if other is set_))
        bits = sum(1 << i for i, place in enumerate(reversed(asked)) if place not in set_.keys)
        return exp.Literal.number(bits)

    def _ordered(self, outputs: Sequence[pa.Table], engine: Relational) -> pa.Table:
        """Outputs of the sets by position; within one, set by set."""
        rows = joined(outputs) if outputs else empty(self.columns, engine)
        order = np.argsort(rows.column(AT).to_numpy(), kind="stable") if rows.num_rows else []
        return rows.take(pa.array(order, pa.int64()))


def _micros(time: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="epoch_us", expressions=[time.copy()])


def _floored(value: exp.Expr, step: int) -> exp.Expr:
    """The greatest whole number of steps that is not above a value, also below zero."""
    number = exp.Literal.number(step)
    shifted = exp.Mod(this=exp.paren(value.copy()), expression=number)
    positive = exp.Mod(this=exp.paren(exp.Add(this=shifted, expression=number.copy())), expression=number.copy())
    return exp.IntDiv(
        this=exp.paren(exp.Sub(this=exp.paren(value.copy()), expression=exp.paren(positive))), expression=number.copy()
    )


def _less(value: exp.Expr, amount: int) -> exp.Expr:
    return exp.Sub(
        this=value,
        expression=exp.paren(exp.Literal.number(amount))
        if amount >= 0
        else exp.paren(exp.Neg(this=exp.Literal.number(-amount))),
    )


def _place(number: exp.Expr, hops: Hops) -> exp.Expr:
    """The start of a window by its number."""
    return exp.Add(
        this=exp.Mul(this=exp.paren(number), expression=exp.Literal.number(hops.every)),
        expression=exp.Literal.number(hops.origin),
    )


def _starts(hops: Hops) -> exp.Expr:
    """The starts of the windows that hold a time, as a list."""
    first, last = (
        _floored(_less(_micros(hops.time), hops.origin + hops.width), hops.every),
        _floored(_less(_micros(hops.time), hops.origin), hops.every),
    )
    low = _place(exp.Add(this=first, expression=exp.Literal.number(1)), hops)
    return exp.Anonymous(this="generate_series", expressions=[low, _place(last, hops), exp.Literal.number(hops.every)])


def _lowest(hops: Hops) -> exp.Expr:
    """The start of the lowest window that a time no earlier than this one may be in."""
    first = _floored(_less(_micros(hops.time), hops.origin + hops.width), hops.every)
    return _place(exp.Add(this=first, expression=exp.Literal.number(1)), hops)


def start_of(time: exp.Expr, width: int, origin: int) -> exp.Expr:
    """The start of the window of one width that holds a time, in microseconds."""
    return _place(_floored(_less(_micros(time), origin), width), Hops(time, width, width, origin))
