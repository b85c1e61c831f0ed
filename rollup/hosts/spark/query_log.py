"""The log that Spark keeps of a streaming query, and taking it back to where the tables are.

Spark notes that a batch is done when `foreachBatch` returns. The tables may know less: they were brought back from a
backup, a standby that was behind has taken over, or the job died while a commit was still on its way. What Spark has
behind it and they lack is cut off its log, so sources give the same events again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from rollup.checkpoint.records import KEPT
from rollup.core.errors import StoreError


def query_of(checkpoint: Path) -> str | None:
    """The id of the streaming query of a checkpoint; None when it has none yet. Raises StoreError when it is damaged."""
    metadata = checkpoint / "metadata"
    try:
        return str(json.loads(metadata.read_bytes())["id"]) if metadata.exists() else None
    except (ValueError, TypeError, KeyError) as problem:
        raise StoreError(
            f"{metadata} is damaged: {problem}",
            hint=f"bring the checkpoint back, or remove {checkpoint}: the stream is read from its start, and tables and "
            "sinks pass over what they have",
        ) from None


def entries(log: Path) -> Iterator[Path]:
    """The entries of one part of a log (`commits`, `offsets`), named by the number of their batch, in no order."""
    yield from (path for path in log.iterdir() if path.name.isdigit()) if log.is_dir() else ()


def newest_done(checkpoint: Path) -> int:
    """The last batch that a query has behind it; -1 before the first."""
    return max((int(path.name) for path in entries(checkpoint / "commits")), default=-1)


def beyond(checkpoint: Path, batch: int) -> list[Path]:
    """What the log of a query has after a batch, in the order to remove it in; removed half, the rest is found again.

    The plan of the next batch is not among it, so that it brings what it brought; those after it are planned anew.
    Raises StoreError when the log no longer has the plans that Spark needs to go on after the batch.
    """
    done, plans = checkpoint / "commits", checkpoint / "offsets"
    later = [path for path in entries(done) if int(path.name) > batch]
    later += [path for path in entries(plans) if int(path.name) > batch + 1]
    for needed in (batch, batch + 1) if later else ():
        if needed >= 0 and not (plans / str(needed)).exists():
            raise StoreError(
                f"the tables end with batch {batch} of {checkpoint.name}, and {checkpoint} no longer knows batch {needed}",
                hint="bring back newer tables, or go on without what lies between: `rollup recover CONF --rebuild --aggregation NAME`, "
                "then `rollup replay`",
            )
    return sorted(later, key=lambda path: -int(path.name))


def spent(checkpoint: Path) -> list[Path]:
    """What the log of a query has that nothing reads any more: an earlier batch of files than the `KEPT` last, and an entry
    of files that a later one sums up. What a batch of a topic had stays as long as Spark keeps it, for replays."""
    over = newest_done(checkpoint) - KEPT
    found = [path for path in entries(checkpoint / "commits") if int(path.name) < over]
    for log in checkpoint.glob("sources/*"):
        sums = sorted(int(path.stem) for path in log.glob("*.compact") if path.stem.isdigit())
        if sums:  # files; of the last two Spark learns how many entries it is to sum up
            found += [path for path in entries(checkpoint / "offsets") if int(path.name) < over]
        found += [path for path in log.iterdir() if path.stem.isdigit() and int(path.stem) < (sums or [0])[-2:][0]]
    return found


def drop_drafts(checkpoint: Path) -> None:
    """Remove what Spark has left of a first plan that it could not finish, on a full disk or when it was killed.

    Spark refuses to begin in a log that has no batch and is not empty.
    """
    for log in (checkpoint / "offsets", checkpoint / "commits"):
        if log.is_dir() and not any(entries(log)):
            for path in log.glob(".*"):
                path.unlink()


def remove(found: Iterable[Path]) -> None:
    """Remove entries of a log."""
    for path in found:
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
