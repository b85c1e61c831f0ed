"""A whole app at a terminal: its aggregations in memory, and its statements in whatever languages, as a job runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from rollup.aggregation.event_times import instant
from rollup.cli.languages.trials import Delivery, placed
from rollup.core.calendar import GMT, normal_zone
from rollup.core.errors import QueryError, TimeError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app


class AppTrial:
    """An app. Each event is a batch; a delivery is what a stream is given, `at` the latest time of an event."""

    def __init__(self, text: str, start: int, ahead: int | None) -> None:
        self._program = compile_app(text)
        self._host = LocalHost(self._program, ahead=ahead)
        self._host.now = self.now = start
        self.zones = self._program.zones
        self._fields = {name: tuple(stream.attributes) for name, stream in self._program.streams.items()}

    def advance(self, to: int) -> None:
        """The clock, as that of a job goes on where no event comes."""
        self._host.tick(to)
        self.now = max(self.now, to)

    def send(self, stream: str, event: Mapping[str, Any]) -> None:
        row = placed(stream, event, self._fields)
        time = event.get(self._program.times.get(stream, ""))
        self._host.send(stream, [row])
        refused, self._host.dead = self._host.dead, []
        if refused:
            raise QueryError(f"{refused[0]['stream']}: {refused[0]['reason']}")
        with suppress(TimeError):
            self.now = max(self.now, instant(time, zone=normal_zone(self.zones.get(stream, GMT))))

    def ask(self, question: str) -> Iterable[Mapping[str, Any]]:
        return self._host.query(question).to_pylist()

    def heard(self) -> Iterable[Delivery]:
        emitted, self._host.emitted = self._host.emitted, []
        return [Delivery(stream, self.now, rows.to_pylist(), []) for stream, rows in emitted]

    def pause(self) -> None:
        """Every event was answered as it came."""

    def finish(self) -> None:
        """Every event was answered as it came."""
