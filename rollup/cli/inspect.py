"""`rollup plan` and `rollup ddl`: what would run, and the tables it needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from rollup.aggregation.engine import Engine
from rollup.aggregation.partials import Partials
from rollup.conf import check, load
from rollup.plan.aggregation import Aggregation
from rollup.plan.dialects import to_sql

ConfArgument = Annotated[Path, typer.Argument(help="The configuration, a TOML file.")]


def plan(
    conf: ConfArgument,
    sql: Annotated[bool, typer.Option("--sql", help="Also print the SQL of the first step.")] = False,
) -> None:
    """Say what would run: streams, levels, tables, columns."""
    found = load(conf)
    program = found.program()
    check(found, program)
    console = Console()
    for name in program.inputs:
        console.print(f"stream [bold]{name}[/] from {found.sources[name]['kind']}")
    for derivation in program.derivations:
        console.print(
            f"stream [bold]{derivation.target}[/] from stream {derivation.source}: {to_sql(derivation.query)}"
        )
    for aggregation in program.aggregations.values():
        console.print(_described(aggregation))
        if sql:
            console.print(Partials(aggregation).sql, soft_wrap=True)


def _described(aggregation: Aggregation) -> Table:
    title = (
        f"{aggregation.name}: from {aggregation.stream}, buffer {aggregation.buffer}, late events {aggregation.policy}"
    )
    table = Table(
        "column",
        "stored as",
        "merged by",
        title=title,
        caption="tables: " + ", ".join(map(aggregation.table, aggregation.levels)),
    )
    merges = {value.name: to_sql(value.merge) for value in aggregation.values}
    for name, kind in aggregation.kinds.items():
        table.add_row(name, str(kind.table), merges.get(name, "key"))
    return table


def ddl(conf: ConfArgument) -> None:
    """Print the statements that create the tables."""
    from rollup.stores.ddl import statements

    found = load(conf)
    for aggregation in found.program().aggregations.values():
        for statement in statements(found, aggregation, Engine()):
            print(statement + ";")
