"""`rollup query`: ask an aggregation, or a named window or table of statements."""

from __future__ import annotations

import csv
import re
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollup.conf import load
from rollup.core.json_line import json_line, plain

if TYPE_CHECKING:
    import pyarrow as pa


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WIDEST = 100_000
"""Columns of a terminal that no answer fills."""


class Format(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


def query(
    conf: Annotated[Path, typer.Argument(help="The configuration, a TOML file.")],
    text: Annotated[str, typer.Argument(help="from A within '2018-01-** **:**:**' per 'days' select …, or SQL.")],
    form: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.TABLE,
    as_of: Annotated[
        str | None, typer.Option(help="Answer from an earlier commit: its number, or a time, '2026-11-29 12:00:00'.")
    ] = None,
    epoch: Annotated[bool, typer.Option("--epoch", help="Times as milliseconds since 1970.")] = False,
    plot: Annotated[
        str | None, typer.Option(help="Draw the series: '-' in the terminal, or a file .png, .svg, .pdf.")
    ] = None,
) -> None:
    """Ask an aggregation, stored and still open buckets in one answer, or a named window or table of statements."""
    found = load(conf)
    from rollup.ask import opened
    from rollup.lifecycle.completeness import remarks

    asker = opened(found)
    answer = asker.query(text, as_of=as_of)
    for remark in remarks(asker, text, answer):
        print(f"rollup: {remark}", file=sys.stderr)
    if plot is not None:
        from rollup.cli.plot import plot as draw

        draw(answer, plot, text, asker.zone)
        if plot != "-":
            print(f"wrote {plot}", file=sys.stderr)
        return
    show(answer, form, None if epoch else asker.zone)


def show(answer: pa.Table, form: Format, zone: str | None) -> None:
    """Print a table in one of the formats; times are those of a zone, or without one milliseconds.

    An Arrow stream has the types of the answer: AGG_TIMESTAMP is a number, AGG_TIME a time.
    """
    if form is Format.ARROW:
        import pyarrow as pa

        with pa.ipc.new_stream(sys.stdout.buffer, answer.schema) as writer:
            writer.write_table(answer)
        return
    names, columns = answer.schema.names, columns_of(answer, zone)
    if form is Format.CSV:
        writer = csv.writer(sys.stdout)
        writer.writerow(names)
        writer.writerows(
            [written(value) if isinstance(value, (Decimal, datetime)) else value for value in row]
            for row in zip(*columns, strict=True)
        )
    elif form is Format.JSON:
        for row in zip(*columns, strict=True):
            print(json_line(dict(zip(names, row, strict=True)), written))
    elif {"reads", "files_skipped"} <= set(names):
        _explained(answer)
    else:
        _table(answer, columns, zone)


_STARTS = re.compile(r"AGG_TIME(STAMP)?\d*|AGG_UNTIL")
"""The names of columns that are starts of buckets; of a join, a number tells those of the second side apart."""


def columns_of(answer: pa.Table, zone_name: str | None) -> list[list[Any]]:
    """The columns of an answer; its instants are times of a zone, or without one milliseconds."""
    import pyarrow as pa

    from rollup.core.calendar import to_local, zone

    found = list[list[Any]]()
    for field, column in zip(answer.schema, answer.columns, strict=True):
        values = column.to_pylist()
        if pa.types.is_timestamp(field.type) and field.type.tz:
            if zone_name is None:
                values = [None if value is None else (value - _EPOCH) // timedelta(milliseconds=1) for value in values]
            else:
                place = zone(zone_name)
                values = [None if value is None else value.astimezone(place) for value in values]
        elif _STARTS.fullmatch(field.name) and pa.types.is_int64(field.type) and zone_name is not None:
            values = [None if value is None else to_local(value, zone_name) for value in values]
        found.append(values)
    return found


def written(value: object) -> str | int:
    """A value that JSON has no word for; a time as ISO 8601, with the offset that it has.

    >>> written(Decimal("3584")), written(Decimal("1.50"))
    (3584, '1.50')
    """
    if isinstance(value, Decimal) and value.as_tuple().exponent == 0:
        return int(value)  # a sum of whole numbers
    return value.isoformat() if isinstance(value, datetime) else plain(value)


def _explained(answer: pa.Table) -> None:
    """What EXPLAIN gives, a table a range and level: what all its rows share would take half of 80 columns."""
    from rich.table import Table

    from rollup.cli.console import console

    shared, shown = ("level", "start", "end", "commit"), ("reads", "rows", "version", "files_read", "files_skipped")
    tables = dict[tuple[object, ...], Table]()
    for row in answer.to_pylist():
        key = tuple(row[name] for name in shared)
        if key not in tables:
            title = "{} from {}\nto {}, commit {}".format(*key)
            tables[key] = Table(*(name.replace("_", " ") for name in shown), title=title, title_justify="left")
        tables[key].add_row(*("·" if row[name] is None else f"{row[name]}" for name in shown))
    for table in tables.values():
        console().print(table)


def _table(answer: pa.Table, columns: list[list[Any]], zone: str | None) -> None:
    import pyarrow as pa
    from rich.table import Table

    from rollup.cli.console import console

    timed = zone is not None and any(
        field.name == "AGG_TIMESTAMP" or (pa.types.is_timestamp(field.type) and field.type.tz)
        for field in answer.schema
    )
    table = Table(*answer.schema.names)
    for column, field in zip(table.columns, answer.schema, strict=True):
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp)
        column.justify = "right" if any(is_one(field.type) for is_one in kinds) else "left"
    rows = [
        [cell(name, value) for name, value in zip(answer.schema.names, row, strict=True)]
        for row in zip(*columns, strict=True)
    ]
    for row in rows:
        table.add_row(*row)
    out = console()
    wide = out.measure(table, options=out.options.update(width=_WIDEST)).maximum
    if wide <= out.width or not out.is_terminal:
        console(max(wide, out.width)).print(table)
    else:  # a record is a block of lines, as its columns beside each other would be cut to a few letters
        margin = max(map(len, answer.schema.names))
        for number, row in enumerate(rows, 1):
            out.print(
                f"── row {number} ──",
                *(f"{n:{margin}}  {v}" for n, v in zip(answer.schema.names, row, strict=True)),
                sep="\n",
            )
    print(f"{answer.num_rows} row{'' if answer.num_rows == 1 else 's'}{f', times in {zone}' if timed else ''}")


def cell(name: str, value: object) -> str:
    """A value of `columns_of` for people: a number has its thousands apart, but not milliseconds since 1970."""
    if value is None:
        return "·"
    if _STARTS.fullmatch(name) and isinstance(value, int):
        return f"{value}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, Decimal):
        return f"{value:,f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value:%f}" if value.microsecond else "")
    return f"{value:,}" if isinstance(value, int) else str(value)
