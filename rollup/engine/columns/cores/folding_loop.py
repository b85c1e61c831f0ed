"""The loop of aggregates over a window: an arrival enters its group, and what the window lets out leaves its own.

`window` says who leaves: nobody; the oldest, when there are more than `size`; what is older than `span`; the row that has
the arrival's mark; of more than `size` the one that sorts last by its mark (`late`: of equal ones the newest).
"""

from __future__ import annotations

from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.loops import block

NEVER, LENGTH, TIME, UNIQUE, SORTED = range(5)
_TEMPLATE = """
def core(
    old, now, size, span, window, late, by_group, forgets, times, codes, marks, alive, {given}rows, {slots}at, event, group,
    {results}
):
    n, head, stamp, total = 0, 0, 0, len(codes)
    seen = np.zeros(len(rows), np.int64)
    place = np.full(total + 1 if window == 3 else size + 2 if window == 4 else 1, -1, np.int64)
    held = 0
{prologue}
    for i in range(0 if window > 2 else old, total + 1):
        t = times[i] if i < total else now
        while window == 2 and head < i and times[head] + span <= t:
            instant, last, stamp = times[head], head, stamp + 1
            while last < i and times[last] == instant:
                k = codes[last]
                rows[k] -= 1
{leave_last}
                last += 1
            for j in range(head, last):
                k = codes[j]
                if by_group and seen[k] != stamp:
                    seen[k] = stamp
                    at[n], event[n], group[n] = instant + span, -1, k
{value_5}
                    n += 1
            for j in range(head, last):
                k = codes[j]
                if forgets and rows[k] == 0:
{forget_5}
            head = last
        if i == total:
            break
        out = -1
        if window == 1 and i - head + 1 > size:
            out = head
            head += 1
        elif window == 3:
            out = place[marks[i]]
            place[marks[i]] = i
        elif window == 4:
            first, last = 0, held
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
        if i < old:
            continue
        k = codes[i]
        rows[k] += 1
{enter}
        gone = -1
        if out >= 0:
            gone = codes[out]
            alive[out] = False
            k = gone
            rows[k] -= 1
{leave_out}
        k = codes[i]
        at[n], event[n], group[n] = t, i - old, k
{value_2}
        n += 1
        if gone >= 0:
            k = gone
            if by_group and k != codes[i]:
                at[n], event[n], group[n] = t, i - old, k
{value_4}
                n += 1
            if forgets and rows[k] == 0:
{forget_4}
    return n, head
"""


def text(lines: Lines) -> str:
    """The text of the loop of some calls."""
    return _TEMPLATE.format(
        prologue=block(lines.prologue(), 1),
        leave_last=block(lines.change("leave", "last"), 4),
        leave_out=block(lines.change("leave", "out"), 3),
        enter=block(lines.change("enter", "i"), 2),
        value_2=block(lines.value(), 2),
        value_4=block(lines.value(), 4),
        value_5=block(lines.value(), 5),
        forget_4=block(lines.forget(), 4),
        forget_5=block(lines.forget(), 5),
        **lines.names,
    )
