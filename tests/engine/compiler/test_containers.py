"""Each container against a plain model of Python, in both modes and both builds, with the state carried on in between.

A test is a list of steps; the program makes them in the container of its state, the model in a list or a dict, and both
say what they saw. Steps that a model refuses (the first of nothing) are left out; `test_faults.py` has those.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.compiler.source import Source
from rollup.engine.compiler.state import save
from tests.engine.compiler.modes import BUILDS, moved, program, same
from tests.profiles import examples

STEP = """
def run(n):
    i = 0
    while i < n:
        step(s.input[i][0], s.input[i][1])
        collect()
        i += 1
"""
COMMON = {"input": "Columns[int, int]", "out": "Table[int | None, float | None, int]"}


def _container(text: str, **structs: dict[str, str]) -> Source:
    fields = structs.pop("State")
    return program(STEP + text, {"State": fields | COMMON, **structs}, run=["int"])


ROWS = _container(
    """
def step(op, x):
    if op == 0:
        node = Node(x)
        s.nodes[x] = node
        s.rows.append(node)
    elif op == 1 and len(s.rows) > 0:
        node = s.rows.popleft()
        del s.nodes[node.key]
        s.out.append((node.key, None, len(s.rows)))
    elif op == 2:
        node = s.nodes.get(x)
        if node is not None:
            s.rows.remove(node)
            del s.nodes[x]
            s.out.append((x, None, len(s.rows)))
    elif op == 3:
        for node in s.rows:
            s.out.append((node.key, node.key * 0.5, len(s.rows)))
        if s.rows:
            s.out.append((s.rows.first().key, None, -1))
""",
    State={"rows": "Rows[Node]", "nodes": "Map[int, Node]"},
    Node={"key": "int"},
)


def rows(steps: list[tuple[int, int]]) -> list[Any]:
    kept: list[int] = []
    seen: list[Any] = []
    for op, x in steps:
        if op == 0:
            kept.append(x)
        elif op == 1 and kept:
            seen.append((kept.pop(0), None, len(kept)))
        elif op == 2 and x in kept:
            kept.remove(x)
            seen.append((x, None, len(kept)))
        elif op == 3:
            seen += [(each, each * 0.5, len(kept)) for each in kept]
            seen += [(kept[0], None, -1)] if kept else []
    return seen


MAP = _container(
    """
def step(op, x):
    key = (x % 5, None if x % 3 == 0 else x % 2)
    if op == 0:
        s.totals[key] = x * 0.25
    elif op == 1:
        if key in s.totals:
            del s.totals[key]
    elif op == 2:
        s.out.append((x, s.totals.get(key), len(s.totals)))
        if key in s.totals:
            s.out.append((x, s.totals[key], 0))
    else:
        for k, v in s.totals.items():
            s.out.append((k[0], v, 0 if k[1] is None else 1))
        for v in s.totals.values():
            s.out.append((None, v, 2))
        if op == 4 and x % 7 == 0:
            s.totals.clear()
""",
    State={"totals": "Map[tuple[int, int | None], float]"},
)


def totals(steps: list[tuple[int, int]]) -> list[Any]:
    kept: dict[Any, float] = {}
    seen: list[Any] = []
    for op, x in steps:
        key = (x % 5, None if x % 3 == 0 else x % 2)
        if op == 0:
            kept[key] = x * 0.25
        elif op == 1:
            kept.pop(key, None)
        elif op == 2:
            seen.append((x, kept.get(key), len(kept)))
            seen += [(x, kept[key], 0)] if key in kept else []
        else:
            seen += [(k[0], v, 0 if k[1] is None else 1) for k, v in kept.items()]
            seen += [(None, v, 2) for v in kept.values()]
            if op == 4 and x % 7 == 0:
                kept.clear()
    return seen


HEAP = _container(
    """
def step(op, x):
    s.count += 1
    if op <= 1:
        s.alarms.push((x, s.count, x * 0.5))
    elif op == 2 and s.alarms:
        at, number, value = s.alarms.pop()
        s.out.append((at, value, number))
    elif op == 3 and len(s.alarms) > 0:
        s.out.append((s.alarms[0][0], None, len(s.alarms)))
""",
    State={"alarms": "Heap[int, int, float]", "count": "int"},
)


def alarms(steps: list[tuple[int, int]]) -> list[Any]:
    kept: list[Any] = []
    seen: list[Any] = []
    for count, (op, x) in enumerate(steps, 1):
        if op <= 1:
            kept = sorted([*kept, (x, count, x * 0.5)])
        elif op == 2 and kept:
            at, number, value = kept.pop(0)
            seen.append((at, value, number))
        elif op == 3 and kept:
            seen.append((kept[0][0], None, len(kept)))
    return seen


SORTED = _container(
    """
