"""A join that asks an aggregation: its filters, on both sides, and what cannot stand there."""

from __future__ import annotations

import pytest

from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.retrieval.trades import DAY, START

APP = """define stream S (k string, v long, ts long); define stream R (k string, w string, v long);
define aggregation A from S select k, sum(v) as v, count() as n group by k aggregate by ts every sec ... year;
from {} within r.w per 'days' select r.k as asked, a.k as k, a.v as v order by a.v insert into O;"""
EVENTS = [("x", 10, START), ("y", 200, START), ("x", 300, START + DAY), ("y", 4, START + DAY)]


def answers(join: str, *, k: str = "x", v: int = 0) -> list[tuple[object, ...]]:
    """What a join gives for one event of R."""
    host = LocalHost(compile_app(APP.format(join)))
    host.send("S", EVENTS)
    host.send("R", [(k, "2018-**-** **:**:**", v)])
    return [tuple(row.values()) for _, table in host.emitted for row in table.to_pylist()]


@pytest.mark.parametrize(
    ("join", "wanted"),
    [
        ("R as r join A[v > 100] as a", [("x", "y", 200), ("x", "x", 300)]),
        ("R as r join A[v > 100] as a on r.k == a.k", [("x", "x", 300)]),
        ("R as r join A[a.v > 100][A.k != 'y'] as a", [("x", "x", 300)]),
        ("R as r join A[v > 1000] as a on r.k == a.k", []),
        ("R as r left outer join A[v > 1000] as a on r.k == a.k", [("x", None, None)]),
        ("R[v > 1] as r join A as a on r.k == a.k", []),
        ("R[v == 0]#window.length(1) as r unidirectional join A[n == 1 and v < 100] as a", [("x", "y", 4), ("x", "x", 10)]),
    ],
)  # fmt: skip
def test_the_filter_of_an_aggregation_keeps_the_rows_that_pass_it(join: str, wanted: list[tuple[object, ...]]) -> None:
    assert answers(join) == wanted


@pytest.mark.parametrize(
    ("join", "said"),
    [
        ("R as r join A[nosuch > 1] as a", "unknown attribute 'a.nosuch'"),
        ("R as r join A[v + 1] as a", "the filter of a source must be a bool"),
        ("R as r join A#window.length(1) as a", "#window cannot stand at the aggregation A"),
        ("R as r join A as a unidirectional", "unidirectional cannot stand at the aggregation A"),
        ("R#window.length(0) as r join A as a", "#window.length cannot stand"),
        ("R#window.length(1, 2) as r join A as a", "#window.length cannot stand"),
    ],
)
def test_what_a_join_does_not_act_on_is_refused_where_it_stands(join: str, said: str) -> None:
    with pytest.raises(RollupError, match=said.replace("[", r"\[")) as refused:
        compile_app(APP.format(join))
    assert refused.value.line is not None
