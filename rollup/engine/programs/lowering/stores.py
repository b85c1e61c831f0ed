"""Named windows, and what events do to them: merge, update and delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.types import DataType, Kind

_PLAIN = (KeepAll, Length)
"""Windows whose rows stand in a queue as they are."""
_FOLLOWING = ("insert", "remove", "flush")
BOTH = {0: "row", 1: "found", 2: "found"}
"""The texts of an action's rows: the trigger, and the row as it is and as it was."""


@dataclass
class Store:
    """A named window while the program is made: the names of its operators, its plan, its rows, and who follows it."""

    name: str
    spec: WindowStore
    row: Reference
    acted: bool
    """Whether events change it beside what goes into it: then those who follow it may not know all while an event is on its way."""
    indexes: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])
    shown: dict[tuple[int, ...], str] = field(default_factory=dict[tuple[int, ...], str])
    """Indexes of the rows of which those who follow it know."""
    observers: list[str] = field(default_factory=list[str])
    """Operators that hear of what comes and leaves before all who follow."""
    followers: dict[str, list[str]] = field(default_factory=lambda: {each: [] for each in _FOLLOWING})

    @property
    def window(self) -> str:
        """The window's operator."""
        return f"{self.name}_window"

    @property
    def table(self) -> bool:
        """Whether it is a table."""
        return False

    @property
    def key(self) -> tuple[int, ...]:
        """The fields of which it has one row for each value; none: it may have several."""
        window = self.spec.window
        if not isinstance(window, Unique) or not all(isinstance(each, Field) for each in window.key):
            return ()
        return tuple(each.index for each in window.key if isinstance(each, Field))

    @property
    def keyed(self) -> bool:
        """Whether its rows are a map by key."""
        return isinstance(self.spec.window, Unique)

    def follow(self, operator: str) -> None:
        """An operator hears of what comes and leaves."""
        for each in _FOLLOWING:
            self.followers[each].append(f"{operator}_{each}")


@dataclass(frozen=True)
class Asker:
    """Who looks for rows of a store: the texts of the rows that are known, by input, and the arguments that say them.

    `found`: the inputs that a row that is found stands for. `shown`: it finds only what those who follow the store know;
    `in_order`: in the store's own order, else in the order of arrival.
    """

    name: str
    rows: Mapping[int, str]
    arguments: str
    found: tuple[int, ...]
    shown: bool = False
    in_order: bool = False


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
    observers = [*store.shown.values(), *store.observers]
    for each in ("insert", "remove"):
        ports[f"index_{each}"] = [f"{index}_{each}" for index in store.indexes.values()]
        ports[f"observe_{each}"] = [f"{observer}_{each}" for observer in observers]
    ports |= {"emit": [emit], "changed": [changed]}
    linker.operator(stores.NamedWindow, store.name, {"observed": bool(observers)}, {"Row": store.row}, ports)


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
    keep = [f"s.{name}_found.append(found)"]
    asker = Asker(name, {0: "row"}, "row", (1, 2), in_order=True)
    linker.function(f"{name}_find", "row", found(linker, store, conjuncts(where), asker, keep))
    if f"{store.window}_remove" not in linker.functions:
        raise NotLowered("window", "rows are taken out")
    ports = {each: [f"{name}_{each}"] for each in ("find", "matched", "unmatched")}
    ports |= {f"window_{each}": [f"{store.window}_{each}"] for each in ("insert", "remove")}
    ports |= {"store_remove": [f"{store.name}_remove"], "emit": emit}
    linker.operator(stores.Merge, name, {"gone_as_new": gone_as_new}, {"Row": store.row}, ports)
    return [f"{name}_act(row)"]


