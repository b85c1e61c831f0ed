"""Aggregates that give back rows, or values of them, in the order of the window: first, last, nth, window, sorted, min/maxby.

A row is known by its identity, so that this row leaves and not an equal one. `x` is that identity, `y` what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.operators import Operator
from rollup.engine.types import DataType, Kind
from rollup.lang.epl.ranks import Ranks, in_order

IDENTITY = Operator(
    "identity", lambda *rows: rows[0] and rows[0].id if len(rows) == 1 else tuple(r and r.id for r in rows), False
)
"""The identity of a row, or of a combination of rows."""
KEY = Operator("key", lambda *values: values, False)
"""Several values as one."""
OF_RANKS = Operator("rows in order", lambda ranks: ranks.all())
"""The rows of `Ranks`, which go on changing, as they are now."""


def _at(rows: dict[Any, Any], place: int) -> Any:
    values = iter(rows.values()) if place >= 0 else reversed(rows.values())
    return next(islice(values, place if place >= 0 else -1 - place, None), None)


def _ranks(known: Any, down: Sequence[bool]) -> Ranks:
    """The rows of a slot; a state that is restored holds them as a list."""
    return known if isinstance(known, Ranks) else Ranks(down, known)


def _ever(best: Any, key: tuple[Any, ...], row: Any, most: bool, down: Sequence[bool]) -> Any:
    # Of one key that is null nothing is known: the next row takes its place.
    if best is not None and best[0] != (None,):
        before, now = in_order(best[0], down), in_order(key, down)
        if not (before < now if most else now < before):
            return best
    return (key, row)


def _hold(rows: dict[Any, Any], key: Any, value: Any) -> None:
    """A combination comes in: its row is held once, however many combinations it stands in; no row, nothing."""
    if key is not None:
        rows.setdefault(key, [value, 0])[1] += 1


def _let_go(rows: dict[Any, Any], key: Any) -> None:
    if key in rows:
        rows[key][1] -= 1
        if rows[key][1] <= 0:
            del rows[key]


def _held_at(rows: dict[Any, Any], place: int) -> Any:
    found = _at(rows, place)
    return None if found is None else found[0]


LINES: dict[str, Callable[..., Any]] = {
    "value_at": _at, "held_at": _held_at, "ranks": _ranks, "best_ever": _ever, "hold": _hold, "let_go": _let_go,
}  # fmt: skip
"""The functions that these declarations' lines call."""
_ROWS = {"rows": "{}"}
_ENTER, _LEAVE = "{rows}[{x}] = {y}", "{rows}.pop({x}, None)"


def _second(types: Sequence[DataType]) -> DataType:
    return types[1]


def _list(types: Sequence[DataType]) -> DataType:
    return DataType(Kind.LIST, element=types[1])


def kept(name: str, place: int, joined: bool = False) -> Aggregate:
    """`first`, `last`, `nth` at a place, or `window`; `joined`: of one stream of a join, each row of it once."""
    at = None
    if name == "window":
        each = "[each for each, _ in {rows}.values()]" if joined else "list({rows}.values())"
        value, result = f"{each} or None", _list
    else:
        at = place if name == "first" else -1 - place
        value, result = f"{'held_at' if joined else 'value_at'}({{rows}}, {at})", _second
    if joined:
        enter, leave = "hold({rows}, {x}, {y})", "let_go({rows}, {x})"
        return Aggregate(name, _ROWS, enter, leave, value, result, skips=False, arguments=(2, 2), objects=LINES)
    skips, listed = name == "nth", name == "window"
    return Aggregate(
        name, _ROWS, _ENTER, _LEAVE, value, result, skips=skips, arguments=(2, 2), objects=LINES, at=at, listed=listed
    )


RANKED = ("sorted", "minby", "maxby", "minbyever", "maxbyever")


def ranked(name: str, down: Sequence[bool], kept: bool = False) -> Aggregate:
    """`sorted`, `minby`, `maxby` and those that never let go; `y` is the key, `z` the row.

    Of one stream of a join each row is there once. The value of `sorted` is a list where it is `kept`, as by a table; else the
    `Ranks` themselves, which are asked at once.
    """
    if name.endswith("ever"):
        best = f"best_ever({{best}}, {{y}}, {{z}}, {name.startswith('max')}, {tuple(down)!r})"
        enter = f"{{best}} = {best} if {{x}} is not None else {{best}}"
        value = "{best}[1] if {best} is not None else None"
        return Aggregate(
            name, {"best": "None"}, enter, None, value, _third, skips=False, arguments=(3, 3), objects=LINES
        )
    order = tuple(not d if name == "maxby" else d for d in down)
    rows = f"ranks({{rows}}, {order!r})"
    every = f"{rows}.all() or None" if kept else f"{rows} or None"
    value, result = (every, _third_list) if name == "sorted" else (f"{rows}.first()", _third)
    enter, leave = (
        f"{{rows}} = {rows}; {{rows}}.enter({{x}}, {{y}}, {{z}})",
        f"{{rows}} = {rows}; {{rows}}.leave({{x}})",
    )
    start = {"rows": f"ranks((), {order!r})"}
    return Aggregate(
        name, start, enter, leave, value, result, skips=False, arguments=(3, 3), objects=LINES, foremost=order,
        listed=name == "sorted",
    )  # fmt: skip


def _third(types: Sequence[DataType]) -> DataType:
    return types[2]


def _third_list(types: Sequence[DataType]) -> DataType:
    return DataType(Kind.LIST, element=types[2])
