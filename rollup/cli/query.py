"""`rollup query`: ask an aggregation."""

from __future__ import annotations

import csv
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from rollup.cli.plot import plot as draw


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
    plot: Annotated[str | None, typer.Option(help="Draw the series: '-' in the terminal, or a PNG file.")] = None,
) -> None:
    """Ask an aggregation: stored and still open buckets in one answer."""
    from rollup.ask import opened
    from rollup.lifecycle.remarks import remarks

    asker = opened(conf)
    answer = asker.query(text)
    for remark in remarks(asker.conf, asker.program, text):
        print(f"rollup: {remark}", file=sys.stderr)
    if plot is not None:
        draw(answer, plot)
        if plot != "-":
            print(f"wrote {plot}", file=sys.stderr)
        return
    show(answer, form)


def show(answer: pa.Table, form: Format) -> None:
    """Print a table in one of the formats."""
    if form is Format.ARROW:
        with pa.ipc.new_stream(sys.stdout.buffer, answer.schema) as writer:
            writer.write_table(answer)
    elif form is Format.CSV:
        writer = csv.writer(sys.stdout)
        writer.writerow(answer.schema.names)
        writer.writerows(zip(*(column.to_pylist() for column in answer.columns), strict=True))
    elif form is Format.JSON:
        for row in answer.to_pylist():
            print(json.dumps(row, default=str, ensure_ascii=False))
    else:
        _table(answer)


def _table(answer: pa.Table) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(*answer.schema.names, caption=f"{answer.num_rows} rows")
    for column, field in zip(table.columns, answer.schema, strict=True):
        column.justify = "right" if pa.types.is_integer(field.type) or pa.types.is_floating(field.type) else "left"
    for row in zip(*(column.to_pylist() for column in answer.columns), strict=True):
        table.add_row(*(_cell(name, value) for name, value in zip(answer.schema.names, row, strict=True)))
    Console().print(table)


def _cell(name: str, value: object) -> str:
    from rollup.calendar import GMT, to_local

    if value is None:
        return "·"
    if name == "AGG_TIMESTAMP" and isinstance(value, int):
        return f"{to_local(value, GMT):%Y-%m-%d %H:%M:%S}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