def found(linker: Linker, store: Store, where: Sequence[Expr], asker: Asker, keep: Sequence[str]) -> list[str]:
    """Lines that do `keep` for the rows `found` that fulfil conditions: by key where these say what is equal, else one by one."""
    pairs, rest = dict[int, Expr](), list[Expr]()
    for part in where:
        known = _equal(part, asker)
        if known is None or known[1].index in pairs:
            rest.append(part)
        else:
            pairs[known[1].index] = known[0]
    key = store.key
    # The window itself is the index, unless an event changes it while those who follow it know its rows from before.
    direct = bool(key) and set(key) <= pairs.keys() and not (asker.shown and store.acted)
    if direct:
        rest += [part for part in where if (known := _equal(part, asker)) and known[1].index not in key]
        pairs = {place: pairs[place] for place in key}
    elif store.table or (asker.in_order and store.keyed and not (key and set(key) <= pairs.keys())):
        pairs, rest = {}, [*where]  # several have the order of the window, which an index does not know
    if rest:
        arguments = ", ".join(each for each in (asker.arguments, "found") if each)
        fits = test(
            linker, f"{asker.name}_fits", rest, {**asker.rows, **dict.fromkeys(asker.found, "found")}, arguments
        )
        keep = [f"if {fits}({arguments}):", *(f"    {line}" for line in keep)]
    if not pairs:
        return _each(linker, store, asker, keep)
    end = lambda values: [f"return {key_text(values)}"]  # noqa: E731
    made = expressions(linker, f"{asker.name}_key", asker.arguments, [*pairs.values()], asker.rows, end)
    known = ["key"] if len(pairs) == 1 else [f"key[{i}]" for i in range(len(pairs))]
    there = " and ".join(f"{each} is not None" for each in known)
    lines = [f"key = {made}({asker.arguments})"]
    if direct:
        lines += [f"found = s.{store.window}_rows.get(key)", f"if found is not None and {there}:"]
        return [*lines, *(f"    {line}" for line in keep)]
    return [*lines, *_bucket(linker, store, tuple(pairs), asker.shown, f" and {there}", keep)]


def _each(linker: Linker, store: Store, asker: Asker, keep: Sequence[str]) -> list[str]:
    """Lines for each row of a store."""
    if asker.shown and not store.table:
        if store.acted and asker.in_order and store.keyed:
            raise NotLowered("join", "rows in the order of a window that an event is changing")
        if store.acted or not (type(store.spec.window) in _PLAIN or (store.keyed and asker.in_order)):
            return [f"key = {key_text(())}", *_bucket(linker, store, (), True, "", keep)]
    return [
        f"for found in s.{store.window}_rows{'.values()' if store.keyed else ''}:",
        *(f"    {line}" for line in keep),
    ]


def _bucket(
    linker: Linker, store: Store, places: tuple[int, ...], shown: bool, there: str, keep: Sequence[str]
) -> list[str]:
    """Lines for each row with a key."""
    index = index_of(linker, store, places, shown and store.acted)
    lines = [f"bucket = s.{index}_rows.get(key)", f"if bucket is not None{there}:", "    for found in bucket.rows:"]
    return [*lines, *(f"        {line}" for line in keep)]


def index_of(linker: Linker, store: Store, places: tuple[int, ...], shown: bool) -> str:
    """The index of a store by some fields. `shown`: of the rows of which those who follow it know."""
    indexes = store.shown if shown else store.indexes
    if places not in indexes:
        parts = (f"{store.name}_by", *(("shown",) if shown else ()), *map(str, places))
        indexes[places] = index(linker, "_".join(parts), store.row, [*store.spec.type.fields.values()], places)
    return indexes[places]


def index(linker: Linker, name: str, row: Reference, kinds: Sequence[DataType], places: tuple[int, ...]) -> str:
    """An index of rows by some fields."""
    keys = [Field(0, place, kinds[place]) for place in places]
    linker.structs[f"Bucket_{name}"] = Struct(f"Bucket_{name}", {"rows": QueueOf(row, "?")})
    key = linker.function(f"{name}_key", "row", [f"return {key_text([f'row[{place}]' for place in places])}"])
    types = {"Row": row, "Bucket": Reference(f"Bucket_{name}"), "Key": key_type(keys)}
    return linker.operator(stores.Index, name, types=types, ports={"key": [key]})


def _equal(part: Expr, asker: Asker) -> tuple[Expr, Field] | None:
    """What is known that a field of the rows to be found equals."""
    if not isinstance(part, Call) or part.op is not EQUAL or part.args[0].type.kind != part.args[1].type.kind:
        return None
    for event, found in (part.args, reversed(part.args)):
        plain = isinstance(found, Field) and found.input == asker.found[0] and found.type.kind is not Kind.DOUBLE
        if plain and isinstance(found, Field) and inputs_read([event]) <= asker.rows.keys():
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
