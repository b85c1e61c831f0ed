"""What a loop holds of the rows of a window beside the slots of groups: the lines that keep it, for aggregates that need more
of the values than a few numbers. It is made of the window's rows when a loop begins and is no part of a state.

Group `k`, row `row`; arguments `x0 v0 …`. A structure over an argument is there once, whoever asks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from rollup.engine.columns.cores.keys import PairCodes, equal_bits
from rollup.engine.columns.groups import Ints

BEATEN = {
    "min": "({x} > {y} or {x} != {x} and {y} == {y})",
    "max": "({x} <= {y} or {y} != {y})",
}
"""When an earlier value `x` can never be the answer again behind a later `y`; NaN is above all numbers."""


class Holding(Protocol):
    """One structure."""

    def begin(self) -> list[str]:
        """The lines before any row."""
        ...

    def enter(self, row: str) -> list[str]:
        """The lines by which a row enters group `k`."""
        ...

    def leave(self, row: str) -> list[str]:
        """The lines by which it leaves."""
        ...


@dataclass(frozen=True)
class Extreme:
    """The line of those rows that may still be the least or greatest (`which`) of a group: what a later one beats goes.

    Rows must leave in the order in which they came.
    """

    at: int
    which: str

    @property
    def _name(self) -> str:
        return f"{self.which}{self.at}"

    def begin(self) -> list[str]:
        """Empty lines."""
        ends = [f"{self._name}_{end} = np.full(len(rows), -1, np.int64)" for end in ("front", "back")]
        return [*ends, *(f"{self._name}_{way} = np.full(len(codes), -1, np.int64)" for way in ("next", "prev"))]

    def enter(self, row: str) -> list[str]:
        """A value joins the line behind those that it does not beat."""
        line, x = self._name, f"x{self.at}"
        beaten = BEATEN[self.which].format(x=f"{x}[{line}_back[k]]", y=f"{x}[{row}]")
        return [
            f"if v{self.at}[{row}]:",
            f"    while {line}_back[k] >= 0 and {beaten}:",
            f"        {line}_back[k] = {line}_prev[{line}_back[k]]",
            f"    {line}_prev[{row}], {line}_next[{row}] = {line}_back[k], -1",
            f"    if {line}_back[k] < 0:",
            f"        {line}_front[k] = {row}",
            "    else:",
            f"        {line}_next[{line}_back[k]] = {row}",
            f"    {line}_back[k] = {row}",
        ]

    def leave(self, row: str) -> list[str]:
        """The oldest value leaves; where it is still in the line, it is the first of it."""
        line = self._name
        return [
            f"if v{self.at}[{row}] and {line}_front[k] == {row}:",
            f"    {line}_front[k] = {line}_next[{row}]",
            f"    if {line}_front[k] < 0:",
            f"        {line}_back[k] = -1",
            "    else:",
            f"        {line}_prev[{line}_front[k]] = -1",
        ]

    def value(self, call: int, row: str, place: bool) -> list[str]:
        """The first of the line, or its `place`."""
        front = f"{self._name}_front[k]"
        return [
            f"ok{call}[{row}] = {front} >= 0",
            f"if ok{call}[{row}]:",
            f"    r{call}[{row}] = {front if place else f'x{self.at}[{front}]'}",
        ]


@dataclass(frozen=True)
class Queue:
    """The rows of a group in the order in which they came, be their values null; or those that have a value of `of`."""

    of: int | None = None

    @property
    def _name(self) -> str:
        return "queue" if self.of is None else f"queue{self.of}"

    def _asked(self, row: str, lines: list[str]) -> list[str]:
        """Lines for a row that stands in the queue."""
        return lines if self.of is None else [f"if v{self.of}[{row}]:", *(f"    {line}" for line in lines)]

    def begin(self) -> list[str]:
        """Empty queues."""
        q = self._name
        ends = [f"{q}_{end} = np.full(len(rows), -1, np.int64)" for end in ("front", "back")]
        return [*ends, *(f"{q}_{way} = np.full(len(codes), -1, np.int64)" for way in ("next", "prev"))]

    def enter(self, row: str) -> list[str]:
        """A row is the last."""
        q = self._name
        lines = [
            f"{q}_prev[{row}], {q}_next[{row}] = {q}_back[k], -1",
            f"if {q}_back[k] < 0:",
            f"    {q}_front[k] = {row}",
            "else:",
            f"    {q}_next[{q}_back[k]] = {row}",
            f"{q}_back[k] = {row}",
        ]
        return self._asked(row, lines)

    def leave(self, row: str) -> list[str]:
        """A row leaves, wherever it stands."""
        q = self._name
        lines = [
            f"if {q}_prev[{row}] < 0:",
            f"    {q}_front[k] = {q}_next[{row}]",
            "else:",
            f"    {q}_next[{q}_prev[{row}]] = {q}_next[{row}]",
            f"if {q}_next[{row}] < 0:",
            f"    {q}_back[k] = {q}_prev[{row}]",
            "else:",
            f"    {q}_prev[{q}_next[{row}]] = {q}_prev[{row}]",
        ]
        return self._asked(row, lines)

    def value(self, call: int, row: str, at: int | None, place: int) -> list[str]:
        """The value of the row at a place, counted from the front or, below 0, from the back; None: where that row is."""
        q, (end, way) = self._name, ("front", "next") if place >= 0 else ("back", "prev")
        steps = place if place >= 0 else -1 - place
        walk = [f"for _ in range({steps}):", "    if s >= 0:", f"        s = {q}_{way}[s]"] if steps else []
        return [
            f"s = {q}_{end}[k]",
            *walk,
            f"ok{call}[{row}] = s >= 0{'' if at is None else f' and v{at}[s]'}",
            f"if ok{call}[{row}]:",
            f"    r{call}[{row}] = {'s' if at is None else f'x{at}[s]'}",
        ]

    def all(self, call: int, row: str) -> list[str]:
        """Where the first of all rows is, and how many these are."""
        return [f"r{call}[{row}], ok{call}[{row}] = max({self._name}_front[k], 0), rows[k]"]


@dataclass(frozen=True)
class Different:
    """How often each value is in a group; `fresh{at}` says of a change whether it is the first of its kind or the last."""

    at: int

    @property
    def extra(self) -> str:
        """The array that a loop is given beside values and validity: the number of each row's group and value together."""
        return f"pair{self.at}"

    def array(self, values: np.ndarray, codes: Ints) -> Ints:
        """That array, from all values and groups."""
        bits = equal_bits(values) if values.dtype.kind == "f" else values
        return PairCodes().codes(codes << 32 | PairCodes().codes(np.ascontiguousarray(bits))[0])[0]

    def begin(self) -> list[str]:
        """No value."""
        return [f"often{self.at} = np.zeros(len(codes), np.int64)"]

    def enter(self, row: str) -> list[str]:
        """Once more."""
        return self._changed(row, "+= 1", 1)

    def leave(self, row: str) -> list[str]:
        """Once less."""
        return self._changed(row, "-= 1", 0)

    def _changed(self, row: str, step: str, then: int) -> list[str]:
        often = f"often{self.at}[pair{self.at}[{row}]]"
        return [
            f"fresh{self.at} = False",
            f"if v{self.at}[{row}]:",
            f"    {often} {step}",
            f"    fresh{self.at} = {often} == {then}",
        ]


