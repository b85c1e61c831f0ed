"""Selections of plans become operators that make rows: plain, one a group, one a row of a group, or one in all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rollup.engine.compiler.types import (
    BOOL,
    FLOAT,
    INT,
    ListOf,
    MapOf,
    QueueOf,
    Reference,
    SortedOf,
    Struct,
    TableOf,
    Tuple,
    Type,
)
from rollup.engine.expressions import Ask, Const, Expr, RowOf, Slot, inside, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.programs.lowering.expressions import (
    expressions,
    key_text,
    key_type,
    refuse_unsteady,
    test,
    type_of_value,
    with_bits,
)
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import grouping, rates
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.counted import FirstLength, Length, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.types import INT as PLAN_INT
from rollup.engine.types import Kind

Emit = Callable[[str, Sequence[str]], Sequence[str]]
"""Lines that hand on a row, of the text of its sign and those of its values."""
LISTED = "list"
"""The beginning of the name of the table with the values of an aggregate's lists, behind which its number stands."""
_STARTS: Mapping[str, Type] = {"0": INT, "0.0": FLOAT, "False": BOOL}
_SORTED = "sorted_list()"
_IN_ORDER = (Length, FirstLength, Time, ExternalTime, ExternalTimeBatch, Expressed, TimeBatch, LengthBatch)
"""Windows whose rows leave in the order in which they came."""
ROW = {0: "row"}
"""The row at hand, as that of the only input."""


@dataclass(frozen=True)
class Emits:
    """How a selection hands on the rows that changes make, and those that are there when somebody asks.

    `unit`: the texts of the key of a row's group come before the values. `made`: where an output alone says what groups are,
    the struct of its rows, and the function that delivers one.
    """

    emit: Emit
    shown: Emit | None = None
    unit: bool = False
    made: tuple[Reference, str] | None = None
    every: bool = False
    """Whether an output says what all groups are."""
    alone: bool = False
    """Whether aggregates are of one change each."""


def selection(
    linker: Linker, plan: Select, name: str, row: Reference, emits: Emits, rows: Mapping[int, str] | None = None
) -> str:
    """The operator that makes the rows of a statement. `rows`: those of the inputs in one that a join has made. Raises
    NotLowered."""
    if len(plan.levels) > 1:
        raise NotLowered("groups", "several levels")
    if plan.grouping is not None and plan.grouping.own:
        raise NotLowered("groups", "aggregates with keys of their own")
    if plan.grouping is not None and not plan.grouping.whole:
        if rows is not None or plan.rate.limited:
            raise NotLowered("groups", "several sets of keys of a join, or with an output rate")
        return _of_sets(linker, plan, name, row, emits, rows)
    return _Selection(linker, plan, name, row, emits, ROW if rows is None else rows).operator()


def _of_sets(
    linker: Linker, plan: Select, name: str, row: Reference, emits: Emits, rows: Mapping[int, str] | None
) -> str:
    """The selections of each set of keys, one after the other for the whole of a change. Raises NotLowered."""
    grouping, lines, parts = plan.grouping, list[str](), list[str]()
    assert grouping is not None
    width = len(grouping.dimensions)
    for number, places in enumerate(grouping.sets):
        known: dict[int, Expr] = {place: Slot(at, grouping.dimensions[place].type) for at, place in enumerate(places)}
        known[width + len(grouping.calls)] = Const(number, PLAN_INT)

        def of_set(expr: Expr, known: Mapping[int, Expr] = known, missing: int = width - len(places)) -> Expr:
            if not isinstance(expr, Slot):
                return inside(expr, of_set)
            absent = Const(None, expr.type) if expr.index < width else replace(expr, index=expr.index - missing)
            return known.get(expr.index, absent)

        keys = tuple(grouping.dimensions[place] for place in places)
        own = replace(grouping, dimensions=keys, sets=(tuple(range(len(keys))),))
        of_own = replace(plan, grouping=own, projection=plan.projection.changed(of_set))
        part = selection(linker, of_own, f"{name}_set{number}", row, emits, rows)
        parts.append(part)
        for way in ("insert", "remove"):
            lines += [f"for row in s.{name}_{way}s:", f"    {part}_{way}(row)"]
        lines.append(f"{part}_flush()")
    for way in ("insert", "remove"):
        linker.state[f"{name}_{way}s"] = ListOf(row)
        linker.function(f"{name}_{way}", "row", [f"s.{name}_{way}s.append(row)"])
        lines.append(f"s.{name}_{way}s.clear()")
    linker.function(f"{name}_flush", "", lines)
    linker.function(f"{name}_present", "row", [f"{part}_present(row)" for part in parts])
    linker.function(f"{name}_presented", "", [f"{part}_presented()" for part in parts])
    return name


