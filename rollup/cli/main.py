"""The command line: `rollup run`, `plan`, `ddl`, `query` … Each command stands in a module of its own.

What a command needs is imported when it runs, after the configuration has been read: help and refusals come at once.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from rollup.cli import (
    change,
    demo,
    inspect,
    maintain,
    query,
    recover,
    replay,
    run,
    serve,
    sql,
    status,
    try_,
    uql,
    verify,
)
from rollup.core.errors import RollupError

# Help is plain text: rich takes longer to load than everything else that help needs together.
cli = typer.Typer(name="rollup", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"rollup {version('rollup')}")
        raise typer.Exit


@cli.callback()
def main(
    shown: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Time rollups of a stream, seconds to years, from one declaration."""


cli.command("run")(run.run)
cli.command("plan")(inspect.plan)
cli.command("ddl")(inspect.ddl)
cli.command("query")(query.query)
cli.command("serve")(serve.serve)
cli.command("status")(status.status)
cli.command("verify")(verify.verify)
cli.command("replay")(replay.replay)
cli.command("recover")(recover.recover)
cli.command("change")(change.change)
cli.command("maintain")(maintain.maintain)
cli.command("demo")(demo.demo)
cli.command("uql")(uql.uql)
cli.command("sql")(sql.sql)
cli.command("try")(try_.try_)


def app() -> None:
    """Run a command; an error that is the user's to read is one line on standard error, exit code 2."""
    try:
        cli(prog_name="rollup")
    except RollupError as problem:
        print(f"rollup: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("rollup: interrupted", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    app()
