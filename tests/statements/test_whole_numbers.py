"""Whole numbers of EPL that leave their type: they wrap as the language's do, whatever takes them, and nothing stops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rollup.core.columns import ColumnEngine
from rollup.hosts.statements.running import Running
from rollup.program import Program, compile_app
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Event, Keeping

APP = """define stream S (q int, l long);
@lang('epl') {{ insert into Out select {} as v from S; }}
"""
EXTREMES = (2**31 - 1, -(2**31), 1, 0, None, 46_341, -46_341, 2**31 - 1)
INT = {
    "q + q": lambda q: q + q,
    "q - 2 * q": lambda q: q - 2 * q,
    "q * q": lambda q: q * q,
    "-q": lambda q: -q,
    "Math.abs(q)": lambda q: abs(q),
    "q * q * q": lambda q: q * q * q,
}
"""Each with the same over 64 bits that are cut to 32 then."""


def given(program: Program, values: list[int | None], of: int = 1) -> list[Any]:
    """What the statements give for values, `of` events a batch."""
    engine, found = ColumnEngine(threads=1), list[Any]()
    running = Running(program, {})
    running.start(engine)
    for begin in range(0, len(values), of):
        part = values[begin : begin + of]
        events = [Event((n, 0), 1000 + begin + n, "S", (value, value)) for n, value in enumerate(part)]
        found += running.advance(engine, events, {}).streams["Out"]["v"].to_pylist()
    return found


@pytest.mark.parametrize("of", [1, 1024], ids=["on rows", "over columns"])
@pytest.mark.parametrize("expression", INT)
def test_arithmetic_of_ints_wraps_at_32_bits(expression: str, of: int) -> None:
    values = [*EXTREMES] * (1 if of == 1 else 64)
    program = compile_app(APP.format(expression))
    assert program.statements is not None
    assert program.statements.streams["Out"].attributes["v"].arrow == pa.int32()
    with np.errstate(over="ignore"):
        wanted = [None if q is None else int(np.int64(INT[expression](np.int64(q))).astype(np.int32)) for q in values]
    assert given(program, values, of) == wanted


def test_a_running_total_of_ints_wraps_and_one_of_longs_goes_on() -> None:
    values = [2**31 - 1, 1, 1, 5]
    totals = np.cumsum(np.array(values, np.int64))
    assert given(compile_app(APP.format("sum(q)")), values) == totals.astype(np.int32).tolist()
    assert given(compile_app(APP.format("sum(l)")), values) == totals.tolist()


def test_a_named_window_is_read_whatever_it_holds(tmp_path: Path) -> None:
    text = "define stream S (q int, l long);\n@lang('epl') { create window Last#keepall as (q int); insert into Last select q + q as q from S; }"
    program, engine = compile_app(text), ColumnEngine(threads=1)
    running = Running(program, {}, Commits(tmp_path))
    running.start(engine)
    running.advance(engine, [Event((0, 0), 1000, "S", (2**31 - 1, 0))], {})
    assert program.statements is not None
    (part,) = program.statements.parts
    assert isinstance(part.component, Keeping)
    state = Commits(tmp_path).newest().states[part.name]
    assert part.component.stored(state, "Last").to_pylist() == [{"q": -2}]
