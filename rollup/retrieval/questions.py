"""`within … per …`: a question checked before any data is read, and its SQL over stored and open rows.

A bucket is in the answer iff start <= AGG_TIMESTAMP < end, by its start at the level asked for. `per 'auto'` takes the
coarsest level that fits into the range and finer ones for what is left at its ends. A period of another width, zone or
origin is put together from the coarsest level whose buckets all lie within one.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Protocol, TypeVar

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import WORDS, Duration, bucket_end, bucket_start, to_local, within_range
from rollup.core.errors import QueryError, RollupError
from rollup.core.periods import Period, Span, is_said, said_range
from rollup.plan.aggregation import TIMESTAMP, Aggregation, Key
from rollup.plan.app import Retrieval, Selection, position
from rollup.plan.expressions import Scope, condition
from rollup.plan.types import Type
from rollup.retrieval.answer import (
    END,
    EXTRA,
    FINAL,
    PERIODS,
    START,
    Condition,
    Groups,
    Part,
    between,
    bucket_column,
    bucket_rows,
    level_rows,
    reads_ledger,
    row_order,
)  # fmt: skip
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.gaps import FILLS, filled, grid
from rollup.retrieval.merging import merged, over_keys
from rollup.retrieval.previous import Look, earlier, looks_of, with_earlier
from rollup.retrieval.relations import late_rows, open_rows, open_schema, state_rows
from rollup.retrieval.selection import constant, shape
from rollup.retrieval.trees import Asked, Sides, Value

__all__ = [
    "Ask", "Question", "Sides", "ask_for", "attributes", "bounds", "bucket_column", "bucket_rows", "is_auto", "late_rows",
    "open_rows", "open_schema",
    "per_level", "plan", "state_rows",
]  # fmt: skip

AUTO = "auto"
_DAY = 86_400_000
Found = TypeVar("Found")


class Question(Protocol):
    """What a snapshot can answer: an `Ask`, or a `Request` of a stream."""

    @property
    def aggregation(self) -> Aggregation:
        """What is asked."""
        ...

    @property
    def per(self) -> Duration:
        """The level of the buckets in the answer."""
        ...

    @property
    def start(self) -> int:
        """The first ms of the range."""
        ...

    @property
    def end(self) -> int:
        """The first ms behind the range."""
        ...

    @property
    def sided(self) -> bool:
        """Whether its tree can leave stored or open rows out."""
        ...

    @property
    def relations(self) -> Mapping[str, Duration]:
        """The relations of stored rows that its query reads, each with its level."""
        ...

    @property
    def late(self) -> bool:
        """Whether its query reads the relation `late`."""
        ...

    def ranges(self, level: Duration) -> Sequence[tuple[int, int]]:
        """The ranges of bucket starts that are read of a level."""
        ...

    def tables(self) -> Mapping[str, pa.Table]:
        """Further relations of its query, which come with the question."""
        ...

    def prepared(self, sides: Sides = Sides.BOTH) -> tuple[str, Mapping[str, Value]]:
        """Its SQL for DuckDB, and the values of its parameters."""
        ...

    def filled(self, dialect: str) -> str:
        """Its SQL in a dialect, with the values in it."""
        ...

    def own_names(self) -> Mapping[str, str]:
        """The columns of the answer by the names that PostgreSQL has for them."""
        ...

    def computable(self, dialect: str) -> bool:
        """Whether a dialect has all that its tree is made of."""
        ...


@dataclass(frozen=True)
class Ask(Asked):
    """A question that has been checked: which buckets of which level, and what of them.

    `segments` are, for `per 'auto'`, the ranges of each level; then `per` is the coarsest of them. Of a `period`, `per`
    is the level that is read, and `spans` are those that begin in the range.
    `as_of` is the commit it reads, if that is not the newest. `groups` are what `merge(x)` or a period's keys merge to. `looks` are its calls of `previous`, `earlier` the buckets
    that these need (see `rollup.retrieval.previous`), and `reads` the ranges in which all buckets lie. `constants` stand in the places of `on` (see `rollup.retrieval.plan_cache`), so that questions that differ in them
    share their SQL.
    """

    aggregation: Aggregation
    start: int
    end: int
    per: Duration
    on: exp.Expr | None
    selection: Selection
    fill: str | None = None
    explain: bool = False
    segments: Mapping[Duration, Sequence[tuple[int, int]]] | None = None
    constants: tuple[str | int, ...] = ()
    period: Period | None = None
    spans: tuple[Span, ...] = ()
    looks: tuple[Look, ...] = ()
    earlier: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    reads: tuple[tuple[int, int], ...] = ()
    groups: Groups | None = None
    as_of: AsOf | None = None
    made: dict[object, object] = field(default_factory=dict[object, object], compare=False, repr=False)

    @property
    def sided(self) -> bool:
        return True

    @property
    def relations(self) -> Mapping[str, Duration]:
        if self.segments is None:
            return {"closed": self.per}
        return {f"closed_{level.table_suffix}": level for level in self.segments}

    @property
    def late(self) -> bool:
        return reads_ledger(self.extras)

    def ranges(self, level: Duration) -> Sequence[tuple[int, int]]:
        if self.segments is not None:
            return self.segments.get(level, ())
        return self.reads or [(self.start, self.end)]

    def over(self, start: int, end: int) -> Ask:
        """The same question over another range. Raises QueryError when that has no answer."""
        if self.segments is not None:
            segments = stitched(self.aggregation, start, end)
            return replace(self, start=start, end=end, segments=segments, per=max(segments))
        if self.looks:
            return self._looking(start, end)
        return self._of(start, end, () if self.period is None else self.period.spans(start, end, self.aggregation.zone))

    def part(self, start: int, end: int) -> Ask:
        """The same question over a part of its range, where no period may begin."""
        zone = self.aggregation.zone
        return self._of(start, end, () if self.period is None else self.period.begun(start, end, zone))

    def _of(self, start: int, end: int, spans: tuple[Span, ...]) -> Ask:
        if self.period is None:
            return replace(self, start=start, end=end)
        level = nested(self.aggregation, self.period, spans)
        low, high = min((span.start for span in spans), default=start), max((span.end for span in spans), default=start)
        return replace(self, start=low, end=high, per=level, spans=spans)

    def _looking(self, start: int, end: int) -> Ask:
        """With the earlier buckets that are looked at; between these and those asked for there may be others."""
        period, zone = self.period or Period.parse(self.per.plural), self.aggregation.zone
        spans = period.spans(start, end, zone)
        starts, found, all_spans = [span.name for span in spans], dict[str, tuple[int, ...]](), dict.fromkeys(spans)
        for look in self.looks if starts else ():
            before = earlier(period, starts, look.window, zone)
            found[look.place] = tuple(before)
            all_spans.update(dict.fromkeys(period.spans(min(before), max(before) + 1, zone)))
        reads = _joined((span.start, span.end) for span in all_spans)
        asked = self._of(reads[0][0] if reads else start, end, tuple(sorted(all_spans)))
        return replace(asked, earlier={TIMESTAMP: tuple(starts), **found}, reads=reads)

    def tables(self) -> Mapping[str, pa.Table]:
        found = dict[str, pa.Table]()
        if self.fill is not None:
            starts = (
                [span.name for span in self.spans]
                if self.period
                else grid(self.aggregation, self.per, self.start, self.end)
            )
            found["grid"] = pa.table({TIMESTAMP: pa.array(starts, pa.int64())})
        if self.period is not None:
            found["periods"] = pa.table(
                {name: pa.array([span[i] for span in self.spans], pa.int64()) for i, name in enumerate(PERIODS)}
            )
        if self.looks:
            columns = (TIMESTAMP, *dict.fromkeys(look.place for look in self.looks))
            found["earlier"] = pa.table({name: pa.array(self.earlier.get(name, ()), pa.int64()) for name in columns})
        return found

    @property
    def values(self) -> Mapping[str, Value]:
        """The ends of the range, and every other value in which questions of this form differ."""
        ends = [bound for ranges in (self.segments or {}).values() for both in ranges for bound in both]
        given = {place(index): value for index, value in enumerate((*self.constants, *ends))}
        return {"start": self.start, "end": self.end, **given}

    @property
    def keys(self) -> tuple[Key, ...]:
        """The group keys of its rows."""
        return self.aggregation.keys if self.groups is None else self.groups.keys

    @property
    def form(self) -> object:
        return self.per if self.segments is None else tuple((level, len(each)) for level, each in self.segments.items())

    @property
    def _names(self) -> set[str]:
        return mentioned(self.on, self.selection) | {look.name for look in self.looks}

    @property
    def extras(self) -> tuple[str, ...]:
        """The columns of EXTRA that it names."""
        return tuple(name for name in EXTRA if name in self._names)

    def tree(self, sides: Sides) -> exp.Select:
        aggregation, selection = self.aggregation, self.selection
        names, extras = self._names, self.extras
        outputs = tuple(each for each in aggregation.outputs if selection.items is None or each.name in names)
        parts, groups = self._parts(sides), self.groups or Groups(aggregation.keys)
        shares = [[part] for part in parts] if self.groups is None else [parts]
        levels = [level_rows(aggregation, each, outputs, extras, True, groups) for each in shares]
        rows = (
            levels[0] if len(levels) == 1 else exp.select("*").from_(exp.union(*levels, distinct=False).subquery("s"))
        )
        kinds = attributes(aggregation)
        scope = Scope.of({**kinds, **{look.column: kinds[look.name] for look in self.looks}}, aggregation.name)
        star = [TIMESTAMP, *(output.name for output in aggregation.outputs)]
        if self.looks:
            rows = with_earlier(rows, len(groups.keys), self.looks)
        query = exp.select().from_(rows.subquery("b"))
        if self.on is not None:
            query = query.where(condition(self.on, scope, "`on`"))
        if self.fill is not None:
            rows = filled(query.select("*"), aggregation.keys, groups.keys, outputs, extras, self.fill)
            query = exp.select().from_(rows.subquery("b"))
        return shape(query, scope, selection, star, row_order(groups, extras, "b"))

    def _parts(self, sides: Sides) -> list[Part]:
        opened = None if sides is Sides.STORED else "open"
        if self.segments is None:
            closed = None if sides is Sides.OPEN else "closed"
            sliding = bool(self.looks) or (self.period is not None and self.period.sliding)
            return [Part(self.per, closed, opened, between(START, END), self.period, sliding)]
        parts, free = list[Part](), (exp.Placeholder(this=place(i)) for i in itertools.count(len(self.constants)))
        for name, level in self.relations.items():
            pairs = [(next(free), next(free)) for _ in self.segments[level]]
            parts.append(Part(level, None if sides is Sides.OPEN else name, opened, _any_of(pairs)))
        return parts


def place(index: int) -> str:
    """The name of the place of a constant."""
    return f"c{index}"


def _any_of(pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> Condition:
    whole = between(START, END)  # implied, and so every query has the same two parameters
    return lambda begin: exp.and_(whole(begin), exp.or_(*(between(low, high)(begin) for low, high in pairs)))


def plan(query: Retrieval, aggregations: Mapping[str, Aggregation], constants: tuple[str | int, ...] = ()) -> Ask:
    """The checked question of an on-demand query. Raises QueryError or PlanError before any data is read."""
    aggregation = aggregations.get(query.aggregation)
    if aggregation is None:
        known = ", ".join(aggregations) or "none is defined"
        problem = QueryError(f"aggregation {str(query.aggregation)!r} is not defined", hint=f"known are {known}")
        raise problem.at(*_place(query.aggregation))
    assert query.per is not None
    fill, word = _fill_word(query), constant(query.per)
    zone = zone_for(aggregation, word)
    start, end = bounds([constant(node) for node in query.within], zone, query.within[0])
    ask = ask_for(aggregation, start, end, word, query.selection, fill, query.on, query.per)
    if query.as_of is not None:
        ask = replace(ask, as_of=_as_of(query.as_of, zone))
    ask = replace(ask, explain=query.explain, constants=constants)
    ask.prepared()
    if fill is not None:
        _at_query(query.within[0], ask.tables)
    return ask


def ask_for(
    aggregation: Aggregation,
    start: int,
    end: int,
    per: object,
    selection: Selection,
    fill: str | None = None,
    on: exp.Expr | None = None,
    node: exp.Expr | None = None,
) -> Ask:
    """The question for a range per a level's word, 'auto' or a period; `node` is where a text says that.

    Raises QueryError.
    """
    found = merged(aggregation, on, selection)
    groups = None
    if found is not None:
        on, (groups, selection) = None, found
        if fill is not None and not groups.buckets:
            raise _at(QueryError("`fill` needs buckets: group by AGG_TIMESTAMP", hint="or leave fill out"), node)
    looks, selection = looks_of(selection, attributes(aggregation))
    if looks and (fill is not None or (groups and not groups.buckets) or aggregation.own_zones or is_auto(per)):
        hint = "name a level or a period, without fill; rows of several zones have none"
        raise _at(QueryError("previous(x) needs one row a bucket", hint=hint), node)
    if is_auto(per):
        segments = _at_query(node, lambda: stitched(aggregation, start, end, fill))
        return Ask(aggregation, start, end, max(segments), on, selection, segments=segments, groups=groups)
    width = level_or_period(aggregation, per, node)
    if isinstance(width, Period) and width.by is not None:
        if groups is not None:
            raise _at(QueryError(f"{width.text!r} merges all columns", hint="merge(x) without `by`"), node)
        keys = width.by
        on, groups = None, _at_query(node, lambda: over_keys(aggregation, keys, on))
        if width.plain is not None and _is_level(aggregation, width.plain):
            width = per_level(aggregation, width.plain, node)
    if isinstance(width, Duration):
        ask = Ask(aggregation, start, end, width, on, selection, fill, groups=groups, looks=looks)
        return _at_query(node, lambda: ask.over(start, end))
    ask = Ask(aggregation, start, end, aggregation.root, on, selection, fill, period=width, groups=groups, looks=looks)
    if FINAL in ask.extras:
        raise _at(QueryError(f"{FINAL} is of stored levels, not of {width.text!r}", hint="per a level's word"), node)
    return _at_query(node, lambda: ask.over(start, end))


def is_auto(per: object) -> bool:
    """Whether a `per` value leaves the levels to the range."""
    return isinstance(per, str) and per.strip().lower() == AUTO


def _joined(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges in order; what touches or overlaps is one."""
    found = list[tuple[int, int]]()
    for low, high in sorted(ranges):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return tuple(found)


