"""A file of StreamCruncher: what its users say through an interface in Java, as statements before the queries.

    create stream visits (id long, at ts, ip str) time at;
    create table blocked (ip varchar);
    create query attacks as select … ;
    create query slow weights visits 0.25 sooner 5 seconds as select … ;

A query that stands alone is called q1, q2, … Every other statement is SQL over the tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rollup.core.errors import RollupError
from rollup.engine.rows.cycles.running import Batch, Policy
from rollup.lang.streamcruncher import semantics
from rollup.lang.streamcruncher.cursor import Cursor
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.streamcruncher.read_partition import UNITS

_SQL_TYPES = {
    "bigint": "long",
    "integer": "int",
    "varchar": "str",
    "string": "str",
    "timestamp": "ts",
    "boolean": "bool",
}
Heard = Callable[[str, tuple[str, ...], Batch], None]
"""Gets the name of a query, its columns, and a batch of its rows."""


class Streams(NamedTuple):
    """By stream the names of its columns, of which one is its time."""

    columns: dict[str, tuple[str, ...]]
    times: dict[str, str]


def run_script(cruncher: Cruncher, text: str, heard: Heard) -> Streams:
    """Define and register everything that a text says. Raises RollupError with line and column of what is wrong."""
    streams, queries = Streams({}, {}), 0
    for piece in _statements(text):
        cursor = Cursor(piece)
        place = cursor.place
        try:
            if cursor.take("create", "stream"):
                _stream(cruncher, cursor, streams)
            elif cursor.peek() == "select" or cursor.take("create", "query"):
                queries += 1
                _query(cruncher, cursor, piece, f"q{queries}", heard)
            else:
                cruncher.sql(piece.strip())
        except RollupError as problem:
            raise (problem if problem.line is not None else problem.at(*place)) from None
    return streams


def _statements(text: str) -> Iterator[str]:
    """Each statement with blanks for all that stands before it, so that places in it are places in the text."""
    begin = 0
    for token in Cursor(f"{text}\n;").tokens:
        if token == ";":
            end = token.start_pos or 0
            body = text[begin:end]
            if re.sub(r"--[^\n]*", "", body).strip():
                yield re.sub(r"[^\n]", " ", text[:begin]) + body
            begin = end + 1


def _stream(cruncher: Cruncher, cursor: Cursor, streams: Streams) -> None:
    name, columns = cursor.name("the name of a stream"), dict[str, str]()
    cursor.expect("(")
    while True:
        column = cursor.name("a column")
        kind = cursor.name(f"a type: {', '.join(semantics.TYPES)}")
        columns[column] = _SQL_TYPES.get(kind.lower(), kind)
        if not cursor.take(","):
            break
    cursor.expect(")", "time")
    time = cursor.name("the column of the time")
    _end(cursor)
    cruncher.define(name, columns, time)
    streams.columns[name], streams.times[name] = tuple(columns), time


def _query(cruncher: Cruncher, cursor: Cursor, piece: str, name: str, heard: Heard) -> None:
    weights, policy = dict[str, str](), None
    if cursor.peek() != "select":
        name = cursor.name("the name of a query")
        while not cursor.take("as"):
            if cursor.take("weights"):
                weights |= _weights(cursor)
            elif cursor.peek() in ("fixed", "sooner"):
                policy = _policy(cursor)
            else:
                raise cursor.problem("weights, fixed, sooner or as")
        if cursor.peek() != "select":
            raise cursor.problem("select")
    start = cursor.tokens[cursor.at].start_pos or 0
    text = re.sub(r"[^\n]", " ", piece[:start]) + piece[start:]
    columns: tuple[str, ...] = ()

    def listen(batch: Batch) -> None:
        heard(name, columns, batch)

    columns = cruncher.register(text, listen, weights, policy)


def _weights(cursor: Cursor) -> dict[str, str]:
    found = dict[str, str]()
    while True:
        stream = cursor.name("a stream")
        if cursor.kind() != "NUMBER":
            raise cursor.problem("the weight of an event, as 0.25")
        found[stream] = str(cursor.next())
        if not cursor.take(","):
            return found


def _policy(cursor: Cursor) -> Policy:
    kind = cursor.word()
    count = cursor.number("a length of time, as 5 seconds")
    unit = cursor.peek().removesuffix("s")
    if unit not in UNITS or count < 1:
        raise cursor.problem(f"one of {', '.join(f'{each}s' for each in UNITS)}")
    cursor.next()
    return Policy("fixed" if kind == "fixed" else "sooner", count * UNITS[unit])


def _end(cursor: Cursor) -> None:
    if cursor.peek():
        raise cursor.problem("the end of the statement")
