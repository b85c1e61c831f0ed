"""Which pairs of rows the changes of two windows make and unmake: a loop over the changes.

It keeps a list of each side's rows of a key, oldest first. Of a change first what it brings comes, then what it takes away
leaves, and then the pairs of each row that has come are looked for, and of each that has left, those of the left side first. The text of a loop holds what
its rules ask for and nothing else, since that is compiled sooner and runs quicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rollup.engine.columns.cores.sides import Moves
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop

PAIR, AGAIN, ALONE = range(3)
"""A pair; one that the other row of it has brought in the same change already; a row without another."""
_SIDES = ("a", "b")
_TEMPLATE = """
def core(
    keys, old_a, codes_a, came_a, tos_a, gone_a, ends_a, old_b, codes_b, came_b, tos_b, gone_b, ends_b,
    one, other, change, sign, kind, owner,
):
    n, room, from_a, begin_a, from_b, begin_b = 0, len(one), 0, 0, 0, 0
{begin}
    for c in range(len(ends_a)):
        to_a, end_a, to_b, end_b = tos_a[c], ends_a[c], tos_b[c], ends_b[c]
{moves}
{come}
{left}
        from_a, begin_a, from_b, begin_b = to_a, end_a, to_b, end_b
    return n
"""
"""The pairs in order, as many as there is room for, and their number."""
_LISTS = """
firsts_{s}, lasts_{s} = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
before_{s}, after_{s} = np.full(len(codes_{s}), -1, np.int64), np.full(len(codes_{s}), -1, np.int64)
left_firsts_{s}, left_lasts_{s} = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
born_{s} = np.full(len(codes_{s}), -1, np.int64)
"""
"""The rows of each key, and the change with which each row came."""
_ENTER = """
k = codes_{s}[{row}]
if k >= 0:
    before_{s}[{row}], after_{s}[{row}] = {lists}lasts_{s}[k], -1
    if {lists}lasts_{s}[k] >= 0:
        after_{s}[{lists}lasts_{s}[k]] = {row}
    else:
        {lists}firsts_{s}[k] = {row}
    {lists}lasts_{s}[k] = {row}
"""
_LEAVE = """
k, earlier, later = codes_{s}[row], before_{s}[row], after_{s}[row]
if k >= 0:
    if earlier >= 0:
        after_{s}[earlier] = later
    else:
        firsts_{s}[k] = later
    if later >= 0:
        before_{s}[later] = earlier
    else:
        lasts_{s}[k] = earlier
"""
_BEFORE = """
stays, left = firsts_{o}[k], left_firsts_{o}[k]
while stays >= 0 or left >= 0:
    gone = stays < 0 or 0 <= left < stays
    p = left if gone else stays
    if gone:
        left = after_{o}[left]
    else:
        stays = after_{o}[stays]
"""
"""The rows of a key that the other side held before the change, in the order in which they came."""
_FORGET = """
for i in range(begin_{s}, end_{s}):
    k = codes_{s}[gone_{s}[i]]
    if k >= 0:
        left_firsts_{s}[k], left_lasts_{s}[k] = -1, -1
