"""Output rates of plans become operators around a selection: the rate before it, what an output shows behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollup.engine.compiler.types import INT, Reference, Struct, TableOf, Tuple
from rollup.engine.expressions import Const
from rollup.engine.programs.lowering.expressions import key_type, refuse_unsteady, type_of_value
from rollup.engine.programs.lowering.grouping import Emit, Emits, selection
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import rates
from rollup.engine.rows.plans import Select

CLOCK = "ticks"
"""The table of the outputs that the clock brings: when, and behind which event."""


@dataclass(frozen=True)
class Rated:
    """The operator that changes go to, and the one that makes rows; `clocked`: the first has a clock."""

    entry: str
    selection: str
    clocked: bool = False


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
    which changes wait as they are. Raises NotLowered."""
    rate, keyed = plan.rate, plan.grouping is not None or plan.grouped
    waits = rate.mode in ("last", "all") and (keyed or plan.total)
    alone = plan.join is not None and plan.join.only is not None and not waits
    if not rate.limited:
        made = selection(linker, plan, name, row, Emits(emit, emit, alone=alone), rows)
        return Rated(made, made)
    refuse(plan)
    collects, pends = _collector(plan), rate.mode == "default" or (ordered and rate.mode in ("last", "all"))
    kinds = list(plan.type.fields.values())
    made, deliver = Reference(f"Made_{name}"), f"{name}_deliver"
    emits, shows = Emits(emit, emit, alone=alone), list[str]()
    if rate.mode in ("last", "all"):
        fields = {f"f{i}": type_of_value(each).optional for i, each in enumerate(kinds)}
        linker.structs[made.struct] = Struct(made.struct, fields, record=True)
        linker.function(deliver, "made, sign", emit("sign", [f"made[{i}]" for i in range(len(kinds))]))
        emits, shows = Emits(emit, emit, made=(made, deliver), every=rate.mode == "all"), [f"{name}_show"]
    if collects is not None:
        keep = f"{name}_collector_take({{}}, {made.struct}({{}}), {{}})"
        take = lambda sign, texts: [keep.format(texts[0], ", ".join(texts[1:]), sign)]  # noqa: E731
        emits, shows = Emits(take, emit, unit=True, alone=alone), [f"{name}_collector_show"]
        types = {"Made": made, "Key": key_type(plan.levels[0].keys if plan.levels and not plan.total else (), True)}
        linker.operator(collects, f"{name}_collector", {}, types, {"deliver": [deliver]})
    elif rate.mode == "snapshot":
        emits, shows = Emits(lambda sign, texts: ["pass"], emit, alone=alone), ["show"]
    chosen = selection(linker, plan, name, row, emits, rows)
    behind, idle = chosen, shows
    if pends:
        ports = {f"emit_{each}": [f"{chosen}_{each}"] for each in ("insert", "remove", "flush")}
        behind = linker.operator(rates.Pending, f"{name}_pending", {}, {"Row": row}, ports)
        shows = [f"{behind}_settle", *shows]
    if plan.total and rate.mode in ("default", "all"):
        idle = [f"{chosen}_idle", *idle]
    return Rated(_rate(linker, plan, name, row, behind, shows, idle), chosen, rate.span is not None)


def refuse(plan: Select) -> None:
    """Raises NotLowered for what no operator does yet with outputs."""
    rate, grouped = plan.rate, plan.grouping is not None
    if rate.after_span is not None or rate.after_events is not None or rate.at_end or rate.then or rate.when:
        raise NotLowered("rate", "after, when, or at the end")
    if rate.schedule is not None or rate.mode == "first" or not isinstance(rate.events, Const | None):
        raise NotLowered("rate", "first" if rate.mode == "first" else "of times of day, or of a variable")
    if plan.grouped and not grouped and not (plan.levels and rate.mode != "all"):
        raise NotLowered("rate", "of groups that are not shown as such")
    if plan.levels and plan.levels[0].keys and not plan.grouped:
        raise NotLowered("rate", "of aggregates by groups of their own")
    ever = any(call.aggregate.leave is None for call in (plan.grouping.calls if plan.grouping else ()))
    if ever and rate.mode in ("last", "all"):
        raise NotLowered("rate", "of groups whose values stay when they have emptied")
    refuse_unsteady([*plan.projection.columns, plan.projection.having])


def _collector(plan: Select) -> type[rates.Collector] | None:
    """What keeps the rows of an interval that are made as changes come."""
    if plan.rate.mode == "all" and plan.grouping is None:
        return rates.All
    return rates.Last if plan.rate.mode == "last" and plan.grouping is None and not plan.total else None


def _rate(
    linker: Linker, plan: Select, name: str, row: Reference, behind: str, shows: Sequence[str], idle: Sequence[str]
) -> str:
    """The operator that says when an output is due."""
    rate, ports = plan.rate, {f"emit_{each}": [f"{behind}_{each}"] for each in ("insert", "remove", "flush")}
    clocked = rate.span is not None
    ticks = list[str]()
    if clocked:
        linker.state[CLOCK] = TableOf(Tuple((INT, INT)))
        ticks = [linker.function(f"{name}_tick", "", [f"s.{CLOCK}.append((s.now, s.event))"])]
    events = max(int(rate.events.value or 0), 1) if isinstance(rate.events, Const) else 0
    constants = {"clocked": clocked, "counted": events > 0, "span": rate.span or 0, "events": events}
    ports |= {"show": [*shows, *ticks], "idle": [*idle, *ticks]}
    return linker.operator(rates.Rate, f"{name}_rate", constants, {"Row": row}, ports)
