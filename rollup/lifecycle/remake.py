"""Tables that are gone, or lack files, made anew beside a commit record that is whole.

A level's table is the merge of the next finer one, as far as the level's clock has passed; the record has its open rows.
So nothing is lost of a coarser level, except where retention has removed the finer rows. The finest level has no finer
one: its rows that are gone come back by a replay. All of it is one commit, which keeps clocks, open rows and marks.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import pyarrow as pa

from rollup.aggregation.cascade import Cascade, narrowed
from rollup.core.calendar import Duration
from rollup.lifecycle.book import Page
from rollup.lifecycle.replay.compare import readable
from rollup.stores.base import Commit, FiledStore, Loaded


def remake(store: FiledStore, page: Page, broken: Mapping[str, str]) -> list[str]:
    """Make the broken tables (by suffix) of a store anew; what was done, for people to read."""
    aggregation = store.aggregation
    aside = store.records.folder / f"aside-{int(time.time() * 1000)}"
    loaded = store.remake(broken, aside)
    made: dict[Duration, pa.Table] = {}
    lines: list[str] = []
    for finer, level in zip([None, *aggregation.levels], aggregation.levels, strict=False):
        if level.table_suffix not in broken:
            continue
        if finer is None:
            lines.append(
                f"{level.plural}: what was in the files that are gone is lost: bring it back with `rollup replay`"
            )
            continue
        children = made[finer] if finer in made else store.rows_after(finer, None)
        made[level] = _closed(store, level, loaded, children)
        lines.append(
            f"{level.plural}: {made[level].num_rows} rows made anew from {aggregation.table(finer)}"
            + _lost(page, finer, broken)
        )
    if "LATE" in broken:
        lines.append("late events: the counts in the files that are gone are lost")
    store.commit(Commit(loaded.number + 1, loaded.state, made, None, loaded.source))
    if aside.exists():
        lines.append(f"what was left of the old tables is in {aside}")
    return [*lines, f"commit {loaded.number + 1} has the same open rows and goes on at the same place"]


def _closed(store: FiledStore, level: Duration, loaded: Loaded, children: pa.Table) -> pa.Table:
    """The rows of a level that its clock has passed, from all rows of the next finer one."""
    aggregation, cascade = store.aggregation, Cascade(store.aggregation)
    whole = cascade.merge(store.engine, level, [children.cast(aggregation.state_schema)])
    _, closed = cascade.split(store.engine, level, whole, loaded.state.clocks[level])
    return narrowed(aggregation, closed)


def _lost(page: Page, finer: Duration, broken: Mapping[str, str]) -> str:
    if finer.table_suffix in broken and finer is min(Duration, key=int):
        return "; those of files that are gone there come with the replay"
    if finer.name in page.purged:
        return f"; those before {readable(page.purged_before(finer))} are lost: retention has removed what they were made of"
    return ""
