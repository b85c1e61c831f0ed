"""Rows of several columns numbered by first appearance, against a dict of tuples."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.columns.cores.keys import KeyCodes
from tests.profiles import examples

KINDS = pa.struct([("a", pa.string()), ("b", pa.int32()), ("c", pa.bool_()), ("d", pa.int64())])
whole = st.sampled_from([None, 0, -1, 1, 2**31 - 1, -(2**31)])
rows = st.lists(
    st.tuples(
        st.sampled_from(["x", "y", None]),
        whole,
        st.sampled_from([None, True, False]),
        st.one_of(whole, st.sampled_from([2**63 - 1, -(2**63)])),
    ),
    max_size=30,
)


def _column(found: list[Any]) -> pa.StructArray:
    parts = [pa.array([row[i] for row in found], field.type) for i, field in enumerate(KINDS)]
    return pa.StructArray.from_arrays(parts, fields=list(KINDS))


@examples(80)
@given(batches=st.lists(rows, max_size=4), anew=st.booleans(), fewest=st.sampled_from([1, 1024]))
def test_rows_have_the_numbers_of_their_first_appearance(batches: list[Any], anew: bool, fewest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.engine.columns.cores.keys._FEWEST", fewest)  # so that the table has to grow
        found, wanted, known = KeyCodes(), dict[Any, int](), _column([])
        for batch in batches:
            if anew:  # another process, which knows only the state
                found = KeyCodes()
            codes, known = found.codes(known, _column(batch))
            assert codes.tolist() == [wanted.setdefault(row, len(wanted)) for row in batch]
            assert [tuple(row.values()) for row in known.to_pylist()] == list(wanted)


def test_a_state_from_before_is_numbered_as_it_was() -> None:
    found, start = KeyCodes(), _column([])
    _, first = found.codes(start, _column([("x", 1, True, 1)]))
    found.codes(first, _column([("y", 1, True, 1)]))
    codes, known = found.codes(first, _column([("x", 1, True, 2), ("x", 1, True, 1)]))
    assert codes.tolist() == [1, 0]
    assert len(known) == 2
