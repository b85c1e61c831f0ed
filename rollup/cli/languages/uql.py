"""`rollup uql`: run a UQL query over rows on standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, cast

import typer


def uql(
    query: Annotated[str, typer.Argument(help="The query, or a file that holds it; several in one text are a chain.")],
    catalog: Annotated[Path, typer.Option(help="The catalog, a JSON file.")],
    plan: Annotated[
        bool, typer.Option("--plan", help="Print the operators and the output's columns; read nothing.")
    ] = False,
    shown: Annotated[
        int, typer.Option(help="How many of the rows that are set aside are printed with their reason.")
    ] = 20,
) -> None:
    """Run a UQL query: rows from standard input, results to standard output, everything else to standard error.

    Exit code 0; 1 when rows were set aside because they do not fit their table; 2 when the query or the catalog is refused.
    """
    from rollup.core.texts import query_text
    from rollup.lang.uql.catalog import Catalog
    from rollup.lang.uql.describe import describe
    from rollup.lang.uql.ingress import Bad
    from rollup.lang.uql.plan import plan as planned
    from rollup.lang.uql.run import Input, Summary, run

    plans = planned(query_text(query), Catalog.read(catalog))
    if plan:
        print("\n".join(describe(plans)))
        return
    summary, told = Summary(), 0
    for event in run(plans, cast(Input, sys.stdin.buffer), sys.stdout.buffer):
        if isinstance(event, Bad):
            told += 1
            if told <= shown:
                print(f"rollup uql: line {event.line} is set aside: {event.reason}", file=sys.stderr)
        else:
            summary = event
    if told > shown:
        print(f"rollup uql: {told - shown} more lines are set aside", file=sys.stderr)
    print(f"rollup uql: {'; '.join(summary.sentences())}", file=sys.stderr)
    raise typer.Exit(1 if summary.bad or summary.unplaced else 0)