TREE = '''def tree_add(tree, base, size, place, step):
    """A value more or less at a place of a group: a tree of sums, Fenwick's."""
    place += 1
    while place <= size:
        tree[base + place - 1] += step
        place += place & -place


@compiled
def tree_place(tree, base, size, top, rank):
    """The place of the value that so many stand before."""
    place, step = 0, top
    while step > 0:
        if place + step <= size and tree[base + place + step - 1] <= rank:
            place += step
            rank -= tree[base + place - 1]
        step >>= 1
    return place


@compiled
def tree_before(tree, base, place):
    """How many values stand before a place."""
    found = 0
    while place > 0:
        found += tree[base + place - 1]
        place -= place & -place
    return found


@compiled
'''
"""The functions that the lines of `Ordered` call, before a loop."""
_RANKS = """
{o}_base, {o}_top = np.zeros(len(rows) + 1, np.int64), np.ones(len(rows), np.int64)
for i in range(len(codes)):
    {o}_base[codes[i] + 1] += 1
for k in range(len(rows)):
    while 2 * {o}_top[k] <= {o}_base[k + 1]:
        {o}_top[k] *= 2
    {o}_base[k + 1] += {o}_base[k]
{o}_many, {o}_place = {o}_base[:-1].copy(), np.empty(len(codes), np.int64)
{o}_row, {o}_tree = np.empty(len(codes), np.int64), np.zeros(len(codes), np.int64)
for i in range(len(codes)):
    k = codes[{o}[i]]
    {o}_row[{o}_many[k]], {o}_place[{o}[i]] = {o}[i], {o}_many[k] - {o}_base[k]
    {o}_many[k] += 1
{o}_many[:] = 0
"""


