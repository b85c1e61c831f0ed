"""Single edges that once were wrong and that random events hardly ever meet: names, fractions of a second, sums that
leave 64 bits in some parts only, and what a rebuild without a checkpoint cannot know."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import permutations

import pyarrow as pa
import pytest

from rollup.aggregation.admission import admit
from rollup.aggregation.cascade import narrowed
from rollup.aggregation.partials import Partials
from rollup.aggregation.state import State
from rollup.core.calendar import within_range
from rollup.core.columns import ColumnEngine
from rollup.core.errors import PlanError
from rollup.hosts.local import LocalHost, StoreFactory
from rollup.plan.aggregation import Aggregation
from rollup.program import compile_app
from rollup.stores.memory import MemoryStore
from tests.aggregation.test_merge_laws import law
from tests.conformance.siddhi.targets import STORES

SECOND = 1000
NOON = 1_562_760_000_000
"""2019-07-10 12:00:00"""


@pytest.mark.parametrize(
    ("text", "bucket"),
    [
        ("2019-07-10 12:00:00.9996", NOON),
        ("2019-07-10T12:00:00.999999999Z", NOON),
        ("2019-07-10 12:00:00,9999", NOON),
        ("2019-07-10 12:00:01.000", NOON + SECOND),
        ("1969-12-31 23:59:58.9996", -2 * SECOND),
    ],
)
def test_more_than_milliseconds_are_cut_off_so_that_no_time_moves_into_the_next_second(text: str, bucket: int) -> None:
    host = LocalHost.of(
        "define stream S (at string); define aggregation A from S select count() as n aggregate by at every sec;"
    )
    host.send("S", [(text,)])
    found = host.query("from A within '1960-01-01 00:00:00', '2020-01-01 00:00:00' per 'sec' select *").to_pylist()
    assert found == [{"AGG_TIMESTAMP": bucket, "n": 1}]


@pytest.mark.parametrize("keyed", [True, False])
def test_only_what_a_step_of_the_clock_divides_is_looked_at_again(keyed: bool) -> None:
    app = "define stream S (k string, w float, v long, ts long); @OutOfOrder('correct') define aggregation A "
    app += "from S select k, w, sum(v) as total group by k, w aggregate by ts every sec;"
    aggregation, engine = compile_app(app).aggregations["A"], ColumnEngine()
    later = NOON + 5 * SECOND
    divided, whole = [(None, 0.1, 1, NOON), (None, 0.1, 16, NOON)], [("b", 0.1, 2, NOON), ("c", 0.1, 32, NOON)]
    rows = [divided[0], whole[0], ("a", None, 4, NOON), ("a", None, 8, later), divided[1], whole[1]]
    columns = [list(column) for column in zip(*(row for row in rows), strict=True)]
    kinds = [pa.string(), pa.float32(), pa.int64(), pa.int64()]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    events = pa.table([*arrays, pa.array(range(6), pa.int64())], ["k", "w", "v", "ts", "__arrival"])
    partials, asked = Partials(aggregation), list[pa.Table]()

    def refold(steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
        asked.append(suspects)
        return [partials.fold_by_step(engine, "events", steps, suspects)]

    with engine.tables({"events": events}):
        found = [partials.fold(engine, "events")]
        admitted = admit(engine, aggregation, State.empty(aggregation), found, refold, keyed)
    (suspects,) = asked
    assert suspects.num_rows == 1 and suspects["AGG_TIMESTAMP"].to_pylist() == [NOON]
    assert suspects.num_columns == (4 if keyed else 2) and (not keyed or suspects["k"].to_pylist() == [None])
    assert admitted.counts == {"corrected": 2}
    total = next(value.name for value in aggregation.values if "SUM" in value.name)
    sums = Counter[tuple[object, ...]]()
    assert admitted.moved is not None
    for row in (row for table in [*admitted.rows, admitted.moved] for row in table.to_pylist()):
        sums[row["k"], row["AGG_TIMESTAMP"]] += row[total]
    assert sums == {(None, NOON): 17, ("a", NOON): 4, ("a", later): 8, ("b", NOON): 2, ("c", NOON): 32}


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("key", ["kind", "events", "commit", "number", "level"])
@pytest.mark.few(5)
def test_a_group_key_may_have_any_name_that_the_ledger_of_late_events_could_use(
    key: str, store: str, request: pytest.FixtureRequest
) -> None:
    app = f"define stream S ({key} string, v long, ts long); @OutOfOrder('correct') define aggregation A from S "
    app += f"select {key}, sum(v) as total group by {key} aggregate by ts every sec ... min;"
    make: StoreFactory = STORES[store].make(request)
    host = LocalHost(compile_app(app), make)
    host.send("S", [("x", 1, NOON), ("x", 2, NOON + 5 * SECOND), ("y", 4, NOON)])
    question = f"from A within {NOON}, {NOON + SECOND} per 'sec' select {key}, total, AGG_LATE_CORRECTED order by {key}"
    assert [tuple(row.values()) for row in host.query(question).to_pylist()] == [("x", 1, 0), ("y", 4, 1)]


def test_a_group_key_must_not_have_a_name_of_ours() -> None:
    app = "define stream S (AGG_KIND string, v long, ts long); define aggregation A from S select sum(v) as total "
    with pytest.raises(PlanError, match="'AGG_KIND' of a group key is ours"):
        compile_app(app + "group by AGG_KIND aggregate by ts every sec;")


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_stored_parts_merge_to_null_in_any_order_and_grouping_when_one_of_them_left_64_bits(
    order: tuple[int, ...],
) -> None:
    it = law("avg", "long")
    parts = [
        it.fold([(0, 2**63 - 1), (1, 2**63 - 1)]),
        it.fold([(2, 5)]),
        it.fold([(3, None)]),
        it.fold([(4, -(2**62))]),
    ]
    stored = [narrowed(it.aggregation, parts[i]).cast(it.aggregation.state_schema) for i in order]
    a, b, c, d = stored
    for merged in (
        it.merge(*stored),
        it.merge(it.merge(a, b), it.merge(c, d)),
        it.merge(a, it.merge(b, it.merge(c, d))),
    ):
        again = narrowed(it.aggregation, merged)
        assert again["AGG_SUM_x"].to_pylist() == [None]
        assert again["AGG_COUNT_x"].to_pylist() == [4]
    without = it.merge(*(part for part, i in zip(stored, order, strict=True) if i != 0))
    assert narrowed(it.aggregation, without)["AGG_SUM_x"].to_pylist() == [5 - 2**62]


def test_only_the_sum_that_left_64_bits_is_null_when_parts_merge() -> None:
    app = "define stream S (a long, b int, ts long); @OutOfOrder('correct') define aggregation A from S "
    host = LocalHost.of(app + "select sum(a) as x, sum(b) as y aggregate by ts every sec ... min;")
    host.send("S", [(2**63 - 1, 1, 0), (1, 2, 0), (1, 4, 5 * SECOND), (3, 8, 0)])
    host.send("S", [(3, 16, 0)])
    assert host.query("from A within 0, 1 per 'sec' select x, y").to_pylist() == [{"x": None, "y": 27}]


def test_the_year_9999_is_a_pattern_too() -> None:
    assert within_range("9999-**-** **:**:**") == (253_370_764_800_000, 253_402_300_800_000)
    assert within_range("9999-12-31 **:**:** +05:30")[1] == 253_402_300_800_000 - 19_800_000


def test_without_a_checkpoint_a_late_event_that_comes_again_behind_a_new_one_counts_twice_and_no_other_does() -> None:
    """What the tables do not say, a rebuild cannot know: which events of a second that the buffer has written came late.

    The tables hold seconds 0 and 1, late event included; 2 was open and is lost. When all comes again, what comes
    before the first event of second 2 is known to be in the tables. The late event after it looks like a new one, and
    is taken into its second, once more.
    """
    app = "define stream S (v long, ts long); @BufferSize('1') define aggregation A from S "
    app += "select sum(v) as total aggregate by ts every sec ... min;"
    events = [(1, 0), (2, SECOND), (4, 0), (8, 2 * SECOND), (16, SECOND), (32, 3 * SECOND)]
    store: list[MemoryStore] = []

    def keep(aggregation: Aggregation, engine: ColumnEngine) -> MemoryStore:
        store.append(store[0] if store else MemoryStore(aggregation, engine))
        return store[0]

    LocalHost(compile_app(app), keep).send("S", events)
    store[0].last = None
    again = LocalHost(compile_app(app), keep)
    again.send("S", [*events, (64, 9 * SECOND)])
    found = again.query(f"from A within 0, {9 * SECOND} per 'sec' select AGG_TIMESTAMP, total order by AGG_TIMESTAMP")
    assert found["total"].to_pylist() == [1 + 4, 2 + 16 + 16, 8, 32]


def test_a_batch_of_late_events_of_many_zones_is_counted_in_the_oldest_bucket_of_each_zone() -> None:
    zones = ["+00:00", "+05:30", "-11:00", "Asia/Kathmandu"]
    app = "define stream S (z string, at string); @BufferSize('1') define aggregation A from S "
    host = LocalHost.of(app + "select count() as n aggregate by at every hour ... day;")
    late = [("l", f"2019-07-09 {hour:02d}:00:00 {zone}") for zone in zones for hour in range(6)]
    host.send("S", [("n", "2019-07-10 12:00:00"), *late])
    rows = host.pipelines["A"].state.open[host.program.aggregations["A"].root].to_pylist()
    found = {(row["AGG_TIMEZONE"], row["AGG_TIMESTAMP"]): row["AGG_EVENTS"] for row in rows}
    hour, half, quarter = 3600 * SECOND, 1800 * SECOND, 900 * SECOND
    assert found == {
        ("+00:00", NOON): 1,
        ("+00:00", NOON - hour): 6,
        ("+05:30", NOON - hour - half): 6,
        ("-11:00", NOON - hour): 6,
        ("Asia/Kathmandu", NOON - hour - 3 * quarter): 6,
    }


def test_events_of_a_group_that_came_in_several_steps_of_the_clock_are_stored_as_one_row() -> None:
    app = "define stream S (k string, v long, ts long); @OutOfOrder('correct') define aggregation A from S "
    host = LocalHost.of(app + "select k, sum(v) as total group by k aggregate by ts every sec ... min;")
    late = [("a", 2, NOON), ("a", 4, NOON + 6 * SECOND), ("a", 8, NOON), ("b", 16, NOON), ("a", 32, NOON)]
    host.send("S", [("a", 1, NOON), ("a", 64, NOON + 5 * SECOND), *late])
    stored = host.stores["A"].rows_after(host.program.aggregations["A"].root, None).to_pylist()
    rows = Counter((row["k"], row["AGG_TIMESTAMP"]) for row in stored)
    assert rows == {("a", NOON): 1, ("b", NOON): 1, ("a", NOON + 5 * SECOND): 1}
    events = {(row["k"], row["AGG_TIMESTAMP"]): row["AGG_EVENTS"] for row in stored}
    assert events == {("a", NOON): 4, ("b", NOON): 1, ("a", NOON + 5 * SECOND): 1}


def test_stored_sums_of_doubles_have_no_tail_of_rounding() -> None:
    draw = random.Random(5)
    events = [(round(draw.uniform(50, 250), 2), n * 20) for n in range(3000)]
    host = LocalHost.of(
        "define stream S (v double, ts long); define aggregation A from S select sum(v) as t aggregate by ts every sec ... min;"
    )
    host.send("S", [*events, (0.0, 3_600_000)])
    for per, width in (("seconds", 1000), ("minutes", 60_000)):
        rows = host.query(f"from A within 0L, 60000L per '{per}' select AGG_TIMESTAMP as start, t").to_pylist()
        assert rows == [
            {"start": start, "t": math.fsum(v for v, ts in events if start <= ts < start + width)}
            for start in range(0, 60_000, width)
        ]
