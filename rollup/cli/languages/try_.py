"""`rollup try`: statements of EPL, SiddhiQL or StreamCruncher over events on standard input, at a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from rollup.cli.languages.lines import arriving
from rollup.cli.languages.trials import EXTENSIONS, LANGUAGES, Delivery, Trial
from rollup.core.errors import QueryError, RollupError


def try_(
    file: Annotated[Path, typer.Argument(help="A file of statements: .epl, .siddhi or .cruncher.")],
    start: Annotated[int, typer.Option(help="The first instant, in milliseconds since 1970.")] = 0,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Print only this statement's deliveries; may be repeated.")
    ] = None,
    lang: Annotated[
        str | None, typer.Option("--lang", help=f"Instead of the file's extension: {', '.join(LANGUAGES)}.")
    ] = None,
) -> None:
    """Run statements over events from standard input, one JSON object a line, and print what they deliver.

    `{"stream": "Trade", "price": 1.5, …}` is an event; with `"at": 1500` the clock moves there first. `{"at": 5000}`
    alone moves the clock, `{"query": "select …"}` asks a window or a table (of StreamCruncher: changes a table). Each
    delivery is one line: statement (of SiddhiQL: the stream that the rows go to), at, insert, remove. A text with an
    aggregation or with blocks of other languages is an app, run as a job runs it. Exit code 1 when an
    event or request was refused, 2 when the statements are.
    """
    trial = _trial(file, start, lang)
    refused, wanted = 0, set(only or ())
    _print(trial.heard(), wanted)
    number = 0
    for lines in arriving(sys.stdin.buffer):
        for line in lines:
            number += 1
            if line.strip():
                try:
                    _take(trial, line)
                except RollupError as problem:
                    refused += 1
                    print(f"rollup try: line {number}: {problem}", file=sys.stderr)
                _print(trial.heard(), wanted)
        trial.pause()
        _print(trial.heard(), wanted)
    trial.finish()
    _print(trial.heard(), wanted)
    if refused:
        raise typer.Exit(1)


def _trial(file: Path, start: int, lang: str | None) -> Trial:
    language = lang or EXTENSIONS.get(file.suffix.lower(), "")
    if language not in LANGUAGES:
        what = f"{lang!r} is no language" if lang else f"{file.name}: the extension names no language"
        known = f"{', '.join(EXTENSIONS)}; or --lang {'|'.join(LANGUAGES)}"
        raise QueryError(f"{what} that `rollup try` runs", hint=known)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise QueryError(f"{file} cannot be read: {problem}", hint="rollup try FILE < events.jsonl") from None
    if language == "siddhi" and _whole(text):
        from rollup.cli.languages.apps import AppTrial

        return AppTrial(text, start)
    return LANGUAGES[language](text, file.stem, start)


def _whole(text: str) -> bool:
    """Whether a text is more than SiddhiQL's queries: it has aggregations, or blocks of other languages."""
    from rollup.lang.sections import SIDDHIQL, sections
    from rollup.lang.siddhi.apps import parse_app

    if "aggregation" not in text.lower() and "@lang" not in text.lower():
        return False  # the usual text is read once
    parts = sections(text)
    return any(part.language != SIDDHIQL for part in parts.statements) or bool(parse_app(parts.rollups).aggregations)


def _take(trial: Trial, line: bytes) -> None:
    try:
        event: Any = json.loads(line)
    except UnicodeDecodeError as problem:
        raise QueryError(f"no JSON: {problem}") from None
    except json.JSONDecodeError as problem:
        raise QueryError(f"no JSON: {problem.msg} at column {problem.colno}", hint='{"stream": "S", …}') from None
    if not isinstance(event, dict):
        raise QueryError("a line is a JSON object", hint='{"stream": "S", …}')
    at = event.pop("at", None)
    if at is not None:
        if isinstance(at, bool) or not isinstance(at, int):
            raise QueryError(f"`at` is {at!r}, not a number of milliseconds")
        if at < trial.now:
            raise QueryError(f"the clock stands at {trial.now} and cannot go back to {at}")
        trial.advance(at)
    if "query" in event:
        for row in trial.ask(str(event["query"])):
            print(_json({"answer": row}))
    elif "stream" in event:
        stream = str(event.pop("stream"))
        trial.send(stream, event)
    elif event:
        raise QueryError("an event needs its stream", hint='{"stream": "S", …}, {"at": 5000}, or {"query": "…"}')


def _print(heard: Iterable[Delivery], only: set[str]) -> None:
    for each in heard:
        if (each.insert or each.remove) and (not only or each.statement in only):
            line = {"statement": each.statement, "at": each.at, "insert": each.insert}
            print(_json({**line, "remove": each.remove} if each.remove else line), flush=True)


def _json(value: Any) -> str:
    return json.dumps(value, default=lambda each: str(each) if isinstance(each, Decimal) else repr(each))
