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
    with pytest.raises(RollupError, match="`A` declares `A`, which `B` needs"):
        engine.undeploy("A")
    engine.undeploy("B")
    engine.undeploy("C")
    engine.undeploy("A")
    engine.deploy("create schema A(id string)")


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
