"""Named windows, and what events do to them: merge, update and delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rollup.engine.compiler.types import INT, ListOf, QueueOf, Reference, Struct
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Call, Expr, Field, inputs_read
from rollup.engine.operators import EQUAL
from rollup.engine.programs.lowering.expressions import (
    ProgramText,
    expressions,
    key_text,
    key_type,
    test,
    type_of_value,
)
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.lowering.windows import window
from rollup.engine.programs.operators import stores
from rollup.engine.rows.actions import Action, DeleteAction, InsertAction, Merge, Set, UpdateAction
from rollup.engine.rows.plans import StreamInput
from rollup.engine.rows.stores.named import WindowStore
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.types import Kind

_FOLLOWING = ("insert", "remove", "flush")
BOTH = {0: "row", 1: "found", 2: "found"}
"""The texts of an action's rows: the trigger, and the row as it is and as it was."""


@dataclass
class Store:
    """A named window while the program is made: the names of its operators, its plan, its rows, and who follows it."""

    name: str
    spec: WindowStore
    row: Reference
    indexes: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])
    followers: dict[str, list[str]] = field(default_factory=lambda: {each: [] for each in _FOLLOWING})

    @property
    def window(self) -> str:
        """The window's operator."""
        return f"{self.name}_window"

    def follow(self, operator: str) -> None:
        """An operator hears of what comes and leaves."""
        for each in _FOLLOWING:
            self.followers[each].append(f"{operator}_{each}")


def create(linker: Linker, store: Store) -> None:
    """The window of a store; the store itself stands behind it, and is put into the program when all follow it."""
    linker.state[f"{store.name}_inserts"] = QueueOf(store.row)
    ports = {"emit_insert": [f"{store.name}_insert"], "emit_remove": [f"{store.name}_remove"]}
    window(linker, store.spec.window, store.window, store.row, ports)


def finish(linker: Linker, store: Store, emit: str, number: int) -> None:
    """The store itself, which has a number among all, with its indexes and with those who follow it."""
    linker.state["stores_told"] = ListOf(INT)
    changed = linker.function(f"{store.name}_changed", "", [f"s.stores_told.append({number})"])
    ports = {f"follow_{each}": names for each, names in store.followers.items()}
    ports |= {f"index_{each}": [f"{index}_{each}" for index in store.indexes.values()] for each in ("insert", "remove")}
    linker.operator(
        stores.NamedWindow, store.name, types={"Row": store.row}, ports={**ports, "emit": [emit], "changed": [changed]}
    )


def merge(linker: Linker, plan: Merge, store: Store, name: str, emit: str) -> list[str]:
    """Lines for an event that passes the trigger's filter. Raises NotLowered."""
    if plan.always or plan.lookups or plan.own_inputs:
        raise NotLowered("lookup", "in an action")
    if not isinstance(plan.trigger, StreamInput) or plan.trigger.window is not None:
        raise NotLowered("input", "of an action")
    for matched in (True, False):
        _cases(linker, plan, store, name, matched)
    return acting(linker, store, name, plan.where, plan.gone_as_new, [emit])


def acting(
    linker: Linker, store: Store, name: str, where: Expr | None, gone_as_new: bool, emit: Sequence[str]
) -> list[str]:
    """Lines for an event: what `matched` and `unmatched` of that name note happens as one change."""
    _find(linker, where, store, name)
    if f"{store.window}_remove" not in linker.functions:
        raise NotLowered("window", "rows are taken out")
    ports = {each: [f"{name}_{each}"] for each in ("find", "matched", "unmatched")}
    ports |= {f"window_{each}": [f"{store.window}_{each}"] for each in ("insert", "remove")}
    ports |= {"store_remove": [f"{store.name}_remove"], "emit": emit}
    linker.operator(stores.Merge, name, {"gone_as_new": gone_as_new}, {"Row": store.row}, ports)
    return [f"{name}_act(row)"]


def _find(linker: Linker, where: Expr | None, store: Store, name: str) -> None:
    """The rows that an event finds: by key where the condition says what is equal, else one by one."""
    pairs, rest = list[tuple[Expr, Field]](), list[Expr]()
    for part in conjuncts(where):
        found = _equal(part)
        if found is None:
            rest.append(part)
        else:
            pairs.append(found)
    if isinstance(store.spec.window, Unique) and not _is_key(store, [field.index for _, field in pairs]):
        pairs, rest = [], [*conjuncts(where)]  # several have the order of the window, which an index does not know
    keep = [f"s.{name}_found.append(found)"]
    if rest:
        fits = test(linker, f"{name}_fits", rest, BOTH, "row, found")
        keep = [f"if {fits}(row, found):", *(f"    {line}" for line in keep)]
    if not pairs:
        rows = f"s.{store.window}_rows{'.values()' if isinstance(store.spec.window, Unique) else ''}"
        lines = [f"for found in {rows}:", *(f"    {line}" for line in keep)]
    else:
        key = expressions(
            linker, f"{name}_key", "row", [event for event, _ in pairs], {0: "row"}, lambda v: [f"return {key_text(v)}"]
        )
        places = tuple(field.index for _, field in pairs)
        known = ["key"] if len(pairs) == 1 else [f"key[{i}]" for i in range(len(pairs))]
        there = " and ".join(f"{each} is not None" for each in known)
        lines = [f"key = {key}(row)", *_looked_up(linker, store, places, there, keep)]
    linker.function(f"{name}_find", "row", lines)


