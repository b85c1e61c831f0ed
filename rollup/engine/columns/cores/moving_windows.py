"""Windows that let rows out in any order, as lines of one loop over the arrivals: which rows come with each change, and
which leave.

A window is a part of the loop, several are parts of an intersection or a union. Part `{p}` is told of the arrival `i` at
`t`, puts what it lets out behind `leaving`, and knows of a row whether it still is in the part: `kept` has a bit for each.
The rows that the window held before arrive again first, and nothing leaves then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollup.engine.columns.loops import block
from rollup.engine.expressions import Expr
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Ranked, Sorted
from rollup.engine.rows.windows.timed import Time

NEVER = 2**63 - 1
"""The instant at which a window is due that no clock moves."""
_TEMPLATE = """
{functions}def core(old, now, since, times, {given}kept, entering, leaving, at, event, come, gone):
    total, n, e, l, due = len(times), 0, 0, 0, {never}
{begin}
    for i in range(total + 1):
{clock}
        if i == total:
            break
        t, first, taken = times[i], l, True
{enter}
        if i < old:
            continue
        if taken:
            entering[e], e = i, e + 1
        if taken or l > first:
            at[n], event[n], come[n], gone[n], n = t, i - old, e, l, n + 1
    return n, e, l, due
"""
_CLOCK = """
while i >= old:
    due = {never}
{due}
    if due > (times[i] if i < total else now):
        break
    due, first = max(due, since), l
{fire}
    if l > first:
        at[n], event[n], come[n], gone[n], n = due, -1, e, l, n + 1
"""
_PLACING = '''def put(placed, held, rank, i, late):
    """A row among those that are in order; of equal ones it is the first, or the last if `late`."""
    first, last = 0, held
    if held > 0 and (rank[placed[held - 1]] < rank[i] or (late and rank[placed[held - 1]] == rank[i])):
        first = held
    while first < last:
        middle = (first + last) // 2
        if rank[placed[middle]] < rank[i] or (late and rank[placed[middle]] == rank[i]):
            first = middle + 1
        else:
            last = middle
    for j in range(held, first, -1):
        placed[j] = placed[j - 1]
    placed[first] = i


@compiled
def drop(placed, held, row):
    """One of them leaves."""
    j = 0
    while placed[j] != row:
        j += 1
    for k in range(j, held - 1):
        placed[k] = placed[k + 1]


@compiled
'''


@dataclass(frozen=True)
class Lines:
    """What a window does: at the `begin`; when a row comes (`enter`); when another part has taken `row` out (`remove`); when it
    is `due`; and what it lets out then (`fire`). `refuses`: it may not take a row in.
    """

    begin: str = ""
    enter: str = ""
    remove: str = ""
    due: str = ""
    fire: str = ""
    refuses: bool = False
    functions: str = ""


_ALL = Lines()
_LENGTH = Lines(
    begin="head{p}, held{p} = 0, 0",
    enter="""
held{p} += 1
if held{p} > size{p}:
    while not kept[head{p}] & bit{p}:
        head{p} += 1
    leaving[l], l = head{p}, l + 1
    head{p}, held{p} = head{p} + 1, held{p} - 1
""",
    remove="held{p} -= 1",
)
_TIME = Lines(
    begin="head{p} = 0",
    due="""
while head{p} < i and not kept[head{p}] & bit{p}:
    head{p} += 1
if head{p} < i:
    due = min(due, times[head{p}] + span{p})
""",
    fire="""
while head{p} < i and times[head{p}] + span{p} <= due:
    if kept[head{p}] & bit{p}:
        leaving[l], l = head{p}, l + 1
    head{p} += 1
""",
)
_UNIQUE = Lines(
    begin="place{p} = np.full(total + 1, -1, np.int64)",
    enter="""
known = place{p}[mark{p}[i]]
if known >= 0 and kept[known] & bit{p}:
    leaving[l], l = known, l + 1
place{p}[mark{p}[i]] = i
""",
)
_FIRST = Lines(
    begin=_UNIQUE.begin,
    enter="""
known = place{p}[mark{p}[i]]
if known >= 0 and kept[known] & bit{p}:
    taken, kept[i] = False, kept[i] & ~bit{p}
else:
    place{p}[mark{p}[i]] = i
""",
    refuses=True,
)
_KEYED = Lines(
    begin="""
front{p}, back{p}, held{p} = np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64), np.zeros(total + 1, np.int64)
follows{p} = np.zeros(total + 1, np.int64)
""",
    enter="""
m = mark{p}[i]
if held{p}[m] == 0:
    front{p}[m] = i
else:
    follows{p}[back{p}[m]] = i
back{p}[m] = i
held{p}[m] += 1
if held{p}[m] > size{p}:
    row = front{p}[m]
    while not kept[row] & bit{p}:
        row = follows{p}[row]
    leaving[l], l = row, l + 1
    front{p}[m] = follows{p}[row]
    held{p}[m] -= 1
""",
    remove="held{p}[mark{p}[row]] -= 1",
)
_SORTED = Lines(
    begin="held{p}, placed{p} = 0, np.full(min(size{p}, total) + 2, -1, np.int64)",
    enter="""
put(placed{p}, held{p}, rank{p}, i, late{p})
held{p} += 1
if held{p} > size{p}:
    held{p} -= 1
    leaving[l], l = placed{p}[held{p}], l + 1
