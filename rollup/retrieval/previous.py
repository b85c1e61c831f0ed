"""`previous(x)`: a column of the bucket before, and `previous(x, '1 year')`: of the bucket that long ago.

The earlier buckets are read beside those that are asked for, so the first row has one too. An earlier bucket is found by
the calendar and not by counting rows: where it has no events, the value is null.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rollup.core.errors import PlanError, QueryError
from rollup.core.periods import Period, Window, back
from rollup.plan.aggregation import TIMESTAMP, column
from rollup.plan.app import Selection, position
from rollup.plan.types import Type
from rollup.retrieval.answer import key_column

NAME = "previous"
_HINT = f"{NAME}(total), or {NAME}(total, '1 year')"


@dataclass(frozen=True)
class Look:
    """One call: the column of the answer that is looked at, and how far back; None is the bucket before."""

    name: str
    window: Window | None

    @property
    def column(self) -> str:
        """The column in which a row has what the call gives."""
        return f"AGG_PREVIOUS_{self._length}_{self.name}"

    @property
    def place(self) -> str:
        """The column of the relation `earlier` that says where the bucket begins."""
        return f"AGG_EARLIER_{self._length}"

    @property
    def _length(self) -> str:
        return "1" if self.window is None else f"{self.window.count}_{self.window.unit}"


def looks_of(selection: Selection, known: Mapping[str, Type]) -> tuple[tuple[Look, ...], Selection]:
    """The calls in a selection, and the selection with a column in the place of each. Raises PlanError or QueryError."""
    found = dict[Look, None]()

    def of(node: exp.Expr) -> exp.Expr:
        return node.transform(lambda each: _replaced(each, known, found))

    items = None
    if selection.items is not None:
        items = tuple(replace(item, expression=of(item.expression)) for item in selection.items)
    having = None if selection.having is None else of(selection.having)
    order = tuple(exp.Ordered(this=of(each.this), desc=each.args.get("desc")) for each in selection.order_by)
    return tuple(found), replace(selection, items=items, having=having, order_by=order)


def _replaced(node: exp.Expr, known: Mapping[str, Type], found: dict[Look, None]) -> exp.Expr:
    if not isinstance(node, exp.Anonymous) or node.name.lower() != NAME:
        return node
    given = node.expressions
    if not 1 <= len(given) <= 2 or not isinstance(given[0], exp.Column):
        raise PlanError(f"{NAME} takes a column, and how long ago", hint=_HINT).at(*position(node))
    if given[0].name not in known:
        hint = ", ".join(known)
        raise PlanError(f"unknown attribute {given[0].name!r}", hint=hint).at(*position(given[0]))
    look = Look(given[0].name, _window(given[1]) if len(given) == 2 else None)
    found[look] = None
    made = column(look.column)
    made.meta.update(node.meta)
    return made


def _window(node: exp.Expr) -> Window:
    text = node.name if isinstance(node, exp.Literal) and node.is_string else ""
    match = re.fullmatch(r"\s*(\d{1,6})\s+([A-Za-z]+)\s*", text)
    if match is None:
        raise QueryError(f"{NAME} takes a length of time as its second argument", hint=_HINT).at(*position(node))
    return Window.of(match[1], match[2], False)


def earlier(period: Period, starts: Sequence[int], window: Window | None, zone: str) -> list[int]:
    """For each of some buckets in order the start of the earlier one.

    >>> earlier(Period.parse("days"), [86_400_000, 172_800_000], None, "+00:00")
    [0, 86400000]
    """
    if window is None or window.count is None:
        return [period.preceding(starts[0], zone), *starts[:-1]]
    if period.calendar is not None:
        raise QueryError(f"{NAME} looks back over one period of {period.calendar.name}", hint=f"{NAME}(x)")
    place = period.zone or zone
    wanted = [back(at, window.count, window.unit, place) for at in starts]
    low = back(min(wanted), 2 * period.count, period.unit, place)
    edges = period.edges(low, max(wanted) + 1, zone)
    return [edges[bisect_right(edges, at) - 1] for at in wanted]


def with_earlier(rows: exp.Select, keys: int, looks: Sequence[Look]) -> exp.Select:
    """The rows of the buckets in `earlier`, with a column for each call; `rows` has AGG_TIMESTAMP and the keys."""
    query = exp.select("b.*").from_("b").with_("b", as_=rows)
    query = query.join("earlier AS e", on=exp.EQ(this=_of("e", TIMESTAMP), expression=_of("b", TIMESTAMP)))
    for place in dict.fromkeys(look.place for look in looks):
        same: list[exp.Expr] = [exp.EQ(this=_of(place, TIMESTAMP), expression=_of("e", place))]
        for index in range(keys):
            key = key_column(index)
            same.append(exp.NullSafeEQ(this=_of(place, key), expression=_of("b", key)))
        table = exp.alias_(exp.to_table("b"), place, table=True, quoted=True)
        query = query.join(table, on=exp.and_(*same), join_type="left")
    return query.select(*(exp.alias_(_of(look.place, look.name), look.column, quoted=True) for look in looks))


def _of(table: str, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))
