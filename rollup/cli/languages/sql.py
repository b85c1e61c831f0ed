"""`rollup sql`: run a streaming SQL query over rows on standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rollup.lang.calcite.session import Answer, Session

_BATCH = 8192


def sql(
    query: Annotated[
        str, typer.Argument(help="The statements, or a file that holds them; the last one gives the answer.")
    ],
    schema: Annotated[Path, typer.Option(help="The model: Calcite's JSON, or TOML.")],
    load: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: rows of a table, JSON arrays line by line.")
    ] = None,
    bound: Annotated[bool, typer.Option(help="The end of the input closes what is open.")] = True,
) -> None:
    """Run SELECT STREAM over events from standard input; a query without STREAM answers from the tables and ends.

    An event is a line of JSON: {"stream": "Orders", "row": [..]} (or a row as an object), or
    {"punctuation": "Orders", "rowtime": "2015-02-15 12:00:00"}. Answers are lines of JSON. Rows that go back are refused
    on standard error and counted: exit code 1. A refused query: exit code 2.
    """
    from rollup.lang.calcite.model import Model
    from rollup.lang.calcite.session import Session

    session = Session(Model.read(schema))
    for entry in load or []:
        name, _, path = entry.partition("=")
        session.load(name, [json.loads(line) for line in Path(path).read_text().splitlines() if line.strip()])
    path = Path(query)
    answer = session.prepare(path.read_text() if len(query) < 256 and path.is_file() else query)
    refused = 0
    if answer.standing is not None or answer.before:
        refused = _run(session, answer, bound)
    if answer.relational is not None:
        _show(answer.names, session.ask(answer).to_pylist())
    raise typer.Exit(1 if refused else 0)


def _run(session: Session, answer: Answer, bound: bool) -> int:
    """Run the standing statements to the end of their input; how many rows were refused."""
    from rollup.engine.flows.flow import AT

    standings = [*answer.before, *([answer.standing] if answer.standing is not None else [])]
    states = [standing.start() for standing in standings]
    refused: set[int] = set()
    for batch, ended in _batches(sys.stdin):
        if ended and not bound and not batch:
            break
        for place, standing in enumerate(standings):
            arrivals = _arrivals(session, batch, standing.streams, ended and bound)
            states[place], output, worse = standing.step(states[place], arrivals, session.engine)
            session.deliver(standing, output)
            if standing.target is None:
                _show(answer.names, output.drop_columns([AT]).to_pylist())
            for refusal in worse:
                if refusal.at not in refused:
                    print(f"rollup sql: event {refusal.at + 1} is refused: {refusal.reason}", file=sys.stderr)
            refused |= {refusal.at for refusal in worse}
    if answer.standing is not None and answer.standing.target is not None:
        table = session.catalog.stored(answer.standing.target.name)
        _show(answer.names, session.engine.connection.sql(f"FROM {table}").to_arrow_table().to_pylist())
    if refused:
        print(f"rollup sql: {len(refused)} events refused", file=sys.stderr)
    return len(refused)


def _batches(lines: Any) -> Iterator[tuple[list[tuple[int, dict[str, Any]]], bool]]:
    """Events with their positions, as many as there are at once; the last batch is marked."""
    from rollup.core.errors import QueryError

    batch: list[tuple[int, dict[str, Any]]] = []
    for position, line in enumerate(lines):
        if line.strip():
            try:
                event = json.loads(line)
            except json.JSONDecodeError as problem:
                raise QueryError(f"line {position + 1} of the input is no JSON: {problem.msg}") from None
            if not isinstance(event, dict) or not ({"stream", "row"} <= event.keys() or "punctuation" in event):
                hint = '{"stream": "Orders", "row": [..]} or {"punctuation": "Orders", "rowtime": ".."}'
                raise QueryError(f"line {position + 1} of the input is no event", hint=hint)
            batch.append((position, event))
        if len(batch) >= _BATCH or (batch and lines.isatty()):
            yield batch, False
            batch = []
    yield batch, True


def _arrivals(
    session: Session, batch: Sequence[tuple[int, dict[str, Any]]], streams: set[str], ended: bool
) -> dict[str, Any]:
    from rollup.engine.flows.source import Punctuation

    found: dict[str, Any] = {}
    for stream in streams:
        mine = [(at, e) for at, e in batch if str(e.get("stream") or e.get("punctuation")).lower() == stream]
        rows = [(at, _row(session, stream, e["row"])) for at, e in mine if "row" in e]
        said = [
            Punctuation(at, datetime.fromisoformat(next(v for k, v in e.items() if k != "punctuation")))
            for at, e in mine
            if "punctuation" in e
        ]
        found[stream] = session.arrivals(stream, [row for _, row in rows], [at for at, _ in rows], said, ended)
    return found


def _row(session: Session, stream: str, row: Any) -> Sequence[Any]:
    if not isinstance(row, Mapping):
        return row
    table = session.model.find(stream)
    values = {str(key).lower(): value for key, value in row.items()}
    return [values.get(name.lower()) for name, _ in table.columns] if table else []


def _show(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        values = [_plain(value) for value in row.values()]
        print(json.dumps(dict(zip(names, values, strict=True)), ensure_ascii=False))
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return str(value) if isinstance(value, (date, time)) else float(value) if isinstance(value, Decimal) else value