def level_or_period(aggregation: Aggregation, word: object, node: exp.Expr | None = None) -> Duration | Period:
    """What a `per` value names. Raises QueryError."""
    if not isinstance(word, str) or _is_level(aggregation, word):
        return per_level(aggregation, word, node)
    return _at_query(node, lambda: Period.parse(word, aggregation.calendars))


def _is_level(aggregation: Aggregation, word: str) -> bool:
    """Whether a word names a level that is stored or cannot be had; one between two that are is a period made of finer ones."""
    level = WORDS.get(word.strip().lower())
    between = level is not None and aggregation.root < level < max(aggregation.levels)
    return level is not None and (level in aggregation.levels or not between)


def zone_for(aggregation: Aggregation, word: object) -> str:
    """The zone of times that come without one: that of the period that is asked for, else the aggregation's."""
    try:
        width = level_or_period(aggregation, word)
    except RollupError:  # whoever asks for the answer is told
        return aggregation.zone
    return aggregation.zone if isinstance(width, Duration) or width.zone is None else width.zone


def nested(aggregation: Aggregation, period: Period, spans: Iterable[Span]) -> Duration:
    """The coarsest level whose buckets lie wholly within or without each span of a period.

    Raises QueryError when there is none.
    """
    if aggregation.own_zones:
        raise QueryError(
            f"per {period.text!r} needs one zone, and the rows of {aggregation.name} have zones of their own",
            hint="per a level's word, or declare the zone that cuts them: @zone('…'), or `zone` in the configuration",
        )
    edges = tuple(sorted({at for _, *ends in spans for at in ends}))
    level = _coarsest(aggregation.levels, aggregation.zone, edges)
    if level is None:
        needed = _coarsest(tuple(Duration), aggregation.zone, edges)
        hint = f"they would be made of {needed.plural}" if needed else "an origin at a whole second"
        finest = f"the finest level of {aggregation.name} is {aggregation.root.plural}"
        raise QueryError(f"{period.text!r} cannot be put together: {finest}", hint=hint)
    return level


