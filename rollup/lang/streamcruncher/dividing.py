"""By which columns a running query falls apart: those that its partitions share, where it shows what is new or has left.

A cycle is one of all keys, but a key without insert or remove rows sees nothing of it. There are two exceptions: rows
that leave with the next cycle of any key, and a select of the rows that stay.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rollup.engine.dividing import Need
from rollup.engine.rows.cycles.relating import Projection
from rollup.lang.streamcruncher.tree import Chain, Partition, Query


def need_of(query: Query, projection: Projection | None, columns: Mapping[str, Collection[str]]) -> Need | str:
    """What a query needs of a key, or why it has none. `projection` is its select, where it only picks rows and columns;
    `columns`: those of each stream, without its time."""
    if projection is None:
        return "its select is over the rows of all keys"
    if 0 in projection.statuses:
        return "its select gives the rows that stay, with every cycle"
    found = dict[str, tuple[str, ...] | None]()
    for chain in query.chains:
        reason = _against(chain)
        if reason is not None:
            return reason
        shared = _shared(chain, columns[chain.stream])
        if shared == ():
            return "its partitions have no column of the stream in common"
        if chain.stream in found and found[chain.stream] != shared:
            return f"two of its partitions divide {chain.stream} otherwise"
        found[chain.stream] = shared
    return found


def _against(chain: Chain) -> str | None:
    for before, part in zip((None, *chain.parts), chain.parts, strict=False):
        if part.window.kind == "latest":
            return "its rows leave with whatever cycle comes next"
        if before is not None and part.feed == "dead" and part.window.kind == "time" and not before.aggregates:
            return "what has left one of its partitions leaves the next with whatever cycle comes next"
    return None


def _shared(chain: Chain, columns: Collection[str]) -> tuple[str, ...] | None:
    """The columns by which all partitions are, and by which alerts correlate; None: each row stands for itself."""
    keys = [set(part.by) for part in chain.parts if not _alone(part)]
    if chain.correlate is not None:
        keys.append({chain.correlate})
    return tuple(name for name in columns if all(name in each for each in keys)) if keys else None


def _alone(part: Partition) -> bool:
    """Whether a row comes and goes whatever others there are."""
    return part.window.kind == "time" and part.window.most is None and not part.aggregates
