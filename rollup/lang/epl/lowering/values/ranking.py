"""The methods of what `sorted` gives: the first and the last, what is at a key, before, after and between keys.

They are about rows in their order, so with `desc` a greater key is before a lower one. Rows whose keys are the same stand
under one key. A null is before all, and no key has a place beside one that is null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from rollup.engine.compiling import compiled
from rollup.engine.expressions import Expr, lasting
from rollup.engine.reals import orderable
from rollup.engine.row import Row
from rollup.engine.rows.runner import Environment
from rollup.lang.epl.ranks import Ranks
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex

Key = Callable[[Row], Any]


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


class Listed:
    """Rows that are sorted, as a table's column has them, in place of `Ranks`."""

    def __init__(self, rows: Sequence[Row], key: Key, down: bool) -> None:
        self._down = down
        self._under: list[tuple[Any, list[Row]]] = []
        for row in rows:
            now = orderable(key(row))
            if self._under and self._under[-1][0] == now:
                self._under[-1][1].append(row)
            else:
                self._under.append((now, [row]))

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self._under)

    def all(self) -> list[Row]:
        """All rows in order."""
        return [row for _, rows in self._under for row in rows]

    def end(self, last: bool) -> list[Row]:
        """The rows of the first key, or of the last; none of none."""
        return self._under[-1 if last else 0][1] if self._under else []

    def at(self, key: Any) -> list[Row]:
        """The rows of a key; none where it is not there."""
        return next((rows for each, rows in self._under if each == orderable(key)), [])

    def near(self, key: Any, after: bool, itself: bool) -> list[Row]:
        """The rows of the key nearest before another one, or `after` it, or of that key `itself` where it is there."""
        for each, rows in self._under if after else reversed(self._under):
            near = _before(key, each, self._down) if after else _before(each, key, self._down)
            if near or (itself and each == orderable(key)):
                return rows
        return []


def _before(a: Any, b: Any, down: bool) -> bool:
    if a is None or b is None:
        return a is not b and (a is None) != down
    return orderable(a) > orderable(b) if down else orderable(a) < orderable(b)


Found = Ranks | Listed
_FINDS: Mapping[str, tuple[bool, bool]] = {
    "lower": (False, False), "floor": (False, True), "ceiling": (True, True), "higher": (True, False)
}  # fmt: skip
_GIVES: Mapping[str, tuple[Callable[[list[Row], Key], Any], str]] = {
    "event": (lambda rows, key: rows[0], "element"),
    "events": (lambda rows, key: rows, "list"),
    "key": (lambda rows, key: key(rows[0]), "key"),
}
Method = tuple[Callable[..., Any], str, int]


def _between(found: Found, key: Key, down: bool, low: Any, with_low: bool, high: Any, with_high: bool) -> list[Row]:
    def inside(now: Any) -> bool:
        above = _before(low, now, down) or (with_low and orderable(now) == orderable(low))
        return above and (_before(now, high, down) or (with_high and orderable(now) == orderable(high)))

    return [row for row in found.all() if inside(key(row))]


def _keys(found: Found, key: Key, down: bool) -> int:
    return sum(1 for _ in groupby(found.all(), lambda row: orderable(key(row))))


def _given(give: Callable[[list[Row], Key], Any], find: Callable[..., list[Row]]) -> Callable[..., Any]:
    """A method that gives something of the rows that it finds."""

    def method(found: Found, key: Key, down: bool, *asked: Any) -> Any:
        rows = find(found, *asked)
        return give(rows, key) if rows else None

    return method


def _made() -> dict[str, Method]:
    made: dict[str, Method] = {
        "containskey": (lambda found, key, down, asked: bool(found.at(asked)), "bool", 1),
        "countevents": (lambda found, key, down: len(found), "int", 0),
        "countkeys": (_keys, "int", 0),
        "eventsbetween": (_between, "list", 4),
    }
    for what, (give, result) in _GIVES.items():
        made[f"first{what}"] = _given(give, lambda found: found.end(False)), result, 0
        made[f"last{what}"] = _given(give, lambda found: found.end(True)), result, 0
        for name, (after, itself) in _FINDS.items():
            near = partial(_near, after=after, itself=itself)
            made[f"{name}{what}"] = _given(give, near), result, 1
        if what != "key":
            made[f"get{what}"] = _given(give, lambda found, asked: found.at(asked)), result, 1
    made["minby"], made["maxby"] = made["firstevent"], made["lastevent"]
    return made


def _near(found: Found, key: Any, after: bool, itself: bool) -> list[Row]:
    return found.near(key, after, itself)


RANKED: Mapping[str, Method] = _made()
"""By name in lower case: the function of the sorted rows, what its result is, how many keys and bounds it takes."""


def ranked(name: str, key: Key, down: bool) -> Callable[..., Any]:
    """A method over the sorted rows; of no rows, and at a key that is null, nothing is known."""
    function = RANKED[name][0]

    def call(rows: Ranks | Sequence[Row] | None, *given: Any) -> Any:
        if rows is None or None in given:
            return None
        return function(rows if isinstance(rows, Ranks) else Listed(rows, key, down), key, down, *given)

    return call
