"""Frames: functions over the rows around each row (OVER). One row out for each row in, when its frames are complete.

What a row waits for is said by the kind of each frame: for the peers of its time, for rows that follow, for its
partition. Rows that no open or later frame can reach are forgotten.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rollup.core.untyped import pc
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
    joined,
    numbered,
    numbers_of,
    positions,
    typed_as,
)
from rollup.engine.flows.relate import aliased, latest

_DONE = "__done"


@dataclass(frozen=True)
class Wait:
    """What a row must see before a frame of it is complete.

    * `line`: a column that moves; its mark must have passed the row's value plus `ahead`. `reached`: equal is enough.
    * `rows`: so many rows of its partition (`partition`) must have followed, and, with `line`, be final in their order.
    * `never` is not a kind: what can never be complete is refused when the query is prepared.
    """

    line: Column | None = None
    ahead: exp.Expr | None = None
    rows: int = 0
    partition: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Keep:
    """Which rows a frame still needs: those from `line` minus `behind` on, or the last `rows` of each partition.

    Both None: all of them.
    """

    line: Column | None = None
    behind: exp.Expr | None = None
    rows: int | None = None
    partition: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Frames:
    """The columns of the input, then the value of each of the `windows`, which are trees of DuckDB's SQL."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    windows: tuple[exp.Expr, ...]
    waits: tuple[Wait, ...]
    keeps: tuple[Keep, ...]

    def start(self) -> State:
        """No rows are kept."""
        return State({}, {BEYOND: 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow = inputs[0]
        line = latest(state.tables.get("marks"), flow.marks)
        fresh = flow.rows.append_column(_DONE, pa.array(np.zeros(flow.rows.num_rows, bool)))
        rows = joined([state.tables.get("rows"), fresh])
        at = rows.column(AT).to_numpy()
        done = rows.column(_DONE).to_numpy()
        final = at.copy() if rows.num_rows else np.empty(0, np.int64)
        for wait in self.waits:
            final = _later(final, self._waited(wait, rows, line, flow.ended, engine))
        given, lost = self._given(rows, np.where(done, -1, final), engine)
        rows = rows.set_column(rows.schema.get_field_index(_DONE), _DONE, pa.array(done | (final >= 0)))
        kept = rows if flow.ended or not rows.num_rows else self._kept(rows, line, engine)
        tables = {"rows": kept, "marks": line.slice(max(0, line.num_rows - 1))}
        after = State(tables, {BEYOND: beyond([state]) + lost})
        return after, Flow(given, self._marks(rows, np.where(done, 0, final), flow), flow.ended)

    def _waited(self, wait: Wait, rows: pa.Table, marks: pa.Table, ended: bool, engine: Relational) -> Ints:
        """For each row the position at which the wait is over, -1 when it is not."""
        count = rows.num_rows
        found = np.zeros(count, np.int64)
        if not count:
            return found
        if wait.line is not None:
            values = rows.column(wait.line.name)
            if wait.ahead is not None:
                side = exp.Add if _rises(wait.line) else exp.Sub
                target = side(this=column(wait.line.name), expression=wait.ahead.copy())
                query = exp.select(exp.alias_(target, "v")).from_("input").order_by(column(NUMBER))
                values = engine.ask(query, input=numbered(rows.select([wait.line.name]))).column("v")
            found = positions(marks, wait.line.name, values, _rises(wait.line), reached=False, ended=ended)
        if wait.rows:
            found = self._followed(wait, rows, found, ended, engine)
        return found

    def _followed(self, wait: Wait, rows: pa.Table, own: Ints, ended: bool, engine: Relational) -> Ints:
        """When so many rows of the partition have followed, and are themselves in order."""
        order = exp.Order(expressions=[exp.Ordered(this=column(NUMBER))])
        lead = exp.Anonymous(this="lead", expressions=[column(NUMBER), exp.Literal.number(wait.rows)])
        over = exp.Window(this=lead, partition_by=[p.copy() for p in wait.partition], order=order)
        query = exp.select(exp.alias_(over, "v")).from_("input").order_by(column(NUMBER))
        ahead = engine.ask(query, input=numbered(rows)).column("v")
        missing = ahead.is_null().to_numpy()
        place = ahead.fill_null(0).to_numpy()
        at = rows.column(AT).to_numpy()
        when = np.maximum(at[place], own[place]) if wait.line is not None else at[place]
        when = np.where((own[place] < 0) & (wait.line is not None), -1, when)
        return np.where(missing, END if ended else -1, when)

    def _given(self, rows: pa.Table, final: Ints, engine: Relational) -> tuple[pa.Table, int]:
        """The rows that are final, by the position at which they became so, then as they came; and how many of their
        sums were lost."""
        inputs = self.columns[: len(self.columns) - len(self.windows)]
        outputs = self.columns[len(inputs) :]
        ready = np.flatnonzero(final >= 0)
        ready = ready[np.argsort(final[ready], kind="stable")]
        items = [aliased(w, o) for w, o in zip(self.windows, outputs, strict=True)]
        asked = {c.name for w in self.windows for c in w.find_all(exp.Column)}
        used = [name for name in rows.column_names if name in asked] or [AT]
        query = exp.select(*items, column(NUMBER), *with_lost(self.windows)).from_("input")
        values = engine.ask(query, input=numbered(rows.select(used)))
        places = np.empty(rows.num_rows, np.int64)  # DuckDB gives the rows of a partition together
        places[values.column(NUMBER).to_numpy()] = np.arange(rows.num_rows)
        own = _picked(rows.select([c.name for c in inputs]), ready)
        mine, lost = counted(values.take(pa.array(places[ready])))
        computed = mine.select([c.name for c in outputs])
        columns = [*own.columns, *computed.columns, pa.chunked_array([pa.array(final[ready])])]
        return pa.table(columns, names=[*(c.name for c in self.columns), AT]), lost

    def _kept(self, rows: pa.Table, marks: pa.Table, engine: Relational) -> pa.Table:
        """The rows that are not final, and those that their frames or later ones can reach."""
        needed: list[exp.Expr] = [exp.Not(this=column(_DONE))]
        for keep in self.keeps:
            condition = self._reach(keep, rows, marks)
            if condition is None:
                return rows
            needed.append(condition)
        counted = any(keep.rows is not None for keep in self.keeps)
        source: exp.Table | exp.Subquery = exp.to_table("input")
        if counted:  # a function over a frame cannot stand in WHERE
            tests = [exp.alias_(condition, f"k{i}") for i, condition in enumerate(needed)]
            source = exp.select(exp.Star(), *tests).from_("input").subquery("s")
        passing = exp.or_(*(column(f"k{i}") if counted else each for i, each in enumerate(needed)))
        query = exp.select(*(column(name) for name in rows.column_names)).from_(source).where(passing)
        return engine.ask(query.order_by(column(NUMBER)), input=numbered(rows))

    def _reach(self, keep: Keep, rows: pa.Table, marks: pa.Table) -> exp.Expr | None:
        """The condition of a row that a frame may still need; None: any row."""
        if keep.line is not None:
            bound = _last(marks, keep.line.name)
            if bound is None:
                return None
            # The earliest row that is not final may lie before the mark: its frame reaches back from there.
            rises = _rises(keep.line)
            open_ = rows.column(keep.line.name).filter(pc.invert(rows.column(_DONE)))
            edge = (pc.min if rises else pc.max)(open_).as_py()
            first = bound if edge is None else min(bound, edge) if rises else max(bound, edge)
            start: exp.Expr = exp.cast(exp.Literal.string(str(first)), keep.line.type, dialect="duckdb")
            if keep.behind is not None:
                start = (exp.Sub if rises else exp.Add)(this=start, expression=keep.behind.copy())
            return (exp.GTE if rises else exp.LTE)(this=column(keep.line.name), expression=start)
        if keep.rows is not None:
            # Counted from the first row of the partition that is not final; all later ones are needed.
            order = exp.Order(expressions=[exp.Ordered(this=column(NUMBER), desc=True)])
            done = exp.Case(ifs=[exp.If(this=column(_DONE), true=exp.Literal.number(1))], default=exp.Literal.number(0))
            rank = exp.Window(
                this=exp.Sum(this=done), partition_by=[p.copy() for p in keep.partition], order=order, over="OVER"
            )
            return exp.LTE(this=rank, expression=exp.Literal.number(keep.rows))
        return None

    def _marks(self, rows: pa.Table, final: Ints, flow: Flow) -> pa.Table:
        """Rows that wait hold the marks back: what leaves later may be as early as the earliest of them."""
        moving = [c for c in self.columns if c.monotone]
        plain = all(w.line is not None and w.ahead is None and not w.rows for w in self.waits)
        lines = {w.line.name for w in self.waits if w.line is not None}
        if plain and lines == {c.name for c in moving}:
            return flow.marks.select([*(c.name for c in moving), AT])  # what waits has just the value of the mark
        return held(flow.marks, rows, final, moving)


def held(marks: pa.Table, rows: pa.Table, final: Ints, moving: Sequence[Column]) -> pa.Table:
    """Marks that are nowhere beyond the rows that wait there: from their arrival to when they are `final` (-1: still)."""
    at = marks.column(AT).to_numpy()
    came = rows.column(AT).to_numpy()
    leaves = np.where(final < 0, END + 1, final)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {}
    for c in moving:
        sign = 1 if _rises(c) else -1
        line, values = numbers_of(marks.column(c.name)), numbers_of(rows.column(c.name))
        waiting: list[tuple[int, int]] = []
        place, best = 0, list[int | None]()
        for position, bound in zip(at.tolist(), line, strict=True):
            while place < len(came) and came[place] <= position:
                value = values[place]
                if leaves[place] > position and value is not None:
                    heapq.heappush(waiting, (sign * value, int(leaves[place])))
                place += 1
            while waiting and waiting[0][1] <= position:
                heapq.heappop(waiting)
            edge = waiting[0][0] if waiting else None
            best.append(bound if bound is None or edge is None else sign * min(sign * bound, edge))
        columns[c.name] = typed_as(best, marks.schema.field(c.name).type)
    return pa.table({**columns, AT: marks.column(AT)})


def _picked(rows: pa.Table, places: Ints) -> pa.Table:
    """The rows at some places; a run of them is not copied."""
    if not len(places) or bool((np.diff(places) == 1).all()):
        return rows.slice(int(places[0]) if len(places) else 0, len(places))
    return rows.take(pa.array(places))


def _rises(line: Column) -> bool:
    return line.monotone is None or line.monotone.rising


def _last(marks: pa.Table, name: str) -> Any:
    values = marks.column(name).drop_null()
    return values[-1].as_py() if len(values) else None


def _later(one: Ints, other: Ints) -> Ints:
    """The later of two positions; -1 is later than all."""
    return np.where((one < 0) | (other < 0), -1, np.maximum(one, other))