"""


@dataclass(frozen=True)
class Rules:
    """What of the pairs is asked for: which sides bring them about, of which each row is in without a partner too; whether
    a pair is `tested` afterwards, and those that are unmade matter.
    """

    moving: tuple[bool, bool]
    whole: tuple[bool, bool]
    tested: bool
    leaving: bool

    @property
    def settled(self) -> bool:
        """Whether the loop knows which rows are alone."""
        return not (self.tested and any(self.whole))


@dataclass(frozen=True)
class Pairs:
    """Pairs in order: the rows of both sides, -1 where there is none; the change that makes (1) or unmakes (-1) each. Where
    it is not settled which rows are alone: what each is, and the place of the first one that the same row has brought with it.
    """

    one: Ints
    other: Ints
    change: Ints
    sign: np.ndarray
    kind: np.ndarray | None = None
    owner: Ints | None = None

    def kept(self, passes: np.ndarray) -> np.ndarray:
        """Which of them there are, of those that pass a test. A row is alone where none of its pairs does."""
        if self.kind is None or self.owner is None:
            return passes
        partnered = np.zeros(len(self.kind), bool)
        partnered[self.owner[passes & (self.kind != ALONE)]] = True
        return np.where(self.kind == ALONE, ~partnered[self.owner], passes & (self.kind == PAIR))

    def at(self, kept: np.ndarray) -> Pairs:
        """Some of them, of which it is settled."""
        return Pairs(self.one[kept], self.other[kept], self.change[kept], self.sign[kept])


def paired(
    keys: int,
    olds: Sequence[int],
    codes: Sequence[Ints],
    moves: Sequence[Moves],
    rules: Rules,
    most: int,
) -> Pairs | None:
    """The pairs of two sides; of each how many `old` rows it has, the `codes` of all rows below `keys`, -1 where they equal
    nothing. `right_first`: where the clock lets rows of both out, those of the right come first. None: they are more than
    `most`.
    """
    given = [keys]
    for old, code, move in zip(olds, codes, moves, strict=True):
        given += [old, code, move.came, move.tos, move.gone, move.ends]
    made = _room(16 * len(moves[0].ends) + 1024, rules)  # what is not written costs nothing
    n = loop(_text(rules))(*given, *made)
    if n > most:
        return None
    if n > len(made[0]):
        made = _room(n, rules)
        loop(_text(rules))(*given, *made)
    one, other, change, sign, kind, owner = (each[:n] for each in made)
    signs = sign if rules.leaving else np.ones(n, np.int8)
    return Pairs(one, other, change, signs) if rules.settled else Pairs(one, other, change, signs, kind, owner)


def _room(pairs: int, rules: Rules) -> list[np.ndarray]:
    unsettled = 0 if rules.settled else pairs
    sizes = (pairs, pairs, pairs, pairs if rules.leaving else 0, unsettled, unsettled)
    return [np.empty(size, np.int8 if place in (3, 4) else np.int64) for place, size in enumerate(sizes)]


@lru_cache(maxsize=64)
def _text(rules: Rules) -> str:
    """The text of the loop."""
    looked = [
        place for place in range(2) if rules.moving[1 - place]
    ]  # a side that brings nothing about looks for nothing
    begin, moves = list[str](), list[str]()
    for place in looked:
        s = _SIDES[place]
        begin += [*_plain(_LISTS, s=s), f"for row in range(old_{s}):", *_in(_plain(_ENTER, s=s, row="row", lists=""))]
        entered = [f"row = came_{s}[i]", f"born_{s}[row] = c", *_plain(_ENTER, s=s, row="row", lists="")]
        moves += [f"for i in range(from_{s}, to_{s}):", *_in(entered)]
    for place in looked:
        s = _SIDES[place]
        out = [f"row = gone_{s}[i]", *_plain(_LEAVE, s=s)]
        out += _plain(_ENTER, s=s, row="row", lists="left_") if rules.leaving else []
        if place == 1 and rules.moving[0]:
            begin, out = [*begin, "over = np.zeros(len(codes_b), np.bool_)"], [*out, "over[row] = True"]
        moves += [f"for i in range(begin_{s}, end_{s}):", *_in(out)]
    come = [line for place in (0, 1) if rules.moving[place] for line in _come(rules, place)]
    return _TEMPLATE.format(
        begin=block(begin, 1), moves=block(moves, 2), come=block(come, 2), left=block(_left(rules), 2)
    )


def _plain(text: str, **names: str) -> list[str]:
    return text.format(**names).strip().splitlines()


def _in(lines: Sequence[str]) -> list[str]:
    """Lines one step further in."""
    return [f"    {line}" for line in lines]


def _put(rules: Rules, one: str, other: str, sign: int, kind: str) -> list[str]:
    """The lines that add a pair."""
    lines = ["one[n], other[n], change[n] = " + f"{one}, {other}, c"]
    lines += [f"sign[n] = {sign}"] if rules.leaving else []
    lines += [] if rules.settled else [f"kind[n], owner[n] = {kind}, first"]
    return ["if n < room:", *_in(lines), "n += 1"]


def _met(rules: Rules, place: int, sign: int, known: str | None) -> list[str]:
    """What is put down of `row` and the row `p` of the other side; `known`: when that has brought the pair about already."""
    pair = ("row", "p") if place == 0 else ("p", "row")
    if rules.settled:
        put = _put(rules, *pair, sign, "")
        put = put if known is None else [f"if not ({known}):", *_in(put)]
    else:
        put = _put(rules, *pair, sign, "0" if known is None else f"1 if {known} else 0")
    return ["lone = False", *put] if rules.whole[place] else put


def _alone(rules: Rules, place: int, sign: int) -> list[str]:
    """The row without a partner, or where that is not settled in any case."""
    if not rules.whole[place]:
        return []
    put = _put(rules, *(("row", "-1") if place == 0 else ("-1", "row")), sign, "2")
    return ["if lone:", *_in(put)] if rules.settled else put


def _come(rules: Rules, place: int) -> list[str]:
    """The pairs of the rows that have come; the left side's come first."""
    s, o = _SIDES[place], _SIDES[1 - place]
    # what has come from the left has found it, unless it had left again by then
    met = _met(rules, place, 1, f"born_{o}[p] == c and not over[row]" if place == 1 and rules.moving[0] else None)
    found = [f"row, first, lone = came_{s}[i], n, True", f"k = codes_{s}[row]", "if k >= 0:"]
    found += _in([f"p = firsts_{o}[k]", "while p >= 0:", *_in([*met, f"p = after_{o}[p]"])])
    return [f"for i in range(from_{s}, to_{s}):", *_in([*found, *_alone(rules, place, 1)])]


def _left(rules: Rules) -> list[str]:
    """The pairs of the rows that have left, with what was there before."""
    if not rules.leaving:
        return []
    lines = [line for place in range(2) for line in _gone(rules, place)]
    lines += [line for s in _SIDES for line in _plain(_FORGET, s=s)]
    return ["if end_a + end_b > begin_a + begin_b:", *_in(lines)]


def _gone(rules: Rules, place: int) -> list[str]:
    """Those of one side with the rows of the other that stay and with those that have left too, the oldest first."""
    s, o = _SIDES[place], _SIDES[1 - place]
    met = _met(rules, place, -1, f"gone and born_{s}[row] != c" if place == 1 else None)
    found = [f"row, first, lone = gone_{s}[i], n, True", f"k = codes_{s}[row]", "if k >= 0:"]
    found += _in([*_plain(_BEFORE, o=o), *_in([f"if born_{o}[p] != c:", *_in(met)])])
    return [f"for i in range(begin_{s}, end_{s}):", *_in([*found, *_alone(rules, place, -1)])]
