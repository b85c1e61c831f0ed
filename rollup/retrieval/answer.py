"""The rows of an answer as one SQL tree: stored rows of a level and the open rows of it and all finer levels, merged.

The tree reads relations by name: a level's table (`closed`), `open` (see `rollup.retrieval.questions.open_rows`) and,
for the ledger columns, `late` (`late_rows`). It is printed in any of the three dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rollup.aggregation.cascade import merged_rows
from rollup.core.calendar import Duration
from rollup.core.dialects import Instant, PeriodJoin, unordered
from rollup.core.periods import Period
from rollup.plan.aggregates import EXACT, WIDE
from rollup.plan.aggregation import (
    COMMIT,
    EVENTS,
    KIND,
    TIME,
    TIMESTAMP,
    ZONE,
    Aggregation,
    Key,
    Output,
    Policy,
    column,
    read_column,
)
from rollup.plan.types import Type

LEVEL = "AGG_LEVEL"
START, END = exp.Placeholder(this="start"), exp.Placeholder(this="end")
PER, FINAL, REVISION = "AGG_PER", "AGG_FINAL", "AGG_REVISION"
LATE = {"AGG_LATE_MOVED": "moved", "AGG_LATE_DROPPED": "dropped", "AGG_LATE_CORRECTED": "corrected"}
"""Columns that count late events of a bucket, by the kind they have in the ledger."""
EXTRA = {
    TIME: Type.TIMESTAMP,
    EVENTS: Type.LONG,
    PER: Type.STRING,
    **dict.fromkeys(LATE, Type.LONG),
    REVISION: Type.LONG,
    FINAL: Type.BOOL,
    ZONE: Type.STRING,
}
"""Columns that answer by name although `select *` does not show them.

AGG_TIME: AGG_TIMESTAMP as a time. AGG_EVENTS: events merged into the row. AGG_PER: its level, as `per` takes it. AGG_LATE_…: late events whose own bucket
this is, by what became of them. AGG_REVISION: commits that corrected the bucket. AGG_FINAL: the row will not change any
more: its bucket is closed at this level, and the policy is not `correct`, which may reopen any bucket. AGG_TIMEZONE: the
zone that cut the row; rows of several zones that begin at one instant are then apart.
"""
PERIOD, PERIOD_START, PERIOD_END = PERIODS = ("AGG_PERIOD", "AGG_PERIOD_START", "AGG_PERIOD_END")
"""The columns of the relation `periods`: the name of each bucket, and start and end of what its row is about."""
_OPEN, _LATE_BUCKET, _LATE_ZONE = "AGG_OPEN", "AGG_LATE_BUCKET", "AGG_LATE_ZONE"
Condition = Callable[[exp.Expr], exp.Expr]


def reads_ledger(names: Iterable[str]) -> bool:
    """Whether columns of an answer come from the ledger of late events."""
    return any(name in LATE or name == REVISION for name in names)


def bucket_column(level: Duration) -> str:
    """The column of an open or late row that has the start of its bucket at `level`."""
    return f"AGG_IN_{level.table_suffix}"


def key_column(index: int) -> str:
    """The column of a bucket row that has its group key, selected or not, when keys are asked for."""
    return f"AGG_KEY_{index}"


def row_order(groups: Groups, extras: Iterable[str], table: str) -> list[exp.Column]:
    """What tells any two bucket rows of a table apart, in the order of answers: time, zone if asked for, keys."""
    keys = [key_column(index) for index in range(len(groups.keys))]
    names = (*(each.name for each in groups.columns), *([ZONE] if ZONE in extras else []), *keys)
    return [exp.column(column(name).this, table=table) for name in names]


def _late_key(index: int) -> str:
    return f"AGG_LATE_KEY_{index}"


def _counted(name: str) -> str:
    return f"{name}_COUNTED"


def between(start: exp.Expr, end: exp.Expr) -> Condition:
    """start <= bucket < end."""
    return lambda begin: exp.and_(
        exp.GTE(this=begin.copy(), expression=start.copy()),
        exp.LT(this=begin.copy(), expression=end.copy()),
        copy=False,
    )


@dataclass(frozen=True)
class Part:
    """One level's share of an answer: the relations it reads (None: there is nothing in it) and which buckets.

    With a `period` the level's buckets are put together to those of the relation `periods`; with `sliding` each is in
    several of these or in none.
    """

    level: Duration
    closed: str | None
    opened: str | None
    within: Condition
    period: Period | None = None
    sliding: bool = False

    def placed(self, rows: exp.Select, begin: exp.Expr) -> tuple[exp.Expr, exp.Select]:
        """The start of the answer's bucket that a row of a level's bucket is in, and the rows with what that needs."""
        if self.period is None:
            return begin.copy(), rows
        low = exp.GTE(this=begin.copy(), expression=column(PERIOD_START))
        high = exp.LT(this=begin.copy(), expression=column(PERIOD_END))
        rows.append("joins", PeriodJoin(this=exp.to_table("periods"), start=low, end=high, sliding=self.sliding))
        return column(PERIOD), rows


@dataclass(frozen=True)
class Groups:
    """What the rows of an answer are merged to: these group keys, and each bucket for itself or all of the range.

    `passes` is a condition over group keys, of the rows that are merged.
    """

    keys: tuple[Key, ...]
    buckets: bool = True
    passes: exp.Expr | None = None

    @property
    def columns(self) -> list[exp.Column]:
        """The column of the bucket's start, if there is one."""
        return [column(TIMESTAMP)] if self.buckets else []