_HEARS, _SHOWS = ("insert", "remove", "flush"), ("present", "presented")


def passing(
    linker: Linker, name: str, conditions: Sequence[Expr], rows: Mapping[int, str], operator: str, shows: str = ""
) -> str:
    """Conditions on the rows that an operator gets of changes, and another of those that are there."""
    ports = {f"emit_{each}": [f"{operator}_{each}"] for each in _HEARS} | {"test": [f"{name}_passes"]}
    ports |= {f"emit_{each}": [f"{shows or operator}_{each}"] for each in _SHOWS}
    test(linker, f"{name}_passes", conditions, rows, "row")
    return linker.operator(grouping.Where, name, ports=ports)


class _Selection:
    """The lowering of one selection."""

    def __init__(
        self, linker: Linker, plan: Select, name: str, row: Reference, emits: Emits, rows: Mapping[int, str]
    ) -> None:
        self._linker, self._plan, self._name, self._row, self._emits = linker, plan, name, row, emits
        self._rows = rows
        level = plan.levels[0] if plan.levels else None
        self._keys: Sequence[Expr] = plan.grouping.dimensions if plan.grouping else level.keys if level else ()
        self._calls: Sequence[AggregateCall] = plan.grouping.calls if plan.grouping else level.calls if level else ()

    def operator(self) -> str:
        """The operator with all that its ports call."""
        plan, name, constants = self._plan, self._name, {"leaving": self._plan.makes_what_leaves}
        constants["alone"] = self._emits.alone
        if plan.grouping is None and not plan.levels:
            return self._linker.operator(grouping.PlainRows, name, constants, ports=self._made("row", ()))
        refuse_unsteady(self._keys)
        parts = [part for call in self._calls for each in _read(call) for part in walk(each)]
        if plan.leaves and any(isinstance(each, Ask) for each in parts):
            raise NotLowered("lookup", "in an aggregate, whose rows would leave with another answer")
        fields = {f"k{i}": type_of_value(key.type).optional for i, key in enumerate(self._keys)}
        group = Struct(f"Group_{name}", {**fields, "rows": INT, "mark": INT})
        self._linker.structs[group.name] = group
        line = self._row if self._in_order else None
        slots, values = aggregates(self._linker, name, self._calls, group, "row", self._rows, line)
        types = {"Group": Reference(group.name), "Row": self._row, "Key": key_type(self._keys, True)}
        if self._emits.made is not None:
            types["Made"] = self._emits.made[0]
        ports = {each: [f"{name}_{each}"] for each in ("accumulate", "retract", "new_group")}
        if plan.total and plan.grouping is None:
            ports |= self._made("group", slots, values)
            self._linker.function(f"{name}_new_group", "", [f"return {group.name}()"])
            total = grouping.Total if self._emits.made is None else rates.LastTotal
            return self._linker.operator(total, name, constants, types, ports)
        ports |= {"key": [f"{name}_key"], "key_of": [f"{name}_key_of"]}
        constants["ever"] = plan.total or (plan.unbounded and plan.rate.mode == "snapshot")
        self._keyed(group.name)
        if plan.grouping is None:
            ports |= self._made("row, group", slots, values)
            return self._linker.operator(grouping.RowPerRow, name, constants, types, ports)
        slots = [*self._key_texts, *slots]
        if self._emits.unit:
            ports |= self._made("row, group", slots, values, "group")
            return self._linker.operator(grouping.GroupPerRow, name, constants, types, ports)
        ports |= self._made("group", slots, values)
        if self._emits.made is None:
            return self._linker.operator(grouping.RowPerGroup, name, constants, types, ports)
        note = f"Note_{name}"
        types["Note"] = Reference(note)
        fields = {"group": types["Group"], "before": types["Made"], "touched": BOOL}
        self._linker.structs[note] = Struct(note, fields)
        return self._linker.operator(rates.LastOfGroups, name, constants | {"every": self._emits.every}, types, ports)

    @property
    def _in_order(self) -> bool:
        """Whether the rows of a group leave in the order in which they came: so do those of one key, if a group has no others."""
        source = self._plan.inputs[0]
        window = source.window if isinstance(source, StreamInput) and self._plan.join is None else None
        if isinstance(window, Unique | Grouped) and not set(window.key) <= set(self._keys):
            return False
        return isinstance(window, Unique) or isinstance(getattr(window, "inner", window), _IN_ORDER)

    @property
    def _key_texts(self) -> list[str]:
        """The texts of the key of a group."""
        return [f"group.k{i}" for i in range(len(self._keys))]

    def _key(self, values: Sequence[str]) -> str:
        """The text of a key of some values."""
        return key_text(with_bits(self._keys, values))

    def _made(
        self, arguments: str, slots: Sequence[str], values: Sequence[str] = (), shown: str = ""
    ) -> dict[str, list[str]]:
        """The ports by which rows are made: of changes, and of what is there, which may be `shown` of less."""
        emits, shown = self._emits, shown or arguments
        ports = {"emit_shown": [self._emitting("shown", shown, emits.shown, slots, values)] if emits.shown else []}
        if emits.made is None or "row" in arguments:
            unit = self._key(self._key_texts) if "group" in arguments else key_text(())
            emit = (lambda sign, texts: emits.emit(sign, [unit, *texts])) if emits.unit else emits.emit
            return ports | {"emit": [self._emitting("emit", arguments, emit, slots, values)]}
        (made, deliver) = emits.made
        make = lambda sign, texts: [f"return {made.struct}({', '.join(texts)})"]  # noqa: E731
        ports["make"] = [self._emitting("make", arguments, make, slots, values, ["return None"])]
        return ports | {"deliver": [deliver]}

    def _emitting(
        self,
        made: str,
        arguments: str,
        emit: Emit,
        slots: Sequence[str],
        values: Sequence[str],
        otherwise: Sequence[str] = (),
    ) -> str:
        """The function that makes a row and hands it on, if it fulfils the condition."""
        shown: Projection = self._plan.projection
        width = len(self._keys) if self._plan.grouping is not None else 0
        lists = [
            line
            for slot in dict.fromkeys(part for each in shown.columns for part in walk(each) if isinstance(part, Slot))
            if slot.type.kind is Kind.LIST
            for line in self._listing(slot.index - width)
        ]
        exprs = [*((shown.having,) if shown.having is not None else ()), *shown.columns]

        def end(texts: list[str]) -> Sequence[str]:
            lines = [*lists, *emit("sign", texts[len(exprs) - len(shown.columns) :])]
            if shown.having is None:
                return lines
            return [f"if {texts[0]} is True:", *(f"    {line}" for line in lines), *otherwise]

        rows = self._rows if arguments.startswith("row") else {}
        return expressions(self._linker, f"{self._name}_{made}", f"{arguments}, sign", exprs, rows, end, slots, values)

    def _listing(self, call: int) -> list[str]:
        """The lines by which the values of a list go into a table of their own."""
        if self._plan.rate.limited:
            raise NotLowered("rate", "of lists")
        table = f"{LISTED}{call}"
        self._linker.state[table] = TableOf(Tuple((type_of_value(self._calls[call].args[-1].type).optional,)))
        value = f"({self._name}_of{call}(each),)"
        both = self._plan.emitted == "both"
        lines = self._linker.left_last(table, "sign", value) if both else [f"s.{table}.append({value})"]
        return [f"for each in group.a{call}_line:", *(f"    {line}" for line in lines)]

    def _keyed(self, group: str) -> None:
        """The key of a row, that of a group, and a new group."""
        key = lambda values: [f"return {self._key(values)}"]  # noqa: E731
        kinds = [type_of_value(each.type) for each in self._keys]
        new = lambda values: [f"return {group}({', '.join(map(_unsigned, kinds, values))})"]  # noqa: E731
        expressions(self._linker, f"{self._name}_key", "row", self._keys, self._rows, key)
        expressions(self._linker, f"{self._name}_new_group", "row", self._keys, self._rows, new)
        self._linker.function(f"{self._name}_key_of", "group", key(self._key_texts))