""",
    remove="""
drop(placed{p}, held{p}, row)
held{p} -= 1
""",
    functions=_PLACING,
)
_RANKED = Lines(
    begin=f"{_SORTED.begin}\n{_UNIQUE.begin}",
    enter=f"""
known = place{{p}}[mark{{p}}[i]]
if known >= 0 and kept[known] & bit{{p}}:
    drop(placed{{p}}, held{{p}}, known)
    held{{p}} -= 1
    leaving[l], l = known, l + 1
place{{p}}[mark{{p}}[i]] = i
{_SORTED.enter.strip()}
""",
    remove=_SORTED.remove,
    functions=_PLACING,
)


@dataclass(frozen=True)
class Part:
    """A window: its lines, their numbers by name, and what they tell rows apart by: equal `keys` (`mark`), an order (`rank`)."""

    lines: Lines
    numbers: tuple[tuple[str, int], ...] = ()
    keys: tuple[Expr, ...] = ()
    by: tuple[Expr, ...] = ()
    descending: tuple[bool, ...] = ()

    @property
    def names(self) -> list[str]:
        """The parameters of the loop that are of this part."""
        return [*(name for name, _ in self.numbers), *(["mark"] if self.keys else []), *(["rank"] if self.by else [])]


def _grouped(window: Grouped) -> Part | None:
    match window.inner:
        case Length(size):
            return Part(_KEYED, (("size", size),), window.key)
        case Unique(key, first):
            return Part(_FIRST if first else _UNIQUE, (), (*window.key, *key))
        case _:
            return None


def _sorted(window: Sorted) -> Part:
    numbers = (("size", window.size), ("late", int(window.ties == "newest")))
    return Part(_SORTED, numbers, (), window.by, window.descending)


_PARTS: dict[type, Callable[[Any], Part | None]] = {
    KeepAll: lambda _: Part(_ALL),
    Length: lambda window: Part(_LENGTH, (("size", window.size),)),
    Time: lambda window: None if window.size is not None else Part(_TIME, (("span", window.span),)),
    Unique: lambda window: Part(_FIRST if window.first else _UNIQUE, (), window.key),
    Grouped: _grouped,
    Sorted: _sorted,
    Ranked: lambda window: Part(
        _RANKED, (("size", window.size), ("late", 0)), window.key, window.by, window.descending
    ),
}
Together = Literal["all", "any"]


@dataclass(frozen=True)
class Parts:
    """Windows of which a row must be in `all`, or in `any`, to be in the window."""

    parts: tuple[Part, ...]
    together: Together = "all"

    @property
    def bits(self) -> int:
        """What `kept` has of a row that is in each part; of several, all of which must have it, a further bit for the whole."""
        return (1 << len(self.parts) + (self.together == "all")) - 1

    @property
    def timed(self) -> bool:
        """Whether the clock lets rows out."""
        return any(part.lines.due for part in self.parts)

    def text(self) -> str:
        """The text of the loop."""
        lines = [part.lines for part in self.parts]
        names = [f"{name}{p}" for p, part in enumerate(self.parts) for name in part.names]
        return _TEMPLATE.format(
            functions=next((each.functions for each in lines if each.functions), ""),
            given="".join(f"{name}, " for name in names),
            never=NEVER,
            begin=block([*(f"bit{p} = {1 << p}" for p in range(len(lines))), *self._of("begin")], 1),
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
            guarded = self.together == "any" and what == "enter" and lines
            found += [f"if kept[i] & bit{p}:", *_in(lines)] if guarded else lines
            found += [f"end{p} = l"] if len(self.parts) > 1 else []
        return found

    def _settled(self, arrival: bool) -> list[str]:
        """The rows that parts have let out from `first` on: those that leave the window stay in `leaving`."""
        refused = arrival and any(part.lines.refuses for part in self.parts)
        if len(self.parts) == 1:
            left = ["for j in range(first, l):", "    kept[leaving[j]] = 0"]
            return [*left, *(["if not taken:", "    kept[i] = 0"] if refused else [])]
        if self.together == "any":
            return self._left_by_all()
        taken_out = [*self._taken_out(), "kept[row] = 0"]
        return [
            *(line for p in range(len(self.parts)) for line in [self._let_out(p), f"    kept[leaving[j]] &= ~bit{p}"]),
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

    def _left_by_all(self) -> list[str]:
        found = ["m = first"]
        for p in range(len(self.parts)):
            left = ["if kept[row] == 0:", "    leaving[m], m = row, m + 1"]
            found += [self._let_out(p), "    row = leaving[j]", f"    kept[row] &= ~bit{p}", *_in(left)]
        return [*found, "l = m"]


def _in(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def parts_of(window: WindowSpec | None) -> Parts | None:
    """The parts of a window; None for a window that is no such loop, or lets its rows out in order."""
    match window:
        case Length() | Time() | KeepAll():
            return None
        case Intersection(inner) | Union(inner):
            found = [_part(each) for each in inner]
        case _:
            found = [_part(window)]
    parts = tuple(part for part in found if part is not None)
    if len(parts) != len(found):
        return None
    if not isinstance(window, Union):
        return Parts(parts)
    return None if any(part.lines.refuses for part in parts) else Parts(parts, "any")


def _part(window: WindowSpec | None) -> Part | None:
    known = _PARTS.get(type(window))
    return None if known is None else known(window)
