"""`rollup try`: statements of EPL, SiddhiQL or StreamCruncher over events on standard input, at a terminal."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rollup.cli.languages.lines import arriving
from rollup.cli.languages.trials import EXTENSIONS, LANGUAGES, Delivery, Trial
from rollup.core.errors import QueryError, RollupError, TimeError
from rollup.core.json_line import first_members, json_line, number_of
from rollup.core.texts import text_of


def try_(
    file: Annotated[Path, typer.Argument(help="A file of statements: .epl, .siddhi or .cruncher.")],
    start: Annotated[int, typer.Option(help="The first instant, in milliseconds since 1970.")] = 0,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Print only this statement's deliveries; may be repeated.")
    ] = None,
    lang: Annotated[
        str | None, typer.Option("--lang", help=f"Instead of the file's extension: {', '.join(LANGUAGES)}.")
    ] = None,
    stream: Annotated[str | None, typer.Option(help="The stream of events that name none.")] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="The attribute, milliseconds or ISO text, that moves the clock where an event has no `at` (else that of `@time`)."
        ),
    ] = None,
    ahead: Annotated[
        str, typer.Option(help='How far ahead of the clock of this machine `--time` may be; "any" for any distance.')
    ] = "1 day",
) -> None:
    """Run statements over events from standard input, one JSON object a line, and print what they deliver.

    `{"stream": "Trade", "price": 1.5, …}` is an event; with `"at": 1500` the clock moves there first. `{"at": 5000}`
    alone moves the clock, `{"query": "select …"}` asks a window or a table (of StreamCruncher: changes a table). Plain
    records are events with `--stream Trade --time ts`, whose values are read as a job reads them. Each delivery is one line: statement (of SiddhiQL: the stream
    that the rows go to), at, insert, remove. A text with an aggregation or with blocks of other languages is an app,
    run as a job runs it. Exit code 1 when an event or request was refused, 2 when the statements are.
    """
    from rollup.plan.lateness import ahead_of

    trial, clock = _trial(file, start, lang, time, ahead_of(ahead, "--ahead"))
    taker = _Taker(trial, stream, clock)
    warnings.formatwarning = lambda message, *place: f"rollup try: {message}\n"
    refused, wanted = 0, set(only or ())
    _print(trial.heard(), wanted)
    number = 0
    for lines in arriving(sys.stdin.buffer):
        for line in lines:
            number += 1
            if line.strip():
                try:
                    taker.take(line)
                except RollupError as problem:
                    refused += 1
                    print(f"rollup try: line {number}: {problem}", file=sys.stderr)
                _print(trial.heard(), wanted)
        trial.pause()
        _print(trial.heard(), wanted)
    trial.finish()
    _print(trial.heard(), wanted)
    if taker.late:
        print(
            f"rollup try: events whose time the clock had passed: {taker.late} (they count at the clock)",
            file=sys.stderr,
        )
    if refused:
        raise typer.Exit(1)


def _trial(file: Path, start: int, lang: str | None, time: str | None, ahead: int | None) -> tuple[Trial, _Clock]:
    language = lang or EXTENSIONS.get(file.suffix.lower(), "")
    if language not in LANGUAGES:
        what = f"{lang!r} is no language" if lang else f"{file.name}: the extension names no language"
        known = f"{', '.join(EXTENSIONS)}; or --lang {'|'.join(LANGUAGES)}"
        raise QueryError(f"{what} that `rollup try` runs", hint=known)
    text = text_of(file, "the statements")
    if language == "siddhi" and _whole(text):
        from rollup.cli.languages.apps import AppTrial

        app = AppTrial(text, start, ahead)
        return app, _Clock(time, ahead, zones=app.zones)  # its times it reads itself
    trial = LANGUAGES[language](text, file.stem, start)
    return trial, _Clock(time, ahead, *(_declared(text) if language == "siddhi" else ()))


def _declared(text: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What streams of SiddhiQL say of their times: the attribute of each, and the zone."""
    if "@time" not in text.lower() and "@zone" not in text.lower():
        return {}, {}  # the usual text is read once
    from rollup.lang.sections import sections
    from rollup.lang.siddhi.apps import parse_app
    from rollup.plan.annotations import stream_time, stream_zone

    streams = parse_app(sections(text).rollups).streams
    zones = {name: zone for name, each in streams.items() if (zone := stream_zone(name, each.annotations)) is not None}
    return {name: time for name, each in streams.items() if (time := stream_time(each)) is not None}, zones


