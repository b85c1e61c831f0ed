"""Aggregates that give back rows, or values of them, in the order of the window: first, last, nth, window, sorted, min/maxby.

A row is known by its identity, so that this row leaves and not an equal one. `x` is that identity, `y` what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.operators import Operator
from rollup.engine.types import BOOL, DataType, Kind

IDENTITY = Operator(
    "identity", lambda *rows: rows[0] and rows[0].id if len(rows) == 1 else tuple(r and r.id for r in rows), False
)
"""The identity of a row, or of a combination of rows."""
KEY = Operator("key", lambda *values: values, False)
"""Several values as one."""


def _at(rows: dict[Any, Any], place: int) -> Any:
    values = list(rows.values())
    return values[place] if -len(values) <= place < len(values) else None


class _Down:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Down) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and other.value == self.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def _ranked(rows: dict[Any, Any], down: Sequence[bool]) -> list[Any]:
    """The rows in their order; of equal keys the one that came first is first."""
    key, reverse = _by(down)
    return [row for _, row in sorted(rows.values(), key=key, reverse=reverse)]


def _foremost(rows: dict[Any, Any], down: Sequence[bool]) -> Any:
    """The first row of that order, found without putting the others in theirs."""
    if not rows:
        return None
    key, reverse = _by(down)
    return (max if reverse else min)(rows.values(), key=key)[1]


def _by(down: Sequence[bool]) -> tuple[Callable[[Any], Any], bool]:
    """What entries are compared by, and whether the greatest is first: only of several ways each value needs its own."""
    reverse = all(down)
    if len(down) == 1:
        return lambda entry: _least(entry[0][0]), reverse
    ways = [False] * len(down) if reverse else down
    return lambda entry: _order(entry[0], ways), reverse


def _order(key: Sequence[Any], down: Sequence[bool]) -> tuple[Any, ...]:
    """What a key is sorted by, one value after the other."""
    return tuple(_Down(_least(value)) if d else _least(value) for value, d in zip(key, down, strict=True))


def _least(value: Any) -> tuple[bool, Any]:
    """A value among others, null before all."""
    return value is not None, value


def _ever(best: Any, key: tuple[Any, ...], row: Any, most: bool, down: Sequence[bool]) -> Any:
    # Of one key that is null nothing is known: the next row takes its place.
    if best is not None and best[0] != (None,):
        before, now = _order(best[0], down), _order(key, down)
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


def _held(rows: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value for key, (value, _) in rows.items()}


LINES: dict[str, Callable[..., Any]] = {
    "value_at": _at, "ranked": _ranked, "foremost": _foremost, "best_ever": _ever,
    "hold": _hold, "let_go": _let_go, "held": _held,
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
    rows, at = "held({rows})" if joined else "{rows}", None
    if name == "window":
        value, result = f"list({rows}.values()) or None", _list
    else:
        at = place if name == "first" else -1 - place
        value, result = f"value_at({rows}, {at})", _second
    if joined:
        enter, leave = "hold({rows}, {x}, {y})", "let_go({rows}, {x})"
        return Aggregate(name, _ROWS, enter, leave, value, result, skips=False, arguments=(2, 2), objects=LINES)
    enter = f"if {{y}} is not None: {_ENTER}" if name == "nth" else _ENTER
    at = None if name == "nth" else at
    return Aggregate(name, _ROWS, enter, _LEAVE, value, result, skips=False, arguments=(2, 2), objects=LINES, at=at)


LEAVING = Aggregate(
    "leaving", {"left": "False"}, "pass", "{left} = True", "{left}", lambda types: BOOL, skips=False, arguments=(0, 0)
)
"""Whether a row has left: what has left leaves its trace here."""
RANKED = ("sorted", "minby", "maxby", "minbyever", "maxbyever")


def ranked(name: str, down: Sequence[bool], joined: bool = False) -> Aggregate:
    """`sorted`, `minby`, `maxby` and those that never let go; `y` is the key, `z` the row.

    `joined`: of the rows of one stream of a join, each row of it once.
    """
    if name.endswith("ever"):
        best = f"best_ever({{best}}, {{y}}, {{z}}, {name.startswith('max')}, {tuple(down)!r})"
        enter = f"{{best}} = {best} if {{x}} is not None else {{best}}"
        value = "{best}[1] if {best} is not None else None"
        return Aggregate(
            name, {"best": "None"}, enter, None, value, _third, skips=False, arguments=(3, 3), objects=LINES
        )
    order = tuple(not d if name == "maxby" else d for d in down)
    among = f"({'held({rows})' if joined else '{rows}'}, {order!r})"
    value = f"ranked{among} or None" if name == "sorted" else f"foremost{among}"
    result = _third_list if name == "sorted" else _third
    enter = "hold({rows}, {x}, ({y}, {z}))" if joined else "{rows}[{x}] = ({y}, {z})"
    leave = "let_go({rows}, {x})" if joined else _LEAVE
    return Aggregate(name, _ROWS, enter, leave, value, result, skips=False, arguments=(3, 3), objects=LINES)


def _third(types: Sequence[DataType]) -> DataType:
    return types[2]


def _third_list(types: Sequence[DataType]) -> DataType:
    return DataType(Kind.LIST, element=types[2])
