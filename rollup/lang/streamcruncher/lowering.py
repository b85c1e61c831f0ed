"""A running query's tree as what the engine runs: every column found, every filter compiled, every type checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.expressions import All, Any_, Call, Const, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import Operator
from rollup.engine.rows.cycles.correlation import CorrelationSpec, Present
from rollup.engine.rows.cycles.partitions import AggregateSpec, PartitionSpec
from rollup.engine.rows.cycles.running import ChainSpec, Policy, RunningSpec
from rollup.engine.rows.cycles.windows import BestSpec, SlidingSpec, TimeSpec, TumblingSpec, WindowSpec
from rollup.engine.types import BOOL, DOUBLE, INT, LONG, NULL, STRING, DataType, RowType
from rollup.lang.streamcruncher import semantics, tree

Answer = Callable[[str], frozenset[Any]]
"""What a sub-query of tables answers now."""


@dataclass(frozen=True)
class Stream:
    """A stream: its rows and the place of their time."""

    rows: RowType
    time: int


@dataclass(frozen=True)
class Known:
    """What a query may name: streams, aggregates of the user's own, and how a sub-query of tables is asked."""

    streams: Mapping[str, Stream]
    customs: Mapping[str, Callable[[Sequence[Any]], Aggregate]]
    answer: Answer


@dataclass(frozen=True)
class Lowered:
    """The query for the engine, and the rows of the tables that its select sees."""

    spec: RunningSpec
    tables: Mapping[str, RowType]


def lower(query: tree.Query, known: Known, policy: Policy) -> Lowered:
    """The engine's query. Raises PlanError with the place of what cannot run."""
    chains, tables = list[ChainSpec](), dict[str, RowType]()
    for chain in query.chains:
        spec, rows = _chain(chain, known)
        chains.append(spec)
        tables[chain.table] = rows
    if query.alert is None:
        return Lowered(RunningSpec(tuple(chains), policy=policy), tables)
    correlation, rows = _correlation(query, tables)
    spec = RunningSpec(tuple(chains), correlation, policy, query.alert.table)
    return Lowered(spec, {query.alert.table: rows})


def _chain(chain: tree.Chain, known: Known) -> tuple[ChainSpec, RowType]:
    if chain.stream not in known.streams:
        raise PlanError(f"unknown stream {chain.stream!r}", hint=f"streams are {', '.join(known.streams)}").at(
            *chain.place
        )
    stream = known.streams[chain.stream]
    rows, time, specs = stream.rows, stream.time, list[PartitionSpec]()
    for part in chain.parts:
        lowering = _Part(part, rows, known)
        specs.append(lowering.spec(time))
        if part.aggregates:
            rows, time = lowering.shown(), None
    return ChainSpec(chain.stream, tuple(specs), chain.table), rows


