"""Sub-queries and joins that find rows by key against the same ones that look through all of them, which a condition over more
than a field makes them do."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.live import Engine
from tests.profiles import examples

SCHEMA = "create schema S(k string, n int, v double);"
STORES = {
    "unique": "create window W#unique(k) as S; insert into W select * from S(v < 6);",
    "of two": "create window W#unique(k, n) as S; insert into W select * from S(v < 6);",
    "length": "create window W#length(4) as S; insert into W select * from S(v < 6);",
    "sorted": "create window W#sort(3, v) as S; insert into W select * from S(v < 6);",
    "table": "create table W(k string primary key, n int, v double); on S(v < 6 and k is not null) as s merge W as w where w.k = s.k "
    "when matched then update set n = s.n, v = s.v when not matched then insert select *;",
    "merged": "create window W#unique(k) as S; on S(v < 6) as s merge W as w where w.k = s.k "
    "when matched then update set n = s.n, v = w.v + s.v when not matched then insert select *;",
    "events": "",
}
ASKED = {
    "value": "select (select w.v from {W} as w where {k} = s.k) as a from S as s",
    "row": "select (select w from {W} as w where {k} = s.k and w.n = s.n) as a from S as s",
    "exists": "select v from S as s where exists (select * from {W} as w where {k} = s.k)",
    "exists more": "select v from S as s where exists (select * from {W} as w where {k} = s.k and w.v < s.v)",
    "having": "select (select w.v from {W} as w where {k} = s.k having w.v > 3) as a from S as s",
    "average": "select (select avg(w.v) from {W} as w where {k} = s.k) as a from S as s",
    "count": "select (select count(*) from {W} as w where {k} = s.k and w.n < s.n) as a from S as s",
    "having of all": "select (select sum(w.v) from {W} as w where {k} = s.k having count(*) > 1) as a from S as s",
    "first": "select (select first(w.v) from {W} as w where {k} = s.k) as a from S as s",
    "join": "select w.v as a from S as s unidirectional, {W} as w where {k} = s.k",
}
PAIRS = [(store, asked) for store in STORES for asked in ASKED if (store, asked) != ("events", "join")]  # no store
_EVENT = st.fixed_dictionaries(
    {
        "k": st.sampled_from(["a", "b", None]),
        "n": st.one_of(st.none(), st.integers(0, 2)),
        "v": st.sampled_from([0.1, 1.0, 3.5, 5.7, 8.2]),
    }
)


def _said(store: str, asked: str, k: str, events: list[dict[str, Any]], together: bool) -> list[Any]:
    engine = Engine(columns=None)
    window = "S(v < 6)#length(3)" if store == "events" else "W"
    engine.deploy(SCHEMA + STORES[store] + f"@name('asks') {ASKED[asked].format(W=window, k=k)}")
    for batch in [events] if together else [[event] for event in events]:
        engine.send("S", batch)
    return [each.new for each in engine.heard() if each.statement == "asks"]


@pytest.mark.parametrize(("store", "asked"), PAIRS)
@examples(3)
@given(events=st.lists(_EVENT, min_size=10, max_size=20), together=st.booleans())
def test_what_is_found_by_key_is_what_a_look_through_all_finds(
    store: str, asked: str, events: list[dict[str, Any]], together: bool
) -> None:
    assert _said(store, asked, "w.k", events, together) == _said(store, asked, "(w.k || '')", events, together)


@pytest.mark.parametrize("asked", ["value", "average", "join"])
@pytest.mark.parametrize("times", [1, 10])
def test_nobody_finds_what_the_event_at_hand_has_changed(asked: str, times: int) -> None:
    values = [1.0, 2.0, 3.0, 4.0] * times
    events = [{"k": "a", "n": 1, "v": value} for value in values]
    answers = [rows[0]["a"] for rows in _said("merged", asked, "w.k", events, times > 1)]
    assert answers == [*([] if asked == "join" else [None]), *list(accumulate(values))[:-1]]