def _unsigned(kind: Type, value: str) -> str:
    """The text of a value of a group's key: of two zeros the one without a sign."""
    return f"(None if {value} is None else {value} + 0.0)" if kind is FLOAT else value


def aggregates(
    linker: Linker,
    name: str,
    calls: Sequence[AggregateCall],
    group: Struct,
    arguments: str,
    rows: Mapping[int, str],
    line: Reference | None = None,
) -> tuple[list[str], list[str]]:
    """How rows enter and leave groups: functions of a group and of `arguments`. The names of the values, and the lines that
    compute them. `line`: the rows of a group leave in the order in which they came, and are these."""
    accumulated, retracted, values = list[_Change](), list[_Change](), list[str]()
    for i, call in enumerate(calls):
        if line is not None and call.aggregate.standing:
            value = call.args[-1]
            if isinstance(value, RowOf):
                raise NotLowered("aggregate", f"{call.aggregate.name} of rows")
            group.fields[f"a{i}_line"] = QueueOf(line)
            expressions(linker, f"{name}_of{i}", "row", [value], rows, lambda texts: [f"return {texts[0]}"])
            kept = replace(call, args=(value,))
            accumulated.append((i, kept, f"group.a{i}_line.append(row)"))
            retracted.append((i, kept, f"group.a{i}_line.popleft()"))
            at, count = call.aggregate.at, f"len(group.a{i}_line)"
            if at is None:
                values.append(f"v{i} = {count}")
            else:
                there = f"{count} > {at}" if at >= 0 else f"{count} >= {-at}"
                values.append(f"v{i} = {name}_of{i}(group.a{i}_line[{at}]) if {there} else None")
            continue
        shared = next((at for at, other in enumerate(calls[:i]) if _changes_as(call, other)), i)
        slots = {slot: f"group.a{shared}_{slot}" for slot in call.aggregate.slots}
        for slot, start in call.aggregate.slots.items():
            group.fields[f"a{shared}_{slot}"] = _slot(call, start)
        if shared == i:
            if call.distinct:
                kind = type_of_value(call.args[0].type)
                group.fields[f"a{i}_seen"] = MapOf(INT if kind is FLOAT else kind, INT)
            texts = {name: f"x{i}_{n}" for n, name in enumerate(("x", "y", "z")[: len(call.args)])} | slots
            accumulated.append((i, call, call.aggregate.enter.format(**texts)))
            retracted.append(
                (i, call, "pass" if call.aggregate.leave is None else call.aggregate.leave.format(**texts))
            )
        value = call.aggregate.value.format(**slots)
        whole = bool(call.args) and type_of_value(call.args[0].type) is INT
        values.append(f"v{i} = {value.replace('mean(', 'mean_of_whole(') if whole else value}")
    for way, changes in (("accumulate", accumulated), ("retract", retracted)):
        asked = [each for _, call, _ in changes for each in _read(call)]
        expressions(linker, f"{name}_{way}", f"group, {arguments}", asked, rows, _changing(changes, way))
    return [f"v{i}" for i in range(len(calls))], values


