"""EPL: what is refused, and that the message tells the cure; what stands beside it and is right."""

from __future__ import annotations

from typing import Any

import pytest

from rollup.core.errors import PlanError
from rollup.live import Engine

SCHEMAS = "create schema Item(id string, v int); create schema O(id string, n int, items Item[])"
CONTEXT = "create context K context a1 initiated by Item as i terminated after 9 sec, context a2 partition by id from O"
KNOWN = "known: a1.endTime, a1.i, a1.name, a1.startTime, a2.id, a2.key1, a2.name, id, name"


@pytest.fixture
def engine() -> Engine:
    made = Engine(0)
    made.deploy(SCHEMAS)
    made.deploy(CONTEXT)
    made.deploy("@name('table') create table T(best sorted(v, filter: v > 1) @type(Item))")
    return made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("context K select context.a1.id as i from O",
         f"line 1, column 18: no context property is called `a1.id`: only the last level has an id (context.id; {KNOWN})"),
        ("context K select context.a1.nam as i from O",
         "line 1, column 18: no context property is called `a1.nam` (did you mean `a1.name`?)"),
        ("context K select context.a1 as i from O",
         "line 1, column 18: `context.a1` is a level, not a value (context.Level.property)"),
        ("select sorted(v - current_timestamp()).firstKey() as k from Item#keepall",
         "line 1, column 8: `firstKey`: the key hangs on more than the row (sorted(price))"),
        ("select id, istream(n) as i from O", "line 1, column 12: `istream` takes nothing (istream())"),
        ("select current_timestamp(n) as i from O", "line 1, column 8: `current_timestamp` takes nothing (current_timestamp())"),
        ("select sorted(v, id).firstKey() as k from Item#keepall",
         "line 1, column 8: `firstKey` needs rows sorted by one property (sorted(price))"),
        ("select * from pattern [every a=O[items]]",
         "line 1, column 33: contained events in a pattern are not supported (insert into Parts select * from O[…], "
         "and Parts in the pattern)"),
        ("select T.keys() as k from O",
         "line 1, column 8: `T` has no keys (create table T(name type primary key, …))"),
        ("select v from O[select *, i.v * 2 as v from items as i]",
         "line 1, column 27: two columns are called `v` (give one another name with `as`)"),
        ("select * from O[select n as v, * from items]",
         "line 1, column 24: two columns are called `v` (give one another name with `as`)"),
        ("select * from O[select *, i.* from items as i]",
         "line 1, column 27: two columns are called `id` (give one another name with `as`)"),
    ],
)  # fmt: skip
def test_what_is_refused_says_where_and_what_helps(engine: Engine, text: str, message: str) -> None:
    with pytest.raises(PlanError) as refused:
        engine.deploy(text)
    assert str(refused.value) == message


def shown(engine: Engine, name: str) -> list[dict[str, Any]]:
    return [row for each in engine.heard() if each.statement == name for row in each.new]


def test_the_last_level_has_the_id_of_the_partition(engine: Engine) -> None:
    engine.deploy("@name('ids') context K select context.a2.id as a, context.id as b, context.a1.i.v as v from O")
    engine.send("Item", {"id": "x", "v": 3})
    engine.send("O", {"id": "x", "n": 1, "items": []})
    assert shown(engine, "ids") == [{"a": 0, "b": 0, "v": 3}]


def test_what_is_sorted_by_a_filter_has_its_methods(engine: Engine) -> None:
    engine.deploy("@name('one') select sorted(v, filter: v > 1).firstEvent().id as id from Item#keepall")
    engine.deploy("insert into O select 'x' as id, sorted(v, filter: v > 1).firstKey() as n from Item#keepall")
    engine.deploy("@name('key') select n from O")
    engine.deploy("into table T select sorted() as best from Item#keepall")
    engine.deploy("@name('held') select T.best.lastKey() as k from Item")
    for place, v in enumerate((1, 3, 2)):
        engine.send("Item", {"id": f"i{place}", "v": v})
    heard = engine.heard()
    rows = {
        name: [row for each in heard if each.statement == name for row in each.new] for name in ("one", "key", "held")
    }
    assert rows == {
        "one": [{"id": None}, {"id": "i1"}, {"id": "i2"}],
        "key": [{"n": None}, {"n": 3}, {"n": 2}],
        "held": [{"k": None}, {"k": 3}, {"k": 3}],
    }


def test_other_columns_stand_beside_those_of_the_inner_event(engine: Engine) -> None:
    engine.deploy("@name('both') select * from O[select i.v * 2 as w, *, n from items as i]")
    engine.send("O", {"id": "x", "n": 7, "items": [{"id": "a", "v": 1}]})
    assert shown(engine, "both") == [{"id": "a", "v": 1, "w": 2, "n": 7}]
