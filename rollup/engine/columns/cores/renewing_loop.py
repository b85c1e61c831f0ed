"""The stages of a try of a pattern that begins anew after each match, and the loop that takes events through them.

A try stands at one stage, and is at the next when that one is over. A stage takes one event of each of its filters, in any
order (`all`), of the first that passes (`any`), so many of one (`times`), or some of one until another comes (`until`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rollup.engine.columns.cores.links import Compared, Guard
from rollup.engine.columns.loops import block
from rollup.engine.rows.plans import Filter

_LOOP = """
def core(part, came, base, stage, got, ended, bound, masks, spans, low, high, {given}at, found):
    n = 0
    for i in range(len(came)):
        p = part[i]
        s = stage[p]
        if {late}:
            stage[p], got[p] = 0, 0
            bound[p, :] = 0
            s = 0
        done, failed = False, False
{stages}
        if done and s < {last}:
            stage[p], got[p], ended[p, s] = s + 1, 0, came[i]
        elif done or failed:
            if done:
                at[n], found[n, :] = i, bound[p, :]
                n += 1
            stage[p], got[p] = 0, 0
            bound[p, :] = 0
    return n
"""
"""The tries, of partition `p` that at `stage` which has `got` so much, behind stages that `ended` at some instants, with events
`bound`: 0 is none, those of the batch stand from `base` on."""


@dataclass(frozen=True)
class Taking:
    """A filter of a stage, the `child` of its node. `compared`: what is asked of the event of a slot and of its own. `slots`: where
    the event goes, the first, second, … (None: any) that it takes. `fails`: an event that passes ends the try.
    """

    filter: Filter
    child: int
    compared: tuple[tuple[int, Compared], ...]
    slots: tuple[tuple[int | None, int], ...]
    fails: bool = False


@dataclass(frozen=True)
class Stage:
    """`takings`: its filters in the order in which they are asked, of `until` what ends it first. `low`, `high`: how many events
    of the other (-1: any number), of `times` both. `guards`: what ends the try so long after an earlier stage was over. `node`:
    its number in the pattern.
    """

    kind: Literal["all", "any", "times", "until"]
    takings: tuple[Taking, ...]
    guards: tuple[Guard, ...]
    node: int
    low: int = 1
    high: int = 1


def source(stages: Sequence[Stage]) -> str:
    """The loop of some stages."""
    filters, comparisons, spans = (iter(range(1 << 16)) for _ in range(3))
    lines, late = list[str](), list[str]()
    for place, stage in enumerate(stages):
        late += [
            f"(s == {place} and came[i] >= ended[p, {each.since}] + spans[{next(spans)}])" for each in stage.guards
        ]
        passes = [_passes(each, next(filters), comparisons) for each in stage.takings]
        lines.append(f"{'elif' if place else 'if'} s == {place}:")
        lines += [f"    {line}" for line in _WAYS[stage.kind](stage.takings, passes, place)]
    given = "".join(f"x{i}, v{i}, y{i}, w{i}, " for i in range(next(comparisons)))
    late_ = " or ".join(late) or "False"
    return _LOOP.format(given=given, late=late_, stages=block(lines, 2), last=len(stages) - 1)


def _passes(taking: Taking, number: int, comparisons: Iterator[int]) -> str:
    """The condition that an event passes a filter."""
    compared = (each.line(next(comparisons), f"bound[p, {slot}]") for slot, each in taking.compared)
    return " and ".join([f"masks[{number}, i]", *compared])


def _all(takings: Sequence[Taking], passes: Sequence[str], place: int) -> Iterator[str]:
    """Each filter takes one event; one event may pass several, but not what ends the try after it has gone on."""
    free = iter(1 << number for number in range(len(takings)))
    every = (1 << sum(not each.fails for each in takings)) - 1
    for taking, passing in zip(takings, passes, strict=True):
        if taking.fails:
            yield f"if not done and not failed and {passing}:"
            yield "    failed = True"
        else:
            bit = next(free)
            yield f"if not failed and got[p] & {bit} == 0 and {passing}:"
            yield from _bound(taking)
            yield f"    got[p] |= {bit}"
            yield f"    done = got[p] == {every}"


def _any(takings: Sequence[Taking], passes: Sequence[str], place: int) -> Iterator[str]:
    for number, (taking, passing) in enumerate(zip(takings, passes, strict=True)):
        yield f"{'elif' if number else 'if'} {passing}:"
        yield from _bound(taking)
        yield "    done = True"


def _times(takings: Sequence[Taking], passes: Sequence[str], place: int) -> Iterator[str]:
    yield f"if {passes[0]}:"
    yield from _bound(takings[0])
    yield "    got[p] += 1"
    yield f"    done = got[p] == high[{place}]"


def _until(takings: Sequence[Taking], passes: Sequence[str], place: int) -> Iterator[str]:
    yield f"if {passes[0]}:"
    yield from _bound(takings[0])
    yield f"    failed = got[p] < low[{place}]"
    yield "    done = not failed"
    yield f"elif (high[{place}] < 0 or got[p] < high[{place}]) and {passes[1]}:"
    yield from _bound(takings[1])
    yield "    got[p] += 1"
    yield f"    done = low[{place}] == high[{place}] and got[p] == high[{place}]"


def _bound(taking: Taking) -> Iterator[str]:
    """The event goes where it is shown or asked for later."""
    for nth, slot in taking.slots:
        which = "" if nth is None else f"if got[p] == {nth}: "
        yield f"    {which}bound[p, {slot}] = base + i"


_WAYS = {"all": _all, "any": _any, "times": _times, "until": _until}
