"""`rollup change`: what a changed app means for the tables there are."""

from __future__ import annotations

from typing import Annotated

import typer

from rollup.cli.lifecycle.shared import ConfArgument, NameOption, chosen
from rollup.conf import load


def change(
    conf: ConfArgument,
    aggregation: NameOption = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Do it, also where rows from now on mean something else.")
    ] = False,
) -> None:
    """Say what is different from the declaration of the tables. Exit code 1 when something is refused."""
    refused = False
    for one in chosen(conf, aggregation):
        from rollup.lifecycle.change import compare, declaration, settle, taken
        from rollup.lifecycle.lease.places import held, lease_of
        from rollup.lifecycle.status import newest_state

        before, state = one.book.page().declaration, newest_state(one.store)
        filled = taken(one.aggregation, state)
        found = None if before is None else compare(before, declaration(one.aggregation), filled)
        same = "nothing has changed" if before else "it is new: its tables are made, empty, when the job starts"
        for line in found.lines if found else [same]:
            print(f"{one.aggregation.name}: {line}")
        refused |= bool(found and found.refused)
        if found and not accept and not found.refused:
            print(
                f"{one.aggregation.name}: not done yet: `rollup change {conf} --accept` does it"
                + ("" if found.meaning else ", and so does the next start of the job")
                + "; until then every command reads the tables as they are"
            )
        if found and accept:
            with held([lease_of(one.conf, one.aggregation, "change")]):
                settle(one.book, one.store, one.aggregation, state, accept=True)
    if aggregation is None:
        from rollup.lifecycle.states import changed_statements

        read = load(conf)
        for name in changed_statements(read, read.program(), accept):
            done = "begin anew" if accept else f"not done yet: `rollup change {conf} --accept` lets them begin anew"
            print(f"the statements of {name!r} have changed: {done}; all others keep their windows and patterns")
    raise SystemExit(1 if refused else 0)
