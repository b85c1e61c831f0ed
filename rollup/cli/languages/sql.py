"""`rollup sql`: run a streaming SQL query over rows on standard input."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from rollup.cli.languages.lines import arriving
from rollup.core.json_line import first_members, json_line, number_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rollup.engine.flows.source import Punctuation
    from rollup.lang.calcite.session import Answer, Session

_EVENTS = '{"stream": "Orders", "row": [..]} or {"punctuation": "Orders", "rowtime": "2015-02-15 12:00:00"}'


def sql(
    query: Annotated[
        str, typer.Argument(help="The statements, or a file that holds them; the last one gives the answer.")
    ],
    schema: Annotated[Path | None, typer.Option(help="The model: Calcite's JSON, or TOML.")] = None,
    conf: Annotated[
        Path | None, typer.Option(help="The configuration of a job, whose aggregations are tables: TradeAgg_MINUTES.")
    ] = None,
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
    from rollup.cli.languages.aggregates import aggregate_tables
    from rollup.core.errors import ConfigError, PlanError
    from rollup.core.texts import json_lines, query_text
    from rollup.lang.calcite.model import Model
    from rollup.lang.calcite.session import Session

    if schema is None and conf is None:
        raise ConfigError("there is nothing to ask", hint="--schema MODEL, --conf CONF, or both")
    model = Model.read(schema) if schema is not None else Model(())
    for table in aggregate_tables(conf) if conf is not None else ():
        model.add(table)
    session = Session(model)
    warnings.formatwarning = lambda message, *place: f"rollup sql: {message}\n"
    for entry in load or []:
        name, given, path = entry.partition("=")
        if not given:
            raise ConfigError(f"--load {entry} names no file", hint="--load TABLE=ROWS.jsonl")
        session.load(name, json_lines(Path(path), "the rows"))
    answer = session.prepare(query_text(query))
    if session.unkept:
        raise PlanError(
            f"{session.unkept[0]} is a materialized view of a query that does not stream: nothing here would keep it current",
            hint="CREATE MATERIALIZED VIEW name AS SELECT STREAM .., or CREATE VIEW, which is computed when it is asked",
        )
    refused = 0
    if answer.standing is not None or answer.before:
        refused = _run(session, answer, bound)
    if answer.relational is not None:
        _show(answer.names, session.ask(answer).to_pylist())
    raise typer.Exit(1 if refused else 0)


def _run(session: Session, answer: Answer, bound: bool) -> int:
    """Run the standing statements to the end of their input; how many rows were refused."""
    from rollup.engine.flows.beyond import beyond
    from rollup.engine.flows.flow import AT

    standings = [*answer.before, *([answer.standing] if answer.standing is not None else [])]
    states = [standing.start() for standing in standings]
    refused: set[int] = set()
    for batch, ended in _batches(session, sys.stdin.buffer, answer.meeting):
        if ended and not bound and not batch:
            break
        outputs: list[pa.Table] = []
        for place, standing in enumerate(standings):
            arrivals = _arrivals(session, batch, standing.streams, ended and bound)
            states[place], output, worse = standing.step(states[place], arrivals, session.engine)
            outputs.append(output)
            if standing.target is None:
                _show(answer.names, output.drop_columns([AT]).to_pylist())
            for refusal in worse:
                if refusal.at not in refused:
                    print(f"rollup sql: event {refusal.at + 1} is refused: {refusal.reason}", file=sys.stderr)
            refused |= {refusal.at for refusal in worse}
        for standing, output in zip(standings, outputs, strict=True):
            session.deliver(standing, output)
    if answer.standing is not None and answer.standing.target is not None:
        table = session.catalog.stored(answer.standing.target.name)
        _show(answer.names, session.engine.connection.sql(f"FROM {table}").to_arrow_table().to_pylist())
    if refused:
        print(f"rollup sql: {len(refused)} events refused", file=sys.stderr)
    lost = sum(beyond(each.values()) for each in states)
    if lost:
        print(f"rollup sql: {lost} sums beyond 64 bits, given as null", file=sys.stderr)
    return len(refused)


def _batches(
    session: Session, source: BinaryIO, singly: bool
) -> Iterator[tuple[list[tuple[int, dict[str, Any]]], bool]]:
    """Events with their positions, those that are there at once together or `singly`; the last batch is empty and marked."""
    number = 0
    for lines in arriving(source):
        places = range(number, number + len(lines))
        number += len(lines)
        found = [(at, _event(session, at + 1, line)) for at, line in zip(places, lines, strict=True) if line.strip()]
        for batch in [[each] for each in found] if singly else [found]:
            yield batch, False
    yield [], True


def _event(session: Session, number: int, line: bytes) -> dict[str, Any]:
    """A line of the input. Raises QueryError where it is no event of a stream of the model."""
    from rollup.core.errors import QueryError

    try:
        event = json.loads(line, object_pairs_hook=first_members, parse_float=number_of)
    except ValueError as problem:
        raise QueryError(f"line {number} of the input is no JSON: {problem}") from None
    if not isinstance(event, dict) or not ({"stream", "row"} <= event.keys() or "punctuation" in event):
        raise QueryError(f"line {number} of the input is no event", hint=_EVENTS)
    name = str(event.get("punctuation", event.get("stream")))
    table = session.model.find(name)
    if table is None or not table.stream:
        known = ", ".join(each.name for each in session.model.tables if each.stream)
        raise QueryError(
            f"line {number} of the input: there is no stream {name}", hint=f"streams are {known or 'none'}"
        )
    return event


def _arrivals(
    session: Session, batch: Sequence[tuple[int, dict[str, Any]]], streams: set[str], ended: bool
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for stream in streams:
        mine = [(at, e) for at, e in batch if str(e.get("punctuation", e.get("stream"))).lower() == stream]
        rows = [(at, e["row"]) for at, e in mine if "punctuation" not in e]
        said = [_said(session, stream, at, e) for at, e in mine if "punctuation" in e]
        found[stream] = session.arrivals(stream, [row for _, row in rows], [at for at, _ in rows], said, ended)
    return found


def _said(session: Session, stream: str, at: int, event: Mapping[str, Any]) -> Punctuation:
    """A punctuation: how far one of the stream's columns that move has come."""
    from rollup.core.errors import QueryError
    from rollup.engine.flows.source import Punctuation

    table = session.model.find(stream)
    assert table is not None, "it was checked when the line was read"
    (name, value), *more = [each for each in event.items() if each[0] != "punctuation"] or [("", None)]
    column = table.column(name)
    try:
        if column is None or column not in table.monotonic or more:
            raise ValueError(f"of {table.name} are declared to move: {', '.join(table.monotonic) or 'none'}")
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise ValueError(f"{value!r} is neither a time nor a whole number")
        return Punctuation(at, datetime.fromisoformat(value) if isinstance(value, str) else value, column)
    except ValueError as problem:
        raise QueryError(f"line {at + 1} of the input is no punctuation: {problem}", hint=_EVENTS) from None


def _show(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    for row in rows:
        values = [_plain(value) for value in row.values()]
        print(json_line(dict(zip(names, values, strict=True))))
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if hasattr(value, "nanoseconds"):  # an interval
        return f"{value.months} months {timedelta(value.days, 0, value.nanoseconds // 1000)}".removeprefix("0 months ")
    return str(value) if isinstance(value, (date, time)) else float(value) if isinstance(value, Decimal) else value
