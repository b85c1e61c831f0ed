"""SiddhiQL's windows by name: what each takes and which window of the engine it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rollup.core.errors import PlanError, RollupError
from rollup.engine import operators as op
from rollup.engine.expressions import Call, Const, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import ArrivalBatch, Length, LengthBatch
from rollup.engine.rows.windows.expressed import AGGREGATES, Expressed, ExpressedBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch, ExternalTimeBatchTimeout
from rollup.engine.rows.windows.ranked import Frequent, LossyFrequent, Sorted
from rollup.engine.rows.windows.sessions import Session
from rollup.engine.rows.windows.timed import Delay, ScheduledBatch, Time, TimeBatch
from rollup.engine.types import BOOL, LONG, STRING, RowType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.binding import Input, Scope, bind, condition, number
from rollup.lang.siddhi.statements.calendars import crontab
from rollup.lang.siddhi.statements.kinds import keyable, keyed, ordered
from rollup.lang.siddhi.statements.reader import read_expression
from rollup.plan.types import Type


@dataclass(frozen=True)
class Arguments:
    """What stands in the parentheses of a window, and the rows it is over."""

    call: tree.Function
    row: RowType

    def number(self, place: int) -> int:
        """A whole number or a time."""
        return number(self.call.arguments[place], f"argument {place + 1} of {self.call.name}")

    def span(self, place: int) -> int:
        """A time that is longer than none."""
        found = self.number(place)
        if found < 1:
            raise self.problem(place, "is a time longer than none", "1 sec")
        return found

    def count(self, place: int) -> int:
        """A number of rows."""
        node = self.call.arguments[place]
        if isinstance(node, tree.Constant) and node.type is Type.INT:
            return self.number(place)
        raise self.problem(place, "is an int, a number of rows")

    def given(self, place: int) -> int | None:
        """A whole number or a time, where it is there."""
        return self.number(place) if place < len(self.call.arguments) else None

    def value(self, place: int) -> Expr:
        """An expression over the row."""
        return bind(self.call.arguments[place], Scope([Input((self.row.name,), self.row)]))

    def told(self, place: int) -> Expr:
        """An expression that tells rows apart, so none that is the same of all."""
        if isinstance(self.call.arguments[place], tree.Constant):
            raise self.problem(place, "is an attribute, not a constant")
        return self.value(place)

    def values(self, start: int) -> tuple[Expr, ...]:
        """The expressions from one place on that tell rows apart."""
        return tuple(self.told(place) for place in range(start, len(self.call.arguments)))

    def share(self, place: int) -> float:
        """A number above 0, at most 1."""
        node = self.call.arguments[place]
        value = node.value if isinstance(node, tree.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1:
            return float(value)
        raise self.problem(place, "is a number above 0, at most 1")

    def is_flag(self, place: int) -> bool:
        """Whether true or false stands there."""
        node = self.call.arguments[place]
        return isinstance(node, tree.Constant) and isinstance(node.value, bool)

    def flag(self, place: int) -> bool:
        """true or false, where it is there."""
        if place >= len(self.call.arguments):
            return False
        node = self.call.arguments[place]
        if isinstance(node, tree.Constant) and isinstance(node.value, bool):
            return node.value
        raise self.problem(place, "is true or false")

    def problem(self, place: int, what: str, hint: str | None = None) -> RollupError:
        """An argument that is not what it should be."""
        wrong = PlanError(f"argument {place + 1} of {self.call.name} {what}", hint=hint)
        return wrong.at(*self.call.arguments[place].place)


def _sorted(given: Arguments) -> WindowSpec:
    by, down = list[Expr](), list[bool]()
    for place, node in enumerate(given.call.arguments[1:], start=1):
        if isinstance(node, tree.Constant) and node.type is Type.STRING:
            if node.value not in ("asc", "desc") or not by:
                raise PlanError(f"sort knows no order {node.value!r}", hint="'asc' or 'desc'").at(*node.place)
            down[-1] = node.value == "desc"
        else:
            by.append(given.told(place))
            ordered(by[-1].type, node, f"argument {place + 1} of sort")
            down.append(False)
    return Sorted(given.count(0), tuple(by), tuple(down), "newest", lazy=True)


def _expressed(given: Arguments) -> WindowSpec:
    return Expressed(*_condition(given))


def _expressed_batch(given: Arguments) -> WindowSpec:
    """A batch goes on as long as its condition holds; one of which nothing is known does not."""
    test, calls = _condition(given)
    ends = Call(op.NOT_SAME, (test, Const(True, BOOL)), BOOL)
    return ExpressedBatch(ends, calls, inclusive=given.flag(1), early=given.flag(2), passes=True)


def _time_batch(given: Arguments) -> WindowSpec:
    """`timeBatch(span[, start][, early])`."""
    early = len(given.call.arguments) - 1
    early = early if early and (early == 2 or given.is_flag(early)) else 3
    return TimeBatch(given.span(0), given.given(1) if early != 1 else None, each=True, early=given.flag(early))


def _event_time(given: Arguments) -> Expr:
    """The attribute that is the time of a row."""
    time = given.value(0)
    if not isinstance(time, Field) or time.type != LONG:
        raise PlanError(f"argument 1 of {given.call.name} is a long attribute, the time").at(*given.call.place)
    return time


def _external_time_batch(given: Arguments) -> WindowSpec:
    """`externalTimeBatch(time, span[, start][, timeout][, stamp])`: the start may be an attribute of the first row."""
    time, span = _event_time(given), given.span(1)
    start = given.call.arguments[2] if len(given.call.arguments) > 2 else None
    origin = given.value(2) if isinstance(start, tree.Name) else given.given(2)
    if len(given.call.arguments) <= 3:
        return ExternalTimeBatch(time, span, origin)
    if given.flag(4) and not isinstance(time, Field):
        raise PlanError(f"argument 1 of {given.call.name} is an attribute when the batch's end is put into it")
    stamped = time.index if given.flag(4) and isinstance(time, Field) else None
    return ExternalTimeBatchTimeout(time, span, origin, given.number(3), stamped)


def _lossy(given: Arguments) -> WindowSpec:
    support = given.share(0)
    error = given.share(1) if len(given.call.arguments) > 1 else support / 10
    return LossyFrequent(support, error, _keys(given, 2))


def _cron(given: Arguments) -> WindowSpec:
    node = given.call.arguments[0]
    if not isinstance(node, tree.Constant) or not isinstance(node.value, str):
        raise PlanError(f"{given.call.name} takes a crontab in quotes").at(*given.call.place)
    return ScheduledBatch(crontab(node.value, node.place))


def _session(given: Arguments) -> WindowSpec:
    """`session(gap[, key[, latency]])`."""
    keys = (given.told(1),) if len(given.call.arguments) > 1 else ()
    if any(not isinstance(key, Field) or key.type != STRING for key in keys):
        raise PlanError(f"the key of {given.call.name} is a string attribute").at(*given.call.place)
    gap, latency = given.number(0), given.given(2) or 0
    if latency > gap:
        raise PlanError(f"the latency of {given.call.name} is longer than its gap").at(*given.call.place)
    return Session(gap, keys, latency)


def _condition(given: Arguments) -> tuple[Expr, tuple[AggregateCall, ...]]:
    """The condition in quotes: `last` and `first` are the newest and the oldest row, aggregates are over the content."""
    node = given.call.arguments[0]
    if not isinstance(node, tree.Constant) or not isinstance(node.value, str):
        raise PlanError(f"{given.call.name} takes its condition in quotes").at(*given.call.place)
    calls = list[AggregateCall]()
    scope = Scope(
        [Input(("last",), given.row), Input(("first",), given.row)], calls, preferred=0, first_slot=AGGREGATES
    )
    test = condition(read_expression(node.value), scope, "the condition of a window")
    return test, tuple(calls)


@dataclass(frozen=True)
class Known:
    """A window: how many arguments it takes, and what they make."""

    least: int
    most: int | None
    build: Callable[[Arguments], WindowSpec]


WINDOWS: Mapping[str, Known] = {
    "length": Known(1, 1, lambda given: Length(given.count(0))),
    "lengthBatch": Known(1, 2, lambda given: LengthBatch(given.count(0), given.flag(1))),
    "batch": Known(0, 1, lambda given: ArrivalBatch(given.count(0) or None if given.call.arguments else None)),
    "time": Known(1, 1, lambda given: Time(given.number(0))),
    "timeLength": Known(2, 2, lambda given: Time(given.number(0), given.count(1))),
    "delay": Known(1, 1, lambda given: Delay(given.number(0))),
    "timeBatch": Known(1, 3, _time_batch),
    "cron": Known(1, 1, _cron),
    "externalTime": Known(2, 2, lambda given: ExternalTime(_event_time(given), given.number(1))),
    "externalTimeBatch": Known(2, 5, _external_time_batch),
    "sort": Known(2, None, _sorted),
    "session": Known(1, 3, _session),
    "frequent": Known(1, None, lambda given: Frequent(given.count(0), _keys(given, 1))),
    "lossyFrequent": Known(1, None, _lossy),
    "expression": Known(1, 1, _expressed),
    "expressionBatch": Known(1, 3, _expressed_batch),
}


def _keys(given: Arguments, start: int) -> tuple[Expr, ...]:
    """What tells rows apart: the expressions from one place on, or else all attributes."""
    keys = given.values(start)
    for key, node in zip(keys, given.call.arguments[start:], strict=True):
        keyable(key.type, node, f"a key of {given.call.name}")
    return keys or _whole(given.row)


def _whole(row: RowType) -> tuple[Expr, ...]:
    return tuple(keyed(Field(0, place, kind)) for place, kind in enumerate(list(row.fields.values())[:-1]))


def window(call: tree.Function, row: RowType) -> WindowSpec:
    """The window of a call. Raises PlanError for an unknown name or arguments that do not fit."""
    known = next((entry for name, entry in WINDOWS.items() if name.lower() == call.name.lower()), None)
    if known is None:
        raise PlanError(f"unknown window {call.name!r}", hint=f"known are {', '.join(WINDOWS)}").at(*call.place)
    count = len(call.arguments)
    if count < known.least or (known.most is not None and count > known.most):
        wanted = str(known.least) if known.least == known.most else f"at least {known.least}"
        raise PlanError(f"window {call.name} takes {wanted} argument(s), not {count}").at(*call.place)
    return known.build(Arguments(call, row))