def _changes_as(call: AggregateCall, other: AggregateCall) -> bool:
    """Whether two calls keep the same of a group and change it alike, as `min(x)` and `max(x)` do."""
    kept = [(each.aggregate.slots, each.aggregate.enter, each.aggregate.leave) for each in (call, other)]
    asked = [(_read(each), each.where is None, each.distinct, each.aggregate.skips) for each in (call, other)]
    return kept[0] == kept[1] and asked[0] == asked[1] and not (call.aggregate.standing or other.aggregate.standing)


def _slot(call: AggregateCall, start: str) -> Type:
    """The type of a slot of a group."""
    if call.aggregate.objects:
        raise NotLowered("aggregate", f"{call.aggregate.name} with more than arguments")
    kinds = [type_of_value(each.type) for each in call.args]
    if any(each.type.kind is Kind.LONG for each in call.args) and call.aggregate.beyond is not None:
        raise NotLowered("aggregate", f"{call.aggregate.name} of longs, which may go beyond 64 bits")
    if start == _SORTED and kinds[0] in (INT, FLOAT):
        return SortedOf(kinds[0])
    if start == "0" and FLOAT in kinds and call.aggregate.name in ("sum", "avg"):
        return FLOAT
    if start == "None" and kinds:
        return kinds[0].optional
    if start not in _STARTS:
        raise NotLowered("aggregate", call.aggregate.name)
    return _STARTS[start]


