"""A batch beside its events one by one: what both bring, and what is there at the end."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.live import Engine

FOLLOWED = """
@name('sum') select sum(v) as s from W;
@name('groups') select irstream k, count(*) as c, sum(v) as s from W group by k having count(*) > 1;
@name('left') select rstream v from W where n > 1;
@name('all') select * from W;
"""
_EVENT = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", "c", None]),
        "n": st.one_of(st.none(), st.integers(0, 2)),
        "v": st.sampled_from([1.0, 3.5, 6.1, 30.2, 40.3, 80.7, 95.9]),
    }
)
EVENTS = st.lists(_EVENT, min_size=8, max_size=30)


def said(engine: Engine) -> list[Any]:
    """What was delivered, in order."""
    return [(each.statement, each.at, each.new, each.old) for each in engine.heard()]


def sent(engine: Engine, events: list[dict[str, Any]], at: list[int], together: bool) -> list[Any]:
    """What the events bring, as one batch or one by one; what comes after one that is refused is not taken."""
    try:
        for begin, end in [(0, len(events))] if together else [(i, i + 1) for i in range(len(events))]:
            engine.send("S", events[begin:end], at=at[begin:end])
    except QueryError as problem:
        return [*said(engine), str(problem)]
    return said(engine)


def left(engine: Engine) -> list[Any]:
    """What stores hold, and statements would show."""
    stores = sorted(engine.stores)
    names = sorted(placed.statement for placed in engine.plan())
    return [*(engine.query(f"select * from {name}") for name in stores), *(engine.rows(name) for name in names)]
