"""`rollup verify`: whether the tables are what they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rollup.cli.lifecycle.shared import (
    Chosen,
    ConfArgument,
    FromOption,
    JsonOption,
    NameOption,
    SlackOption,
    SourceOption,
    ToOption,
    chosen,
    show,
    span,
)
from rollup.core.errors import StoreError

if TYPE_CHECKING:
    from rollup.lifecycle.replay.raw import RawSource


def verify(
    conf: ConfArgument,
    aggregation: NameOption = None,
    start: FromOption = None,
    end: ToOption = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Also compute the range again from the raw events, with the late policy of the app."
        ),
    ] = False,
    true_buckets: Annotated[
        bool, typer.Option("--true-buckets", help="With --raw: every event in its own bucket, as after a replay.")
    ] = False,
    source: SourceOption = None,
    slack: SlackOption = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Rebuild wrong rows from the next finer level, in one commit.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check every level against the next finer one. Exit code 0: all equal; 1: something differs (or did)."""
    wrong = 0
    for one in chosen(conf, aggregation):
        from rollup.lifecycle.replay.raw import RawSource

        if one.newest() is None:
            print(f"{one.aggregation.name}: nothing committed yet")
            continue
        wrong += _verify(
            one,
            start,
            end,
            RawSource(one.conf, one.program, one.aggregation, source, slack) if raw else None,
            true_buckets,
            repair,
            json,
        )
    raise SystemExit(1 if wrong else 0)


def _verify(
    one: Chosen, start: str | None, end: str | None, raw: RawSource | None, true_buckets: bool, repair: bool, json: bool
) -> int:
    from rollup.lifecycle.maintenance.between_batches import REPAIR, Request, submit

    verifier, wanted = one.verifier(), span(one.conf, start, end)
    found = list(verifier.levels(wanted))
    against = [] if raw is None else list(verifier.raw(raw, wanted, true_buckets))
    show([*found, *against], json)
    if not json:
        count = len(found) + len(against)
        said = f"{count} differences" if count else "every level is right"
        print(f"{one.aggregation.name}, commit {verifier.snapshot.number}: {said}")
    if repair and found:
        low = min(d.start for d in found)
        high = max(d.start for d in found) + 1
        print(submit(one.conf, one.program, one.aggregation, Request(REPAIR, low, high)))
    elif repair and against:
        raise StoreError(
            "the finest level differs from the raw events", hint="`rollup replay` computes the range again from them"
        )
    return len(found) + len(against)