def _read(call: AggregateCall) -> Sequence[Expr]:
    """What a call reads of a row: its arguments, then its condition."""
    return call.args if call.where is None else (*call.args, call.where)


def _of_kind(call: AggregateCall, i: int, way: str, steps: Sequence[str]) -> list[str]:
    """Lines that do something for the first row of a value in a group, or as the last one of it leaves."""
    seen, key = f"group.a{i}_seen", f"bits(x{i}_0)" if type_of_value(call.args[0].type) is FLOAT else f"x{i}_0"
    counted = [f"n{i} = {seen}.get({key})"]
    if way == "accumulate":
        counted += [f"{seen}[{key}] = 1 if n{i} is None else n{i} + 1", f"if n{i} is None:"]
        return [*counted, *(f"    {each}" for each in steps)]
    last = [f"del {seen}[{key}]", *steps]
    counted += [f"if n{i} is not None:", f"    if n{i} > 1:", f"        {seen}[{key}] = n{i} - 1", "    else:"]
    return [*counted, *(f"        {each}" for each in last)]


def _changing(changes: Sequence[_Change], way: str) -> Callable[[list[str]], list[str]]:
    """The lines by which rows enter groups, or leave them, of the texts of the values."""

    def end(texts: list[str]) -> list[str]:
        lines, at = list[str](), 0
        for i, call, text in changes:
            names, values = [f"x{i}_{n}" for n in range(len(call.args))], texts[at : at + len(_read(call))]
            lines += [f"{each} = {value}" for each, value in zip(names, values, strict=False)]
            at += len(values)
            steps = [each.strip() for each in text.split(";")]
            steps = _of_kind(call, i, way, steps) if call.distinct else steps
            known = [f"{each} is not None" for each in names] if call.aggregate.skips else []
            known += [f"{each} is True" for each in values[len(names) :]]
            lines += [f"if {' and '.join(known)}:", *(f"    {each}" for each in steps)] if known else steps
        return lines

    return end


_Change = tuple[int, AggregateCall, str]
"""An aggregate call and its number, and the lines by which a value enters or leaves."""
