"""Whatever an event holds, it is taken or refused in a sentence, in every language; nothing ends in a traceback."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rollup.core.errors import PlanError, QueryError
from rollup.core.json_line import json_line
from rollup.core.sketches import kll_fold, kll_quantiles
from rollup.engine.aggregates.helpers import all_ranked
from rollup.engine.rows.cycles.running import Batch
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from rollup.lang.siddhi.statements.app import SiddhiApp
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.live import Engine
from rollup.live.hearing import Arrived
from rollup.plan.types import Type
from rollup.statements.values import plain

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 10**400, -(10**400)),
    *(0.5, 2.0, -0.0, 1e300, math.inf, -math.inf, math.nan),
    *("", "x", "1", "Zoë", "\ud800", "a\udfffb", "\x00", "NaN", "Infinity", "1e999999999"),
    *(Decimal("1.5"), Decimal("1e999"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")),
    *(b"x", [1], (1,), {"a": 1}, object()),
]
Send = Callable[[Any], int]
"""Sends a value; how many rows came of it."""


def epl(kind: str) -> Send:
    kind = {"bool": "boolean", "any": "Object", "decimal": "bigdecimal"}.get(kind, kind)
    engine, found = Engine(), list[Arrived]()
    engine.deploy(f"create schema S(v {kind}); select v from S")
    engine.listen_arrow(found.append)

    def send(value: Any) -> int:
        found.clear()
        engine.send("S", {"v": value})
        engine.send("S", [{"v": value}] * 300)
        return sum(each.rows.num_rows for each in found) - 300

    return send


def siddhi(kind: str) -> Send:
    kind = "object" if kind in ("any", "decimal") else kind
    app = SiddhiApp(f"define stream S(v {kind}); from S select v insert into O;")

    def send(value: Any) -> int:
        app.send("S", [(value,)])
        return len(app.taken())

    return send


def streamcruncher(kind: str) -> Send:
    kind = {"string": "str", "any": "ts", "decimal": "double"}.get(kind, kind)
    heard, cruncher = list[Batch](), Cruncher(0)
    cruncher.define("S", {"v": kind, "at": "ts"}, "at")
    cruncher.register("select v from S (partition store last 3) as w where w.$row_status is new", heard.append)

    def send(value: Any) -> int:
        heard.clear()
        cruncher.submit("S", [(value, cruncher.now)], cruncher.now)
        cruncher.advance(cruncher.now + 1)
        return sum(len(batch.rows) for batch in heard)

    return send


def sql(kind: str) -> Send:
    kinds = {"string": "VARCHAR", "bool": "BOOLEAN", "any": "TIMESTAMP", "decimal": "DECIMAL(9, 2)", "long": "BIGINT"}
    session = Session(Model.of({"tables": {"T": {"columns": {"v": kinds.get(kind, kind)}}}}))
    answer = session.prepare("select v from T")

    def send(value: Any) -> int:
        before = session.ask(answer).num_rows
        session.load("T", [(value,)])
        return session.ask(answer).num_rows - before

    return send


@pytest.mark.parametrize("kind", ["int", "long", "float", "double", "string", "bool", "any", "decimal"])
@pytest.mark.parametrize("language", [epl, siddhi, streamcruncher, sql])
def test_a_value_is_taken_or_refused_by_name(language: Callable[[str], Send], kind: str) -> None:
    send, taken = language(kind), 0
    for value in VALUES:
        try:
            assert send(value) == 1
            taken += 1
        except (QueryError, PlanError) as refusal:
            assert "v" in str(refusal)
    assert taken >= 3


def test_what_is_refused_and_what_is_taken() -> None:
    engine = Engine()
    engine.deploy("create schema S(i int, d double, s string, n bigdecimal); @name('o') select * from S")
    for wrong in ({"i": math.nan}, {"i": math.inf}, {"d": 10**400}, {"s": "\ud800"}, {"n": Decimal("Infinity")}):
        with pytest.raises(QueryError, match=rf"`S\.{next(iter(wrong))}` is "):
            engine.send("S", wrong)
    engine.send("S", {"i": 2.0, "d": 10**300, "s": "Zoë", "n": "1.50"})
    assert [heard.new for heard in engine.heard()] == [[{"i": 2, "d": 1e300, "s": "Zoë", "n": Decimal("1.50")}]]


@pytest.mark.parametrize("given", [None, 5, "x", [5], [None], [("a",)], object(), [[{"v": 1}]]])
def test_what_is_no_event_is_refused(given: Any) -> None:
    engine = Engine()
    engine.deploy("create schema S(v int); select * from S")
    with pytest.raises(QueryError, match="dict"):
        engine.send("S", given)


@pytest.mark.parametrize("instant", [None, "x", 1.5, True, pd.NaT, 1 << 70, [1]])
def test_what_is_no_instant_is_refused(instant: Any) -> None:
    engine = Engine()
    engine.deploy("create schema S(v int); select * from S")
    for move in (engine.advance, engine.jump):
        with pytest.raises(QueryError, match="milliseconds"):
            move(instant)
    with pytest.raises(QueryError, match="milliseconds"):
        engine.send("S", [{"v": 1}], at=[instant])


def test_frames_and_numbers_of_numpy_are_taken() -> None:
    engine = Engine()
    engine.deploy("create schema S(k string, n long, b boolean); @name('o') select * from S")
    frame = pd.DataFrame({"k": ["a", "b"], "n": [1, 2], "b": [True, False]})
    engine.send("S", frame)
    engine.send("S", [{"k": np.str_("a"), "n": np.int64(1), "b": np.bool_(True)}, *frame[1:].to_dict("records")])
    rows = [row for heard in engine.heard() for row in heard.new]
    assert rows == [{"k": "a", "n": 1, "b": True}, {"k": "b", "n": 2, "b": False}] * 2


def test_what_arrow_has_no_type_for_is_a_text_in_its_tables() -> None:
    engine, found = Engine(), list[Arrived]()
    engine.deploy("create schema S(n bigdecimal); @name('o') select n * n as n from S")
    engine.listen_arrow(found.append)
    engine.send("S", {"n": "1e60"})
    (value,) = found[0].rows["n"].to_pylist()
    assert Decimal(value) == Decimal("1e120")


def _read(text: str) -> Any:
    def refused(word: str) -> Any:
        raise AssertionError(word)

    return json.loads(text, parse_constant=refused)


def test_json_has_no_infinity_and_so_it_is_a_text() -> None:
    row = {"a": math.inf, "b": [-math.inf, {"c": math.nan}], "d": 1.5, "e": Decimal("1.50")}
    assert _read(json_line(row)) == {"a": "Infinity", "b": ["-Infinity", {"c": "NaN"}], "d": 1.5, "e": "1.50"}


def test_json_in_an_attribute_is_json_too() -> None:
    assert _read(plain({"a": [math.nan]}, Type.STRING)) == {"a": ["NaN"]}
    infinite = dict.fromkeys(("0.5", "0.9", "0.99"), "Infinity")
    for text in (all_ranked([math.inf]), kll_quantiles(kll_fold([math.inf]))):
        assert text is not None
        assert {rank: value for rank, value in _read(text).items() if rank in infinite} == infinite
