"""The loop of windows that let rows out in any order: over the arrivals, which rows come with each change and which leave.

A window is a part of the loop, several are parts of an intersection or a union. Part `{p}` is told of the arrival `i` at
`t`, puts what it lets out behind `leaving`, and knows of a row whether it still is in the part: `kept` has a bit for each.
The rows that the window held before arrive again first, and nothing leaves then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollup.engine.columns.loops import block
from rollup.engine.expressions import Expr

NEVER = 2**63 - 1
"""The instant at which a window is due that no clock moves."""
_TEMPLATE = """
def core(old, now, since, times, inside, {given}kept, entering, leaving, at, event, come, gone):
    total, n, e, l, due = len(times), 0, 0, 0, {never}
{begin}
    for i in range(total + 1):
{clock}
        if i == total:
            break
        t, first, begin, taken = times[i], l, e, True
{enter}
        if i < old:
            continue
        if taken:
            entering[e], e = i, e + 1
        if e > begin or l > first:
            at[n], event[n], come[n], gone[n], n = t, i - old, e, l, n + 1
    return n, e, l, due
"""
_CLOCK = """
while i >= old:
    due = {never}
{due}
    if due > (times[i] if i < total else now):
        break
    due, first, begin = max(due, since), l, e
{fire}
    if e > begin or l > first:
        at[n], event[n], come[n], gone[n], n = due, -1, e, l, n + 1
"""


@dataclass(frozen=True)
class Lines:
    """What a window does: at the `begin`; when a row comes (`enter`); when another part has taken `row` out (`remove`); when it
    is `due`; and what it lets out then (`fire`). `before`: what stands before the loop.

    `refuses`: it may not take a row in. `alone`: it is no part of several. `batches`: rows come when a batch is complete.
    """

    begin: str = ""
    enter: str = ""
    remove: str = ""
    due: str = ""
    fire: str = ""
    refuses: bool = False
    before: str = ""
    alone: bool = False
    batches: bool = False


@dataclass(frozen=True)
class Part:
    """A window: its lines, their numbers by name, and what they tell rows apart by: equal `keys` (`mark`, numbers below
    `room`), an order (`rank`, rows of numbers; `placed`, the `held` rows that are in order).
    """

    lines: Lines
    numbers: tuple[tuple[str, int], ...] = ()
    keys: tuple[Expr, ...] = ()
    by: tuple[Expr, ...] = ()
    descending: tuple[bool, ...] = ()

    @property
    def late(self) -> bool:
        """Whether of rows that are equal in order the newest is the last."""
        return bool(dict(self.numbers).get("late"))

    @property
    def placed(self) -> bool:
        """Whether it is told of the order in which its rows are."""
        return bool(self.by)

    @property
    def names(self) -> list[str]:
        """The parameters of the loop that are of this part."""
        return [
            *(name for name, _ in self.numbers),
            *(["mark", "room"] if self.keys else []),
            *(["rank"] if self.by else []),
            *(["placed", "held"] if self.placed else []),
        ]


@dataclass(frozen=True)
class Parts:
    """Windows of which a row must be in `all`, or in `any`, to be in the window."""

    parts: tuple[Part, ...]

    @property
    def bits(self) -> int:
        """What `kept` has of a row that is in each part; of several, all of which must have it, a further bit for the whole."""
        return (1 << len(self.parts) + 1) - 1

    @property
    def timed(self) -> bool:
        """Whether the clock lets rows out."""
        return any(part.lines.due for part in self.parts)

    @property
    def batches(self) -> bool:
        """Whether rows come when a batch is complete."""
        return any(part.lines.batches for part in self.parts)

    @property
    def before(self) -> str:
        """What stands before the loop."""
        return "".join(dict.fromkeys(part.lines.before for part in self.parts))

    def text(self) -> str:
        """The text of the loop."""
        lines = [part.lines for part in self.parts]
        names = [f"{name}{p}" for p, part in enumerate(self.parts) for name in part.names]
        return _TEMPLATE.format(
            given="".join(f"{name}, " for name in names),
            never=NEVER,
            begin=block(
                [
                    *(f"bit{p}, others{p} = {1 << p}, {self.bits ^ 1 << p}" for p in range(len(lines))),
                    *self._of("begin"),
                ],
                1,
            ),
            clock=block(self._clock() if self.timed else [], 2),
            enter=block([*self._each("enter"), *self._settled(True)], 2),
        )

    def _of(self, what: str) -> list[str]:
        """The lines of all parts, one part after the other."""
        return [line for p in range(len(self.parts)) for line in self._lines(p, what)]

    def _lines(self, p: int, what: str) -> list[str]:
        return getattr(self.parts[p].lines, what).strip().format(p=p).splitlines()

    def _clock(self) -> list[str]:
        fire = [*self._each("fire"), *self._settled(False)]
        text = _CLOCK.format(never=NEVER, due=block(self._of("due"), 1), fire=block(fire, 1))
        return text.strip().splitlines()

    def _each(self, what: str) -> list[str]:
        """The lines of all parts, with where in `leaving` those of each end; of a union only for rows that the part has."""
        found = list[str]()
        for p in range(len(self.parts)):
            lines = self._lines(p, what)
            found += lines
            found += [f"end{p} = l"] if len(self.parts) > 1 else []
        return found

    def _settled(self, arrival: bool) -> list[str]:
        """The rows that parts have let out from `first` on: those that leave the window stay in `leaving`."""
        refused = arrival and any(part.lines.refuses for part in self.parts)
        if len(self.parts) == 1:
            left = ["for j in range(first, l):", "    kept[leaving[j]] = 0"]
            return [*left, *(["if not taken:", "    kept[i] = 0"] if refused else [])]
        taken_out = [*self._taken_out(), "kept[row] = 0"]
        return [
            *(
                line
                for p in range(len(self.parts))
                for line in [self._let_out(p), f"    kept[leaving[j]] &= others{p}"]
            ),
            *(["if not taken:", "    row = i", *_in(taken_out)] if refused else []),
            "m = first",
            "for j in range(first, l):",
            "    row = leaving[j]",
            f"    if kept[row] & {1 << len(self.parts)}:",
            *_in(_in([*taken_out, "leaving[m], m = row, m + 1"])),
            "l = m",
        ]

    def _let_out(self, p: int) -> str:
        return f"for j in range({'first' if p == 0 else f'end{p - 1}'}, end{p}):"

    def _taken_out(self) -> list[str]:
        """`row` leaves the parts that it is still in."""
        found = list[str]()
        for p in range(len(self.parts)):
            lines = self._lines(p, "remove")
            found += [f"if kept[row] & bit{p}:", *_in(lines)] if lines else []
        return found


def _in(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
