"""Random programs: in both modes and both builds the same text leaves the same state, bit for bit, or fails in both."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.compiler.faults import Fault
from rollup.engine.compiler.interpreted import Interpreted
from rollup.engine.compiler.state import save
from tests.engine.compiler.modes import checked, moved, production, program, same
from tests.profiles import examples

STRUCTS = {
    "State": {
        "i": "int", "f": "float", "b": "bool", "o": "int | None", "p": "tuple[int, float]",
        "ints": "List[int]", "totals": "Map[int, float | None]", "pairs": "Map[tuple[bool, int], Node]",
        "queue": "Queue[Node]", "rows": "Rows[Node]", "heap": "Heap[int, int, Node]", "numbers": "Sorted[int]", "last": "Node",
    },
    "Node": {"key": "int", "value": "float | None", "next": "Node", "owner": "Weak[Node]", "kids": "List[Row]", "held": "bool"},
    "Row": {"f0": "int", "f2": "float | None"},
}  # fmt: skip


class Text:
    """A random text. Locals: `i0`, `i1` whole numbers, `f0`, `f1` doubles, `b0` a truth value, `o0` a number or None, `n0` a struct."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.depth, self.loops = random, ["def run():"], 1, 0
        for each in (
            "i0 = 1",
            "i1 = 2",
            "f0 = 0.5",
            "f1 = 0.25",
            "b0 = True",
            "o0 = None if s.b else 3",
            "n0 = Node(7)",
        ):
            self.line(each)
        self.block(6)
        self.line("s.count += i0 % 7")

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def whole(self, depth: int = 2) -> str:
        """A whole number that stays small."""
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice(
                ["i0", "i1", "s.i", str(r.randint(-9, 9)), "n0.key", "len(s.ints)", "len(s.rows)", "s.p[0]"]
            )
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return r.choice([
            f"({a} + {b})", f"({a} - {b})", f"wrapped({a} * {b})", f"({a} % {r.randint(2, 9)})", f"({a} // {r.randint(2, 9)})",
            f"({a} if {self.test(depth - 1)} else {b})", f"min({a}, {b})", f"max({a}, {b})", f"abs({a})", f"(-({a}))",
            f"({a} & 255)", f"({a} ^ {b})", f"order({self.real(0)})", f"bits({self.real(0)}) % 1000", f"({a} >> {r.randint(0, 63)})",
        ])  # fmt: skip

    def real(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.3:
            return r.choice(["f0", "f1", "s.f", repr(r.randint(-9, 9) / 4), "s.p[1]"])
        a, b = self.real(depth - 1), self.real(depth - 1)
        return r.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / 3.0)", f"float({self.whole(depth - 1)} % 1000)",
            f"({a} if {self.test(depth - 1)} else {b})", f"sqrt(abs({a}))", f"max({a}, {b})", f"(-{a})",
        ])  # fmt: skip

    def test(self, depth: int = 2) -> str:
        r = self.random
        if depth == 0 or r.random() < 0.2:
            return r.choice(
                [
                    "b0",
                    "s.b",
                    "s.last is None",
                    "o0 is None",
                    "n0 is s.last",
                    "n0.value is not None",
                    "n0.held",
                    "s.o is None",
                ]
            )
        a, b = self.whole(depth - 1), self.whole(depth - 1)
        return r.choice([
            f"({a} < {b})", f"({a} == {b})", f"({self.real(depth - 1)} >= {self.real(depth - 1)})", f"({a} in s.totals)",
            f"({self.test(depth - 1)} and {self.test(depth - 1)})", f"({self.test(depth - 1)} or {self.test(depth - 1)})",
            f"(not {self.test(depth - 1)})", f"({a} < {b} <= {self.whole(0)})",
        ])  # fmt: skip

    def block(self, size: int) -> None:
        for _ in range(self.random.randint(1, size)):
            self.statement()

    def inside(self, head: str, size: int = 3) -> None:
        self.line(head)
        self.depth += 1
        self.block(size)
        self.depth -= 1

    def statement(self) -> None:
        r, w, f, t = self.random, self.whole, self.real, self.test
        simple: list[Any] = [
            lambda: f"i0 = {w()}", lambda: f"i1 = {w()}", lambda: f"f0 = {f()}", lambda: f"s.f += {f()}", lambda: f"b0 = {t()}",
            lambda: f"s.i = {w()}", lambda: f"s.b = {t()}", lambda: f"s.o = {w()} if {t()} else None", lambda: f"s.p = ({w()}, {f()})",
            lambda: f"i0, f0 = ({w()}, {f()})", lambda: f"s.ints.append({w()})", lambda: f"s.totals[{w()} % 9] = {f()}",
            lambda: f"s.totals[{w()} % 9] = None", lambda: f"s.pairs[({t()}, {w()} % 4)] = n0",
            lambda: f"n0 = s.pairs.get((s.b, {w()} % 4)) if {t()} else n0", lambda: f"n0 = Node({w()}, {f()})",
            lambda: "s.last = n0", lambda: "s.last = None", lambda: "n0.next = Node(1, None, s.last)", lambda: "n0.owner = s.last",
            lambda: f"n0.value = {f()}", lambda: f"n0.kids.append(Row({w()}, {f()}))", lambda: "n0.kids.append(Row(1, None))",
            lambda: "s.queue.append(n0)", lambda: "s.rows.append(Node(i0, f0))", lambda: f"s.numbers.add({w()} % 50)",
            lambda: f"s.numbers.discard({w()} % 50)", lambda: f"s.ints[{w()} % 3] = {w()}", lambda: f"i0 = s.ints[{r.choice([-1, 0, 1])}]",
            lambda: f"i1 = {w()} // ({w()} % 3)", lambda: "s.ints.clear()", lambda: "n0.kids.clear()", lambda: "i0 = o0",
        ]  # fmt: skip
        kind = r.random()
        if kind < 0.72 or self.depth > 4:
            self.line(r.choice(simple)())
        elif kind < 0.82:
            self.inside(f"if {t()}:")
            if r.random() < 0.5:
                self.inside("else:")
        elif kind < 0.87:
            self.loops += 1
            name = f"k{self.loops}"
            self.line(f"{name} = 0")
            self.line(f"while {name} < {r.randint(1, 4)}:")
            self.depth += 1
            self.line(f"{name} += 1")
            self.block(2)
            self.depth -= 1
        else:
            self.guarded()

    def guarded(self) -> None:
        """Steps that need something to be there, which mostly is."""
        r = self.random
        texts = [
            ("s.rows", ["n0 = s.rows.popleft()"]), ("s.rows", ["n0 = s.rows.first()", "s.rows.remove(n0)"]),
            ("s.queue", ["n0 = s.queue.popleft()"]), ("3 in s.totals", ["del s.totals[3]"]),
            ("s.heap", ["i0, i1, n0 = s.heap.pop()"]), ("s.numbers", ["i0 = s.numbers[len(s.numbers) // 2]"]),
            ("s.ints", ["i1 = s.ints.pop()"]),
        ]  # fmt: skip
        test, lines = r.choice(texts)
        loops = [
            ["for each in s.ints:", "    i0 += each % 100"], ["for n1 in s.rows:", "    i1 += n1.key % 100"],
            ["for k, v in s.totals.items():", "    if v is not None:", "        f1 += v"], ["for n1 in s.pairs.values():", "    n0 = n1"],
            ["for row in n0.kids:", "    i0 += row[0] % 10"], ["s.number += 1", f"s.heap.push(({self.whole(0)}, s.number, n0))"],
        ]  # fmt: skip
        if r.random() < 0.5:
            lines = r.choice(loops)
        else:
            self.line(f"if {test}:")
            lines = [f"    {each}" for each in lines]
        for each in lines:
            self.line(each)