def _looked_up(linker: Linker, store: Store, places: tuple[int, ...], there: str, keep: Sequence[str]) -> list[str]:
    """Lines for the rows with a key: a window by the same key is its own index."""
    if _is_key(store, places):
        lines = [f"found = s.{store.window}_rows.get(key)", f"if found is not None and {there}:"]
        return [*lines, *(f"    {line}" for line in keep)]
    index = _index(linker, store, places)
    lines = [
        f"bucket = s.{index}_rows.get(key)",
        f"if bucket is not None and {there}:",
        "    for found in bucket.rows:",
    ]
    return [*lines, *(f"        {line}" for line in keep)]


def _is_key(store: Store, places: Sequence[int]) -> bool:
    """Whether a window keeps a row for each of the values at these places."""
    spec = store.spec.window
    return isinstance(spec, Unique) and [getattr(each, "index", None) for each in spec.key] == [*places]


def _index(linker: Linker, store: Store, places: tuple[int, ...]) -> str:
    """The index of a store by some fields."""
    if places not in store.indexes:
        name = store.indexes[places] = f"{store.name}_by_{'_'.join(map(str, places))}"
        kinds = list(store.spec.type.fields.values())
        keys = [Field(0, place, kinds[place]) for place in places]
        linker.structs[f"Bucket_{name}"] = Struct(f"Bucket_{name}", {"rows": QueueOf(store.row, "?")})
        key = linker.function(f"{name}_key", "row", [f"return {key_text([f'row[{place}]' for place in places])}"])
        types = {"Row": store.row, "Bucket": Reference(f"Bucket_{name}"), "Key": key_type(keys)}
        linker.operator(stores.Index, name, types=types, ports={"key": [key]})
    return store.indexes[places]


def _equal(part: Expr) -> tuple[Expr, Field] | None:
    """What an event has in common with a field of the rows that it finds."""
    if not isinstance(part, Call) or part.op is not EQUAL or part.args[0].type.kind != part.args[1].type.kind:
        return None
    for event, found in (part.args, reversed(part.args)):
        plain = isinstance(found, Field) and found.input == 1 and found.type.kind is not Kind.DOUBLE
        if plain and isinstance(found, Field) and inputs_read([event]) <= {0}:
            return event, found
    return None


def _cases(linker: Linker, plan: Merge, store: Store, name: str, matched: bool) -> None:
    """The function for a row that was found, or for none: the first case that holds."""
    arguments = "row, found" if matched else "row"
    made, lines = f"{name}_{'matched' if matched else 'unmatched'}", list[str]()
    for number, case in enumerate(each for each in plan.cases if each.matched is matched):
        condition = "True"
        if case.condition is not None:
            condition = f"{test(linker, f'{made}{number}_holds', [case.condition], BOTH, arguments)}({arguments})"
        lines.append(f"{'elif' if lines else 'if'} {condition}:")
        for i, action in enumerate(case.actions):
            if action.where is not None or len(case.actions) > 1:
                raise NotLowered("action", "several, or with a condition")
            lines.append(f"    {_action(linker, action, store, name, f'{made}{number}_{i}', arguments)}({arguments})")
    linker.function(made, arguments, lines)


def _action(linker: Linker, action: Action, store: Store, name: str, made: str, arguments: str) -> str:
    """The function that notes what is to be done for a row."""
    match action:
        case DeleteAction():
            return linker.function(made, arguments, [f"s.{name}_removing.append(found)"])
        case InsertAction(columns, None):
            note = lambda values: [f"s.{name}_inserting.append({store.row.struct}({', '.join(values)}))"]  # noqa: E731
            return expressions(linker, made, arguments, columns, BOTH, note)
        case UpdateAction(sets):
            return _update(
                linker, [each for each in sets if isinstance(each, Set)], len(sets), store, name, made, arguments
            )
        case _:
            raise NotLowered("action", "an insert into another stream")


def _update(linker: Linker, sets: Sequence[Set], all_: int, store: Store, name: str, made: str, arguments: str) -> str:
    """The row with other values, set one after the other: each sees those before it."""
    if len(sets) < all_:
        raise NotLowered("action", "an aggregated column begins again")
    known: dict[tuple[int, int], str] = {}
    text = ProgramText(linker, made, BOTH, None, known)
    kinds = list(store.spec.type.fields.values())
    for number, each in enumerate(sets):
        type_of_value(kinds[each.place])
        value = text.emit(each.value)
        known[1, each.place] = f"u{number}"
        text.line(f"u{number} = {value}")
    values = [known.get((1, place), f"found[{place}]") for place in range(len(kinds))]
    end = [f"s.{name}_replaced.append(found)", f"s.{name}_updated.append({store.row.struct}({', '.join(values)}))"]
    return linker.function(made, arguments, [*(line[4:] for line in text.lines), *end])
