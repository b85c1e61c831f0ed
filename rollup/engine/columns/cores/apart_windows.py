"""The windows of partitions, each apart from those of the others: the lines of those that only such a loop has.

Of batches the rows of the last one stand from `last` on, those that wait from `wait` on. An instant of `NEVER` is none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rollup.engine.columns.cores.conditions import condition_of
from rollup.engine.columns.cores.moving_loop import NEVER, Lines, Part, Parts
from rollup.engine.columns.cores.moving_windows import parts_alone, parts_of
from rollup.engine.columns.cores.queueable import may_hold
from rollup.engine.expressions import Expr
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed, ExpressedBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.timed import FirstTime, Time, TimeAccumulating, TimeBatch, TimeLengthBatch


def _let_out(end: str) -> str:
    """What waits before a row comes, and the last batch leaves."""
    return f"""
for j in range(last{{p}}, wait{{p}}):
    leaving[l], l = j, l + 1
for j in range(wait{{p}}, {end}):
    entering[e], e = j, e + 1
last{{p}}, wait{{p}} = wait{{p}}, {end}"""


def _edge(at: str) -> str:
    """The first edge of the raster after an instant."""
    return f"note{{p}}[0] + (({at} - note{{p}}[0]) // span{{p}} + 1) * span{{p}}"


def _in(text: str, depth: int = 1) -> str:
    return text.replace("\n", "\n" + "    " * depth)


_BATCHES = "last{p}, wait{p} = 0, inside"
_WAITS = """
if i >= old:
    taken = False"""
_LENGTH = Lines(
    begin=_BATCHES,
    enter=_WAITS
    + """
    if i + 1 - wait{p} == size{p}:"""
    + _in(_let_out("i + 1"), 2),
    batches=True,
)
_FIRST = Lines(
    begin="held{p} = 0",
    enter="""
if held{p} >= size{p}:
    taken, kept[i] = False, kept[i] & others{p}
else:
    held{p} += 1
""",
    refuses=True,
)
_FIRST_IN_TIME = Lines(
    enter="""
if i >= old and t >= note{p}[0]:
    taken, kept[i] = False, kept[i] & others{p}
""",
    notes=(NEVER,),
    refuses=True,
)
"""It notes until when rows come in."""
_ACCUMULATING = Lines(
    begin="head{p} = 0",
    due="""
if head{p} < i:
    due = min(due, times[i - 1] + span{p})
""",
    fire="""
while head{p} < i:
    leaving[l], l = head{p}, l + 1
    head{p} += 1
""",
)
_TIME = Lines(
    begin=_BATCHES,
    enter=_WAITS
    + f"""
    if note{{p}}[0] == {NEVER}:
        note{{p}}[0] = t
    if note{{p}}[1] == {NEVER}:
        note{{p}}[1] = {_edge("t")}
""",
    due="due = min(due, note{p}[1])",
    fire=f"note{{p}}[1] = {_edge('due')} if i > wait{{p}} else {NEVER}{_let_out('i')}",
    notes=(NEVER, NEVER),
    batches=True,
)
"""It notes where the raster begins, and when a batch is due."""
_TIME_OR_LENGTH = Lines(
    begin=_BATCHES,
    enter=_WAITS
    + f"""
    if i + 1 - wait{{p}} >= size{{p}}:{_in(_let_out("i + 1"), 2)}
        note{{p}}[0] = t + span{{p}}
    elif note{{p}}[0] == {NEVER}:
        note{{p}}[0] = t + span{{p}}
""",
    due="due = min(due, note{p}[0])",
    fire=f"note{{p}}[0] = due + span{{p}} if i > last{{p}} else {NEVER}{_let_out('i')}",
    notes=(NEVER,),
    batches=True,
)
_EXTERNAL = Lines(
    begin="head{p}, least{p} = 0, -(2**63) + span{p}",
    enter="""
if i >= old:
    while head{p} <= i and stamps{p}[i] >= least{p} and stamps{p}[head{p}] <= stamps{p}[i] - span{p}:
        leaving[l], l = head{p}, l + 1
        head{p} += 1
