"""Schemas that inherit: what is refused, with its cure, and what hangs on what. How events are heard, the cases show."""

from __future__ import annotations

import pytest

from rollup.core.errors import RollupError
from rollup.live import Engine


@pytest.fixture
def engine() -> Engine:
    made = Engine(0)
    for text in ("create schema A(id string, v int)", "create schema B(w int) inherits A"):
        made.deploy(text, text.split("(")[0].split()[-1])
    made.deploy("create schema C(x int) inherits A", "C")
    return made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("create schema D() inherits B, C", "line 1, column 1: `D` would inherit `A` twice (inherits B)"),
        ("create schema D() inherits W", "line 1, column 1: no event type is called `W` (known: A, B, C)"),
        ("create schema D(v string) inherits B", "line 1, column 17: `v` of `B` is int (leave it out, or rename it)"),
        ("create schema D(y int, y int) inherits A", "line 1, column 24: two columns are called `y`"),
    ],
)
def test_what_cannot_be_inherited_is_refused(engine: Engine, text: str, message: str) -> None:
    with pytest.raises(RollupError) as refused:
        engine.deploy(text)
    assert str(refused.value) == message
    engine.deploy("create schema D() inherits A, B")  # A is inherited through B: nothing of the refused one is left


def test_a_schema_that_another_inherits_stays(engine: Engine) -> None:
    with pytest.raises(RollupError, match="`A` declares the stream `A`, which `B` needs"):
        engine.undeploy("A")
    engine.undeploy("B")
    engine.undeploy("C")
    engine.undeploy("A")
    engine.deploy("create schema A(id string)")


@pytest.mark.long
def test_an_event_that_makes_others_of_its_own_kind_without_end_is_refused(engine: Engine) -> None:
    engine.deploy("insert into B select id, v, 5 as w from A(v > 3)")
    engine.deploy("select id from A", "heard")
    with pytest.raises(RollupError, match="B -> A -> …"):
        engine.send("A", {"id": "x", "v": 4})
    engine.heard()
    engine.send("B", {"id": "y", "v": 1})
    assert [each.new for each in engine.heard() if each.statement == "heard"] == [[{"id": "y"}]]


def test_who_no_longer_inherits_is_not_heard(engine: Engine) -> None:
    engine.deploy("select id from A", "heard")
    engine.undeploy("B")
    engine.deploy("create schema B(id string, w int)")
    engine.send("B", {"id": "y", "w": 1})
    assert engine.heard() == []


def refusal(engine: Engine, *texts: str) -> str:
    """What the last of some modules is told, where those before it are taken."""
    for text in texts[:-1]:
        engine.deploy(text)
    with pytest.raises(RollupError) as refused:
        engine.deploy(texts[-1])
    return str(refused.value)


STREAM = "is a stream of an insert, not a schema (declare it with create schema first)"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["insert into I select v from A", "create schema I() inherits I"], "`I` would inherit itself"),
        (["create schema I() inherits I"], "`I` would inherit itself"),
        (["insert into I select v from A", "create schema J() inherits I"], f"`I` {STREAM}"),
        (["insert into I select v from A", "create schema J() inherits A, I"], f"`I` {STREAM}"),
        (["on A merge T where T.id = A.id when not matched then insert into I select A.v as v",
          "create schema J() inherits I"], f"`I` {STREAM}"),
    ],
)  # fmt: skip
def test_what_an_insert_has_made_is_not_inherited(engine: Engine, texts: list[str], message: str) -> None:
    engine.deploy("create table T(id string primary key)")
    assert message in refusal(engine, *texts)


def test_a_schema_stays_when_the_insert_that_came_before_it_goes(engine: Engine) -> None:
    engine.deploy("insert into I select v from A", "ins")
    engine.deploy("create schema I(v int)", "I")
    engine.deploy("create schema J(z int) inherits I", "J")
    engine.deploy("@name('i') select v from I")
    engine.undeploy("ins")
    engine.send("J", {"v": 1, "z": 2})
    engine.send("I", {"v": 3})
    engine.deploy("@name('late') select v from I")
    engine.send("J", {"v": 4, "z": 2})
    heard = [(each.statement, *(row["v"] for row in each.new)) for each in engine.heard()]
    assert heard == [("i", 1), ("i", 3), ("i", 4), ("late", 4)]


def test_no_statement_has_the_name_of_what_makes_events_be_heard() -> None:
    engine = Engine(0)
    engine.deploy("create schema P(v int); @name('B is P') select v + 1 as w from P")
    engine.deploy("@name('B is P') create schema B(z int) inherits P")
    engine.deploy("create schema C() inherits P", "C is P")
    engine.deploy("@name('C is P') select v - 1 as w from P")
    statements = [each.statement for each in engine.plan()]
    assert len(statements) == len(set(statements))
    engine.send("B", {"v": 1, "z": 2})
    engine.send("C", {"v": 5})
    names = {each.statement: [row["w"] for row in each.new] for each in engine.heard()[:2]}
    assert names == {"B is P": [2], "C is P-3": [0]}


def test_the_parents_columns_are_found_by_their_names() -> None:
    engine = Engine(0)
    engine.deploy("create schema N(); create schema P(v int, s string); create schema Q(s string, u int)")
    engine.deploy("create schema B(z int) inherits N, Q, P")
    for name in "NPQ":
        engine.deploy(f"@name('{name}') select * from {name}")
    engine.deploy("@name('n') select count(*) as n from N")
    engine.send("B", {"v": 1, "s": "x", "u": 3, "z": 4})
    heard = {each.statement: each.new for each in engine.heard()}
    assert (heard["P"], heard["Q"], heard["n"]) == ([{"v": 1, "s": "x"}], [{"s": "x", "u": 3}], [{"n": 1}])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("inherits P, Q", "line 1, column 1: `v` of `Q` is string, not int (rename it)"),
        ("inherits Q, P", "line 1, column 1: `v` of `P` is int, not string (rename it)"),
        ("copyfrom Q inherits P", "line 1, column 1: `v` of `P` is int, not string (rename it)"),
    ],
)
def test_two_types_of_a_column_are_not_inherited(engine: Engine, declared: str, message: str) -> None:
    assert refusal(engine, "create schema P(v int)", "create schema Q(v string)", f"create schema R() {declared}") == (
        message
    )
