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


@pytest.mark.parametrize("form", ["start @now end after span sec", "start after span sec end after span sec"])
def test_a_partition_that_the_clock_begins_lasts_a_millisecond_at_least(form: str) -> None:
    engine = rollup.Engine()
    engine.deploy(f"""create schema S(v int); create variable int span = 0; create context Each {form};
        @name('out') context Each select context.startTime as begun from S;""")
    begun = list[int]()
    engine.listen("out", lambda rows, _: begun.extend(row["begun"] for row in rows))
    engine.advance(3)
    for at in (3, 3, 4):
        engine.send("S", [{"v": 1}], at=at)
    assert begun == [3, 3, 4]


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
