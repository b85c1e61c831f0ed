"""The command line: `rollup run`, `plan`, `ddl`, `query` … Each command stands in a module of its own."""

from __future__ import annotations

import sys

import typer

from rollup.cli import change, demo, inspect, maintain, query, recover, replay, run, serve, status, verify
from rollup.errors import RollupError

cli = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
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


def app() -> None:
    """Run a command; an error that is the user's to read is one line on standard error, exit code 2."""
    try:
        cli()
    except RollupError as problem:
        print(f"rollup: {problem}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    app()
