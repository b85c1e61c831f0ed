"""`minby`, `maxby` and `sorted` by one value and by several, up and down, nulls among them, beside a comparison two by two."""

from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.live import Engine

VALUES = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12)
WIDTH = 5


def compared(one, other, down):
    """Below, at or above zero; null is before all, and `down` turns a value's order round."""
    for a, b, turned in zip(one, other, down, strict=False):
        if a != b:
            less = b is not None and (a is None or a < b)
            return -1 if less != turned else 1
    return 0


@pytest.mark.parametrize(
    ("by", "down"),
    [("a", (False,)), ("a desc", (True,)), ("a, b", (False, False)), ("a desc, b desc", (True, True)),
     ("a, b desc", (False, True)), ("a desc, b", (True, False))],
)  # fmt: skip
@given(rows=ROWS)
def test_rows_are_ranked_as_a_comparison_of_each_with_each_ranks_them(by, down, rows):
    engine = Engine()
    engine.deploy("create schema S(n int, a int, b int)")
    engine.deploy(
        f"select minby({by}).n as low, maxby({by}).n as high, sorted({by}).selectFrom(x => x.n) as every"
        f" from S#length({WIDTH})",
        "ranked",
    )
    said = []
    engine.listen("ranked", lambda new, old: said.extend(new))
    engine.send("S", [{"n": n, "a": a, "b": b} for n, (a, b) in enumerate(rows)])
    assert len(said) == len(rows)
    for n, row in enumerate(said):
        held = [(k, rows[k]) for k in range(max(0, n + 1 - WIDTH), n + 1)]
        up = sorted(held, key=cmp_to_key(lambda one, other: compared(one[1], other[1], down)))
        turned = sorted(held, key=cmp_to_key(lambda one, other: compared(other[1], one[1], down)))
        assert (row["low"], row["high"], list(row["every"])) == (up[0][0], turned[0][0], [k for k, _ in up])