@lru_cache(maxsize=64)
def _coarsest(levels: tuple[Duration, ...], zone: str, edges: tuple[int, ...]) -> Duration | None:
    return next((level for level in sorted(levels, reverse=True) if _all_begin(edges, level, zone)), None)


def _all_begin(edges: Sequence[int], level: Duration, zone: str) -> bool:
    """Whether each of some instants, in order, is the start of a bucket.

    A day in which the clocks do not change needs a look at two of its instants, however many there are.
    """
    width = level.width_ms
    if width is None:
        return all(bucket_start(each, level, zone) == each for each in edges)
    begin = 0
    while begin < len(edges):
        end = bisect_left(edges, edges[begin] + _DAY, begin)
        shifts = {to_local(edges[at], zone).utcoffset() for at in (begin, end - 1)}
        shift = (shifts.pop() or timedelta()) // timedelta(milliseconds=1) if len(shifts) == 1 else None
        for each in edges[begin:end]:
            if (shift is None or (each + shift) % width) and bucket_start(each, level, zone) != each:
                return False
        begin = end
    return True


def _fill_word(query: Retrieval) -> str | None:
    if query.fill is not None and query.fill not in FILLS:
        words = ", ".join(FILLS[: len(FILLS) // 2])
        raise QueryError(f"unknown fill {str(query.fill)!r}", hint=f"{words}, each also as (word, range)").at(
            *_place(query.fill)
        )
    return None if query.fill is None else str(query.fill)


def _as_of(said: str, zone: str) -> AsOf:
    try:
        return AsOf.said(said, zone)
    except QueryError as problem:
        raise problem.at(*_place(said)) from None


def _place(word: str) -> tuple[int | None, int | None]:
    """Line and column of a name that was read from a text."""
    return getattr(word, "line", None), getattr(word, "column", None)


def _at_query(node: exp.Expr | None, check: Callable[[], Found]) -> Found:
    try:
        return check()
    except RollupError as problem:
        raise (problem if node is None else problem.at(*position(node))) from None


def stitched(
    aggregation: Aggregation, start: int, end: int, fill: str | None = None
) -> Mapping[Duration, Sequence[tuple[int, int]]]:
    """For each level the ranges it answers exactly: the coarsest takes what it can, the finest all that is left.

    Raises QueryError when rows have zones of their own, because then every row would have other ends.
    """
    if fill is not None:
        raise QueryError("`fill` needs one level", hint="per 'days' instead of per 'auto'")
    if aggregation.own_zones:
        raise QueryError(
            f"per 'auto' needs one zone, and the rows of {aggregation.name} have zones of their own",
            hint="name a level, or declare the zone that cuts them: @zone('…'), or `zone` in the configuration",
        )
    found: dict[Duration, list[tuple[int, int]]] = {}
    left = [(start, end)]
    for level in reversed(aggregation.levels):
        rest: list[tuple[int, int]] = []
        for low, high in left:
            first, last = (low, high) if level is aggregation.root else _inside(low, high, level, aggregation.zone)
            if first < last:
                found.setdefault(level, []).append((first, last))
                rest += [(low, first), (last, high)]
            else:
                rest.append((low, high))
        left = [(low, high) for low, high in rest if low < high]
    return found


def _inside(low: int, high: int, level: Duration, zone: str) -> tuple[int, int]:
    """From the first to the end of the last bucket of a level that lie wholly in a range."""
    try:
        first, last = bucket_start(low, level, zone), bucket_start(high, level, zone)
        return (first if first == low else bucket_end(first, level, zone)), last
    except (OverflowError, ValueError):
        raise QueryError("per 'auto' needs bounds between the years 2 and 9998") from None


def bounds(values: Sequence[object], zone: str, node: exp.Expr | None = None) -> tuple[int, int]:
    """Start and end of a `within` clause with one or two values, whose texts are in `zone` unless they say another.

    Raises QueryError.
    """
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise _at(QueryError(f"a `within` bound is a text or milliseconds, not {value!r}"), node)
    try:
        first, last = (*values, None)[:2]
        if last is None and isinstance(first, str) and is_said(first):
            return said_range(first, zone, time.time_ns() // 1_000_000)
        return within_range(first, last, zone)  # type: ignore[arg-type]
    except RollupError as problem:
        raise _at(QueryError(problem.message, hint=problem.hint), node) from None


def per_level(aggregation: Aggregation, word: object, node: exp.Expr | None = None) -> Duration:
    """The level that a `per` value names. Raises QueryError when it is unknown or not aggregated."""
    if not isinstance(word, str):
        raise _at(QueryError(f"`per` takes a text, not {word!r}", hint="e.g. per 'days'"), node)
    try:
        level = Duration.parse(word)
    except QueryError as problem:
        raise _at(problem, node) from None
    if level not in aggregation.levels:
        allowed = ", ".join(known.plural for known in aggregation.levels)
        raise _at(
            QueryError(f"{aggregation.name} is not aggregated per {level.plural}", hint=f"it has {allowed}"), node
        )
    return level


def _at(problem: QueryError, node: exp.Expr | None) -> RollupError:
    return problem.at(*position(node)) if node is not None else problem


def mentioned(on: exp.Expr | None, selection: Selection) -> set[str]:
    """The names in a question's expressions."""
    nodes = [item.expression for item in selection.items or ()]
    nodes += [*selection.group_by, *selection.order_by, *(node for node in (on, selection.having) if node is not None)]
    return {found.name for node in nodes for found in node.find_all(exp.Column)}


def named_extras(on: exp.Expr | None, selection: Selection) -> tuple[str, ...]:
    """The columns of EXTRA that a question names."""
    names = mentioned(on, selection)
    return tuple(name for name in EXTRA if name in names)


def attributes(aggregation: Aggregation) -> dict[str, Type]:
    """What an answer can be asked for, by name: AGG_TIMESTAMP, the outputs, and the columns of EXTRA."""
    return {TIMESTAMP: Type.LONG, **{output.name: output.type for output in aggregation.outputs}, **EXTRA}
