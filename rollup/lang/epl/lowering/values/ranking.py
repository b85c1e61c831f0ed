"""The methods of what `sorted` gives: the first and the last, what is at a key, before, after and between keys.

They are about rows in their order, so with `desc` a greater key is before a lower one. Rows whose keys are the same stand
under one key. A null is before all, and no key has a place beside one that is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.compiling import compiled
from rollup.engine.expressions import Expr, lasting
from rollup.engine.row import Row
from rollup.engine.rows.runner import Environment
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex

Key = Callable[[Row], Any]
Under = list[tuple[Any, list[Row]]]
"""The keys in their order, each with its rows."""


def criteria_of(node: ex.Expression | None, scope: Scope) -> tuple[ex.Expression, ...] | None:
    """By what the rows of an expression are sorted: of a call of `sorted`, or a table's column of one; else None."""
    if isinstance(node, ex.Call):
        return _by(node) if node.of is None else None
    store = ""
    if isinstance(node, ex.Member):
        whose = node.of.of if isinstance(node.of, ex.Index) else node.of
        if isinstance(whose, ex.Reference):
            place = scope.source(whose.name)
            store = whose.name if place is None else scope.sources[place].stream or ""
    elif isinstance(node, ex.Reference):
        store = next((each.stream or "" for each in scope.sources if node.name in each.type.fields), "")
    else:
        return None
    info = scope.catalog.stores.get(store)
    declared = info.declared.get(node.name) if info is not None else None
    return _by(declared) if isinstance(declared, ex.Call) else None


def _by(call: ex.Call) -> tuple[ex.Expression, ...] | None:
    """The arguments of a call of `sorted` by which it sorts: not its filter."""
    if call.name.lower() != "sorted":
        return None
    return tuple(each for each in call.arguments if not isinstance(each, ex.Named))


def key_of(values: Sequence[Expr]) -> Key | None:
    """The key of a row, a list of several; None where it hangs on more than the row."""
    if not lasting(values):
        return None
    found = [compiled(value) for value in values]
    one, nowhere = found[0], Environment()
    if len(found) == 1:
        return lambda row: one((row,), (), nowhere)
    return lambda row: [each((row,), (), nowhere) for each in found]


def _under(rows: Sequence[Row], key: Key) -> Under:
    found: Under = []
    for row in rows:
        now = key(row)
        if found and found[-1][0] == now:
            found[-1][1].append(row)
        else:
            found.append((now, [row]))
    return found


def _before(a: Any, b: Any, down: bool) -> bool:
    if a is None or b is None:
        return a is None and b is not None and not down
    return a > b if down else a < b


def _nearest(under: Under, key: Any, down: bool, after: bool, itself: bool) -> tuple[Any, list[Row]] | None:
    """The key that is nearest before (or `after`) another one, or that key `itself` when it is there."""
    if key is None:
        return None
    for each in under if after else reversed(under):
        near = _before(key, each[0], down) if after else _before(each[0], key, down)
        if near or (itself and each[0] == key):
            return each
    return None


def _between(under: Under, down: bool, low: Any, with_low: bool, high: Any, with_high: bool) -> list[Row]:
    def inside(key: Any) -> bool:
        above = _before(low, key, down) or (with_low and key == low)
        return above and (_before(key, high, down) or (with_high and key == high))

    return [row for key, rows in under if inside(key) for row in rows]


_FINDS: Mapping[str, tuple[bool, bool]] = {
    "lower": (False, False), "floor": (False, True), "ceiling": (True, True), "higher": (True, False)
}  # fmt: skip
_GIVES: Mapping[str, tuple[Callable[[tuple[Any, list[Row]]], Any], str]] = {
    "event": (lambda found: found[1][0], "element"),
    "events": (lambda found: found[1], "list"),
    "key": (lambda found: found[0], "key"),
}
Method = tuple[Callable[..., Any], str, int]


def _made() -> dict[str, Method]:
    made: dict[str, Method] = {
        "containskey": (lambda under, down, key: any(key == each for each, _ in under), "bool", 1),
        "countevents": (lambda under, down: sum(len(rows) for _, rows in under), "int", 0),
        "countkeys": (lambda under, down: len(under), "int", 0),
        "eventsbetween": (_between, "list", 4),
    }
    for what, (give, result) in _GIVES.items():
        made[f"first{what}"] = (lambda under, down, give=give: give(under[0]) if under else None, result, 0)
        made[f"last{what}"] = (lambda under, down, give=give: give(under[-1]) if under else None, result, 0)
        for name, (after, itself) in _FINDS.items():

            def near(
                under: Under, down: bool, key: Any, give: Any = give, after: bool = after, itself: bool = itself
            ) -> Any:
                found = _nearest(under, key, down, after, itself)
                return None if found is None else give(found)

            made[f"{name}{what}"] = (near, result, 1)
        if what != "key":

            def at(under: Under, down: bool, key: Any, give: Any = give) -> Any:
                return next((give(each) for each in under if each[0] == key), None)

            made[f"get{what}"] = (at, result, 1)
    made["minby"], made["maxby"] = made["firstevent"], made["lastevent"]
    return made


RANKED: Mapping[str, Method] = _made()
"""By name in lower case: the function of the keys with their rows, what its result is, how many keys and bounds it takes."""


def ranked(name: str, key: Key, down: bool) -> Callable[..., Any]:
    """A method over the sorted rows; of no rows, and at a key that is null, nothing is known."""
    function = RANKED[name][0]

    def call(rows: Sequence[Row] | None, *given: Any) -> Any:
        return None if rows is None or None in given else function(_under(rows, key), down, *given)

    return call
