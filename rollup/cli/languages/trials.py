"""What `rollup try` runs, a language each: events in, deliveries out, questions answered."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from rollup.core.errors import QueryError


class Delivery(NamedTuple):
    """What a statement delivers at an instant: rows that come and rows that leave."""

    statement: str
    at: int
    insert: list[dict[str, Any]]
    remove: list[dict[str, Any]]


class Trial(Protocol):
    """Statements at work."""

    @property
    def now(self) -> int:
        """The clock, in ms."""
        ...

    def advance(self, to: int) -> None:
        """The clock goes on."""
        ...

    def send(self, stream: str, event: Mapping[str, Any]) -> None:
        """An event of a stream, by names of fields."""
        ...

    def ask(self, question: str) -> Iterable[Mapping[str, Any]]:
        """The rows that answer a question."""
        ...

    def heard(self) -> Iterable[Delivery]:
        """What was delivered since the last call."""
        ...

    def pause(self) -> None:
        """Nothing more is there at the moment: what came so far is to be answered."""
        ...

    def finish(self) -> None:
        """No event comes any more; the clock stands still."""
        ...


class EplTrial:
    """EPL: `rollup.Engine`."""

    def __init__(self, text: str, name: str, start: int) -> None:
        from rollup.live import Engine

        self._engine = Engine(start)
        self._engine.deploy(text, name)

    @property
    def now(self) -> int:
        return self._engine.now

    def advance(self, to: int) -> None:
        self._engine.advance(to)

    def send(self, stream: str, event: Mapping[str, Any]) -> None:
        self._engine.send(stream, dict(event))

    def ask(self, question: str) -> Iterable[Mapping[str, Any]]:
        return self._engine.query(question)

    def heard(self) -> Iterable[Delivery]:
        return [Delivery(each.statement, each.at, each.new, each.old) for each in self._engine.heard()]

    def pause(self) -> None:
        """Every event was answered as it came."""

    def finish(self) -> None:
        """Every event was answered as it came."""


class SiddhiTrial:
    """SiddhiQL: a statement's name is the stream that its rows go to."""

    def __init__(self, text: str, name: str, start: int) -> None:
        from rollup.lang.siddhi.statements.app import SiddhiApp
        from rollup.lang.siddhi.statements.binding import TIME

        self._app = SiddhiApp(text, start)
        known = {**self._app.spec.stored, **self._app.streams}
        self._fields = {name: tuple(each for each in rows.fields if each != TIME) for name, rows in known.items()}

    @property
    def now(self) -> int:
        return self._app.now

    def advance(self, to: int) -> None:
        self._app.advance(to)

    def send(self, stream: str, event: Mapping[str, Any]) -> None:
        self._app.send(stream, [placed(stream, event, self._fields)])

    def ask(self, question: str) -> Iterable[Mapping[str, Any]]:
        return self._app.query(question).to_pylist()

    def heard(self) -> Iterable[Delivery]:
        return [
            Delivery(each.stream, self._app.now, [dict(zip(self._fields[each.stream], each.values, strict=True))], [])
            for each in self._app.taken()
        ]

    def pause(self) -> None:
        """Every event was answered as it came."""

    def finish(self) -> None:
        """Every event was answered as it came."""


class CruncherTrial:
    """StreamCruncher: what comes at one instant is one cycle, so an answer waits until the clock goes on."""

    def __init__(self, text: str, name: str, start: int) -> None:
        from rollup.lang.streamcruncher.kernel import Cruncher
        from rollup.lang.streamcruncher.script import run_script

        self._cruncher, self._now = Cruncher(start), start
        self._heard: list[Delivery] = []
        self._events: list[tuple[str, tuple[Any, ...], int]] = []
        self._streams = run_script(self._cruncher, text, self._note)

    @property
    def now(self) -> int:
        return self._now

    def advance(self, to: int) -> None:
        """The instant itself is not over: what comes at it and what leaves at it are one cycle."""
        self._now = max(self._now, to)

    def send(self, stream: str, event: Mapping[str, Any]) -> None:
        time = self._streams.times.get(stream)
        timed = event if time is None or time in event else {**event, time: self._now}
        row = self._cruncher.fitting(stream, placed(stream, timed, self._streams.columns))
        self._events.append((stream, row, self._now))

    def ask(self, question: str) -> Iterable[Mapping[str, Any]]:
        self.pause()
        self._cruncher.sql(question)
        return []

    def heard(self) -> Iterable[Delivery]:
        heard, self._heard = self._heard, []
        return heard

    def finish(self) -> None:
        self.pause()
        self._cruncher.advance(self._now)
        if self._cruncher.beyond:
            print(f"rollup try: {self._cruncher.beyond} sums beyond 64 bits, given as null", file=sys.stderr)

    def pause(self) -> None:
        """The events that came together, as tables; then what is over before the present instant."""
        events, self._events = self._events, []
        import pyarrow as pa  # help and refusals come without it

        tables, at = dict[str, pa.Table](), dict[str, list[int]]()
        for stream in dict.fromkeys(stream for stream, _, _ in events):
            mine = [(row, time) for name, row, time in events if name == stream]
            kinds = self._cruncher.columns(stream)
            values = zip(*(row for row, _ in mine), strict=True)
            tables[stream] = pa.table({n: pa.array(v, k) for v, (n, k) in zip(values, kinds.items(), strict=True)})
            at[stream] = [time for _, time in mine]
        self._cruncher.send(tables, at)
        if self._now > self._cruncher.now:
            self._cruncher.advance(self._now - 1)

    def _note(self, query: str, columns: tuple[str, ...], batch: Any) -> None:
        rows = [dict(zip(columns, row, strict=True)) for row in batch.rows]
        self._heard.append(Delivery(query, batch.at, rows, []))


def placed(stream: str, event: Mapping[str, Any], fields: Mapping[str, tuple[str, ...]]) -> tuple[Any, ...]:
    """An event's values in the order of its stream's fields; one that is missing is null. Raises QueryError for a stream
    that is not defined."""
    if stream not in fields:
        raise QueryError(f"stream {stream!r} is not defined", hint=f"defined are {', '.join(fields)}")
    if not event.keys() <= set(fields[stream]):
        from rollup.lang.fitting import say_undeclared

        for name in event.keys() - set(fields[stream]):
            say_undeclared(stream, name, fields[stream])
    return tuple(event.get(name) for name in fields[stream])


LANGUAGES: Mapping[str, type[EplTrial | SiddhiTrial | CruncherTrial]] = {
    "epl": EplTrial,
    "siddhi": SiddhiTrial,
    "streamcruncher": CruncherTrial,
}
EXTENSIONS: Mapping[str, str] = {
    ".epl": "epl",
    ".siddhi": "siddhi",
    ".siddhiql": "siddhi",
    ".cruncher": "streamcruncher",
    ".streamcruncher": "streamcruncher",
}
