"""`rollup verify`: whether the tables are what they should be."""

from __future__ import annotations

import sys
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
    examined,
    raise_all,
    show,
    span,
)
from rollup.core.errors import RollupError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from rollup.lifecycle.replay.raw import RawSource
    from rollup.plan.aggregation import Aggregation
    from rollup.stores.base import Damaged


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
    """Check all files by their checksums, every level against the next finer one, statements, sinks and checkpoint.

    Exit code 0: all is right; 1: something differs (or did); 2: something is damaged, and a job could not start.
    """
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
    if aggregation is None:
        wrong += _elsewhere(conf, json)
        raise_all([problem for problem in examined(conf) if isinstance(problem, RollupError)])
    raise SystemExit(1 if wrong else 0)


_CURE = "`rollup verify CONF --repair` makes anew what other rows can, and names the replay for what they cannot"


def _verify(
    one: Chosen, start: str | None, end: str | None, raw: RawSource | None, true_buckets: bool, repair: bool, json: bool
) -> int:
    from rollup.lifecycle.maintenance.between_batches import REPAIR, Request, submit

    verifier, wanted = one.verifier(), span(one.conf, start, end)
    damaged, found = verifier.damaged, list(verifier.levels(wanted))
    if damaged and raw is not None:
        print("what is read of damaged files is not compared with the raw events", file=sys.stderr)
    for line in () if wanted is None else verifier.passed(wanted):
        print(f"{one.aggregation.name}: {line}", file=sys.stderr)
    against = [] if raw is None or damaged else list(verifier.raw(raw, wanted, true_buckets))
    _show_damaged(damaged, json)
    show([*found, *against], json)
    count = len(damaged) + len(found) + len(against)
    if not json:
        said = [f"{len(damaged)} damaged files"] * bool(damaged)
        said += [f"{count - len(damaged)} differences"] * (count > len(damaged))
        print(f"{one.aggregation.name}, commit {verifier.snapshot.number}: {', '.join(said) or 'every level is right'}")
    if count and not repair and not json:
        print(f"rollup: {_CURE}", file=sys.stderr)
    if repair and (wrong := verifier.wrong(found)):
        low, high = min(start for start, _ in wrong.values()), max(end for _, end in wrong.values())
        print(submit(one.conf, one.program, one.aggregation, Request(REPAIR, low, high)))
    if repair and (lost := [each for each in damaged if each.level in (None, one.aggregation.root)]):
        raise _lost(one.aggregation, lost)
    if repair and against and not found:
        raise StoreError(
            "the finest level differs from the raw events", hint="`rollup replay` computes the range again from them"
        )
    return count


def _elsewhere(path: Path, json: bool) -> int:
    """Name the damaged files of sinks and of dead letters; how many there are."""
    from rollup.conf import load
    from rollup.core.json_line import json_line
    from rollup.lifecycle.states import damaged

    conf = load(path)
    found = list(damaged(conf, conf.program()))
    for name, file in found:
        if json:
            print(json_line({"table": name, "damaged": file}))
        else:
            print(f"{name}: {file} is damaged: bring it back from a copy")
    return len(found)


def _lost(aggregation: Aggregation, damaged: list[Damaged]) -> StoreError:
    """What is to be said of damaged files whose rows no other table has."""
    from rollup.core.calendar import bucket_end
    from rollup.lifecycle.replay.compare import readable

    hint = "bring them back, or `rollup recover CONF --rebuild` goes on without them"
    if rows := [each for each in damaged if each.level is not None]:
        end = bucket_end(max(each.high for each in rows), aggregation.root, aggregation.zone)
        low, high = (f"{readable(instant)} +00:00" for instant in (min(each.low for each in rows), end))
        hint = (
            f"bring them back, or `rollup replay CONF --from '{low}' --to '{high}'` computes them from the raw events"
        )
    return StoreError(f"no other table has the rows of {', '.join(each.file for each in damaged)}", hint=hint)


def _show_damaged(damaged: list[Damaged], json: bool) -> None:
    """Name the damaged files."""
    from rollup.core.json_line import json_line
    from rollup.lifecycle.replay.compare import readable

    for each in damaged:
        if json:
            print(json_line({"table": each.table, "damaged": each.file, "start": each.low, "end": each.high}))
        else:
            print(f"{each.table}: {each.file} is damaged; its buckets: {readable(each.low)} to {readable(each.high)}")
