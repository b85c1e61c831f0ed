"""The windows behind `#`: names and arguments → the engine's windows, and the rows that they hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from rollup.engine.expressions import Const, Expr, RowOf, Slot
from rollup.engine.rows.windows import counted, expressed, external, keyed, ranked, timed
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.types import LONG, Kind, RowType
from rollup.lang.epl.catalog import loose, problem, unknown
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.deriving import DERIVED, derived_window
from rollup.lang.epl.lowering.values.expressions import condition, constant, criterion, key, lower
from rollup.lang.epl.lowering.values.times import span
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.streams import View

BATCHES = (
    counted.LengthBatch,
    timed.TimeBatch,
    timed.TimeLengthBatch,
    external.ExternalTimeBatch,
    expressed.ExpressedBatch,
)
_Make = Callable[["_View"], WindowSpec]


def windows(
    views: Sequence[View], retain: Literal["union", "intersection"] | None, scope: Scope
) -> tuple[WindowSpec | None, RowType]:
    """The window that a chain of views means, and its rows; no views: no window. `scope` has the stream as source 0."""
    kinds = scope.sources[0].type
    parts: list[WindowSpec] = []
    groups: list[tuple[Expr, ...]] = []
    derived: View | None = None
    for view in views:
        found = _View(view, scope)
        if derived is not None:
            raise problem(f"nothing can follow #{derived.name}", view, "it gives one row of values")
        if view.name == "groupwin" and (groups or parts):
            raise problem("#groupwin stands first, once", view, "#groupwin(a, b)#length(10)")
        if view.name == "groupwin":
            groups.append(found.keys(1, None))
        elif view.name in DERIVED:
            derived = view
        elif view.name in _WINDOWS:
            parts.append(_WINDOWS[view.name](found))
        else:
            raise unknown("window", view.name, [*_WINDOWS, *DERIVED, "groupwin"], view)
    if groups and not parts and derived is None:
        raise problem("#groupwin needs a window behind it", views[0], "#groupwin(key)#length(10)")
    combined = _combined(parts, retain, views)
    if derived is not None:
        keys = tuple(node for view in views if view.name == "groupwin" for node in view.arguments)
        combined, kinds = derived_window(derived, combined or counted.KeepAll(), scope, keys)
    for by in reversed(groups):
        assert combined is not None
        combined = keyed.Grouped(by, combined)
    return combined, kinds


def _combined(parts: Sequence[WindowSpec], retain: str | None, views: Sequence[View]) -> WindowSpec | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    if retain != "union" and sum(isinstance(part, BATCHES) for part in parts) > 1:
        raise problem("two windows of batches close at different times", views[-1], "one of them, or retain-union")
    return Union(tuple(parts)) if retain == "union" else Intersection(tuple(parts))


class _View:
    """A view and its arguments."""

    def __init__(self, view: View, scope: Scope) -> None:
        self.view, self.scope = view, scope

    def count(self, least: int, most: int | None) -> None:
        """Raise PlanError unless there are so many arguments."""
        n = len(self.view.arguments)
        if n < least or (most is not None and n > most):
            wanted = f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise problem(f"#{self.view.name} takes {wanted} argument(s), not {n}", self.view)

    def number(self, place: int) -> int:
        """A whole number that is known at once."""
        node = self.view.arguments[place]
        value = constant(node, self.scope, f"the size of #{self.view.name}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise problem(f"#{self.view.name} needs a whole number from 1 on, not `{render(node)}`", node)
        return value

    def span(self, place: int) -> int:
        """A length of time."""
        node = self.view.arguments[place]
        found = span(node, self.scope, f"#{self.view.name}")
        if not found:
            raise problem(f"#{self.view.name} needs some time, not `{render(node)}`", node)
        return found

    def changing(self, node: ex.Expression, found: Expr) -> Expr:
        """A value of each row, which a constant is not."""
        if isinstance(found, Const):
            raise problem(f"`{render(node)}` is the same for every row", node, f"#{self.view.name} of a property")
        return found

    def value(self, place: int) -> Expr:
        """An expression over the row."""
        return lower(self.view.arguments[place], self.scope)

    def moment(self, place: int) -> Expr:
        """A time, as a number, over the row."""
        found = self.value(place)
        if not (found.type.numeric or loose(found.type) or found.type.kind is Kind.TIMESTAMP):
            node = self.view.arguments[place]
            raise problem(f"`{render(node)}` is {found.type}, not a time", node, "a number: milliseconds")
        return self.changing(self.view.arguments[place], found)

    def keys(self, least: int, most: int | None) -> tuple[Expr, ...]:
        """All arguments as values that tell rows apart."""
        self.count(least, most)
        return tuple(self.changing(node, key(node, self.scope)) for node in self.view.arguments)

    def sorting(self, start: int) -> tuple[tuple[Expr, ...], tuple[bool, ...]]:
        """Criteria with their directions."""
        nodes = self.view.arguments[start:]
        if not nodes:
            raise problem(f"#{self.view.name} needs something to sort by", self.view, "price desc")
        plain = [node.value if isinstance(node, ex.Sorted) else node for node in nodes]
        by = tuple(self.changing(node, criterion(node, self.scope)) for node in plain)
        return by, tuple(isinstance(node, ex.Sorted) and node.descending for node in nodes)

    def keywords(self, start: int) -> set[str]:
        """The control words of a batch window; `START_EAGER` says `FORCE_UPDATE` too."""
        words: set[str] = set()
        for node in self.view.arguments[start:]:
            value = constant(node, self.scope, "a control word")
            if isinstance(value, str):
                words |= {word.strip().upper() for word in value.split(",")}
        extra = words - {"FORCE_UPDATE", "START_EAGER"}
        if extra:
            raise unknown("control word", min(extra), ["FORCE_UPDATE", "START_EAGER"], self.view)
        return words


def _length(view: _View) -> WindowSpec:
    view.count(1, 1)
    return counted.Length(view.number(0))


def _length_batch(view: _View) -> WindowSpec:
    view.count(1, 2)
    return counted.LengthBatch(view.number(0), together=True)


def _time(view: _View) -> WindowSpec:
    view.count(1, 1)
    return timed.Time(view.span(0))


def _time_batch(view: _View) -> WindowSpec:
    view.count(1, 3)
    words = view.keywords(1)
    origin = None
    if len(view.view.arguments) > 1:
        second = constant(view.view.arguments[1], view.scope, "the reference point")
        origin = None if isinstance(second, str) else _point(second, view.view.arguments[1])
    return timed.TimeBatch(view.span(0), origin, "START_EAGER" in words, bool(words))


def _point(value: object, node: ex.Expression) -> int:
    """An instant from which batches count."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise problem(f"`{render(node)}` is no instant", node, "a whole number: milliseconds")
    return value


