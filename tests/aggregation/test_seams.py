"""What need not be merged is left alone, and nothing else: a group that two tables have is never parted.

Each table has a group once, as the parts of a batch do. Values come from small sets, so that groups meet often.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.aggregation.admission import Spans
from rollup.aggregation.partials import FIRST, LAST
from rollup.aggregation.seams import alike, in_order
from rollup.core.columns import ColumnEngine
from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP, ZONE
from rollup.program import compile_app
from tests.profiles import examples

_BY_TIME, _BY_TEXT = (
    compile_app(
        f"define stream S (ts {kind}); define aggregation A from S select count() as n aggregate by ts every sec;"
    ).aggregations["A"]
    for kind in ("long", "string")
)
_ENGINE = ColumnEngine()
_KINDS = (pa.string(), pa.int64(), pa.bool_(), pa.float64())
_VALUES = {
    pa.string(): st.sampled_from([None, "", "a", "b", "\0"]),
    pa.int64(): st.sampled_from([None, -(2**63), -1, 0, 1, 2**63 - 1]),
    pa.bool_(): st.sampled_from([None, True, False]),
    pa.float64(): st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
}


@st.composite
def _parts(draw: st.DrawFn) -> list[pa.Table]:
    """Tables of groups (bucket, zone, keys), each with a number of its own in `row`."""
    kinds = draw(st.lists(st.sampled_from(_KINDS), max_size=3))
    group = st.tuples(st.integers(0, 30), st.sampled_from(["+00:00", "+01:00"]), *(_VALUES[kind] for kind in kinds))
    names = [TIMESTAMP, ZONE, *(f"k{number}" for number in range(len(kinds)))]
    tables, row = list[pa.Table](), 0
    for groups in draw(st.lists(st.lists(group, min_size=1, max_size=40, unique_by=repr), min_size=1, max_size=5)):
        columns = list(zip(*groups, strict=True))
        arrays = [
            pa.array(column, kind) for column, kind in zip(columns, (pa.int64(), pa.string(), *kinds), strict=True)
        ]
        numbers = pa.array(range(row, row + len(groups)))
        tables.append(pa.table(dict(zip([*names, "row"], [*arrays, numbers], strict=True))))
        row += len(groups)
    return tables


def _same(group: tuple[object, ...]) -> str:
    """Equal for what a query groups together: both zeros, and NaN with itself."""
    return repr(tuple(0.0 if isinstance(value, float) and value == 0 else value for value in group))


@given(_parts())
@examples(100)
def test_a_row_left_alone_is_of_no_other_tables_group_and_none_is_lost(parts: list[pa.Table]) -> None:
    identity = parts[0].column_names[:-1]
    alone, shared = alike(parts, identity)
    every = [row for table in (*alone, *shared) for row in table["row"].to_pylist()]
    assert sorted(every) == list(range(sum(part.num_rows for part in parts)))
    groups = [{_same(tuple(row[name] for name in identity)) for row in part.to_pylist()} for part in parts]
    tables_with = Counter(group for found in groups for group in found)
    for row in (row for table in alone for row in table.to_pylist()):
        assert tables_with[_same(tuple(row[name] for name in identity))] == 1


def test_of_two_partitions_with_few_groups_in_common_only_those_are_merged() -> None:
    buckets, zones = pa.array([s * 1000 for s in range(500)]), pa.array(["+00:00"] * 500)
    keys = [[f"{part}-{s}" if s % 50 else "both" for s in range(500)] for part in range(2)]
    parts = [pa.table({TIMESTAMP: buckets, ZONE: zones, "k": own}) for own in keys]
    alone, shared = alike(parts, (TIMESTAMP, ZONE, "k"))
    assert sum(table.num_rows for table in shared) == 20
    assert all(table[TIMESTAMP].to_pylist() == sorted(table[TIMESTAMP].to_pylist()) for table in alone)


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=4), st.sampled_from([1, 2, 700, 1500]))
@examples(100)
def test_rows_are_put_in_order_of_their_buckets_and_stay_in_theirs_within_one(
    chunks: list[list[int]], long: int
) -> None:
    """`long` rows of a bucket stand together: many are moved as one, few row by row."""
    chunks = [[start for start in chunk for _ in range(long)] for chunk in chunks]
    starts = [start for chunk in chunks for start in chunk]
    numbers = pa.array(range(len(starts)), pa.int64())
    rows = pa.table(
        {
            TIMESTAMP: pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks], pa.int64()),
            "row": numbers,
            "key": pc.if_else(pc.equal(pc.bit_wise_and(numbers, 3), 0), None, numbers.cast(pa.string())),
        }
    )
    found, places = in_order(rows), sorted(range(len(starts)), key=lambda row: starts[row])
    assert found["row"].to_pylist() == places
    assert found.equals(rows.take(pa.array(places, pa.int64())))


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), min_size=1, max_size=4), st.booleans(), st.randoms())
@pytest.mark.parametrize("text", [False, True])
@examples(50)
def test_the_buckets_of_a_batch_are_found_in_whatever_order_its_rows_come(
    text: bool, parts: list[list[int]], ordered: bool, chance: Random
) -> None:
    """Once a zone each, with the first arrival of the rows that all tables have of it, and the last."""
    aggregation, zones = (_BY_TEXT, ["+00:00", "+01:00"]) if text else (_BY_TIME, [_BY_TIME.zone])
    spans, tables = dict[tuple[int, str], tuple[int, int]](), list[pa.Table]()
    for part in parts:
        rows = [(start, chance.choice(zones), chance.randrange(1000)) for start in (sorted(part) if ordered else part)]
        lasts = [first + chance.randrange(100) for _, _, first in rows]
        for (start, zone, first), last in zip(rows, lasts, strict=True):
            known = spans.get((start, zone), (first, last))
            spans[start, zone] = (min(first, known[0]), max(last, known[1]))
        columns = [[row[at] for row in rows] for at in range(3)]
        kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64())
        arrays = [pa.array(column, kind) for column, kind in zip([*columns, lasts], kinds, strict=True)]
        tables.append(pa.table(arrays, [TIMESTAMP, ZONE, FIRST, LAST]))
    found = Spans.of_buckets(_ENGINE, aggregation, tables)
    rows = zip(found.start.tolist(), found.zone.to_pylist(), zip(found.first, found.last, strict=True), strict=True)
    assert {(start, zone): span for start, zone, span in rows} == spans
    assert len(found.start) == len(spans)
    assert [*zip(found.first, found.start, strict=True)] == sorted(zip(found.first, found.start, strict=True))
