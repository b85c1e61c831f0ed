"""A wrong operator is refused when it is compiled, or stops the checked build: by the file and the line that is wrong."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import pytest

from rollup.engine.compiler.faults import Fault, Refused
from rollup.engine.compiler.interpreted import Interpreted
from rollup.engine.compiler.state import restore, save
from rollup.engine.compiler.subset import Translation
from rollup.engine.compiler.types import SubsetError, type_of
from tests.engine.compiler.modes import Mode, checked, production, program, same

STRUCTS = {
    "State": {
        "n": "int", "f": "float", "o": "int | None", "c": "code", "ints": "List[int]", "queue": "Queue[Node]", "rows": "Rows[Node]",
        "totals": "Map[int, int]", "heap": "Heap[int, int]", "numbers": "Sorted[float]", "last": "Node", "weak": "Weak[Node]",
    },
    "Node": {"key": "int", "next": "Node", "back": "Weak[Node]"},
    "Row": {"f0": "int"},
}  # fmt: skip

FAULTS = {
    "an index that the container does not have": ["s.n = s.ints[0]", "s.f = s.numbers[-1]", "s.ints[2] = 1"],
    "None where a value is needed": ["s.n = s.o + 1", "s.n = s.last.key", "s.n = s.last.next.key", "s.queue.append(s.last)"],
    "the first of an empty container": [
        "s.n = s.ints.pop()", "s.last = s.queue.first()", "s.last = s.rows.popleft()", "s.heap.pop()", "s.n = s.heap[0][0]",
    ],
    "a key or a row that is not in the container": ["s.n = s.totals[4]", "del s.totals[4]", "s.rows.remove(Node())"],
    "a whole number beyond 64 bits": ["s.n = (1 << 62) * 2", "s.n = (1 << 62) + (1 << 62)", "s.n = -(1 << 62) * 2 - 1"],
    "a division by zero": ["s.n = 1 // s.n", "s.n = 1 % s.n", "s.f = 1 / s.n", "s.f = 1.0 / s.f"],
    "a shift by less than 0": ["s.n = 1 << (s.n + 64)", "s.n = 1 >> (s.n - 1)"],
}  # fmt: skip
"""By what the checked build says: statements that do it."""


@pytest.mark.parametrize(("said", "line"), [(said, line) for said, lines in FAULTS.items() for line in lines])
def test_the_checked_build_names_the_line_of_a_fault(said: str, line: str) -> None:
    mode = checked(
        program(f"def run():\n    inner()\n    s.n = 77\n\ndef inner():\n    s.n = 0\n    {line}\n", STRUCTS, ["Row"])
    )
    for _ in range(2):  # a fault leaves the program able to go on
        with pytest.raises(Fault) as fault:
            mode.call("run")
        assert str(fault.value).startswith(f"operator.py:7: {said}")
        assert mode.get("n") != 77


def test_a_row_stands_in_a_container_once() -> None:
    mode = checked(
        program("def run():\n    n = Node()\n    s.rows.append(n)\n    s.rows.append(n)\n", STRUCTS, ["Row"])
    )
    with pytest.raises(Fault, match=r"operator.py:4: .*in the container"):
        mode.call("run")


def test_a_loop_over_rows_that_changes_them_is_a_fault_in_both_modes() -> None:
    text = "def run():\n    s.rows.append(Node())\n    s.rows.append(Node())\n    for n in s.rows:\n        s.rows.append(Node())\n"
    source = program(text, STRUCTS, ["Row"])
    with pytest.raises(Fault, match="changed inside a loop"):
        checked(source).call("run")
    with pytest.raises(RuntimeError):
        Interpreted(source).call("run")


def test_a_reference_that_outlives_its_struct_is_a_fault() -> None:
    text = "def run():\n    s.last = Node(5)\n    s.weak = s.last\n\ndef over():\n    collect()\n\ndef drop():\n    s.last = None\n\ndef use():\n    s.n = s.weak.key\n"
    mode = checked(program(text, STRUCTS, ["Row"], run=[], over=[], drop=[], use=[]))
    for entry in ("run", "over", "use", "drop", "use"):
        mode.call(entry)
    assert mode.get("n") == 5
    mode.call("over")
    with pytest.raises(Fault, match=r"operator.py:12: a reference to a struct that was freed"):
        mode.call("use")


@pytest.mark.parametrize("build", [Interpreted, checked, production])
def test_a_program_refuses_with_a_code_and_goes_no_further(build: Any) -> None:
    text = "def run():\n    s.n = deep(3) + 1\n    s.n = 99\n\ndef deep(i):\n    if i < -9:\n        return 0\n    if i == 0:\n        s.n = 7\n        refuse(42)\n    return deep(i - 1)\n"
    mode: Mode = build(program(text, STRUCTS, ["Row"]))
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            mode.call("run")
        assert refused.value.code == 42
        assert mode.get("n") == 7


WRONG = {
    "s.m = 1": "State has no field `m`",
    "s.n = 0.5": "a value of type float where one of type int is needed",
    "s.n = x": "`x` has no value here",
    "s.n = nothing(1)": "no function is called `nothing`",
    "s.n = len(1, 2)": "len takes 1 arguments, not 2",
    "s.queue.remove(s.last)": "only the first leaves a Queue; declare Rows",
    "s.ints.push(1)": "a value of type List[int] has no method `push`; it has append, clear, pop",
    "s.last = Row(1)": "a value of type Row where one of type Node is needed",
    "s.ints.append(None)": "a value of type none where one of type int is needed",
    "s.n = 's'": "'s' is no constant of the subset",
    "import os": "`Import` is no statement of the subset",
    "s.n = [1][0]": "`[1]` is no expression of the subset",
    "x = 1\n    x = Node()": "int and Node are not of one type",
    "Row(1).f0 = 2": "Row is a record, which is never changed",
    "s.n = 1 if s.c < s.c else 2": "code < code: codes have no order and equal codes alone",
    "s.n = 2.0 // 1.0": "FloorDiv of doubles is not in the subset",
    "s.queue = s.rows": "a field of type Queue[Node] is not assigned to",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_not_in_the_subset_is_refused_by_file_and_line(line: str) -> None:
    source = program(f"def run():\n    inner()\n\ndef inner():\n    {line}\n", STRUCTS, ["Row"])
    with pytest.raises(SubsetError) as error:
        Translation(source, True).text()
    assert str(error.value).startswith(f"operator.py:{4 + line.count(chr(10)) + 1}: {WRONG[line]}")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Map[float, int]", "Map: float is no key; take bits.x. of a double"),
        ("List[Map[int, int]]", r"List: a container holds no container \(Map\[int, int\]\); put it into a struct"),
        ("Heap[float]", "Heap: a whole number comes first"),
        ("Rows[int]", r"Rows\[int\] is no type"),
        ("int + float", r"`int \+ float` is no type"),
    ],
)
def test_what_is_no_type_is_refused(kind: str, said: str) -> None:
    with pytest.raises(SubsetError, match=said):
        type_of(kind)


def test_a_field_that_refers_to_no_struct_is_refused() -> None:
    with pytest.raises(SubsetError, match=r"State.a: no struct is called `Nod`"):
        _ = program("", {"State": {"a": "List[Nod]"}}).layout


RING = """
def run():
    i = 0
    while i < 1000:
        parent = Node(i)
        s.last = parent
        parent.next = Node(i, None, parent)
        s.rows.append(parent)
        if len(s.rows) > 10:
            s.rows.popleft()
        s.totals[i % 7] = i
        collect()
        i += 1
