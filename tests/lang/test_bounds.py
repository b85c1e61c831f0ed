"""What cannot end is refused when it is read."""

from __future__ import annotations

import pytest

import rollup
from rollup.core.errors import PlanError


@pytest.mark.parametrize("span", ["0 sec", "0 milliseconds"])
def test_a_context_whose_partitions_last_no_time_is_refused(span: str) -> None:
    engine = rollup.Engine()
    with pytest.raises(PlanError, match="a partition that lasts no time would begin again for ever"):
        engine.deploy(f"create context Each start @now end after {span};")


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
