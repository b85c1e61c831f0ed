"""An app that cannot run is refused when it is read, whatever it is that the column engine will not do."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.lifecycle.dry_run import dry_run
from rollup.program import Program, compile_app

APP = """define stream S (k string, v double, n long, ts long);
define stream T (k string, v double, n long, ts long);
from S[v > 0.5] select k, v * 2 as v, n, ts insert into T;
define aggregation A from T[n > 1] select k, avg(v) as m, sum(n) as t, n as newest group by k aggregate by ts every sec ... year;
"""
BROKEN = exp.Anonymous(this="no_such_function", expressions=[exp.column("k")])


def damaged(program: Program, **changes: object) -> Program:
    """A program as a fault of ours would make it."""
    return replace(program, aggregations={"A": replace(program.aggregations["A"], **changes)})  # type: ignore[arg-type]


def test_a_program_that_runs_is_tried_quickly_and_leaves_nothing() -> None:
    program = compile_app(APP)
    dry_run(program)
    began = time.process_time()
    dry_run(program)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("what", ["filter", "time"])
def test_what_the_engine_will_not_do_is_said_with_the_part_of_the_app(what: str) -> None:
    with pytest.raises(PlanError, match=r"aggregation A cannot run: .*no_such_function"):
        dry_run(damaged(compile_app(APP), **{what: BROKEN}))


def test_a_value_a_final_value_and_a_query_that_cannot_run_are_said_too() -> None:
    program = compile_app(APP)
    aggregation = program.aggregations["A"]
    value = replace(aggregation.values[0], prepare=BROKEN)
    with pytest.raises(PlanError, match="aggregation A cannot run"):
        dry_run(damaged(program, values=(value, *aggregation.values[1:])))
    output = replace(aggregation.outputs[-1], final=BROKEN)
    with pytest.raises(PlanError, match="aggregation A cannot run"):
        dry_run(damaged(program, outputs=(*aggregation.outputs[:-1], output)))
    (derivation,) = program.derivations
    query = derivation.query.copy().where(exp.EQ(this=BROKEN.copy(), expression=exp.Literal.number(1)))
    with pytest.raises(PlanError, match="the query into T cannot run"):
        dry_run(replace(program, derivations=(replace(derivation, query=query),)))


def test_plan_says_it_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollup.conf import load
    from rollup.lifecycle.readiness import ready

    (tmp_path / "app.siddhi").write_text(APP)
    (tmp_path / "in").mkdir()
    (tmp_path / "job.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "c"\n[sources.S]\nkind = "json"\npath = "in"\n[store]\nkind = "delta"\npath = "t"\n'
    )
    conf = load(tmp_path / "job.toml")
    ready(conf, conf.program())
    with pytest.raises(PlanError, match="cannot run"):
        ready(conf, damaged(conf.program(), filter=BROKEN))
