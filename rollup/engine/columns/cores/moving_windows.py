"""Windows that let rows out in any order: the lines of each as a part of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollup.engine.columns.cores.moving_loop import Lines, Part, Parts
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection
from rollup.engine.rows.windows.counted import KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Ranked, Sorted
from rollup.engine.rows.windows.timed import Time

_PLACING = '''@compiled
def before(rank, row, other, late):
    """Whether a row stands before another that has come later: it is less by the first number that differs, or all are equal."""
    for place in range(rank.shape[1]):
        if rank[row, place] != rank[other, place]:
            return rank[row, place] < rank[other, place]
    return late


@compiled
def put(placed, held, rank, i, late):
    """An arrival among those that are in order; of equal ones it is the first, or the last if `late`."""
    first, last = 0, held
    if held > 0 and before(rank, placed[held - 1], i, late):
        first = held
    while first < last:
        middle = (first + last) // 2
        if before(rank, placed[middle], i, late):
            first = middle + 1
        else:
            last = middle
    for j in range(held, first, -1):
        placed[j] = placed[j - 1]
    placed[first] = i


@compiled
def drop(placed, held, rank, row, late):
    """One of them leaves."""
    first, last = 0, held
    while first < last:
        middle = (first + last) // 2
        other = placed[middle]
        if other != row and before(rank, other, row, (other < row) == late):
            first = middle + 1
        else:
            last = middle
    for j in range(first, held - 1):
        placed[j] = placed[j + 1]


'''


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
    begin="place{p} = np.full(room{p}, -1, np.int64)",
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
    taken, kept[i] = False, kept[i] & others{p}
else:
    place{p}[mark{p}[i]] = i
""",
    refuses=True,
)
_LINES = """
front{p}, back{p}, held{p} = np.zeros(room{p}, np.int64), np.zeros(room{p}, np.int64), np.zeros(room{p}, np.int64)
follows{p} = np.zeros(total + 1, np.int64)
"""
"""A line of rows for each key."""
_LAST = """
if held{p}[m] == 0:
    front{p}[m] = i
else:
    follows{p}[back{p}[m]] = i
back{p}[m] = i
held{p}[m] += 1
"""
"""The arrival is the last in the line of its key, `m`."""
_KEYED = Lines(
    begin=_LINES,
    enter="m = mark{p}[i]"
    + _LAST
    + """if held{p}[m] > size{p}:
    row = front{p}[m]
    while not kept[row] & bit{p}:
        row = follows{p}[row]
    leaving[l], l = row, l + 1
    front{p}[m] = follows{p}[row]
    held{p}[m] -= 1
""",
    remove="held{p}[mark{p}[row]] -= 1",
)
_SORTED = Lines(  # the rows held are in order already
    enter="""
if i >= old:
    put(placed{p}, held{p}, rank{p}, i, late{p})
    held{p} += 1
if held{p} > size{p}:
    held{p} -= 1
    leaving[l], l = placed{p}[held{p}], l + 1
""",
    remove="""
drop(placed{p}, held{p}, rank{p}, row, late{p})
held{p} -= 1
""",
    before=_PLACING,
)
_RANKED = Lines(
    begin=_UNIQUE.begin,
    enter=f"""
known = place{{p}}[mark{{p}}[i]]
if known >= 0 and kept[known] & bit{{p}}:
    drop(placed{{p}}, held{{p}}, rank{{p}}, known, late{{p}})
    held{{p}} -= 1
    leaving[l], l = known, l + 1
place{{p}}[mark{{p}}[i]] = i
{_SORTED.enter.strip()}
""",
    remove=_SORTED.remove,
    before=_PLACING,
)
_BATCHES_BY_KEY = Lines(
    begin=_LINES
    + """last{p}, ends{p}, gone{p} = np.zeros(room{p}, np.int64), np.zeros(room{p}, np.int64), np.zeros(room{p}, np.int64)
""",
    enter="""
m = mark{p}[i]
if i < inside:
    if gone{p}[m] == 0:
        last{p}[m] = i
    else:
        follows{p}[ends{p}[m]] = i
    ends{p}[m] = i
    gone{p}[m] += 1
    continue
taken = False"""
    + _LAST
    + """if held{p}[m] == size{p}:
    row = last{p}[m]
    for _ in range(gone{p}[m]):
        leaving[l], l, row = row, l + 1, follows{p}[row]
    row = front{p}[m]
    for _ in range(size{p}):
        entering[e], e, row = row, e + 1, follows{p}[row]
    last{p}[m], ends{p}[m], gone{p}[m], held{p}[m] = front{p}[m], back{p}[m], size{p}, 0
""",
    alone=True,
    batches=True,
)
"""The rows of the last batch of each key have come, `inside` in all; the others wait."""


def _grouped(window: Grouped) -> Part | None:
    match window.inner:
        case Length(size):
            return Part(_KEYED, (("size", size),), window.key)
        case LengthBatch(size, early=False):
            return Part(_BATCHES_BY_KEY, (("size", size),), window.key)
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


def parts_of(window: WindowSpec | None) -> Parts | None:
    """The parts of a window; None for a window that is no such loop, or lets its rows out in order."""
    match window:
        case Length() | Time() | KeepAll():
            return None
        case Intersection(inner):
            found = [_part(each) for each in inner]
        case _:
            found = [_part(window)]
    parts = tuple(part for part in found if part is not None)
    if len(parts) != len(found) or (len(parts) > 1 and any(part.lines.alone for part in parts)):
        return None
    return Parts(parts)


def _part(window: WindowSpec | None) -> Part | None:
    known = _PARTS.get(type(window))
    return None if known is None else known(window)
