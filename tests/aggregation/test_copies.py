"""Two queries that feed one stream from one event: two arrivals, in the order of the queries in the app.

The oracle takes one event at a time all its way, so it needs no numbers; the hosts work in batches and do.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.packing import pack
from rollup.hosts.local import LocalHost
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.spark.numbering import Numbering
from rollup.hosts.spark.tasks.results import Kind, Result, read
from rollup.hosts.spark.tasks.shard_step import shifted
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.lang.siddhi.apps import parse_query
from rollup.program import Declaration, compile_app
from rollup.retrieval.questions import plan
from rollup.stores.memory import MemoryStore
from tests.oracle.answers import App
from tests.profiles import examples

TWICE = """define stream S (v int, early long, late long); define stream T (v int, ts long);
define aggregation A from T select sum(v) as s, count() as n, v as plain aggregate by ts every sec ... min;
from S select v, early as ts insert into T;
from S select v * 10 as v, late as ts insert into T;"""
DEEP = """define stream S (v int, early long, late long); define stream T (v int, ts long); define stream M (v int, a long, b long);
@IgnoreEventsOlderThanBuffer('true')
define aggregation A from T select sum(v) as s, count() as n, v as plain aggregate by ts every sec ... min;
from S select v, early as a, late as b insert into M;
from S select v * 10 as v, late as ts insert into T;
from M select v * 100 as v, a as ts insert into T;
from S select v * 1000 as v, late as a, early as b insert into M;
from M[v > 0] select v * 7 as v, b as ts insert into T;"""
QUESTION = "from A within 0, 1000000 per '{}' select AGG_TIMESTAMP, s, n, plain order by AGG_TIMESTAMP"


def test_the_copy_of_a_later_query_arrives_after_that_of_an_earlier_one() -> None:
    host = LocalHost.of(TWICE)
    host.send("S", [(1, 5000, 5000), (2, 9000, 9000)])
    assert host.query(QUESTION.format("sec")).to_pylist() == [
        {"AGG_TIMESTAMP": 5000, "s": 11, "n": 2, "plain": 10},
        {"AGG_TIMESTAMP": 9000, "s": 22, "n": 2, "plain": 20},
    ]


def test_a_copy_is_not_late_because_of_another_one_that_arrives_after_it() -> None:
    host = LocalHost.of(TWICE.replace("define aggregation", "@IgnoreEventsOlderThanBuffer('true') define aggregation"))
    host.send("S", [(1, 5000, 9000)])
    assert [row["n"] for row in host.query(QUESTION.format("sec")).to_pylist()] == [1, 1]


@pytest.mark.parametrize("app", [TWICE, DEEP])
def test_an_event_takes_as_many_numbers_as_copies_of_it_reach_one_stream(app: str) -> None:
    assert compile_app(app).scale("S") == (2 if app is TWICE else 5)


@examples(6)
@drawn(
    st.sampled_from([TWICE, DEEP]),
    st.lists(st.tuples(st.integers(-3, 9), *[st.integers(0, 40).map(lambda n: n * 500)] * 2), min_size=1, max_size=12),
    st.sets(st.integers(1, 11), max_size=3),
)
def test_however_events_are_batched_the_copies_arrive_as_one_event_after_the_other(
    app: str, rows: list[tuple[Any, ...]], cuts: set[int]
) -> None:
    host, judge = LocalHost.of(app), App(app)
    edges = [0, *sorted(cut for cut in cuts if cut < len(rows)), len(rows)]
    for low, high in pairwise(edges):
        host.send("S", rows[low:high])
    for row in rows:
        judge.send("S", list(row))
    for level in ("sec", "min"):
        found = host.query(QUESTION.format(level)).to_pylist()
        assert [list(row.values()) for row in found] == judge.query(QUESTION.format(level)).rows


@pytest.mark.parametrize("app", [TWICE, DEEP])
@pytest.mark.few(1)
def test_a_task_numbers_copies_as_the_oracle_sees_them_arrive_over_several_files(app: str, tmp_path: Path) -> None:
    rows = [(n % 7 - 1, 500 * (n * 5 % 13), 500 * (n * 7 % 17)) for n in range(20)]
    judge, files = App(app), list[dict[str, Any]]()
    for number, share in enumerate((rows[:7], rows[7:8], rows[8:])):
        path = tmp_path / f"{number}.json"
        path.write_text(
            "".join(json.dumps(dict(zip(("v", "early", "late"), row, strict=True))) + "\n" for row in share)
        )
        files.append({"path": str(path), "modified": number})
    for row in rows:
        judge.send("S", list(row))
    program = compile_app(app)
    pipeline = Pipeline(
        program.aggregations["A"], MemoryStore(program.aggregations["A"], ColumnEngine()), ColumnEngine()
    )
    spec = TaskSpec(Declaration(app), "S", {"kind": "json", "path": str(tmp_path)})

    def given(spec: TaskSpec) -> list[Result]:
        share = [pa.RecordBatch.from_pylist(files)]
        return [result for batch in run(spec, iter(share)) for result in read(batch)]

    results = given(spec)
    bases = Numbering.of(results, program.scale("S")).bases
    tables = [shifted(each.table(), bases[each.origin]) for each in results if each.kind is Kind.PARTIALS]
    pipeline.advance(
        tables,
        lambda *asked: [
            each.table()
            for each in given(replace(spec, refold={"A": (pack(asked[0]), pack(asked[1]))}, bases=bases))
            if each.kind is Kind.PARTIALS
        ],
        {},
    )
    for level in ("sec", "min"):
        found = pipeline.store.snapshot().answer(plan(parse_query(QUESTION.format(level)), program.aggregations))
        assert [list(row.values()) for row in found.to_pylist()] == judge.query(QUESTION.format(level)).rows
