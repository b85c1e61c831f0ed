"""What statements look up: sub-queries over stores, and joins of events or windows with stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollup.engine.compiler.types import Reference, Struct
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Ask, Expr, inputs_read, walk
from rollup.engine.programs.lowering.expressions import expressions, refuse_unsteady, test
from rollup.engine.programs.lowering.grouping import Emit, Emits, aggregates, passing, selection
from rollup.engine.programs.lowering.linking import Asked, Linker
from rollup.engine.programs.lowering.rates import Rated, rated
from rollup.engine.programs.lowering.stores import Asker, Store, found, index_of
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import grouping, joins
from rollup.engine.rows.plans import Input, Lookup, Select, StoreInput, StreamInput, Subquery
from rollup.engine.rows.running import follows, stands_alone
from rollup.engine.rows.selects.joining import WHOLE
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time

Stores = Mapping[str, Store]


def asked(
    linker: Linker,
    stores: Stores,
    own: Mapping[int, Store],
    name: str,
    lookup: Lookup,
    inputs: Sequence[Input],
    width: int,
) -> Asked:
    """The function of a look-up of a statement with so many inputs. `own`: by input, the windows of sub-queries. Raises
    NotLowered."""
    if not isinstance(lookup, Subquery) or lookup.mode not in ("value", "exists"):
        raise NotLowered("lookup", type(lookup).__name__)
    source = inputs[lookup.input]
    store = stores.get(source.store) if isinstance(source, StoreInput) else own.get(lookup.input)
    if store is None or source.prior:
        raise NotLowered("lookup", "over a table, or a pattern")
    condition = source.condition if isinstance(source, StoreInput) else None
    if (
        lookup.keys
        or (lookup.calls and lookup.mode == "exists")
        or (lookup.mode == "value" and len(lookup.columns) != 1)
    ):
        raise NotLowered("lookup", "of groups, or of several columns")
    if any(isinstance(part, Ask) for each in (*lookup.exprs, condition) if each is not None for part in walk(each)):
        raise NotLowered("lookup", "inside another")
    correlated = bool(inputs_read(lookup.exprs) - {width})
    outer = {number: f"row.r{number}" if width > 1 else "row" for number in range(width)} if correlated else {}
    alone = stands_alone(lookup, source, width) or follows(lookup, source, width, lambda name: True)
    if isinstance(source, StreamInput) and source.window is None and not alone:
        raise NotLowered("window", "none, of which rows are looked up")
    return _Lookup(linker, store, name, lookup, condition, alone, outer, width).asked()


class _Lookup:
    """The lowering of one sub-query over a store."""

    def __init__(
        self,
        linker: Linker,
        store: Store,
        name: str,
        plan: Subquery,
        condition: Expr | None,
        alone: bool,
        outer: Mapping[int, str],
        width: int,
    ) -> None:
        self._linker, self._store, self._name, self._plan = linker, store, name, plan
        self._outer, self._width = outer, width
        self._arguments = "row" if outer else ""
        self._with_found = "row, found" if outer else "found"
        self._rows = {**outer, width: "found"}
        self._condition, self._alone = condition, alone

    def asked(self) -> Asked:
        """The function of the look-up."""
        plan, store = self._plan, self._store
        if plan.calls and not store.table and self._alone:
            lines = self._kept_up()
        elif plan.calls:
            lines = self._folded()
        elif plan.mode == "exists":
            lines = [*self._found(["return True"]), "return False"]
        else:
            end = lambda values: [f"return {values[0]}"]  # noqa: E731
            made = expressions(self._linker, f"{self._name}_value", self._with_found, plan.columns, self._rows, end)
            keep = [f"value = {made}({self._with_found})", "n += 1"]
            lines = ["n = 0", "value = None", *self._found(keep), "return value if n == 1 else None"]
        return Asked(self._linker.function(self._name, self._arguments, lines), bool(self._outer))

    def _found(self, keep: Sequence[str]) -> Sequence[str]:
        plan = self._plan
        where = [*conjuncts(plan.where), *([] if plan.calls else conjuncts(plan.having))]
        return found_in(self._linker, self._store, self._name, where, self._condition, self._outer, self._width, keep)

    def _aggregates(self, arguments: str, rows: Mapping[int, str]) -> tuple[str, str]:
        """The group of the aggregates, and the function of the value that a group has."""
        plan, name, linker = self._plan, self._name, self._linker
        group = linker.structs[f"Group_{name}"] = Struct(f"Group_{name}", {})
        slots, values = aggregates(linker, name, plan.calls, group, arguments, rows)
        given = ", ".join(each for each in ("group", self._arguments) if each)
        shown = [*([] if plan.having is None else [plan.having]), *plan.columns]

        def end(texts: list[str]) -> list[str]:
            if plan.having is None:
                return [f"return {texts[0]}"]
            return [f"return {texts[1]} if {texts[0]} is True else None"]

        value = expressions(linker, f"{name}_value", given, shown, self._outer, end, slots, values)
        return group.name, f"{value}({given})"

    def _folded(self) -> list[str]:
        group, value = self._aggregates(self._with_found, self._rows)
        keep = [f"{self._name}_accumulate(group, {self._with_found})"]
        return [f"group = {group}()", *self._found(keep), f"return {value}"]

    def _kept_up(self) -> list[str]:
        """Aggregates over all rows are kept up as the store tells of them."""
        linker, name, store, plan = self._linker, self._name, self._store, self._plan
        group, value = self._aggregates("found", {self._width: "found"})
        linker.function(f"{name}_new_group", "", [f"return {group}()"])
        ports = {each: [f"{name}_{each}"] for each in ("accumulate", "retract", "new_group")} | {
            "emit_shown": list[str]()
        }
        types = {"Group": Reference(group), "Row": store.row}
        made = linker.operator(grouping.Kept, f"{name}_kept", {}, types, ports)
        for condition, row in ((plan.where, self._width), (self._condition, 0)):
            if condition is not None:
                made = passing(linker, f"{made}_where{row}", [condition], {row: "row"}, made)
        store.observers.append(made)
        return [f"group = {name}_kept_current()", f"return {value}"]


def found_in(
    linker: Linker,
    store: Store,
    name: str,
    where: Sequence[Expr],
    condition: Expr | None,
    outer: Mapping[int, str],
    place: int,
    keep: Sequence[str],
    in_order: bool = False,
) -> list[str]:
    """Lines that do `keep` for the rows of a store that those who follow it know. `condition`: that of the part that is read."""
    if condition is not None:
        passes = test(linker, f"{name}_part", [condition], {0: "found"}, "found")
        keep = [f"if {passes}(found):", *(f"    {line}" for line in keep)]
    return found(linker, store, where, Asker(name, outer, "row" if outer else "", (place,), True, in_order), keep)


JOINED = (type(None), KeepAll, Length, Time, Unique, Grouped)
"""The windows of a join of streams: no row leaves one with the change with which it comes."""
WAYS = ("left", "right")
_DOES = (("enter", "insert"), ("leave", "remove"))


def join_streams(
    linker: Linker, plan: Select, name: str, sides: Sequence[Store], emit: Emit, ordered: bool = False
) -> Rated:
    """The join of two windows as stores, and what makes rows of its pairs. Raises NotLowered."""
    spec, pair = plan.join, f"Pair_{name}"
    assert spec is not None
    (side,) = spec.sides
    where, behind = [*conjuncts(side.condition), *conjuncts(plan.where)], conjuncts(plan.where)
    refuse_unsteady(where)
    where = where if side.kind == "inner" else [*conjuncts(side.condition)]
    linker.structs[pair] = Struct(pair, {f"r{place}": each.row for place, each in enumerate(sides)})
    rows = {place: f"row.r{place}" for place in range(2)}
    made = rated(linker, plan, f"select{name.removeprefix('join')}", Reference(pair), emit, rows, ordered)
    entry, shown = made.entry, made.selection
    if side.kind != "inner" and behind:
        entry = presents = passing(linker, f"{name}_where", behind, rows, entry, shown)
    else:
        presents = shown
    pairs = ("pair", "one, other", "one, other"), ("left", "one", "one, None"), ("right", "other", "None, other")
    for what, arguments, given in pairs:
        lines = [
            "if sign > 0:",
            f"    {entry}_insert({pair}({given}))",
            "elif sign < 0:",
            f"    s.{name}_unmade.append({pair}({given}))",
            "else:",
            f"    {presents}_present({pair}({given}))",
        ]
        linker.function(f"{name}_emit_{what}", f"{arguments}, sign", lines)
    if where:
        test(linker, f"{name}_both", where, {0: "one", 1: "other"}, "one, other")
    else:
        linker.function(f"{name}_both", "one, other", ["return True"])
    moves, bare = [spec.only in (None, place) for place in range(2)], [_bare(each) for each in plan.inputs]
    for place, way in enumerate(WAYS):
        other, texts = ("right_came", "left_also")[place], ("row, found", "found, row")[place]
        keep = [f"{name}_emit_pair({texts}, sign)", "lone = False"]
        asker = Asker(f"{name}_{way}", {place: "row"}, "row", (1 - place,), True)
        lone = [f"if lone: {name}_emit_{way}(row, sign)"] if side.kind in WHOLE[place] else []
        looks = lambda keep, place=place, asker=asker: (  # noqa: E731
            [] if bare[1 - place] else found(linker, sides[1 - place], where, asker, keep)
        )
        again = place == 1 and moves[0]  # the row of the other side has brought the pair about
        only = "" if place else "sign > 0 and "
        also = [f"if {only}{name}_both({texts}):", *(f"    {line}" for line in keep[again:])]
        lines = [*looks(keep), f"for found in s.{name}_{other}:", *(f"    {line}" for line in also)]
        linker.function(f"{name}_pair_{way}", "row, sign", ["lone = True", *lines, *lone])
        if lone and place == 1:
            lines = ["sign = 0", "lone = True", *looks(["lone = False"]), *lone]
            linker.function(f"{name}_alone", "row", lines)
    linker.function("show", "", [*_showing(linker, name, sides, side.kind in WHOLE[1]), f"{shown}_presented()"])
    counted = bool(plan.levels) or plan.grouping is not None or plan.makes_what_leaves or plan.rate.events is not None
    constants = {"left_moves": moves[0], "right_moves": moves[1], "leaving": counted and spec.only is None}
    ports = {each: [f"{name}_{each}"] for each in ("pair_left", "pair_right")} | {
        f"emit_{each}": [f"{entry}_{each}"] for each in ("remove", "flush")
    }
    types = {"Left": sides[0].row, "Right": sides[1].row, "Pair": Reference(pair)}
    for way, store, alone in zip(WAYS, sides, bare, strict=True):
        indexes = [] if alone else [*store.shown.values()]
        ports |= {f"{does}_{way}": [f"{each}_{what}" for each in indexes] for does, what in _DOES}
    linker.operator(joins.StreamJoin, name, constants, types, ports)
    return made


def _bare(source: Input) -> bool:
    """Whether a stream has no window, so that none of its rows is there after its event."""
    return isinstance(source, StreamInput) and source.window is None


def _showing(linker: Linker, name: str, sides: Sequence[Store], whole: bool) -> list[str]:
    """Lines that make the pairs that there are; `whole`: also of rows of the right side without a partner."""
    lines = list[str]()
    made = ("pair_left({}, 0)", "alone({})") if whole else ("pair_left({}, 0)",)
    for way, store, make in zip(WAYS, sides, made, strict=False):
        lines += [f"{way} = s.{index_of(linker, store, (), True)}_rows.get(0)", f"if {way} is not None:"]
        lines += [f"    for {way}_row in {way}.rows:", f"        {name}_{make.format(f'{way}_row')}"]
    return lines


@dataclass
class Side:
    """An input of a join: the store, or the window as one; the part of it that is read; and whether its changes make rows."""

    store: Store
    condition: Expr | None
    moves: bool


class Join:
    """The lowering of a join of two inputs, of which one changes at a time. `entry`: the operator that makes rows of pairs."""

    def __init__(self, linker: Linker, plan: Select, name: str, sides: Sequence[Side], emit: Emit) -> None:
        spec = plan.join
        assert spec is not None
        self._linker, self._plan, self._name, self._sides = linker, plan, name, sides
        self._where = [*conjuncts(spec.sides[0].condition), *conjuncts(plan.where)]
        refuse_unsteady([*self._where, *(each.condition for each in sides)])
        self._seeks = not all(each.moves for each in sides)
        if self._seeks and (plan.levels or plan.grouping is not None):
            raise NotLowered("join", "aggregates of what one input alone brings about")
        self._pair = linker.structs[f"Pair_{name}"] = Struct(
            f"Pair_{name}", {f"r{place}": each.store.row for place, each in enumerate(sides)}
        )
        rows = {place: f"row.r{place}" for place in range(2)}
        self.entry = selection(
            linker, plan, f"select{name.removeprefix('join')}", Reference(self._pair.name), Emits(emit), rows
        )

    def moved(self, place: int) -> str:
        """The operator that hears of what comes into an input and leaves it."""
        name, struct, linker, other = f"{self._name}_{place}", self._pair.name, self._linker, self._sides[1 - place]
        pair = f"{struct}({'row, found' if place == 0 else 'found, row'})"
        for way in ("insert", "remove"):
            lines = list[str]()
            if way == "insert" or not (self._plan.comes_alone or self._seeks):
                keep = [f"{self.entry}_{way}({pair})"]
                lines = found_in(
                    linker,
                    other.store,
                    f"{name}_{way}",
                    self._where,
                    other.condition,
                    {place: "row"},
                    1 - place,
                    keep,
                    self._seeks,
                )
            condition = self._sides[place].condition
            if lines and condition is not None:
                passes = test(linker, f"{name}_{way}_own", [condition], {0: "row"}, "row")
                lines = [f"if {passes}(row):", *(f"    {line}" for line in lines)]
            linker.function(f"{name}_{way}", "row", lines)
        linker.function(f"{name}_flush", "", [f"{self.entry}_flush()"])
        return name
