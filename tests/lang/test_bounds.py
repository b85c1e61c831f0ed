"""What cannot end is refused when it is read."""

from __future__ import annotations

import pytest

import rollup
from rollup.core.errors import PlanError

AT_ONCE = ("after 0 sec", "after 0 milliseconds", "pattern [timer:interval(0)]", "pattern [every timer:interval(0)]")


@pytest.mark.parametrize("start", ["@now", *AT_ONCE])
@pytest.mark.parametrize("end", AT_ONCE)
def test_a_context_whose_partitions_last_no_time_is_refused(start: str, end: str) -> None:
    engine = rollup.Engine()
    for text in (f"start {start} end {end}", f"context Inner start {start} end {end}, context All start @now"):
        with pytest.raises(PlanError, match="a partition that lasts no time would begin again for ever"):
            engine.deploy(f"create context Each {text};")


SPANS = (
    "after span sec",
    "pattern [timer:interval(span)]",
    "pattern [timer:interval(span) -> timer:interval(span)]",
    "pattern [timer:interval(span) or S(v=9)]",
    "pattern [not S(v=9) and timer:interval(2 * span)]",
    "pattern [[3] timer:interval(span)]",
)
"""Conditions that hold at once where `span` is 0."""


@pytest.mark.parametrize("start", ["@now", *SPANS])
@pytest.mark.parametrize("end", [*SPANS, "pattern [every timer:interval(1) or timer:interval(span)]"])
@pytest.mark.parametrize("span", ["0", "-1", "null"])
@pytest.mark.few(12)
def test_a_partition_that_the_clock_begins_lasts_a_millisecond_at_least(start: str, end: str, span: str) -> None:
    engine, form = rollup.Engine(), f"start {start} end {end}"
    engine.deploy(f"""create schema S(v int); create variable int span = {span}; create context Each {form};
        @name('out') context Each select context.startTime as begun from S;
        create context All start @now end after 1 hour; create context Both context All start @now, context Inner {form};
        @name('inner') context Both select context.Inner.startTime as begun from S;""")
    begun = dict[str, list[int]](out=[], inner=[])
    for name, heard in begun.items():
        engine.listen(name, lambda rows, _, heard=heard: heard.extend(row["begun"] for row in rows))
    engine.advance(3)
    for at in (3, 3, 4):
        engine.send("S", [{"v": 1}], at=at)
    assert begun == {"out": [3, 3, 4], "inner": [3, 3, 4]}


@pytest.mark.parametrize("span", ["0", "-1", "null"])
def test_contexts_that_a_span_of_no_time_begins_again_and_again_stand_still(span: str) -> None:
    engine, begun = rollup.Engine(), list[int]()
    engine.deploy(f"""create schema S(v int); create variable int span = 1;
        create context Each initiated after span sec terminated after 10 sec;
        @name('out') context Each select context.startTime as begun from S; on S(v=0) set span = {span};""")
    engine.listen("out", lambda rows, _: begun.extend(row["begun"] for row in rows))
    engine.advance(1_500)
    engine.send("S", [{"v": 0}], at=1_500)  # the span that is under way ends; none follows it
    engine.send("S", [{"v": 1}], at=9_000)
    assert begun == [1_000, 1_000, 2_000]


def test_a_repeat_without_a_bound_of_what_is_true_at_once_is_true_once() -> None:
    engine, found = rollup.Engine(), list[int]()
    engine.deploy("""create schema S(v int); create variable int span = 0;
        @name('out') select current_timestamp() as at from pattern [timer:interval(span) until S];""")
    engine.listen("out", lambda rows, _: found.extend(row["at"] for row in rows))
    engine.send("S", [{"v": 1}], at=7)
    assert found == [7]


@pytest.mark.parametrize("guarded", ["timer:interval(10)", "S", "(S -> S)"])
def test_a_guard_of_no_time_that_begins_again_lets_the_clock_go_on(guarded: str) -> None:
    engine, found = rollup.Engine(), list[int]()
    engine.deploy(f"""create schema S(v int); create variable int span = 0;
        @name('out') select current_timestamp() as at from pattern [every ({guarded} where timer:within(span))];""")
    engine.listen("out", lambda rows, _: found.extend(row["at"] for row in rows))
    engine.advance(5)
    engine.send("S", [{"v": 1}], at=5)
    engine.advance(100)
    assert found == ([5] if guarded == "S" else [])


@pytest.mark.parametrize("call", ["e{n}", "e{n}(s)"])
def test_declared_expressions_that_grow_without_end_are_refused(call: str) -> None:
    engine, name = rollup.Engine(), call.format
    body = "{{ {} + {} }}" if call == "e{n}" else "{{ s => {} + {} }}"
    first = "create expression e0 { 1 };" if call == "e{n}" else "create expression e0 { s => s.q };"
    engine.deploy(f"create schema S(q int); {first}")
    with pytest.raises(PlanError, match="become more than 1000 of them in one statement"):
        for n in range(1, 30):
            engine.deploy(f"create expression e{n} {body.format(name(n=n - 1), name(n=n - 1))};")
            engine.deploy(f"select {name(n=n)} as v from S as s;")
