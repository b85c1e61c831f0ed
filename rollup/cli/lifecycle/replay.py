"""`rollup replay`: a range computed again from raw events."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.cli.lifecycle.shared import (
    Chosen,
    ConfArgument,
    JsonOption,
    NameOption,
    SlackOption,
    SourceOption,
    chosen,
    show,
    span,
)
from rollup.core.calendar import bucket_end, bucket_start
from rollup.core.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from rollup.lifecycle.maintenance.between_batches import Request
    from rollup.lifecycle.replay.recompute import TrueRows
    from rollup.lifecycle.verify import Verifier


def replay(
    conf: ConfArgument,
    start: Annotated[
        str, typer.Option("--from", help="Start of the range: '2018-01-01' or '2018-01-01 12:00:00 +05:30'.")
    ],
    end: Annotated[str, typer.Option("--to", help="End of the range, exclusive.")],
    aggregation: NameOption = None,
    source: SourceOption = None,
    slack: SlackOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    json: JsonOption = False,
) -> None:
    """Compute a range again from the raw events and put it, in one commit, in the place of what all levels have.

    Every event counts in its own bucket, late or not. May run beside the live job.
    """
    for one in chosen(conf, aggregation):
        from rollup.lifecycle.maintenance.between_batches import REPLAY, Request

        wanted = span(one.conf, start, end)
        assert wanted is not None
        _replay(
            one,
            Request(REPLAY, *_whole(one, *wanted), None if source is None else str(source.resolve()), slack),
            dry_run,
            json,
        )


def _whole(one: Chosen, low: int, high: int) -> tuple[int, int]:
    """The range widened to whole buckets of the finest level."""
    root, zone = one.aggregation.root, one.aggregation.zone
    return bucket_start(low, root, zone), bucket_end(bucket_start(high - 1, root, zone), root, zone)


def _replay(one: Chosen, request: Request, dry_run: bool, json: bool) -> None:
    from rollup.lifecycle.maintenance.between_batches import submit, true_rows
    from rollup.lifecycle.replay.compare import readable
    from rollup.lifecycle.replay.rebuild import Rebuilder
    from rollup.lifecycle.status import moved_across

    snapshot, engine = one.store.snapshot(), one.engine
    verifier = one.verifier()
    rows = true_rows(one.conf, one.program, one.aggregation, engine, request)
    rebuilder = Rebuilder(engine, verifier.cascade, snapshot, verifier.page)
    rebuilder.replace(request.span, one.aggregation.state_schema.empty_table())  # refused now rather than after reading
    left = rows.left(snapshot.loaded().source)
    if not left and not rows.done:
        raise ConfigError(f"there are no {rows.raw.noun} to read", hint="--source names a folder that has them")
    rows.take(left)
    _say(
        json,
        f"{one.aggregation.name}: {rows.events} events of {len(rows.done)} {rows.raw.noun}; "
        f"{readable(request.start)} to {readable(request.end)}",
    )
    _complete(rows, verifier, request.span, moved_across(snapshot, request.end))
    rows.refuse_crossed(verifier)
    if dry_run:
        rebuilt = rebuilder.replace(request.span, rows.rows())
        show(list(verifier.changes(rebuilt)), json, columns=("now", "then"))
        if rebuilt.left:
            print(rebuilt.left, file=sys.stderr)
        return
    done = submit(one.conf, one.program, one.aggregation, request, said=lambda line: _say(json, line))
    print(done, flush=True, file=sys.stderr if json else sys.stdout)
    rows.remove()


def _complete(rows: TrueRows, verifier: Verifier, span: tuple[int, int], late: int) -> None:
    """Raise StoreError when a bounded read has found fewer events than the tables have of a range.

    The ledger explains some: `late` events, up to the end of the range, count in another bucket than their own.
    """
    from rollup.lifecycle.replay.crossings import events_of

    if not verifier.whole(verifier.aggregation.root, span):
        return  # nobody knows how many there were
    there, found = events_of(verifier.stored(verifier.aggregation.root, span)), events_of([rows.rows()])
    if rows.raw.bounded and found < there - late:
        raise StoreError(
            f"the topic gives {found} events of this range, the tables have {there}: "
            "some were stamped by the broker too long before or after they happened",
            hint="a longer --slack, or --slack all",
        )


def _say(json: bool, line: str) -> None:
    if not json:
        print(line, flush=True)