""",
)
_EXTERNAL_BATCHES = Lines(
    begin=_BATCHES,
    enter=_WAITS
    + f"""
    stamp = stamps{{p}}[i]
    if note{{p}}[2] and stamp > note{{p}}[1]:{_in(_let_out("i"), 2)}
        note{{p}}[2] = 0
    if not note{{p}}[2]:
        if note{{p}}[0] < 0:
            note{{p}}[0] = stamp % span{{p}}
        step = span{{p}} - (stamp % span{{p}} - note{{p}}[0]) % span{{p}} - 1
        note{{p}}[1] = stamp + step if stamp <= {NEVER} - 1 - step else {NEVER}
        note{{p}}[2] = 1
""",
    notes=(-1, 0, 0),
    batches=True,
)
"""It notes where the raster begins, less whole spans; the last time of the batch; and whether that has begun."""


def _alone(lines: Lines, **more: Any) -> Part:
    """The part of a window that is none of several."""
    names = ("span", "size")
    numbers = tuple((name, more[name]) for name in names if name in more)
    return Part(lines, numbers, time=more.get("time"))


def _time_batch(window: TimeBatch) -> Part:
    part = _alone(_TIME, span=window.span)
    return part if window.origin is None else _beginning(part, window.origin)


def _external_batch(window: ExternalTimeBatch) -> Part | None:
    if isinstance(window.origin, Expr):
        return None
    part = _alone(_EXTERNAL_BATCHES, span=window.span, time=window.time)
    return part if window.origin is None else _beginning(part, window.origin % window.span)


def _beginning(part: Part, origin: int) -> Part:
    """The same with a raster that begins there."""
    return replace(part, lines=replace(part.lines, notes=(origin, *part.lines.notes[1:])))


def _by_condition(window: Expressed | ExpressedBatch) -> Part | None:
    condition = condition_of(window)
    if condition is None or condition.looks_across:
        return None
    lines = Lines("\n".join(condition.begin), "\n".join(condition.enter), alone=True, batches=condition.batches)
    return Part(lines, condition=condition)


_PARTS: dict[type, Callable[[Any], Part | None]] = {
    LengthBatch: lambda window: _alone(_LENGTH, size=window.size),
    FirstLength: lambda window: _alone(_FIRST, size=window.size),
    FirstTime: lambda window: Part(_FIRST_IN_TIME, open=window.span),
    TimeAccumulating: lambda window: _alone(_ACCUMULATING, span=window.span),
    TimeBatch: _time_batch,
    TimeLengthBatch: lambda window: _alone(_TIME_OR_LENGTH, span=window.span, size=window.size),
    ExternalTime: lambda window: _alone(_EXTERNAL, span=window.span, time=window.time),
    ExternalTimeBatch: _external_batch,
    Expressed: _by_condition,
    ExpressedBatch: _by_condition,
}


def parts_apart(window: WindowSpec | None, number: Expr) -> Parts | None:
    """The parts of a window of each partition, whose `number` that is; None for a window that is no such loop."""
    known = _PARTS.get(type(window))
    if known is not None:
        part = known(window) if may_hold(window) else None
        return None if part is None else Parts((part,))
    found = parts_alone(window) if isinstance(window, Length | Time | KeepAll) else parts_of(window)
    if found is None or any(part.lines.lined for part in found.parts):
        return None
    if not found.each_apart:
        return found
    (part,) = found.parts  # of the keys of each partition it matters in which order they came ever
    return Parts((replace(part, keys=(number, *part.keys)),))


def notes_of(window: WindowSpec, begin: tuple[int, ...], notes: Mapping[str, Any]) -> tuple[int, ...]:
    """What a window notes, which were `begin` at first, from what one of the row executor does."""
    match window:
        case TimeBatch():
            origin, due = notes["origin"], notes["due"]
            return begin[0] if origin is None else origin, NEVER if due is None else due
        case FirstTime():
            return (notes["end"],)
        case TimeLengthBatch():
            return (NEVER if notes["due"] is None else notes["due"],)
        case ExternalTimeBatch(span=span):
            origin, end = notes["origin"], notes["end"]
            return begin[0] if origin is None else origin % span, end or 0, int(end is not None)
        case _:
            return ()
