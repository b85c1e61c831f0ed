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
    with pytest.raises(QueryError, match="`made` declares the stream `X`, which `read` needs"):
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
    with pytest.raises(QueryError, match="`schema X` declares the stream `X`, which `made` needs"):
        engine.undeploy("schema X")
    engine.undeploy("made")
    engine.undeploy("schema X")
    with pytest.raises(PlanError, match="X"):
        engine.deploy("select * from X", "none")


@pytest.mark.parametrize(
    ("declares", "uses"),
    [
        ("on A insert into B select id, v", "select id from B"),
        ("on A insert into B select id where v > 0 insert into C select id, v", "insert into C select id, v from A"),
        ("on A as a merge W as w where w.id = a.id when not matched then insert into B select id", "select * from pattern [every b=B]"),
        ("create schema Item(sku string)", "create schema Orders(items Item[])"),
        ("create schema Item(sku string)", "create window V#keepall (id string, item Item)"),
        ("create schema Item(sku string)", "create table T(id string primary key, item Item)"),
        ("create schema Item(sku string)", "create variable Item newest"),
        ("create schema Item(sku string)", "create schema Copy(v int) copyfrom Item"),
        ("create schema Item(sku string)", "create schema Thing(v int) inherits Item"),
        ("create schema Item(sku string)", "create context ByItem partition by sku from Item"),
        ("create schema Item(sku string)", "create table T(s sorted(sku) @type('Item'))"),
        ("create schema Item(sku string)", "update istream Item set sku = 'x'"),
        ("create schema Item(sku string)", "on A merge W when not matched then insert into Item select id as sku"),
        ("create index I on W(id)", "@hint('index(I, bust)') select (select v from W as w where w.id = a.id) as v from A as a"),
        ("create variable int x = 1", "on A set x = v"),
        ("create variable int x = 1", "select id from A#length(2) output when count_insert > 1 then set x = 2"),
        ("create variable int x = 1", "select (select count(*) from W where v > x) as n from A"),
        ("create expression plus { a => a.v + 1 }", "select (select max(plus(w)) from W as w) as n from A"),
        ("create context K partition by id from A", "context K create window V#keepall as A"),
        ("create table T(id string primary key, n int)", "select T.keys() as k from A"),
    ],
)  # fmt: skip
def test_what_another_module_uses_stays_until_it_is_gone(declares: str, uses: str) -> None:
    engine = begun(("window", "create window W#keepall as A"), ("declares", declares), ("uses", uses))
    with pytest.raises(QueryError, match=r"`declares` declares the .*, which `uses` needs"):
        engine.undeploy("declares")
    again(engine)
    engine.undeploy("uses")
    engine.undeploy("declares")
    again(engine)


def test_names_of_another_kind_or_meaning_hold_nothing() -> None:
    engine = begun(("x", "create variable int v = 1; create expression id { 7 }"), ("y", "select id, v from A"))
    engine.undeploy("x")
    engine = again(engine)
    engine.send("A", {"id": "k", "v": 2})
    assert [each.new for each in engine.heard()] == [[{"id": "k", "v": 2}]]


def test_a_module_that_another_only_names_may_go_before_it() -> None:
    engine = begun(("first", "module first; select id from A"), ("second", "uses first; @name('s') select v from A"))
    engine.undeploy("first")
    engine = again(engine)
    engine.send("A", {"id": "k", "v": 2})
    assert [each.new for each in engine.heard()] == [[{"v": 2}]]


@pytest.mark.parametrize(
    "refused",
    [
        "on A insert into X select id insert into Y select nope",
        "insert into X select id, count(*) from A output every nope events",
    ],
)
def test_a_refused_insert_leaves_no_stream(refused: str) -> None:
    engine = begun()
    with pytest.raises(PlanError, match="nope"):
        engine.deploy(refused)
    with pytest.raises(PlanError, match="no event type, named window or table is called `X`"):
        engine.deploy("select * from X")


@pytest.mark.parametrize(
    "columns", ["v int, id string", "id string", "id string, v int, w double", "id string, v long"]
)
@pytest.mark.parametrize("made", ["insert into X select id, v from A", "on A insert into X select id, v"])
def test_a_schema_of_a_stream_that_an_insert_has_made_has_its_columns(made: str, columns: str) -> None:
    engine = begun(("made", made))
    with pytest.raises(PlanError, match=r"`X` is the stream of an insert already.*create schema X\(id string, v int\)"):
        engine.deploy(f"create schema X({columns})")
    engine.deploy("create schema X(id string, v int); @name('r') select v, id from X")
    engine = again(engine)
    engine.send("A", {"id": "k", "v": 2})
    assert [each.new for each in engine.heard() if each.statement == "r"] == [[{"v": 2, "id": "k"}]]
