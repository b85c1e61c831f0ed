"""Output rates of plans become operators around a selection: the rate before it, what an output shows behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rollup.engine.compiler.types import INT, Reference, Struct, TableOf, Tuple, Type
from rollup.engine.expressions import Const, Variable
from rollup.engine.programs.lowering.expressions import key_type, refuse_unsteady, type_of_value
from rollup.engine.programs.lowering.grouping import ROW, Emit, Emits, passing, selection
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import rates
from rollup.engine.programs.operators.base import Operator
from rollup.engine.rows.plans import Select

MANY = "_rate_events"
"""The end of the name of the field that says how many events bring an output."""
CLOCK = "ticks"
"""The table of the outputs that the clock brings: when, and behind which event."""


@dataclass(frozen=True)
class Rated:
    """The operator that changes go to, the one that makes rows, and the one with a clock, if any has."""

    entry: str
    selection: str
    clock: str | None = None


def rated(
    linker: Linker,
    plan: Select,
    name: str,
    row: Reference,
    emit: Emit,
    rows: Mapping[int, str] | None = None,
    ordered: bool = False,
) -> Rated:
    """What makes the rows of a statement, at once or when an output is due. `ordered`: an output puts its rows in order, for
    which changes wait as they are; `rows`: as of a selection. Raises NotLowered."""
    made = _Rate(linker, plan, name, row, emit, rows).rated(ordered)
    conditions = [each for each in (plan.where, getattr(plan.inputs[0], "condition", None)) if each is not None]
    if rows is not None or not conditions:
        return made
    if plan.leaves:
        refuse_unsteady(conditions)
    where = passing(linker, f"{name}_where", conditions, ROW, made.entry, made.selection)
    return Rated(where, where, made.clock)


def refuse(plan: Select) -> None:
    """Raises NotLowered for what no operator does yet with outputs."""
    rate, grouped = plan.rate, plan.grouping is not None
    if rate.after_span is not None or rate.after_events is not None or rate.at_end or rate.then or rate.when:
        raise NotLowered("rate", "after, when, or at the end")
    varies = isinstance(rate.events, Variable) and rate.mode != "first"
    if rate.schedule is not None or not (varies or isinstance(rate.events, Const | None)):
        raise NotLowered("rate", "of times of day, or of so many events, where that is not a number")
    if plan.grouped and not grouped and not (plan.levels and rate.mode != "all"):
        raise NotLowered("rate", "of groups that are not shown as such")
    if plan.levels and plan.levels[0].keys and not plan.grouped:
        raise NotLowered("rate", "of aggregates by groups of their own")
    if rate.mode == "first" and plan.emitted != "new" and (grouped or plan.grouped):
        raise NotLowered("rate", "first of groups, with rows that leave")
    ever = any(call.aggregate.leave is None for call in (plan.grouping.calls if plan.grouping else ()))
    if ever and plan.leaves and rate.mode in ("last", "all"):
        raise NotLowered("rate", "of groups whose values stay when they have emptied")
    refuse_unsteady([*plan.projection.columns, plan.projection.having])


class _Rate:
    """The lowering of the rate of one statement."""

    def __init__(
        self, linker: Linker, plan: Select, name: str, row: Reference, emit: Emit, rows: Mapping[int, str] | None
    ) -> None:
        self._linker, self._plan, self._name, self._row, self._emit, self._rows = linker, plan, name, row, emit, rows
        self._made, self._deliver = Reference(f"Made_{name}"), f"{name}_deliver"
        self._keyed = plan.grouping is not None or plan.grouped
        # Of a join that one stream drives, rows that wait for an output of their own count what came before them.
        mode = plan.rate.mode
        waits = (self._keyed and mode in ("first", "last", "all")) or (plan.total and mode in ("last", "all"))
        self._alone = plan.join is not None and plan.join.only is not None and not waits

    def rated(self, ordered: bool) -> Rated:
        """The operators around the selection."""
        plan, rate = self._plan, self._plan.rate
        if not rate.limited:
            made = self._selection(self._emit)
            return Rated(made, made)
        refuse(plan)
        if rate.mode == "first":
            return self._first_of_units() if self._keyed else self._first()
        made, shows = self._shown()
        behind, idle = made, shows
        if rate.mode == "default" or (ordered and rate.mode in ("last", "all")):
            behind = self._before(rates.Pending, "pending", made)
            shows = [f"{behind}_settle", *shows]
        if plan.total and rate.mode in ("default", "all"):
            idle = [f"{made}_idle", *idle]
        ticks = list[str]()
        if rate.span is not None:
            self._linker.state[CLOCK] = TableOf(Tuple((INT, INT)))
            ticks = [self._linker.function(f"{self._name}_tick", "", [f"s.{CLOCK}.append((s.now, s.event))"])]
        ports = {"show": [*shows, *ticks], "idle": [*idle, *ticks]}
        return self._paced(rates.Rate, made, behind, {}, ports)

    def _selection(self, emit: Emit, **more: Any) -> str:
        """The operator that makes rows, which those who ask what is there get as they are."""
        emits = Emits(emit, self._emit, alone=self._alone, **more)
        return selection(self._linker, self._plan, self._name, self._row, emits, self._rows)

    def _shown(self) -> tuple[str, list[str]]:
        """The operator that makes rows, and the functions that show what an output does of them."""
        name, mode = self._name, self._plan.rate.mode
        if mode == "default":
            return self._selection(self._emit), []
        if mode == "snapshot":
            return self._selection(lambda sign, texts: ["pass"]), ["show"]
        self._waiting()
        if self._plan.grouping is None and (mode == "all" or not self._plan.total):
            collector = rates.All if mode == "all" else rates.Last
            ports = {"deliver": [self._deliver]}
            collects = self._linker.operator(collector, f"{name}_collector", {}, self._types(), ports)
            return self._selection(self._taking(collects), unit=True), [f"{collects}_show"]
        return self._selection(self._emit, made=(self._made, self._deliver), every=mode == "all"), [f"{name}_show"]

    def _first(self) -> Rated:
        """The first change of an interval."""
        takes, emitted = f"{self._name}_rate_takes", self._plan.emitted
        passes = lambda sign, texts: [  # noqa: E731
            f"if {takes}({sign}):",
            *(f"    {line}" for line in self._emit(sign, texts)),
        ]
        made = self._selection(passes)
        constants = {"arriving": emitted != "old", "leaving": emitted != "new"}
        return self._paced(rates.First, made, made, constants, {"show": [], "idle": []})

    def _first_of_units(self) -> Rated:
        """The first row of each group in an interval of its own."""
        self._waiting()
        interval, name = Reference(f"Interval_{self._name}"), f"{self._name}_first"
        types = self._types()
        fields = {"key": types["Key"], "since": INT, "inserted": INT, "removed": INT}
        self._linker.structs[interval.struct] = Struct(interval.struct, fields)
        made = self._selection(self._taking(name), unit=True)
        more = {"deliver": [self._deliver]}
        entry = self._before(rates.FirstOfUnits, "first", made, self._pace, types | {"Interval": interval}, more)
        return Rated(entry, made)

    def _waiting(self) -> None:
        """The struct of rows that wait, and the function that delivers one."""
        linker, made = self._linker, self._made.struct
        fields = {f"f{i}": type_of_value(each).optional for i, each in enumerate(self._plan.type.fields.values())}
        linker.structs[made] = Struct(made, fields, record=True)
        linker.function(self._deliver, "made, sign", self._emit("sign", [f"made[{i}]" for i in range(len(fields))]))

    def _types(self) -> dict[str, Type]:
        """The types of rows that wait, and of the keys of their units."""
        plan = self._plan
        keys = plan.grouping.dimensions if plan.grouping else plan.levels[0].keys if plan.grouped else ()
        return {"Made": self._made, "Key": key_type(keys, True)}

    def _taking(self, collector: str) -> Emit:
        """The lines by which a collector takes a row."""
        made = f"{collector}_take({{}}, {self._made.struct}({{}}), {{}})"
        return lambda sign, texts: [made.format(texts[0], ", ".join(texts[1:]), sign)]

    def _before(
        self,
        operator: type[Operator],
        part: str,
        behind: str,
        constants: Mapping[str, Any] = MappingProxyType({}),
        types: Mapping[str, Type] = MappingProxyType({}),
        more: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> str:
        """An operator before another, which it tells of changes."""
        ports = {f"emit_{each}": [f"{behind}_{each}"] for each in ("insert", "remove", "flush")} | dict(more)
        return self._linker.operator(operator, f"{self._name}_{part}", constants, {"Row": self._row, **types}, ports)

    @property
    def _pace(self) -> dict[str, int | bool]:
        """By what outputs come."""
        rate = self._plan.rate
        events = max(int(rate.events.value or 0), 1) if isinstance(rate.events, Const) else 1
        counted = rate.events is not None
        return {"clocked": rate.span is not None, "counted": counted, "span": rate.span or 0, "events": events}

    def _paced(
        self,
        operator: type[rates.Rate],
        made: str,
        behind: str,
        constants: Mapping[str, bool],
        ports: Mapping[str, Sequence[str]],
    ) -> Rated:
        """The operator that says when an output is due, before others."""
        rate = self._before(operator, "rate", behind, {**self._pace, **constants}, more=ports)
        return Rated(rate, made, rate if self._plan.rate.span is not None else None)
