"""Statements over columns against the row executor: one meaning, two executors.

The row executor is the oracle: it takes one event at a time and is itself held to the recorded cases. Every core gets
random events with nulls, ties and gaps, cut into random batches, with a snapshot written to Arrow's format and read back
between any two of them. Values are compared bit for bit.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.families import families
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.loops import loop
from rollup.engine.columns.planning import covers
from rollup.engine.programs.runtime import running
from tests.engine.columns.delivering import (
    KINDS,
    bits,
    by_columns,
    by_rows,
    core,
    cuts,
    gaps,
    lowered,
    spans,
    steps,
    timed,
    values,
)
from tests.engine.columns.statements import COVERED, FILTERS, KEYED, PATTERNS, REFUSED, SECTIONS, WINDOWS
from tests.profiles import examples
from tests.rereading import reread

AS_PROGRAMS = [
    text
    for text in COVERED
    if "(select" in text
    or (" as b " in text and "pattern" not in text)
    or (" output " in text and "context" not in text)
    or re.search(
        r"rollup\(|\]#|context . select [^#]*#[lgt]|#keepall|irstream [^#]*#(unique|groupwin|sort|firstunique)|#expr|_batch\(id|"
        r"(first|last|nth|window)\(",
        text,
    )
]

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.parametrize("text", COVERED, ids=range(len(COVERED)))
@examples(13)
@given(found=steps, batches=cuts, keep=st.booleans(), rest=gaps)
@pytest.mark.few(80)
def test_a_core_delivers_what_the_row_executor_delivers(text: str, found: Any, batches: Any, keep: bool, rest: int):
    events = timed(found)
    end = (events[-1][0] if events else 0) + rest
    assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


@pytest.mark.parametrize("text", AS_PROGRAMS, ids=range(len(AS_PROGRAMS)))
@examples(8)
@given(found=steps, batches=cuts, keep=st.booleans(), rest=gaps)
@pytest.mark.few(16)
def test_a_core_that_is_a_program_delivers_the_same_as_machine_code(
    text: str, found: Any, batches: Any, keep: bool, rest: int
):
    events = timed(found)
    end = (events[-1][0] if events else 0) + rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_COMPILED", 1)
        patch.setattr(running.Running, "waits", True)
        patch.setattr(running.Running, "best", "checked")
        assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


@pytest.mark.parametrize(
    "text",
    [
        "select irstream max(price) as x, min(price) as y from S#length(3)",
        "select symbol, max(price) as x, min(price) as y from S#time(25 msec) group by symbol",
        "select symbol, count(*) as n from S#sort(2, price desc) group by symbol",
        "select symbol, count(*) as n from S#sort(2, price) group by symbol",
        *(
            f"select id, price {sign} {which} (select price from S(volume < 4)#length(3)) as b from S"
            for sign, which in (("<", "all"), (">=", "all"), ("<=", "any"), (">", "any"))
        ),
    ],
)
@examples(40)
@given(found=st.lists(st.tuples(gaps, values, st.booleans()), max_size=30), batches=cuts, keep=st.booleans())
def test_nan_is_above_all_numbers(text: str, found: Any, batches: Any, keep: bool) -> None:
    events = timed([(gap, (row[0], math.nan if none else row[1], *row[2:])) for gap, row, none in found])
    end = events[-1][0] if events else 0
    assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


@pytest.mark.parametrize("function", ["max", "min", "median"])
def test_of_two_zeros_the_one_without_a_sign_is_shown(function: str) -> None:
    """The second is let in last and leaves at once."""
    found = [(None, None), (None, None), (None, None), (0.0, None), (-0.0, 0), (-0.0, None)]
    events = [(0, ("a", price, volume, None, None)) for price, volume in found]
    text = f"select {function}(price) as m from S#sort(3, volume)"
    told = by_columns(text, events, 0, [], False)
    assert told == by_rows(text, events, 0)
    assert [row for _, _, row in told[3:]] == 3 * [(bits(0.0),)]


def test_groups_stand_as_their_rows_come_not_as_their_events_do() -> None:
    """The window has refused the first event of one group, and holds that of another until its batch is complete."""
    refused = [(640, "a", 1), (643, "b", 1), (795, "c", 2), (795, "b", 2)]
    late = [(10, "c", None), (11, None, 0), (14, "c", 0), (44, "b", None)]
    for text, found in zip(SECTIONS["groups as their rows come"], (refused, late), strict=True):
        events = [(at, (symbol, 30.0, volume, True, 1)) for at, symbol, volume in found]
        for cut in range(5):
            assert by_columns(text, events, 805, [cut], False) == by_rows(text, events, 805)


FAMILY = [
    *(f"select * from S(symbol = '{value}')" for value in ("a", "c", "a", "z")),
    "select symbol, price * volume as n from S(symbol = 'a', price > 30)",
    "select symbol, price * volume as n from S(symbol = 'b', price > 30)",
    "select symbol from S(id = 2)",
]


@examples(60)
@given(found=steps, batches=cuts)
def test_a_family_delivers_what_each_of_its_statements_delivers(found: Any, batches: Any):
    events = timed(found)
    alone = {f"s{i}": core(text) for i, text in enumerate(FAMILY)}
    assert all(isinstance(each, FilterProject) for each in alone.values())
    groups = families(alone, lowered(FAMILY[0])[2])  # type: ignore[arg-type]
    assert [names for _, names in groups] == [["s0", "s1", "s2", "s3"], ["s4", "s5"], ["s6"]]
    for family, names in groups:
        state, heard = family.start(0), {name: [] for name in names}
        for begin, stop in spans(batches, len(events)):
            part = events[begin:stop]
            columns = [pa.array([row[i] for _, row in part], kind) for i, kind in enumerate(KINDS)]
            state, output = family.step(state, Batch.of(columns, [at for at, _ in part]))
            assert list(zip(output.event, output.statement, strict=True)) == sorted(
                zip(output.event, output.statement, strict=True)
            )
            rows = zip(*(column.to_pylist() for column in output.columns), strict=True)
            for at, statement, row in zip(output.at, output.statement, rows, strict=True):
                heard[names[statement]].append((int(at), 1, tuple(bits(value) for value in row)))
        end = events[-1][0] if events else 0
        assert heard == {name: by_rows(FAMILY[int(name[1:])], events, end) for name in names}


@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_that_no_core_covers_is_told_why(text: str):
    plan, context, stream = lowered(text)
    assert covers(plan, {"S": stream}, context) == REFUSED[text]


@pytest.mark.parametrize(
    "text",
    [
        PATTERNS[0],
        "context I select * from S",
        "context Y select count(*) as n from S output snapshot when terminated",
        "context C select count(*) as n from S output last every 1 sec",
        "select * from pattern [every a=S(price > 20) -> b=S(symbol=a.symbol) -> c=S(symbol=a.symbol)]",
    ],
)
def test_a_step_leaves_the_given_state_as_it_was(text: str):
    """Not so of the states of programs, as windows and joins have them: these go on, see `Live`."""
    found = core(text)
    columns = [["a", "b", "a"], [60.0, 70.0, 80.0], [1, 2, 3], [True, False, True], [1, 2, 3]]
    batch = Batch.of([pa.array(each, kind) for each, kind in zip(columns, KINDS, strict=True)], [1, 2, 3], stream="S")
    state, _ = found.step(found.start(0), batch)
    before = reread(state)
    found.step(state, Batch(batch.columns, batch.times + 100, 200, "S"))
    assert before.scalars == state.scalars
    assert {name: table.equals(state.tables[name]) for name, table in before.tables.items()} == dict.fromkeys(
        before.tables, True
    )


@pytest.mark.parametrize("text", SECTIONS["windows that empty"])
@examples(20)
@given(found=steps, batches=cuts)
def test_groups_that_leave_the_state_while_others_wait_change_nothing(text: str, found: Any, batches: Any):
    events = timed(found)
    end = events[-1][0] if events else 0
    assert by_columns(text, events, end, batches, False) == by_rows(text, events, end)


@pytest.mark.parametrize("rate", ["", "output first every 20 msec", "output last every 20 msec"])
def test_groups_that_have_emptied_leave_the_state(rate: str):
    found = core(f"select symbol, sum(price) from S#length(10) group by symbol {rate}")
    state, output = found.start(0), Output(np.empty(0, np.int64), np.empty(0, np.int64), ())
    for begin in range(0, 40_000, 1_000):
        names = [f"k{i}" for i in range(begin, begin + 1_000)]
        columns = [pa.array(names), *(pa.array([1] * 1_000, kind) for kind in KINDS[1:3])]
        columns += [pa.array([True] * 1_000), pa.array([1] * 1_000)]
        state, output = found.step(state, Batch.of(columns, range(begin, begin + 1_000), stream="S"))
    assert output.rows and max(table.num_rows for table in state.tables.values()) < 18_000


def test_times_that_go_back_are_refused():
    with pytest.raises(QueryError, match="go back"):
        Batch.of([pa.array([1, 2])], [5, 4])


def test_a_loop_whose_file_was_damaged_is_written_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROLLUP_CACHE", str(tmp_path))
    text = "def core(n):\n    return n + 41\n"
    (tmp_path / "cores").mkdir()
    assert loop(text)(1) == 42
    (path,) = (tmp_path / "cores").glob("core_*.py")
    path.write_text("def core(n): return 0")
    loop.cache_clear()
    assert loop(text)(1) == 42


def test_a_new_process_loads_the_loops_that_another_has_compiled(tmp_path: Any):
    program = (
        "import numba, numpy as np\n"
        "from rollup.engine.columns.loops import loop\n"
        "found = loop('def core(x):\\n    return moments_without(1, 1.0, 1.0, x)[0] + 42\\n')\n"
        "print(found(1.0), sum(found.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "ROLLUP_CACHE": str(tmp_path)}
    heard = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [each.stdout.split() for each in heard] == [["42", "0"], ["42", "1"]]


def test_a_program_has_one_text_in_every_process() -> None:
    """Machine code is kept by the text of its program: what a hash orders would have it made anew in each process."""

    def printed(seed: int) -> str:
        command = [sys.executable, "-m", "tests.engine.columns.program_texts"]
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert printed(1) == printed(2)


@pytest.mark.parametrize("text", [FILTERS[1], WINDOWS[0], PATTERNS[0], KEYED[0]])
def test_a_dictionary_of_texts_with_values_that_no_event_has_is_its_texts(text: str):
    texts = pa.array(["b", "a", None, "b", "a"])
    coded = pa.DictionaryArray.from_arrays(pa.array([3, 1, None, 0, 1]), pa.array(["b", "a", "unused", "b"]))
    rest = [pa.array([60.0, 55.0, 70.0, 5.0, 1.0]), pa.array([1] * 5, pa.int32()), pa.array([True] * 5)]
    outputs = [
        core(text).step(core(text).start(0), Batch.of([column, *rest, pa.array(range(5))], range(5), 70, "S"))[1]
        for column in (texts, coded)
    ]
    shown = [(list(each.at), [column.to_pylist() for column in each.columns]) for each in outputs]
    assert shown[0] == shown[1] and outputs[0].rows


@examples(60)
@given(total=st.integers(-(2**60), 2**60), n=st.integers(2**20, 2**31 - 1))
@example(total=15_963_050_747_720_250, n=1_045_523_946)
@example(total=2**53 + 1, n=2**31 - 1)
def test_the_mean_of_whole_numbers_is_rounded_once(total: int, n: int) -> None:
    total = max(-(2**31) * n, min(total, (2**31 - 1) * n))  # as many values of 32 bits as there are
    mean = loop("def core(total, n):\n    return mean_of_whole(total, n)\n")
    assert mean(total, n) == total / n
