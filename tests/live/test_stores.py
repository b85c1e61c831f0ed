"""Named windows and tables where rows, keys and indexes meet: what is refused, and what goes on under another key."""

from __future__ import annotations

import pytest

from rollup.core.errors import QueryError
from rollup.live import Engine

TABLE = """
create schema S(k string, v double); create schema R(k string, v double);
create table T(k string primary key, total sum(double));
into table T select sum(v) as total from R group by k;
"""


def _summed(action: str) -> Engine:
    engine = Engine()
    engine.deploy(TABLE + action)
    engine.send("R", [{"k": "a", "v": 2.0}, {"k": "b", "v": 3.0}])
    engine.heard()
    return engine


def test_an_aggregate_begins_again_under_the_key_that_its_row_has_got() -> None:
    engine = _summed("on S as s update T as t set k = t.k || 'x', total.reset() where t.k = s.k")
    engine.send("S", {"k": "a", "v": 1.0})
    assert engine.query("select * from T order by k") == [{"k": "ax", "total": None}, {"k": "b", "total": 3.0}]
    engine.send("R", {"k": "ax", "v": 4.0})
    assert engine.query("select * from T where k = 'ax'") == [{"k": "ax", "total": 4.0}]


def test_aggregates_of_rows_that_change_places_begin_again() -> None:
    engine = _summed("on S as s update T as t set k = case t.k when 'a' then 'b' else 'a' end, total.reset()")
    engine.send("S", {"k": "a", "v": 1.0})
    engine.send("R", {"k": "a", "v": 4.0})
    assert engine.query("select * from T order by k") == [{"k": "a", "total": 4.0}, {"k": "b", "total": None}]


def test_an_aggregate_of_a_row_that_is_deleted_too_does_not_begin_again() -> None:
    engine = _summed("on S as s merge T as t where t.k = s.k when matched then update set total.reset() then delete")
    engine.send("S", {"k": "a", "v": 1.0})
    assert engine.query("select * from T") == [{"k": "b", "total": 3.0}]


def test_a_unique_index_over_rows_that_break_it_is_refused() -> None:
    engine = Engine()
    engine.deploy("create schema S(k string); create window W#keepall as S; insert into W select * from S")
    engine.send("S", [{"k": "a"}, {"k": "a"}])
    with pytest.raises(QueryError, match="index I is unique"):
        engine.deploy("create unique index I on W(k)")
    engine.send("S", {"k": "a"})  # there is no index
    engine.query("delete from W")
    engine.deploy("create unique index I on W(k)")
    engine.send("S", {"k": "a"})
    with pytest.raises(QueryError, match="index I is unique"):
        engine.send("S", {"k": "a"})