class _Part:
    """One partition over rows of a type."""

    def __init__(self, part: tree.Partition, rows: RowType, known: Known) -> None:
        self._part, self._rows, self._known = part, rows, known

    def spec(self, time: int | None) -> PartitionSpec:
        """The engine's partition; `time` is the place of the rows' time, None where they are stamped."""
        part = self._part
        key = tuple(self._place(name, part.place) for name in dict.fromkeys(part.by))
        aggregates = tuple(self._aggregate(each) for each in part.aggregates)
        return PartitionSpec(
            key, self._window(part.window), aggregates, part.pinned, part.feed or "new", self._where(), time
        )

    def shown(self) -> RowType:
        """What a partition with aggregates shows: its key and the aggregates."""
        fields = {name: self._rows.fields[name] for name in self._part.by}
        for each in self._part.aggregates:
            if each.name in fields:
                raise PlanError(f"two columns are called {each.name!r}").at(*each.place)
            fields[each.name] = self._result(each)
        return RowType(f"{self._rows.name}'s aggregates", fields)

    def _place(self, name: str, place: tree.Place) -> int:
        if name not in self._rows.index:
            known = ", ".join(self._rows.fields)
            raise PlanError(f"unknown column {name!r}", hint=f"columns are {known}").at(*place)
        return self._rows.index[name]

    def _window(self, window: tree.Window) -> WindowSpec:
        if window.kind == "time":
            return TimeSpec(window.size, window.most)
        if window.kind == "latest":
            return TumblingSpec(window.size)
        if window.using is None:
            return SlidingSpec(window.size, chance=1 if window.kind == "random" else None)
        value = self._place(window.using, window.place)
        places = tuple(self._place(name, window.place) for name in window.group)
        group = (lambda row: tuple(row.values[place] for place in places)) if places else None
        return BestSpec(window.size, lambda row: row.values[value], window.kind == "lowest", group)

    def _aggregate(self, made: tree.Aggregate) -> AggregateSpec:
        place = self._place(made.column, made.place)
        kind = self._rows.fields[made.column]
        custom = self._known.customs.get(made.function)
        if custom is None:
            self._checked(made, kind)
        aggregate = custom(made.arguments) if custom else semantics.aggregate(made.function, kind)
        return AggregateSpec(AggregateCall(aggregate, (Field(0, place, kind),)), made.entrance, made.difference)

    def _checked(self, made: tree.Aggregate, kind: DataType) -> None:
        summary = semantics.AGGREGATES.get(made.function)
        if summary is None:
            every = ", ".join([*semantics.AGGREGATES, *(f"custom({name}, …)" for name in self._known.customs)])
            raise PlanError(f"unknown aggregate {made.function!r}", hint=f"aggregates are {every}").at(*made.place)
        if summary.numeric and not kind.numeric:
            raise PlanError(
                f"{made.function} takes a number, and {made.column} is {kind}", hint="count, min and max take any"
            ).at(*made.place)

    def _result(self, made: tree.Aggregate) -> DataType:
        summary = semantics.AGGREGATES.get(made.function)
        return DOUBLE if summary is None else summary.result(self._rows.fields[made.column])

    def _where(self) -> Expr | None:
        if self._part.where is None:
            return None
        bound = self._bind(self._part.where)
        if bound.type not in (BOOL, NULL):
            raise PlanError(f"a filter is a condition, not {bound.type}").at(*self._part.where.place)
        return bound

    def _bind(self, node: tree.Condition) -> Expr:
        match node:
            case tree.Literal_():
                return Const(node.value, _kind(node.value))
            case tree.Column():
                return Field(0, self._place(node.name, node.place), self._rows.fields[node.name])
            case tree.Membership():
                return self._membership(node)
            case tree.Operation():
                return self._operation(node)

    def _operation(self, node: tree.Operation) -> Expr:
        values = tuple(self._bind(each) for each in node.operands)
        if node.sign in ("and", "or"):
            return All(values) if node.sign == "and" else Any_(values)
        if node.sign == "not":
            return Call(op.NOT, values, BOOL)
        if node.sign == "is null":
            return Call(op.IS_NULL, values, BOOL)
        if node.sign in semantics.COMPARISONS:
            self._comparable(node, values)
            return Call(semantics.COMPARISONS[node.sign], values, BOOL)
        return self._arithmetic(node, values)

    def _comparable(self, node: tree.Operation, values: Sequence[Expr]) -> None:
        kinds = [value.type for value in values if value.type != NULL]
        numbers = all(kind.kind in semantics.COMPARABLE for kind in kinds)
        if len(kinds) == 2 and not numbers and kinds[0] != kinds[1]:
            cure = "values of one type: 5 is a number, '5' a text"
            raise PlanError(f"a {kinds[0]} cannot be compared with a {kinds[1]}", hint=cure).at(*node.place)

    def _arithmetic(self, node: tree.Operation, values: tuple[Expr, ...]) -> Expr:
        for value in values:
            if not value.type.numeric and value.type != NULL:
                cure = "a column that is a number"
                raise PlanError(f"arithmetic needs numbers, not {value.type}", hint=cure).at(*node.place)
        kinds = [value.type for value in values if value.type.numeric] or [LONG]
        kind = kinds[0] if len(kinds) == 1 else kinds[0].widest(kinds[1])
        if len(values) == 1:
            return Call(op.NEGATE, values, kind)
        if node.sign == "/":
            return Call(semantics.division(kind.integral), values, kind)
        return Call(semantics.ARITHMETIC[node.sign], values, kind)

    def _membership(self, node: tree.Membership) -> Expr:
        operand = self._bind(node.operand)
        if node.query is None:
            found: Expr = Call(op.MEMBER, (operand, *(self._bind(each) for each in node.choices)), BOOL)
        else:
            query, answer = node.query, self._known.answer
            try:
                answer(query)  # what cannot be asked is refused now, not at the first event
            except PlanError as problem:
                raise problem.at(*node.place) from None
            inside = Operator("in a sub-query", lambda value: _inside(value, answer(query)))
            found = Call(inside, (operand,), BOOL)
        return Call(op.NOT, (found,), BOOL) if node.negated else found