"""


def test_a_cycle_with_a_weak_reference_is_freed() -> None:
    mode = checked(program(RING, STRUCTS, ["Row"]))
    mode.call("run")
    assert mode.live == 20
    save(mode)  # counts are as the references are


def test_a_cycle_of_counted_references_is_found() -> None:
    mode = checked(program(RING.replace("Node(i, None, parent)", "Node(i, parent)"), STRUCTS, ["Row"]))
    mode.call("run")
    with pytest.raises(
        Fault, match="2000 structs live, and the state leads to 20: a cycle of references needs a weak one"
    ):
        save(mode)


def test_ten_million_steps_of_a_bounded_window_take_no_more_memory_than_ten_thousand() -> None:
    mode = production(program(RING.replace("1000", "n").replace("run()", "run(n)"), STRUCTS, ["Row"], run=["int"]))
    mode.call("run", 10_000)
    before, chunks = _resident(), mode.live
    mode.call("run", 10_000_000)
    assert mode.live == chunks == 20
    assert _resident() - before < 8 << 20


def test_states_that_are_let_go_give_their_memory_back() -> None:
    source = program(RING, STRUCTS, ["Row"])
    first = production(source)
    first.call("run")
    tables, made = save(first), first._code  # pyright: ignore[reportPrivateUsage]
    before = None
    for i in range(600):
        mode = type(first)(source, False, made)
        restore(mode, tables)
        mode.call("run")
        assert mode.live == 20
        del mode
        if i == 100:
            gc.collect()
            before = _resident()
    assert before is not None
    assert _resident() - before < 4 << 20


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_a_large_state_is_carried_as_arrays() -> None:
    """Words, not objects: the numbers of rows say that none is lost, the model is the other mode."""
    text = "def run(n):\n    i = 0\n    while i < n:\n        s.rows.append(Node(i * 7))\n        s.totals[i * 64] = i\n        s.heap.push((i % 99, i))\n        i += 1\n"
    source = program(text, STRUCTS, ["Row"], run=["int"])
    one, other = Interpreted(source), checked(source)
    for mode in (one, other):
        mode.call("run", 5000)
    tables = save(one)
    assert same(tables, save(other))
    again = checked(source)
    restore(again, tables)
    random = Random(1)
    for mode in (one, other, again):
        random.seed(1)
        mode.call("run", 5000 + random.randint(0, 9))
    assert same(save(one), save(again))
    assert same(save(other), save(again))