def bucket_rows(
    aggregation: Aggregation,
    per: Duration,
    outputs: Sequence[Output],
    closed: str = "closed",
    opened: str = "open",
    start: exp.Expr = START,
    end: exp.Expr = END,
    keys: bool = False,
) -> exp.Select:
    """One row a bucket and keys, with start <= AGG_TIMESTAMP < end: AGG_TIMESTAMP, outputs, AGG_EVENTS."""
    return level_rows(aggregation, [Part(per, closed, opened, between(start, end))], outputs, [EVENTS], keys)


def level_rows(
    aggregation: Aggregation,
    parts: Sequence[Part],
    outputs: Sequence[Output],
    extras: Iterable[str] = (),
    keys: bool = False,
    groups: Groups | None = None,
) -> exp.Select:
    """The rows of one level: AGG_TIMESTAMP, the outputs, columns of EXTRA, and with `keys` every group key.

    With `groups` those of several levels, merged to these.
    """
    part, groups = parts[0], groups or Groups(aggregation.keys)
    extras = [name for name in extras if name not in {output.name for output in outputs}]
    ledger = reads_ledger(extras)
    rows = _merged(aggregation, parts, groups, outputs, FINAL in extras, ZONE in extras)
    own = [_own_extra(aggregation, part, name) for name in extras if name not in LATE and name != REVISION]
    hidden = [
        exp.alias_(column(key.name), key_column(i), quoted=True) for i, key in enumerate(groups.keys) if keys or ledger
    ]
    lost = {key.name for key in aggregation.keys} - {key.name for key in groups.keys}
    finals = [exp.alias_(_final(output, lost), output.name, quoted=True) for output in outputs]
    query = exp.select(*groups.columns, *finals, *own, *hidden).from_(rows.subquery("n", copy=False), copy=False)
    return _with_ledger(aggregation, part, query, extras, groups) if ledger else query


def _final(output: Output, lost: set[str]) -> exp.Expr:
    """What an output shows; null of group keys that rows are merged over, as in SQL's grouping sets."""
    if any(found.name in lost for found in output.final.find_all(exp.Column)):
        return exp.cast(exp.Null(), output.type.sql)
    return output.final.copy()


def _own_extra(aggregation: Aggregation, part: Part, name: str) -> exp.Expr:
    if name in (EVENTS, ZONE):
        return column(name)
    if name == TIME:
        return exp.alias_(Instant(this=column(TIMESTAMP)), TIME, quoted=True)
    if name == PER:
        return exp.alias_(exp.Literal.string(part.period.text if part.period else part.level.plural), PER, quoted=True)
    closed = (
        exp.false()
        if aggregation.policy is Policy.CORRECT
        else exp.EQ(this=column(_OPEN), expression=exp.Literal.number(0))
    )
    return exp.alias_(closed, FINAL, quoted=True)


def _merged(
    aggregation: Aggregation,
    parts: Sequence[Part],
    to: Groups,
    outputs: Sequence[Output],
    finality: bool,
    zoned: bool,
) -> exp.Select:
    """Partial columns of each bucket and keys, with `zoned` of each zone, of the stored and the open rows together."""
    names = _columns_of(aggregation, outputs)
    same = [*([ZONE] if zoned else []), *(key.name for key in to.keys)]
    sides: list[exp.Select] = []
    for part in parts:
        if part.closed is not None:
            flag = 0 if finality else None
            sides.append(_side(aggregation, names, same, column(TIMESTAMP), part.closed, part, flag))
        if part.opened is not None:
            level = exp.LTE(this=column(LEVEL), expression=exp.Literal.number(int(part.level)))
            begin, flag = column(bucket_column(part.level)), 1 if finality else None
            rows = _side(aggregation, names, same, begin, part.opened, part, flag)
            sides.append(rows.where(level, copy=False))
    sides = sides if to.passes is None else [side.where(to.passes.copy(), copy=False) for side in sides]
    both = (
        sides[0]
        if len(sides) == 1
        else exp.select("*").from_(exp.union(*sides, distinct=False, copy=False).subquery("u", copy=False), copy=False)
    )
    values = tuple(value for value in aggregation.values if value.name in names)
    groups = [*(each.name for each in to.columns), *same]
    merged = merged_rows(both, groups, values)
    one = to.buckets and len(to.keys) == len(aggregation.keys) and len(parts) == 1 and parts[0].period is None
    several = not one or parts[0].opened or aggregation.own_zones or aggregation.policy is Policy.CORRECT
    if not several:
        merged = unordered(merged)  # a stored bucket is one row
    if not groups:  # SQL has a row for no rows at all
        merged = merged.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)), copy=False)
    narrow = exp.select(
        *(column(name) for name in groups),
        *(exp.alias_(read_column(aggregation, v.name), v.name, quoted=True) for v in values),
    )
    if (left := aggregation.left) is not None:
        narrow = narrow.where(left, copy=False)
    if finality:
        merged = merged.select(exp.alias_(exp.Max(this=column(_OPEN)), _OPEN, quoted=True), copy=False)
        narrow = narrow.select(column(_OPEN), copy=False)
    return narrow.from_(merged.subquery("m", copy=False), copy=False)


