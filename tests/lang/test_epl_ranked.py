"""`minby`, `maxby` and `sorted` by one value and by several, up and down, nulls among them, beside a comparison two by two."""

import sys
from functools import cmp_to_key

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.live import Engine
from tests.profiles import examples

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
@pytest.mark.few(2)
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


@pytest.mark.parametrize(
    "value",
    ["maxby(a).n", "minby(a desc).n", "maxby(a, n desc).n", "nth(a, 2)", "last(a, 3)", "first(a)", "median(a)", "max(a)",
     "prev(3, a)", "prevtail(a)", "prevcount(a)", "sorted(a).firstEvent().n", "sorted(a).lastKey()", "sorted(a).lowerKey(50.0)",
     "sorted(a desc).ceilingEvent(50.0).n", "sorted(a).countEvents()", "sorted(a).firstEvents().countOf()"],
)  # fmt: skip
def test_an_event_calls_no_more_the_longer_the_window_is(value):
    def calls(length):
        engine = Engine()
        engine.deploy("create schema S(n int, a double)")
        engine.deploy(f"select {value} as v from S#length({length})", "windowed")
        engine.listen("windowed", lambda new, old: None)
        rows = [{"n": n, "a": float(n * 7919 % 1000)} for n in range(length + 220)]
        engine.send("S", rows[:-200])
        counted = 0

        def count(frame, event, argument):
            nonlocal counted
            counted += 1

        sys.setprofile(count)
        try:
            engine.send("S", rows[-200:])
        finally:
            sys.setprofile(None)
        return counted

    assert calls(1500) < 2 * calls(100)


@given(rows=st.lists(st.one_of(st.none(), st.floats(width=16)), min_size=1, max_size=12), cut=st.integers(0, 12))
def test_what_is_no_number_is_above_all_numbers_and_ranks_outlive_a_restart(rows, cut):
    engine, said = Engine(), []
    engine.deploy("create schema S(n int, a double)")
    engine.deploy("select minby(a).n as low, maxby(a).n as high from S#length(4)", "ranked")
    for begin, part in ((0, rows[:cut]), (cut, rows[cut:])):
        engine = Engine.restored(engine.snapshot())
        engine.listen("ranked", lambda new, old: said.extend((row["low"], row["high"]) for row in new))
        engine.send("S", [{"n": begin + place, "a": value} for place, value in enumerate(part)])

    def rank(n):
        value = rows[n]
        return (0, 0) if value is None else (2, 0) if value != value else (1, value)

    windows = [range(max(0, n - 3), n + 1) for n in range(len(rows))]
    assert said == [(min(window, key=rank), max(window, key=rank)) for window in windows]


@pytest.mark.parametrize("down", [False, True])
@examples(40)
@given(rows=ROWS, key=st.integers(-1, 4), width=st.integers(0, 3))
def test_rows_are_found_at_a_key_and_beside_it_as_one_finds_them_by_looking_at_all(down, rows, key, width):
    by, ends = f"sorted(a{' desc' if down else ''})", (key + width, key) if down else (key, key + width)
    nearest = ("lower", "floor", "ceiling", "higher")
    wanted = {
        **{f"{name}_{what}": f"{by}.{name}{what}({key})" for name in nearest for what in ("Event", "Events", "Key")},
        **{f"{end}_{what}": f"{by}.{end}{what}()" for end in ("first", "last") for what in ("Event", "Events", "Key")},
        "got": f"{by}.getEvent({key})", "all_got": f"{by}.getEvents({key})", "has": f"{by}.containsKey({key})",
        "many": f"{by}.countEvents()", "keys": f"{by}.countKeys()",
        "amid": f"{by}.eventsBetween({ends[0]}, true, {ends[1]}, false)", "plain": by, "best": f"{by}.maxBy()",
    }  # fmt: skip
    engine = Engine()
    engine.deploy("create schema S(n int, a int, b int)")
    columns = ", ".join(f"{text} as {name}" for name, text in wanted.items())
    engine.deploy(f"select {columns} from S#length({WIDTH})", "ranked")
    said = []
    engine.listen("ranked", lambda new, old: said.extend(new))
    engine.send("S", [{"n": n, "a": a, "b": b} for n, (a, b) in enumerate(rows)])
    for n, row in enumerate(said):
        held = [{"n": k, "a": rows[k][0], "b": rows[k][1]} for k in range(max(0, n + 1 - WIDTH), n + 1)]
        assert row == _found(held, down, key, ends)


def _found(held, down, key, ends):
    def before(one, other):
        return compared((one,), (other,), (down,)) < 0

    def under(a):
        return [each for each in held if each["a"] == a]

    keys = sorted({each["a"] for each in held}, key=cmp_to_key(lambda one, other: -1 if before(one, other) else 1))
    lower, higher = [a for a in keys if before(a, key)], [a for a in keys if before(key, a)]
    itself = [a for a in keys if a == key]
    at = {
        "lower": lower[-1:], "floor": (lower + itself)[-1:], "ceiling": (itself + higher)[:1], "higher": higher[:1],
        "first": keys[:1], "last": keys[-1:],
    }  # fmt: skip
    found = {}
    for name, place in at.items():
        rows = under(place[0]) if place else None
        found |= {f"{name}_Event": rows and rows[0], f"{name}_Events": rows, f"{name}_Key": place[0] if place else None}
    inside = [a for a in keys if not before(a, ends[0]) and before(a, ends[1])]
    return {
        **found, "got": under(key)[0] if itself else None, "all_got": under(key) if itself else None, "has": bool(itself),
        "many": len(held), "keys": len(keys), "amid": [each for a in inside for each in under(a)],
        "plain": [each for a in keys for each in under(a)], "best": under(keys[-1])[0],
    }  # fmt: skip
