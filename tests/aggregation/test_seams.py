"""What need not be merged is left alone, and nothing else: a group that two tables have is never parted.

Each table has a group once, as the parts of a batch do. Values come from small sets, so that groups meet often.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rollup.aggregation.seams import alike, in_order
from rollup.plan.aggregation import TIMESTAMP, ZONE
from tests.profiles import examples

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
@examples(200)
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


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=4))
@examples(100)
def test_rows_are_put_in_order_of_their_buckets_and_stay_in_theirs_within_one(chunks: list[list[int]]) -> None:
    starts = [start for chunk in chunks for start in chunk]
    rows = pa.table(
        {
            TIMESTAMP: pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks], pa.int64()),
            "row": pa.array(range(len(starts)), pa.int64()),
        }
    )
    found = in_order(rows).to_pydict()
    assert list(zip(found[TIMESTAMP], found["row"], strict=True)) == sorted(
        zip(starts, range(len(starts)), strict=True)
    )