def _side(
    aggregation: Aggregation,
    names: Iterable[str],
    same: Iterable[str],
    begin: exp.Column,
    table: str,
    part: Part,
    flag: int | None,
) -> exp.Select:
    start, rows = part.placed(exp.select().from_(table, copy=False), begin)
    columns = [exp.alias_(start, TIMESTAMP, quoted=True), *map(column, same)]
    for name in names:
        wide = aggregation.kinds[name] == EXACT
        columns.append(exp.alias_(exp.cast(column(name), WIDE), name, quoted=True) if wide else column(name))
    if flag is not None:
        columns.append(exp.alias_(exp.Literal.number(flag), _OPEN, quoted=True))
    return rows.select(*columns, copy=False).where(part.within(begin), *aggregation.seen, copy=False)


def _columns_of(aggregation: Aggregation, outputs: Sequence[Output]) -> list[str]:
    """The stored columns that outputs are computed from, with the siblings their merges look at."""
    wanted = {found.name for output in outputs for found in output.final.find_all(exp.Column)} | {EVENTS}
    wanted |= {found.name for found in aggregation.left.find_all(exp.Column)} if aggregation.left is not None else set()
    values = {value.name: value for value in aggregation.values}
    todo = [name for name in wanted if name in values]
    while todo:
        value = values[todo.pop()]
        nodes = [value.merge, *(node for helper in value.helpers for node in helper[1:])]
        for sibling in {found.name for node in nodes for found in node.find_all(exp.Column)} & set(values) - wanted:
            wanted.add(sibling)
            todo.append(sibling)
    return [name for name in values if name in wanted]


# The ledger of late events


def _with_ledger(
    aggregation: Aggregation, part: Part, rows: exp.Select, extras: Sequence[str], groups: Groups
) -> exp.Select:
    zoned = ZONE in extras
    late = _late_counts(aggregation, part, zoned, groups)
    same = [exp.EQ(this=column(TIMESTAMP), expression=column(_LATE_BUCKET))]
    same += [exp.EQ(this=column(ZONE), expression=column(_LATE_ZONE))] if zoned else []
    same += [
        exp.NullSafeEQ(this=column(key_column(i)), expression=column(_late_key(i))) for i in range(len(groups.keys))
    ]
    names = [column(str(select.alias_or_name)) for select in rows.expressions]
    counts = [
        exp.alias_(exp.func("COALESCE", column(_counted(name)), exp.Literal.number(0)), name, quoted=True)
        for name in extras
        if name in LATE or name == REVISION
    ]
    query = exp.select(*names, *counts).from_(rows.subquery("r"))
    return query.join(late.subquery("l"), on=exp.and_(*same), join_type="left")


def _late_counts(aggregation: Aggregation, part: Part, zoned: bool, to: Groups) -> exp.Select:
    """Late events by their own bucket and keys, with `zoned` also by zone, and a column for each kind."""
    bucket = column(bucket_column(part.level))
    start, late = part.placed(exp.select().from_("late"), bucket)
    zone = [column(ZONE)] if zoned else []
    groups: list[exp.Expr] = [start, *zone, *(column(key.name) for key in to.keys)]
    names = [_LATE_BUCKET, *([_LATE_ZONE] if zoned else []), *(_late_key(i) for i in range(len(to.keys)))]
    columns = [exp.alias_(group.copy(), name, quoted=True) for group, name in zip(groups, names, strict=True)]
    for name, kind in LATE.items():
        events = exp.Case(ifs=[exp.If(this=_is_kind(kind), true=column(EVENTS))])
        columns.append(exp.alias_(exp.cast(exp.Sum(this=events), Type.LONG.sql), _counted(name), quoted=True))
    commits = exp.Case(ifs=[exp.If(this=_is_kind("corrected"), true=column(COMMIT))])
    columns.append(exp.alias_(exp.Count(this=exp.Distinct(expressions=[commits])), _counted(REVISION), quoted=True))
    passes = [] if to.passes is None else [to.passes.copy()]
    return late.select(*columns).where(part.within(bucket), *aggregation.seen, *passes).group_by(*groups)


def _is_kind(kind: str) -> exp.Expr:
    return exp.EQ(this=column(KIND), expression=exp.Literal.string(kind))
