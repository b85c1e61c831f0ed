"""`rollup try`: statements of EPL, SiddhiQL or StreamCruncher over events on standard input, at a terminal."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
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
        typer.Option(help="The attribute, milliseconds or ISO text, that moves the clock where an event has no `at`."),
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

    trial = _trial(file, start, lang, ahead_of(ahead, "--ahead"))
    taker = _Taker(trial, stream, time, ahead_of(ahead, "--ahead"))
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
            f"rollup try: events whose `{time}` the clock had passed: {taker.late} (they count at the clock)",
            file=sys.stderr,
        )
    if refused:
        raise typer.Exit(1)


def _trial(file: Path, start: int, lang: str | None, ahead: int | None) -> Trial:
    language = lang or EXTENSIONS.get(file.suffix.lower(), "")
    if language not in LANGUAGES:
        what = f"{lang!r} is no language" if lang else f"{file.name}: the extension names no language"
        known = f"{', '.join(EXTENSIONS)}; or --lang {'|'.join(LANGUAGES)}"
        raise QueryError(f"{what} that `rollup try` runs", hint=known)
    text = text_of(file, "the statements")
    if language == "siddhi" and _whole(text):
        from rollup.cli.languages.apps import AppTrial

        return AppTrial(text, start, ahead)
    return LANGUAGES[language](text, file.stem, start)


def _whole(text: str) -> bool:
    """Whether a text is more than SiddhiQL's queries: it has aggregations, or blocks of other languages."""
    from rollup.lang.sections import SIDDHIQL, sections
    from rollup.lang.siddhi.apps import parse_app

    if "aggregation" not in text.lower() and "@lang" not in text.lower():
        return False  # the usual text is read once
    parts = sections(text)
    return any(part.language != SIDDHIQL for part in parts.statements) or bool(parse_app(parts.rollups).aggregations)


class _Taker:
    """Takes lines: events of `stream` where they name none, at the `time` they have where they say no `at`."""

    def __init__(self, trial: Trial, stream: str | None, time: str | None, ahead: int | None) -> None:
        self._trial, self._stream, self._time, self._ahead = trial, stream, time, ahead
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
            if self._time is not None and at is None:
                self._timed(self._time, given.get(self._time))
            self._trial.send(str(stream), given)

    def _advance(self, at: int) -> None:
        if at < self._trial.now:
            raise QueryError(f"the clock stands at {self._trial.now} and cannot go back to {at}")
        self._trial.advance(at)

    def _timed(self, name: str, value: Any) -> None:
        from rollup.aggregation.event_times import instant, latest_of

        try:
            at = instant(value, latest_of(self._ahead, self._trial.now))
        except TimeError as problem:
            raise QueryError(f"`{name}` is {value!r}: {problem}") from None
        if at < self._trial.now:
            self.late += 1
        else:
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
