"""Lengths of time and crontabs, in the engine's clock unit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from rollup.engine import operators as op
from rollup.engine.expressions import Call, Const, Expr
from rollup.engine.operators import Operator
from rollup.engine.types import LONG
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import constant, lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex

_SECONDS: dict[str, float] = {
    "week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1, "millisecond": 1e-3, "microsecond": 1e-6,
}  # fmt: skip
_WHOLE = Operator("whole span", lambda value: round(value))


def span(node: ex.Expression, scope: Scope, what: str) -> int:
    """A length of time that is known at once, in clock units; a bare number is seconds."""
    if isinstance(node, ex.Period):
        total = 0.0
        for quantity, unit in node.parts:
            total += _number(constant(quantity, scope, what), quantity) * _seconds(unit, node)
    else:
        total = _number(constant(node, scope, what), node)
    found = round(total * scope.catalog.second)
    if found < 0:
        raise problem(f"{what} needs a length of time that is not negative", node)
    return found


def span_expr(node: ex.Expression, scope: Scope, what: str) -> Expr:
    """A length of time that may depend on tags or variables, in clock units."""
    parts = node.parts if isinstance(node, ex.Period) else ((node, "second"),)
    total: Expr | None = None
    for quantity, unit in parts:
        value = lower(quantity, scope)
        if not value.type.numeric:
            raise problem(f"{what} needs a number, not `{render(quantity)}`", quantity, "10 sec")
        factor = Const(_seconds(unit, node) * scope.catalog.second, LONG)
        product = Call(op.MULTIPLY, (value, factor), LONG)
        total = product if total is None else Call(op.ADD, (total, product), LONG)
    assert total is not None
    return Call(_WHOLE, (total,), LONG)


def _seconds(unit: str, node: ex.Expression) -> float:
    if unit not in _SECONDS:
        raise problem(f"a {unit} has no fixed length", node, "use days or weeks")
    return _SECONDS[unit]


def _number(value: Any, node: ex.Expression) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise problem(f"`{render(node)}` is not a length of time", node, "10 sec, or a number of seconds")
    return value


# crontabs

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 6),
    ("second", 0, 59),
)
_Days = frozenset[int] | tuple[str, int | None] | None


@dataclass(frozen=True)
class Crontab:
    """Instants by a crontab, in UTC; `second` clock units make a second."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: _Days
    months: frozenset[int]
    weekdays: _Days
    seconds: frozenset[int]
    second: int

    def after(self, instant: int) -> int:
        """The first instant after the second of that one, as far behind its full second as that one is.

        A calendar that is asked at half past a second goes on at half past seconds: the reference's does, everywhere.

        >>> every = frozenset
        >>> Crontab(every({5}), every(range(24)), None, every(range(1, 13)), None, every({0}), 1000).after(300_000)
        3900000
        """
        rest = instant % self.second
        at = datetime.fromtimestamp(instant // self.second, UTC).replace(microsecond=0) + timedelta(seconds=1)
        for _ in range(366 * 9):
            if at.month in self.months and self._day(at):
                found = self._in_day(at)
                if found is not None:
                    return int(found.timestamp()) * self.second + rest
            at = at.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        return 2**62

    def _in_day(self, at: datetime) -> datetime | None:
        for hour in sorted(h for h in self.hours if h >= at.hour):
            for minute in sorted(m for m in self.minutes if hour > at.hour or m >= at.minute):
                same = (hour, minute) == (at.hour, at.minute)
                for second in sorted(s for s in self.seconds if not same or s >= at.second):
                    return at.replace(hour=hour, minute=minute, second=second)
        return None

    def _day(self, at: datetime) -> bool:
        by_day, by_week = _matches_day(self.days, at), _matches_weekday(self.weekdays, at)
        if self.days is not None and self.weekdays is not None:
            return by_day or by_week
        return by_day and by_week


def _matches_day(days: _Days, at: datetime) -> bool:
    if days is None or isinstance(days, frozenset):
        return days is None or at.day in days
    last = (at.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    kind, day = days
    if kind == "last":
        return at.day == last.day
    wanted = last.day if day is None else min(day, last.day)
    aim = at.replace(day=wanted)
    shift = {5: -1, 6: 1}.get(aim.weekday(), 0)
    moved = aim + timedelta(days=shift)
    if moved.month != aim.month:
        moved = aim + timedelta(days=-2 if shift == 1 else 2)
    return at.day == moved.day


def _matches_weekday(days: _Days, at: datetime) -> bool:
    sunday_first = (at.weekday() + 1) % 7
    if days is None or isinstance(days, frozenset):
        return days is None or sunday_first in days
    _, day = days
    if day is None:
        return sunday_first == 6
    return sunday_first == day and (at + timedelta(days=7)).month != at.month


def crontab(node: ex.Crontab, scope: Scope) -> Crontab:
    """A crontab; fields that are missing are `*`, the second 0. Raises PlanError for values out of range."""
    found = [_field(field, place, scope) for place, field in enumerate(node.fields[:6])]
    seconds = found[5] if len(found) > 5 else frozenset({0})
    every: list[Any] = [
        frozenset(range(low, high + 1)) if each is None else each
        for each, (_, low, high) in zip((*found[:5], seconds), _FIELDS, strict=True)
    ]
    days, weekdays = found[2], found[4]
    return Crontab(every[0], every[1], days, every[3], weekdays, every[5], scope.catalog.second)


def _field(node: ex.Expression, place: int, scope: Scope) -> _Days:
    name, low, high = _FIELDS[place]

    def number(part: ex.Expression) -> int:
        value = constant(part, scope, f"the {name} of a crontab")
        if not isinstance(value, int) or not low <= value <= high:
            raise problem(f"`{render(part)}` is no {name}", part, f"{low} to {high}")
        return value

    match node:
        case ex.CronAny():
            return None
        case ex.CronStep():
            step = constant(node.step, scope, "the step of a crontab")
            if not isinstance(step, int) or step < 1:
                raise problem(f"`{render(node.step)}` is no step", node, "1 or more")
            return frozenset(range(low, high + 1, step))
        case ex.CronRange():
            return frozenset(range(number(node.low), number(node.high) + 1))
        case ex.CronList():
            parts = [_field(item, place, scope) for item in node.items]
            return frozenset(value for part in parts if isinstance(part, frozenset) for value in part)
        case ex.CronLast() if place in (2, 4):
            return ("last", None if node.day is None else number(node.day))
        case ex.CronWeekday() if place == 2:
            return ("weekday", None if node.day is None else number(node.day))
        case ex.CronLast() | ex.CronWeekday():
            raise problem(f"`{render(node)}` cannot be the {name}", node)
        case _:
            return frozenset({number(node)})