def _kind(value: Any) -> DataType:
    """The type of a literal: a whole number is as narrow as it can be, so that it compares with every other one."""
    if type(value) is int:
        return INT if -(2**31) <= value < 2**31 else LONG
    return {bool: BOOL, float: DOUBLE, str: STRING}.get(type(value), NULL)


def _inside(value: Any, found: frozenset[Any]) -> bool | None:
    return True if value in found else None if None in found else False


def _correlation(query: tree.Query, tables: Mapping[str, RowType]) -> tuple[CorrelationSpec, RowType]:
    alert = query.alert
    assert alert is not None
    places = {chain.alias: place for place, chain in enumerate(query.chains)}
    rows = [tables[chain.table] for chain in query.chains]
    identity = tuple(_identity(chain, rows[place]) for place, chain in enumerate(query.chains))
    _one_type(query, rows, identity)
    columns, fields = list[tuple[int, int]](), dict[str, DataType]()
    for alias, column, name in alert.columns:
        place = _alias(alias, places, alert.place)
        if column not in rows[place].index:
            raise PlanError(
                f"{alias} has no column {column!r}", hint=f"columns are {', '.join(rows[place].fields)}"
            ).at(*alert.place)
        columns.append((place, rows[place].index[column]))
        fields[name] = rows[place].fields[column]
    patterns = tuple(
        Present(
            frozenset(_alias(alias, places, each.place) for alias in each.present),
            frozenset(_alias(alias, places, each.place) for alias in each.absent),
        )
        for each in alert.patterns
    )
    return CorrelationSpec(identity, patterns, tuple(columns)), RowType("alerts", fields)


def _alias(alias: str, places: Mapping[str, int], place: tree.Place) -> int:
    if alias not in places:
        raise PlanError(f"no partition is called {alias!r}", hint=f"known are {', '.join(places)}").at(*place)
    return places[alias]


def _identity(chain: tree.Chain, rows: RowType) -> int:
    if chain.correlate is None:
        raise PlanError(f"{chain.alias} lacks its column", hint="correlate on …").at(*chain.place)
    if chain.correlate not in rows.index:
        known = ", ".join(rows.fields)
        raise PlanError(f"unknown column {chain.correlate!r}", hint=f"columns are {known}").at(*chain.place)
    return rows.index[chain.correlate]


def _one_type(query: tree.Query, rows: Sequence[RowType], identity: Sequence[int]) -> None:
    kinds = {
        chain.correlate: list(r.fields.values())[i] for chain, r, i in zip(query.chains, rows, identity, strict=True)
    }
    if len(set(kinds.values())) > 1:
        said = ", ".join(f"{name} is {kind}" for name, kind in kinds.items())
        place = query.chains[0].place
        hint = "define them alike"
        raise PlanError(f"correlate on: {said}; the columns must have one type", hint=hint).at(*place)
