"""The command line: `rollup run`, `plan`, `ddl`, `query` … Each command stands in a module of its own.

What a command needs is imported when it runs, after the configuration has been read: help and refusals come at once.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import sys
from typing import Annotated

import typer

from rollup.cli import demo, doctor, init, inspect, lsp, query, run, say_interrupted, serve, subscribe, ui
from rollup.cli.jobs import jobs
from rollup.cli.languages import sql, try_, uql
from rollup.cli.lifecycle import change, dead, maintain, recover, replay, status, verify
from rollup.cli.lifecycle.shared import emitted
from rollup.core.errors import RollupError, refused_by_system
from rollup.core.packages import missing

# Help is plain text: rich takes longer to load than everything else that help needs together.
cli = typer.Typer(name="rollup", no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


SHORT = {"query", "plan", "ddl", "status", "dead", "change"}
"""Commands that only read, and end before there is garbage worth collecting; see `entry`."""


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write to standard output may end with that the user can mend; one to a file of ours is an error of the store."""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"rollup {version('rollup')}")
        raise typer.Exit


@cli.callback()
def main(
    context: typer.Context,
    shown: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Time rollups of a stream, seconds to years, from one declaration."""
    if not gc.isenabled() and context.invoked_subcommand not in SHORT:
        gc.freeze()
        gc.enable()


cli.command("init")(init.init)
cli.command("describe")(init.describe)
cli.command("run")(run.run)
cli.command("plan")(inspect.plan)
cli.command("ddl")(inspect.ddl)
cli.command("query")(query.query)
cli.command("subscribe")(subscribe.subscribe)
cli.command("serve")(serve.serve)
cli.command("ui")(ui.ui)
cli.command("status")(status.status)
cli.command("dead")(dead.dead)
cli.command("verify")(emitted(verify.verify))
cli.command("replay")(emitted(replay.replay))
cli.command("recover")(emitted(recover.recover))
cli.command("change")(emitted(change.change))
cli.command("maintain")(emitted(maintain.maintain))
cli.command("doctor")(doctor.doctor)
cli.command("demo")(demo.demo)
cli.command("uql")(uql.uql)
cli.command("sql")(sql.sql)
cli.command("try")(try_.try_)
cli.command("lsp")(lsp.lsp)


cli.add_typer(jobs, name="jobs")


def app() -> None:
    """Run a command; an error that is the user's to read is one line on standard error, exit code 2."""
    try:
        cli(prog_name="rollup")
    except RollupError as problem:
        print(f"rollup: {problem}", file=sys.stderr)
        raise SystemExit(2) from None
    except ModuleNotFoundError as problem:
        if (error := missing(f"`rollup {' '.join(sys.argv[1:2])}`", problem)) is None:
            raise
        print(f"rollup: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        say_interrupted()
        raise SystemExit(130) from None
    except SystemExit as end:
        if end.code == 130:  # typer has made it of an interrupt, and says nothing
            say_interrupted()
        raise
    except OSError as problem:
        refused = refused_by_system(f"cannot write or read {problem.filename}", problem)
        if problem.filename is not None and refused is not None:
            print(f"rollup: {refused}", file=sys.stderr)
            raise SystemExit(2) from None
        if problem.filename is not None or problem.errno not in _FULL:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still in the buffer is not written when Python ends
        print(f"rollup: the output cannot be written: {problem.strerror}", file=sys.stderr)
        raise SystemExit(2) from None


def entry() -> None:
    """The command `rollup`: `app`, without what a short command would spend a third of its time on.

    That is the search for garbage among all that is imported, again and again while it is imported, and once more,
    object by object, when the process ends.
    """
    gc.disable()
    try:
        app()
    except SystemExit as end:
        if not gc.isenabled() and isinstance(end.code, int | None):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End the process at once, unless what was printed cannot be written: Python then says so in its own way."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    entry()
