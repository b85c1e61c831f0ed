"""Names of statements, stores and types: whose they are, also after something was refused, undeployed or restored."""

from __future__ import annotations

import pytest

from rollup import Engine
from rollup.core.errors import PlanError, QueryError

SCHEMA = "create schema A(id string, v int)"


def begun(*modules: tuple[str, str]) -> Engine:
    """An engine with modules by name."""
    engine = Engine()
    engine.deploy(SCHEMA, "schema")
    for name, text in modules:
        engine.deploy(text, name)
    return engine


def again(engine: Engine) -> Engine:
    """The engine as another process takes it up."""
    return Engine.restored(engine.snapshot())


def test_a_numbered_statement_keeps_its_name_when_the_one_without_a_number_is_gone() -> None:
    engine = begun(("1", "@name('N') select id from A"), ("2", "@name('N') select count(*) as n from A"))
    engine.undeploy("1")
    engine.send("A", {"id": "x"})
    engine = again(again(engine))
    engine.heard()
    engine.send("A", {"id": "x"})
    assert [(each.statement, each.new) for each in engine.heard()] == [("N-2", [{"n": 2}])]


def test_what_a_schema_inherits_is_heard_after_a_statement_of_the_hidden_ones_name_is_gone() -> None:
    engine = begun(("1", "@name('B is A') select id from A"), ("2", "create schema B(w int) inherits A"))
    engine.deploy("@name('n') select count(*) as n from A", "3")
    engine.undeploy("1")
    engine.send("B", {"id": "x", "w": 1})
    engine = again(engine)
    engine.send("B", {"id": "x", "w": 1})
    assert [each.new for each in engine.heard() if each.statement == "n"][-1] == [{"n": 2}]


@pytest.mark.parametrize("first", ["store W", "W"])
def test_a_statement_may_be_called_as_anything_that_a_window_has_inside(first: str) -> None:
    engine = begun(("1", f"@name('{first}') select count(*) as n from A"))
    engine.deploy("create window W#keepall as A; insert into W select * from A", "2")
    engine.send("A", {"id": "x", "v": 1})
    engine = again(engine)
    engine.heard()
    engine.send("A", {"id": "y", "v": 2})
    assert [each.new for each in engine.heard() if each.statement == first] == [[{"n": 2}]]
    assert engine.query("select id from W") == [{"id": "x"}, {"id": "y"}]
    assert first in {each.statement for each in engine.plan()}
    engine.undeploy("2")
    engine.send("A", {"id": "z", "v": 3})
    assert [each.new for each in engine.heard()] == [[{"n": 3}]]


def test_a_stream_that_an_insert_has_made_stays_while_others_use_it() -> None:
    engine = begun(("made", "insert into X select id from A"), ("read", "@name('r') select id from X"))
    with pytest.raises(QueryError, match="`made` declares `X`, which `read` needs"):
        engine.undeploy("made")
    engine = again(engine)
    engine.send("A", {"id": "x"})
    assert [each.new for each in engine.heard() if each.statement == "r"] == [[{"id": "x"}]]
    engine.undeploy("read")
    engine.undeploy("made")
    engine.deploy("insert into X select v from A", "other")  # the name is free for another type


def test_a_refused_schema_leaves_the_stream_that_an_insert_has_made() -> None:
    engine = begun(("made", "insert into X select id from A"))
    with pytest.raises(PlanError, match="nope"):
        engine.deploy("create schema X(id string); select nope from A", "refused")
    engine.deploy("@name('r') select id from X", "read")
    engine.send("A", {"id": "x"})
    assert [each.new for each in engine.heard() if each.statement == "r"] == [[{"id": "x"}]]


def test_a_schema_of_a_stream_that_an_insert_has_made_is_gone_with_the_insert() -> None:
    engine = begun(("made", "insert into X select id from A"), ("schema X", "create schema X(id string)"))
    with pytest.raises(QueryError, match="`schema X` declares `X`, which `made` needs"):
        engine.undeploy("schema X")
    engine.undeploy("made")
    engine.undeploy("schema X")
    with pytest.raises(PlanError, match="X"):
        engine.deploy("select * from X", "none")
