"""`Engine`: statements and their state, on rows or over columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, repeat
from typing import Any, Literal

import numpy as np

from rollup.aggregation.event_times import FIRST_YEAR, LAST_YEAR, instant, latest_of
from rollup.aggregation.offsets import Offsets
from rollup.core.errors import QueryError, RollupError, TimeError
from rollup.core.garbage import AT_A_TIME, uncollected
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.bulk import Columns
from rollup.engine.columns.running.placing import Placed
from rollup.engine.columns.running.telling import Place, Told
from rollup.engine.dividing import from_outside
from rollup.engine.residence import Residence
from rollup.engine.rows.component import Component
from rollup.engine.rows.dividing import needs_of
from rollup.engine.rows.runner import Delivery
from rollup.engine.state import State, taking_up
from rollup.engine.types import DataType, Kind, RowType
from rollup.lang.epl.asking import ask
from rollup.lang.epl.deployer import Deployer, Deployment
from rollup.live.events import Events, instants, is_time, is_whole
from rollup.live.hearing import ArrowListener, Heard, Hearing, Listener, Values, shown
from rollup.plan.dividing import Keys, common
from rollup.plan.lateness import ahead_of

_LEAST = 256
"""From batches of so many events on, what columns cover goes over to them: about what loading a loop costs."""
_TOGETHER = 1 << 16
"""So many events of a table are one batch, so that what they deliver together stays bounded."""
_TOLD_TOGETHER = 1000
Instants = int | datetime | Sequence[int] | Sequence[datetime] | Any
"""An instant for all, or a column of one for each event."""
_OF_INSTANTS = (Kind.INT, Kind.LONG, Kind.TIMESTAMP, Kind.STRING)


@dataclass(frozen=True)
class Answered:
    """What events brought, and the one that was refused and why; each by the number of its event."""

    brought: Sequence[tuple[int, Heard]]
    refused: tuple[int, RollupError] | None = None


class Engine:
    """Statements and their state. Time is what `advance` says; the engine has no clock of its own.

    `start` is the first instant, a time or in units since 1970: milliseconds, or microseconds with `unit="us"`. `columns` is the
    smallest batch for which statements that columns cover go over to them (None: never); answers are the same. `ahead` is
    how far ahead of the clock of this machine, or of `now`, the instants of events may be ("any" for any distance).
    """

    def __init__(
        self,
        start: int | datetime = 0,
        unit: Literal["ms", "us"] = "ms",
        columns: int | None = _LEAST,
        ahead: str = "1 day",
    ) -> None:
        self._unit: Literal["ms", "us"] = unit
        self._start, self._ahead = self._instant(start), ahead
        self._most_ahead = ahead_of(ahead, "Engine: ahead")
        self._component = Component(self._start)
        self._deployer = Deployer(self._component, 1000 if unit == "ms" else 1_000_000)
        self._columns = Columns(self._component, self._deployer.catalog.types.get, columns)
        self._residence = Residence(self._component, self._deployer.catalog.types.get, columns, self._columns)
        self._hearing = Hearing(self._deployer.types)
        self._offsets = Offsets()

    @property
    def now(self) -> int:
        """The time."""
        return self._component.runner.now

    def deploy(self, text: str, name: str | None = None, parameters: Mapping[str, Any] | None = None) -> Deployment:
        """Deploy a module: all its statements, or none.

        Raises SyntaxProblem or PlanError with line and column.
        """
        self._residence.forget()
        made = self._deployer.deploy(text, name, parameters)
        self._tell()
        return made

    def undeploy(self, name: str) -> None:
        """Stop a module by its name. A listener may do so; output that was not delivered yet is then dropped.

        Raises QueryError while another module needs what it declares.
        """
        self._residence.forget()
        found = self._deployer.deployments.get(name)
        with self._hearing.undeploying([] if found is None else [each.name for each in found.statements]):
            self._deployer.undeploy(name)

    def listen(self, statement: str, listener: Listener) -> None:
        """Call a function with every delivery of a statement. Raises QueryError for a name that no statement has."""
        self._known(statement)
        self._hearing.listen(statement, listener)

    def listen_arrow(self, listener: ArrowListener, *statements: str) -> None:
        """Call a function with tables of the output of some statements, or of all when none is named.

        Raises QueryError for a name that no statement has.
        """
        for name in statements:
            self._known(name)
        self._hearing.listen_arrow(listener, statements)

    def _known(self, statement: str) -> None:
        if statement not in self._deployer.types:
            known = ", ".join(self._deployer.types) or "none"
            raise QueryError(f"no statement is called `{statement}`", hint=f"statements: {known}")

    def plan(self) -> list[Placed]:
        """For each statement its component, where it runs (`rows`, `columns` or `program`), and the first reason against
        columns."""
        found = self._columns.placed()
        return [replace(each, executor="program") for each in found] if self._residence.goes_over else found

    def send(self, stream: str, rows: Any, at: str | Instants | None = None) -> None:
        """Send events, one after the other: a dict, several dicts, an Arrow table or a frame.

        `at`: the instant of all events or of each, or the field that holds it. An instant is a whole number in the engine's
        unit, or a time: of Python, or a column of pandas, Polars, NumPy or Arrow; one without a zone is in UTC. The clock
        goes there before the event. Raises QueryError for an event that does not fit its stream; those before it were taken.
        """
        kinds = self._deployer.catalog.types.get(stream)
        if kinds is None or stream in self._deployer.catalog.stores:
            known = ", ".join(self._deployer.catalog.types) or "none"
            raise QueryError(f"no stream is called `{stream}`", hint=f"streams: {known}")
        events = Events.of(kinds, rows)
        times, wrong = (None, None) if at is None else self._times(kinds, events, at)
        if times is not None and len(times) < len(events):
            events = events.slice(0, len(times))
        for begin in range(0, len(events), _TOGETHER):
            part = events.slice(begin, _TOGETHER) if len(events) > _TOGETHER else events
            self._send(stream, part, None if times is None else times[begin : begin + _TOGETHER])
        if wrong is not None:
            raise wrong

    def _times(self, kinds: RowType, events: Events, at: str | Instants) -> tuple[Ints, QueryError | None]:
        """The instants of events, up to the first that cannot be, and what is wrong with it."""
        given: Any = at
        if isinstance(at, str):
            if at not in kinds.fields or kinds.fields[at].kind not in _OF_INSTANTS:
                whole = [name for name, kind in kinds.fields.items() if kind.kind in _OF_INSTANTS]
                hint = f"fields of whole numbers or ISO times: {', '.join(whole) or 'none'}"
                raise QueryError(f"`{at}` is no field of `{kinds.name}` that can hold instants", hint=hint)
            place = kinds.index[at]
            given = [values[place] for values in events.rows(self._component.runner.row)]
            if kinds.fields[at].kind is Kind.STRING:
                given = [self._read_instant(kinds.name, text) for text in given]
        times = instants(given, len(events), self._unit)
        if times is None or len(times) != len(events):
            hint = "for each a time, or a whole number of milliseconds since 1970; none may be missing"
            raise QueryError(f"{len(events)} events need {len(events)} instants", hint=hint)
        if len(times) > 1 and bool((times[1:] < times[:-1]).any()):
            raise QueryError("the instants of the events go back", hint="order the events by them")
        latest = latest_of(self._most_ahead, self.now // self._scale)
        low, high = FIRST_YEAR * self._scale, LAST_YEAR * self._scale if latest is None else latest * self._scale
        if not len(times) or (times[0] >= low and times[-1] <= high):  # they do not go back
            return times, None
        first = 0 if times[0] < low else int(np.searchsorted(times, high, "right"))
        try:
            instant(int(times[first]) // self._scale, latest)
        except TimeError as problem:
            return times[:first], QueryError(f"event {first} of `{kinds.name}`, at {times[first]}: {problem}")
        return times[:first], None

    def _read_instant(self, stream: str, text: str | None) -> int:
        """The instant that a text names. Raises QueryError."""
        try:
            found = instant(text) * self._scale
        except TimeError as problem:
            raise QueryError(f"{text!r} is no instant: {problem}") from None
        self._offsets.take(stream, text)
        return found

    def _instant(self, to: Any) -> int:
        found = instants(to, 1, self._unit) if is_whole(to) or is_time(to) else None
        if found is None:
            raise QueryError(f"{to!r} is no instant", hint="a time, or a whole number of milliseconds since 1970")
        return int(found[0])

    @property
    def _scale(self) -> int:
        """Units of the clock in a millisecond."""
        return 1 if self._unit == "ms" else 1000

    def _send(self, stream: str, events: Events, times: Ints | None) -> None:
        make = self._component.runner.row
        now = self._component.runner.now
        instants = np.full(len(events), now) if times is None else np.maximum(times, now)
        if self._residence.takes(stream, len(events)):
            whole = events.batch(stream, instants, make)
            if whole is not None:
                self._hearing.tell_emitted(self._residence.send(stream, whole.columns, instants))
                return
        self._residence.hand_back()
        over = self._columns.wants(stream, len(events)) and not self._residence.goes_over
        batch = events.batch(stream, instants, make) if over else None
        if batch is None:
            self._one_by_one(stream, events, times)
            return
        told = self._columns.send(stream, batch, times is not None)
        self._hearing.tell(told)
        if told.problem is not None:
            raise told.problem

    def answered(self, stream: str, rows: Sequence[Values], at: Sequence[int]) -> Answered:
        """Send events up to one that is refused, and return the output of each, with or without listeners.

        The clock goes to the instant of each event first, and never back.
        """
        self._residence.hand_back()
        times = np.maximum.accumulate(np.array([self.now, *at], np.int64))[1:]
        told = self._told(stream, Events.of(self._deployer.catalog.types[stream], rows), times)
        last = len(rows) - 1  # what the clock brings at the end is the last one's
        brought = [(min(place, last), heard) for place, heard in self._hearing.placed(told)]
        return Answered(brought, None if told.problem is None else (told.stopped, told.problem))

    def _told(self, stream: str, events: Events, times: Ints) -> Told:
        make = self._component.runner.row
        batch = events.batch(stream, times, make) if self._columns.wants(stream, len(events)) else None
        if batch is None:
            return self._each(stream, events, times)
        return self._columns.send(stream, batch, timed=True)

    def _each(self, stream: str, events: Events, times: Ints) -> Told:
        """Events one by one, up to one that is refused."""
        runner, found = self._component.runner, list[tuple[Place, Delivery]]()
        values, instants = iter(events.rows(runner.row)), enumerate(times.tolist())
        for _ in range(0, len(times), AT_A_TIME):
            with uncollected():
                for place, at in islice(instants, AT_A_TIME):
                    try:
                        runner.advance_span(at)
                        runner.send(stream, next(values))
                    except QueryError as problem:
                        return Told(found, [], times, problem, place)
                    finally:
                        deliveries, runner.deliveries = runner.deliveries, []
                        found += [((2 * place + 1, at, 0), each) for each in deliveries]
        return Told(found, [], times)

    def _one_by_one(self, stream: str, events: Events, times: Ints | None) -> None:
        """Events one by one, each at its instant, without those that concern nobody."""
        runner = self._component.runner
        some = None if events.columns is None else self._columns.sieve.passing(events.kinds, events.columns)
        taken = events if some is None else events.where(some)
        at = times if times is None or some is None else times[np.asarray(some)]
        timed = zip(taken.rows(runner.row), repeat(None) if at is None else at.tolist(), strict=False)
        try:
            for _ in range(0, len(taken), AT_A_TIME):
                with uncollected():
                    runner.send_each(stream, islice(timed, AT_A_TIME), _TOLD_TOGETHER, self._tell)
            if times is not None and len(times):
                with uncollected():
                    runner.advance_span(int(times[-1]))
        finally:
            self._tell()

    def advance(self, to: int | datetime) -> None:
        """Move the clock, in milliseconds or as a time, through every instant that is due on the way; it never goes back.

        Raises QueryError for what is no instant.
        """
        to = self._instant(to)
        self._residence.hand_back()
        self._component.runner.advance_span(to)
        self._tell()

    def advance_at_most(self, to: int | datetime, most: int) -> bool:
        """As `advance`, through a number of instants at most. What is due behind them fires once, late, as in `jump`.

        Returns whether no such rest was left.
        """
        to = self._instant(to)
        self._residence.hand_back()
        there = self._component.runner.advance_span(to, most)
        if not there:
            self._component.runner.jump(to)
        self._tell()
        return there

    def jump(self, to: int | datetime) -> None:
        """Move the clock at once: each timer that is due fires once, late, in no defined order of statements.

        Raises QueryError as `advance` does.
        """
        to = self._instant(to)
        self._residence.hand_back()
        self._component.runner.jump(to)
        self._tell()

    def query(self, text: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> list[Values]:
        """The answer to a request over named windows and tables: select, insert, update, delete.

        Raises SyntaxProblem, PlanError or QueryError.
        """
        self._residence.hand_back()
        kinds, rows = ask(self._deployer, text, parameters)
        answer = [shown(row, kinds) for row in rows]
        self._tell()
        return answer

    def keys(self, arriving: Collection[str], made: Collection[str]) -> Keys:
        """The attributes of the arriving streams that divide all statements; `made`: the streams they insert into."""
        return common(from_outside(needs_of(self._component, self._deployer.catalog.types.get), arriving, made))

    @property
    def stores(self) -> Mapping[str, Mapping[str, DataType]]:
        """The named windows and tables, with the types of their columns."""
        return {name: store.type.fields for name, store in self._deployer.catalog.stores.items()}

    def columns(self, statement: str) -> Mapping[str, DataType]:
        """The columns of the output of a statement, with their types."""
        return self._kinds(statement).fields

    def rows(self, statement: str) -> list[Values]:
        """What a statement would output now."""
        kinds = self._kinds(statement)
        self._residence.hand_back()
        return [shown(row, kinds) for row in self._component.rows(statement)]

    def _kinds(self, statement: str) -> RowType:
        """The rows of a statement. Raises QueryError for one that is not there."""
        types = self._deployer.types
        if statement not in types:
            raise QueryError(f"no statement is called `{statement}`", hint=f"there are: {', '.join(types) or 'none'}")
        return types[statement]

    def snapshot(self) -> State:
        """A snapshot, to go on elsewhere: the modules' texts and the state of their statements."""
        self._residence.hand_back()
        self._columns.settle()
        state = self._component.snapshot()
        modules = [
            {"name": each.name, "text": each.text, "parameters": dict(each.parameters), "names": each.names}
            for each in self._deployer.deployments.values()
        ]
        own = {
            "start": self._start,
            "unit": self._unit,
            "ahead": self._ahead,
            "modules": modules,
            "columns": self._columns.gone_over(),
        }
        return State(state.tables, {**state.scalars, **own})

    @classmethod
    def restored(cls, state: State, columns: int | None = _LEAST) -> Engine:
        """An engine that goes on from a snapshot, without listeners. Raises StoreError for what is none, or of another version."""
        with taking_up("the snapshot", "begin anew, or go on with the version that took it"):
            engine = cls(state.scalars["start"], state.scalars["unit"], columns, state.scalars.get("ahead", "1 day"))
            engine._component.runner.environment.now = state.scalars["now"]
            for module in state.scalars["modules"]:
                engine._deployer.restored(module["text"], module["name"], module["parameters"], module["names"])
            engine._component.runner.deliveries.clear()
            for name in state.scalars.get("columns", ()):
                engine._columns.go_over(name, start=False)
            engine._component.restore(state)
            return engine

    def heard(self) -> list[Heard]:
        """The output since the last call of statements without a listener."""
        return self._hearing.heard()

    def _tell(self) -> None:
        runner = self._component.runner
        if runner.deliveries:
            deliveries, runner.deliveries = runner.deliveries, []
            self._hearing.tell_deliveries(deliveries)