def _time_length_batch(view: _View) -> WindowSpec:
    view.count(2, 3)
    words = view.keywords(2)
    return timed.TimeLengthBatch(view.span(0), view.number(1), "START_EAGER" in words, bool(words))


def _external_batch(view: _View) -> WindowSpec:
    view.count(2, 3)
    third = view.view.arguments[2:]
    origin = _point(constant(third[0], view.scope, "the reference point"), third[0]) if third else None
    return external.ExternalTimeBatch(view.moment(0), view.span(1), origin)


def _external(view: _View) -> WindowSpec:
    view.count(2, 2)
    return external.ExternalTime(view.moment(0), view.span(1))


def _order(view: _View) -> WindowSpec:
    view.count(2, 2)
    return external.TimeOrder(view.moment(0), view.span(1))


def _to_live(view: _View) -> WindowSpec:
    view.count(1, 1)
    until = view.moment(0)
    if until.type.kind is Kind.INT or until.type.kind in (Kind.FLOAT, Kind.DOUBLE):
        node = view.view.arguments[0]
        raise problem(f"`{render(node)}` is {until.type}, not a time of type long", node, "cast(x, long)")
    return external.TimeOrder(until)


def _sort(view: _View) -> WindowSpec:
    view.count(2, None)
    return ranked.Sorted(view.number(0), *view.sorting(1))


def _rank(view: _View) -> WindowSpec:
    view.count(3, None)
    return ranked.Ranked((key(view.view.arguments[0], view.scope),), view.number(1), *view.sorting(2))


def _none(view: _View, spec: WindowSpec) -> WindowSpec:
    view.count(0, 0)
    return spec


def _single(view: _View, make: Callable[[int], WindowSpec], of: str) -> WindowSpec:
    view.count(1, 1)
    return make(view.span(0) if of == "time" else view.number(0))


def _expressed(view: _View) -> WindowSpec:
    view.count(1, 2)
    node, scope = view.view.arguments[0], _content_scope(view.scope)
    held = replace(scope.sources[0], windowed=True)  # what its aggregates are of may leave
    calls, slots = collect([node], replace(scope, sources=(held,)), expressed.AGGREGATES, ())
    found = condition(node, replace(scope, slots=slots))
    folded = tuple(each.call for each in calls)
    if view.view.name == "expr":
        return expressed.Expressed(found, folded)
    inclusive: object = True
    for node in view.view.arguments[1:]:
        inclusive = constant(node, view.scope, "the second argument")
        if not isinstance(inclusive, bool):
            raise problem("the second argument of #expr_batch is true or false", node)
    return expressed.ExpressedBatch(found, folded, bool(inclusive), together=True)


def _content_scope(scope: Scope) -> Scope:
    """The built-in names of a window's own condition."""
    row = scope.sources[0].type.data_type
    names: dict[str, Expr] = {
        "current_count": Slot(expressed.CURRENT, LONG),
        "expired_count": Slot(expressed.EXPIRED, LONG),
        "newest_timestamp": Slot(expressed.NEWEST, LONG),
        "oldest_timestamp": Slot(expressed.OLDEST, LONG),
        "newest_event": RowOf(0, row),
        "oldest_event": RowOf(1, row),
    }
    return replace(scope, names=names)


def ordered(views: Sequence[View]) -> bool:
    """Whether `prev` counts the rows of a window: of one alone, which keeps more than the first or newest of something."""
    kept = [view.name for view in views if view.name != "groupwin"]
    return len(kept) == 1 and kept[0] not in _FEW


_FEW = ("unique", "firstunique", "lastevent", "firstevent", "firstlength", "firsttime")
_WINDOWS: dict[str, _Make] = {
    "length": _length,
    "length_batch": _length_batch,
    "time": _time,
    "time_batch": _time_batch,
    "time_length_batch": _time_length_batch,
    "ext_timed": _external,
    "ext_timed_batch": _external_batch,
    "time_order": _order,
    "timetolive": _to_live,
    "ttl": _to_live,
    "time_accum": lambda view: _single(view, timed.TimeAccumulating, "time"),
    "keepall": lambda view: _none(view, counted.KeepAll()),
    "unique": lambda view: keyed.Unique(view.keys(1, None)),
    "firstunique": lambda view: keyed.Unique(view.keys(1, None), first=True),
    "lastevent": lambda view: _none(view, counted.Length(1)),
    "firstevent": lambda view: _none(view, counted.FirstLength(1)),
    "firstlength": lambda view: _single(view, counted.FirstLength, "length"),
    "firsttime": lambda view: _single(view, timed.FirstTime, "time"),
    "sort": _sort,
    "rank": _rank,
    "expr": _expressed,
    "expr_batch": _expressed,
}