def _whole(text: str) -> bool:
    """Whether a text is more than SiddhiQL's queries: it has aggregations, or blocks of other languages."""
    from rollup.lang.sections import SIDDHIQL, sections
    from rollup.lang.siddhi.apps import parse_app

    if "aggregation" not in text.lower() and "@lang" not in text.lower():
        return False  # the usual text is read once
    parts = sections(text)
    return any(part.language != SIDDHIQL for part in parts.statements) or bool(parse_app(parts.rollups).aggregations)


class _Clock:
    """The time that events have: that of the attribute `name`, else of the one that their stream names."""

    def __init__(
        self, name: str | None, ahead: int | None, times: Mapping[str, str] = {}, zones: Mapping[str, str] = {}
    ) -> None:
        from rollup.aggregation.offsets import Offsets

        self._name, self._ahead, self._times, self._zones = name, ahead, times, zones
        self._offsets = Offsets()

    def of(self, stream: str, event: Mapping[str, Any], now: int) -> int | None:
        """The time of an event, in ms, None where none is named. Raises QueryError where it cannot be."""
        name = self._name or self._times.get(stream)
        if name is None:
            return None
        from rollup.aggregation.event_times import instant, latest_of
        from rollup.core.calendar import GMT, normal_zone

        value, zone = event.get(name), self._zones.get(stream)
        try:
            found = instant(value, latest_of(self._ahead, now), normal_zone(zone or GMT))
        except TimeError as problem:
            raise QueryError(f"`{name}` is {value!r}: {problem}") from None
        if zone is None:
            self._offsets.take(stream, value)
        return found


class _Taker:
    """Takes lines: events of `stream` where they name none, at the time they have where they say no `at`."""

    def __init__(self, trial: Trial, stream: str | None, clock: _Clock) -> None:
        self._trial, self._stream, self._clock = trial, stream, clock
        self.late = 0
        """Events whose time the clock had passed."""

    def take(self, line: bytes) -> None:
        """An event, a question, or an instant. Raises QueryError where it is none."""
        given = _object(line)
        at = given.pop("at", None)
        if at is not None:
            self._advance(_instant("at", at))
        if "query" in given:
            for row in self._trial.ask(str(given["query"])):
                print(json_line({"answer": row}))
        elif given:
            stream = given.pop("stream", self._stream)
            if stream is None:
                hint = '{"stream": "S", …}, {"at": 5000}, or {"query": "…"}; plain records need --stream S'
                raise QueryError("an event needs its stream", hint=hint)
            if at is None:
                self._timed(self._clock.of(str(stream), given, self._trial.now))
            self._trial.send(str(stream), given)

    def _advance(self, at: int) -> None:
        if at < self._trial.now:
            raise QueryError(f"the clock stands at {self._trial.now} and cannot go back to {at}")
        self._trial.advance(at)

    def _timed(self, at: int | None) -> None:
        if at is not None and at < self._trial.now:
            self.late += 1
        elif at is not None:
            self._trial.advance(at)


def _object(line: bytes) -> dict[str, Any]:
    try:
        given: Any = json.loads(line, object_pairs_hook=first_members, parse_float=number_of)
    except UnicodeDecodeError as problem:
        raise QueryError(f"no JSON: {problem}") from None
    except json.JSONDecodeError as problem:
        raise QueryError(f"no JSON: {problem.msg} at column {problem.colno}", hint='{"stream": "S", …}') from None
    if not isinstance(given, dict):
        raise QueryError("a line is a JSON object", hint='{"stream": "S", …}')
    return given


def _instant(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(f"`{name}` is {value!r}, not a number of milliseconds")
    return value


def _print(heard: Iterable[Delivery], only: set[str]) -> None:
    for each in heard:
        if (each.insert or each.remove) and (not only or each.statement in only):
            line = {"statement": each.statement, "at": each.at, "insert": each.insert}
            print(json_line({**line, "remove": each.remove} if each.remove else line), flush=True)