def _ran(mode: Any) -> str | None:
    """Three calls; what they failed by, if they did."""
    for _ in range(3):
        try:
            mode.call("run")
            mode.call("over")
        except (Fault, ArithmeticError, LookupError, TypeError, AttributeError) as problem:
            return type(problem).__name__
    return None


@examples(12)
@given(st.randoms(use_true_random=False))
def test_a_random_program_leaves_the_same_state_in_both_modes(random: Random) -> None:
    text = "\n".join(Text(random).lines) + "\n\n\ndef over():\n    collect()\n"
    structs = {**STRUCTS, "State": STRUCTS["State"] | {"count": "int", "number": "int"}}
    source = program(text, structs, ["Row"], run=[], over=[])
    interpreted, safe = Interpreted(source), checked(source)
    failed = _ran(interpreted)
    assert (_ran(safe) is None) == (failed is None), (failed, text)
    if failed is not None:
        return
    try:
        safely = save(safe)
    except Fault as fault:  # a random program may make a cycle, or keep a weak reference for too long
        assert "cycle" in str(fault) or "was freed" in str(fault)
        return
    quick = production(source)
    assert _ran(quick) is None
    first = save(interpreted)
    assert same(first, safely), text
    assert same(first, save(quick)), text
    assert same(first, save(moved(quick, Interpreted))), text