@dataclass(frozen=True)
class Ordered:
    """The values of a group in order: each row of the loop has a place among those of its group, and a tree counts which are in.

    `linked`: they can also be walked through, from `first` on.
    """

    at: int
    linked: bool = False

    @property
    def extra(self) -> str:
        """The array that a loop is given beside values and validity: all rows by their values."""
        return f"order{self.at}"

    def array(self, values: np.ndarray, codes: Ints) -> Ints:
        """That array. Equal values in any order; what is no number is last."""
        return np.argsort(values)

    def begin(self) -> list[str]:
        """The places, and trees of nothing."""
        found = _RANKS.format(o=self.extra).strip().splitlines()
        if self.linked:
            found += [f"{self.extra}_first = np.full(len(rows), -1, np.int64)"]
            found += [f"{self.extra}_{way} = np.full(len(codes), -1, np.int64)" for way in ("next", "prev")]
        return found

    def _tree(self) -> str:
        o = self.extra
        return f"{o}_tree, {o}_base[k], {o}_base[k + 1] - {o}_base[k]"

    def row_at(self, rank: str) -> str:
        """The row that so many stand before."""
        o = self.extra
        return f"{o}_row[{o}_base[k] + tree_place({self._tree()}, {o}_top[k], {rank})]"

    def enter(self, row: str) -> list[str]:
        """One more at the row's place."""
        o = self.extra
        found = [f"tree_add({self._tree()}, {o}_place[{row}], 1)", f"{o}_many[k] += 1"]
        if self.linked:
            found = [
                f"above = tree_before({o}_tree, {o}_base[k], {o}_place[{row}])",
                f"below = {self.row_at('above - 1')} if above > 0 else -1",
                f"above = {o}_next[below] if below >= 0 else {o}_first[k]",
                f"{o}_prev[{row}], {o}_next[{row}] = below, above",
                *("if below >= 0:", f"    {o}_next[below] = {row}", "else:", f"    {o}_first[k] = {row}"),
                *("if above >= 0:", f"    {o}_prev[above] = {row}"),
                *found,
            ]
        return [f"if v{self.at}[{row}]:", *(f"    {line}" for line in found)]

    def leave(self, row: str) -> list[str]:
        """One less."""
        o = self.extra
        found = [f"tree_add({self._tree()}, {o}_place[{row}], -1)", f"{o}_many[k] -= 1"]
        if self.linked:
            found += [
                f"below, above = {o}_prev[{row}], {o}_next[{row}]",
                *("if below >= 0:", f"    {o}_next[below] = above", "else:", f"    {o}_first[k] = above"),
                *("if above >= 0:", f"    {o}_prev[above] = below"),
            ]
        return [f"if v{self.at}[{row}]:", *(f"    {line}" for line in found)]

    def end(self, call: int, row: str, last: bool) -> list[str]:
        """The last value, or the first."""
        many = f"{self.extra}_many[k]"
        return [
            f"ok{call}[{row}] = {many} > 0",
            f"if {many} > 0:",
            f"    r{call}[{row}] = x{self.at}[{self.row_at(f'{many} - 1' if last else '0')}]",
        ]

    def middle(self, call: int, row: str) -> list[str]:
        """The median: of an even number of values the mean of the two in the middle."""
        many, half = f"{self.extra}_many[k]", f"{self.extra}_many[k] // 2"
        return [
            f"ok{call}[{row}] = {many} > 0",
            f"if {many} % 2 == 1:",
            f"    r{call}[{row}] = x{self.at}[{self.row_at(half)}]",
            f"elif {many} > 0:",
            f"    r{call}[{row}] = (x{self.at}[{self.row_at(half + ' - 1')}] + x{self.at}[{self.row_at(half)}]) / 2",
        ]

    def mean_distance(self, call: int, row: str, double: bool) -> list[str]:
        """The mean distance from the mean, both added up in the order of the values."""
        o, x = self.extra, f"x{self.at}[s]"
        mean = f"total / {o}_many[k]" if double else f"mean_of_whole(total, {o}_many[k])"
        total = f"total{call}"

        def walk(line: str) -> list[str]:
            return [f"s = {o}_first[k]", "while s >= 0:", f"    {line}", f"    s = {o}_next[s]"]

        found = [
            f"{total} = {'0.0' if double else '0'}",
            *walk(f"{total} += {x}"),
            f"center = {mean.replace('total', total)}",
            f"distance{call} = 0.0",
            *walk(f"distance{call} += abs({x} - center)"),
            f"r{call}[{row}] = distance{call} / {o}_many[k]",
        ]
        return [f"ok{call}[{row}] = {o}_many[k] > 0", f"if ok{call}[{row}]:", *(f"    {line}" for line in found)]


def merged(found: Sequence[Holding]) -> list[Holding]:
    """Each structure once; one that is walked through is also one that is not."""
    linked = {each.at for each in found if isinstance(each, Ordered) and each.linked}
    same = [replace(each, linked=each.at in linked) if isinstance(each, Ordered) else each for each in found]
    return list(dict.fromkeys(same))