def step(op, x):
    v = (x - 5) * 0.5
    if op <= 1:
        s.values.add(v)
    elif op == 2:
        s.values.discard(v)
    elif op == 3 and s.values:
        s.out.append((None, s.values[0], len(s.values)))
        s.out.append((None, s.values[-1], len(s.values)))
        s.out.append((None, s.values[len(s.values) // 2], len(s.values)))
""",
    State={"values": "Sorted[float]"},
)


def values(steps: list[tuple[int, int]]) -> list[Any]:
    kept: list[float] = []
    seen: list[Any] = []
    for op, x in steps:
        v = (x - 5) * 0.5
        if op <= 1:
            kept = sorted([*kept, v])
        elif op == 2 and v in kept:
            kept.remove(v)
        elif op == 3 and kept:
            seen += [(None, kept[i], len(kept)) for i in (0, -1, len(kept) // 2)]
    return seen


LIST = _container(
    """
def step(op, x):
    if op <= 1:
        s.stack.append(None if x % 4 == 0 else x)
    elif op == 2 and s.stack:
        s.out.append((s.stack.pop(), None, len(s.stack)))
    elif op == 3:
        for each in s.stack:
            s.out.append((each, None, 0))
        if x < len(s.stack):
            s.stack[x] = -x
            s.out.append((s.stack[x], None, 1))
    elif op == 4 and x % 7 == 0:
        s.stack.clear()
""",
    State={"stack": "List[int | None]"},
)


def stack(steps: list[tuple[int, int]]) -> list[Any]:
    kept: list[Any] = []
    seen: list[Any] = []
    for op, x in steps:
        if op <= 1:
            kept.append(None if x % 4 == 0 else x)
        elif op == 2 and kept:
            seen.append((kept.pop(), None, len(kept)))
        elif op == 3:
            seen += [(each, None, 0) for each in kept]
            if x < len(kept):
                kept[x] = -x
                seen.append((kept[x], None, 1))
        elif op == 4 and x % 7 == 0:
            kept.clear()
    return seen


CONTAINERS: dict[str, tuple[Source, Callable[[Any], list[Any]], bool]] = {
    "Rows": (ROWS, rows, True),
    "Map": (MAP, totals, False),
    "Heap": (HEAP, alarms, False),
    "Sorted": (SORTED, values, False),
    "List": (LIST, stack, False),
}
"""By name: the program, its model, and whether a number is put in once only."""
STEPS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 2, 3, 4]), st.integers(0, 40)), max_size=120)
MODES = {build: build for build in BUILDS}


def _fed(mode: Any, steps: list[tuple[int, int]]) -> list[Any]:
    mode.feed("input", [pa.array([op for op, _ in steps], pa.int64()), pa.array([x for _, x in steps], pa.int64())])
    mode.call("run", len(steps))
    return list(zip(*(column.to_pylist() for column in mode.take("out")), strict=True))


def _once(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same steps with another number for each one that is put in."""
    return [(op, 100 + number if op == 0 else 100 + x) for number, (op, x) in enumerate(steps)]


@pytest.fixture(scope="module")
def builds() -> dict[str, list[Any]]:
    """For each container its program in both modes and builds, with the machine code that all examples share."""
    found: dict[str, list[Any]] = {}
    for name, (source, _, _) in CONTAINERS.items():
        made = [build(source) for build in BUILDS]
        codes = [getattr(each, "_code", None) for each in made]
        found[name] = [
            (lambda s, b=type(each), c=code, k=getattr(each, "checked", False): b(s, k, c) if c else b(s))
            for each, code in zip(made, codes, strict=True)
        ]
    return found


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_is_as_its_model_in_both_modes_however_often_its_state_moves(name: str, builds: Any) -> None:
    source, model, once = CONTAINERS[name]

    @examples(30)
    @given(STEPS, st.lists(st.integers(0, 120), max_size=3), st.permutations(range(3)))
    def law(steps: list[tuple[int, int]], cuts: list[int], turns: list[int]) -> None:
        steps = _once(steps) if once else steps
        expected = model(steps)
        ways = [build(source) for build in builds[name]]
        assert all(_fed(way, steps) == expected for way in ways)
        first, *others = [save(way) for way in ways]
        assert all(same(first, other) for other in others)
        mode, seen, begin = builds[name][turns[0]](source), [], 0
        for i, end in enumerate([*sorted(cuts), len(steps)]):
            seen += _fed(mode, steps[begin:end])
            begin = max(begin, end)
            mode = moved(mode, builds[name][turns[i % 3]])
        assert seen == expected
        assert same(save(mode), first)

    law()
