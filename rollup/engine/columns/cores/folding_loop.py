"""The loop of aggregates over a window: an arrival enters its group, and what the window lets out leaves its own.

The window says which rows leave:

* none;
* the oldest, when there are more than `size`;
* those older than `span`;
* the oldest with the arrival's mark, when more than `size` rows have it (marks are below the number of rows and groups);
* of more than `size` the one that sorts last by its mark (`late`: of equal ones the newest).

The text of a loop holds what its window does and nothing else, since that compiles sooner and runs faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.loops import block

NEVER, LENGTH, TIME, UNIQUE, KEYED, SORTED = range(6)
_LETS_OUT = (LENGTH, UNIQUE, KEYED, SORTED)
"""The windows that let a row out by an arrival."""
_TEMPLATE = """
{functions}def core(
    old, now, size, span, late, times, codes, marks, alive, {order}{given}rows, {slots}at, event, group, sign, {results}
):
    n, head, total = 0, 0, len(codes)
{begin}
{prologue}
{loop}
    return n, head
"""
_BEGIN = {
    TIME: "stamp, seen = 0, np.zeros(len(rows), np.int64)",
    UNIQUE: "place = np.full(total + 1, -1, np.int64)",
    KEYED: """
room = max(total, len(rows)) + 1
front, back, held = np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(room, np.int64)
follows = np.zeros(total + 1, np.int64)
""",
}
_LOOP = {
    NEVER: "for i in range(old, total):",
    LENGTH: "for i in range(old, total):",
    TIME: "for i in range(old, total + 1):",
    UNIQUE: "for i in range(total):",
    KEYED: "for i in range(total):",
    SORTED: "for i in range(old, total):",  # the rows held are in order already
}
_OUT = {
    LENGTH: """
out = -1
if i - head + 1 > size:
    out = head
    head += 1
""",
    UNIQUE: """
out = place[marks[i]]
place[marks[i]] = i
if i < old:
    continue
""",
    KEYED: """
out, m = -1, marks[i]
if held[m] == 0:
    front[m] = i
else:
    follows[back[m]] = i
back[m] = i
held[m] += 1
if held[m] > size:
    out = front[m]
    front[m] = follows[out]
    held[m] -= 1
if i < old:
    continue
""",
    SORTED: """
out, first, last = -1, 0, held
if held > 0 and (marks[place[held - 1]] < marks[i] or (late and marks[place[held - 1]] == marks[i])):
    first = held
while first < last:
    middle = (first + last) // 2
    if marks[place[middle]] < marks[i] or (late and marks[place[middle]] == marks[i]):
        first = middle + 1
    else:
        last = middle
for j in range(held, first, -1):
    place[j] = place[j - 1]
place[first] = i
held += 1
if held > size:
    held -= 1
    out = place[held]
""",
}


@dataclass(frozen=True)
class Shape:
    """What a loop does beside its calls.

    * `window`: the kind of the window.
    * `keyed`: there are groups, which are removed when they are empty.
    * `by_group`: each touched group is a row.
    * `both`: its value before is a remove row.
    """

    window: int
    keyed: bool
    by_group: bool
    both: bool = False

    @property
    def lets_others_out(self) -> bool:
        """Whether an arrival can touch a second group."""
        return self.window in _LETS_OUT and self.keyed and self.by_group


def text(lines: Lines, shape: Shape) -> str:
    """The text of the loop of some calls."""
    body = [*_expired(lines, shape), *_plain(_OUT.get(shape.window, "")), *_event(lines, shape)]
    return _TEMPLATE.format(
        begin=block(_plain(_BEGIN.get(shape.window, "")), 1),
        order="place, held, " if shape.window == SORTED else "",
        prologue=block(lines.prologue(), 1),
        loop=block([_LOOP[shape.window], *_in(body)], 1),
        functions=lines.functions,
        **lines.names,
    )


def _plain(text: str) -> list[str]:
    return text.strip().splitlines()


def _in(lines: Sequence[str]) -> list[str]:
    """Lines one step further in."""
    return [f"    {line}" for line in lines]


def _row(lines: Lines, row: str, at: str, event: str, sign: int | None = None) -> list[str]:
    """The values of group `k` as a row of the results."""
    signed = [] if sign is None else [f"sign[{row}] = {sign}"]
    return [f"at[{row}], event[{row}], group[{row}] = {at}, {event}, k", *signed, *lines.value(row)]


def _made(lines: Lines, at: str, event: str) -> list[str]:
    """The values of group `k` as the next row."""
    return [*_row(lines, "n", at, event), "n += 1"]


def _expired(lines: Lines, shape: Shape) -> list[str]:
    """What time lets out before the arrival `i`, or by the end."""
    if shape.window != TIME:
        return []
    begin = ["instant, last = times[head], head", "while last < i and times[last] == instant:", "    last += 1"]
    before = [
        *("more = n", *_touched(["more += 1"]), "p = more"),
        *_touched([*_row(lines, "p", "instant + span", "-1", -1), "p += 1"]),
    ]
    leave = ["for j in range(head, last):", *_in(["k = codes[j]", "rows[k] -= 1", *lines.change("leave", "j")])]
    after = [*_touched(_made(lines, "instant + span", "-1"))]
    forget = ["for j in range(head, last):", "    k = codes[j]", "    if rows[k] == 0:", *_in(_in(lines.forget()))]
    step = [
        *begin,
        *(before if shape.both else ()),
        *leave,
        *(after if shape.by_group else ()),
    ]
    step += ["n = p"] if shape.both else []
    step += forget if shape.keyed and lines.forget() else []
    return [
        "t = times[i] if i < total else now",
        "while head < i and times[head] + span <= t:",
        *_in([*step, "head = last"]),
        "if i == total:",
        "    break",
    ]


def _touched(lines: Sequence[str]) -> list[str]:
    """Lines for each group that has rows among those that leave together."""
    once = ["k = codes[j]", "if seen[k] != stamp:", "    seen[k] = stamp", *_in(lines)]
    return ["stamp += 1", "for j in range(head, last):", *_in(once)]


def _event(lines: Lines, shape: Shape) -> list[str]:
    """The arrival `i` enters, `out` leaves, and what they touch is a row each."""
    leaves = shape.window in _LETS_OUT
    made = ["t = times[i]", "k = codes[i]"]
    made += ["gone = codes[out] if out >= 0 else k"] if leaves else []
    made += _before(lines, shape) if shape.both else []
    made += ["rows[k] += 1", *lines.change("enter", "i")]
    if leaves:
        left = ["alive[out] = False", "k = gone", "rows[k] -= 1", *lines.change("leave", "out"), "k = codes[i]"]
        made += ["if out >= 0:", *_in(left)]
    made += _made(lines, "t", "i - old")
    if shape.lets_others_out:
        made += ["if gone != k:", *_in(["k = gone", *_made(lines, "t", "i - old")])]
    made += ["n = p"] if shape.both else []
    if leaves and shape.keyed and lines.forget():
        made += ["if out >= 0 and rows[gone] == 0:", *_in(["k = gone", *lines.forget()])]
    return made


def _before(lines: Lines, shape: Shape) -> list[str]:
    """What the touched groups are before the arrival, behind the rows of what they will be."""
    first = [*_row(lines, "p", "t", "i - old", -1), "p += 1"]
    if not shape.lets_others_out:
        return ["p = n + 1", *first]
    other = ["if gone != k:", *_in(["k = gone", *first, "k = codes[i]"])]
    return ["p = n + (1 if gone == k else 2)", *first, *other]
