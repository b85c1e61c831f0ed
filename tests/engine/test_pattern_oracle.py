"""Patterns against their meaning: a naive interpreter that looks at all events at once, for random patterns and events.

The meaning of a pattern that begins after the event at a place is a list of matches, each with the place of the event
that completes it. `->` begins its right side after each match of the left; `every` begins again after each match, and
when what it holds can never match any more; `and` is complete with the later of its sides, in every choice of them;
`or` with the earlier; `and not` unless the other came before; `[n]` is n matches one after the other. The matcher goes
event by event and keeps states; both must say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Any, NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from rollup.live import Engine
from tests.profiles import examples

Match = dict[str, Any]
Found = list[tuple[int, Match]]


class Event(NamedTuple):
    """An event of type A, B or C."""

    kind: str
    v: int


class Node(NamedTuple):
    """A pattern: a filter (`what` is its type, `tag` its tag, `least` the smallest v), or an operator over parts."""

    what: str
    parts: tuple[Any, ...] = ()
    tag: str = ""
    least: int = 0
    times: int = 0


def meaning(node: Node, begin: int, events: Sequence[Event]) -> Found:
    """The matches of a pattern that begins after the event at `begin`."""
    parts = node.parts
    if node.what in "ABC":
        places = (n for n, e in enumerate(events) if n > begin and e.kind == node.what and e.v >= node.least)
        return [(place, {node.tag: events[place].v}) for place in places][:1]
    if node.what == "->":
        return [(j, m | n) for i, m in meaning(parts[0], begin, events) for j, n in meaning(parts[1], i, events)]
    if node.what == "and":
        left, right = (meaning(part, begin, events) for part in parts)
        return [(max(i, j), m | n) for i, m in left for j, n in right]
    if node.what == "or":
        return sorted([*meaning(parts[0], begin, events), *meaning(parts[1], begin, events)], key=lambda f: f[0])[:1]
    if node.what == "and not":
        ends = [i for i, _ in meaning(parts[1], begin, events)]
        return [(i, m) for i, m in meaning(parts[0], begin, events) if not ends or i < ends[0]]
    if node.what == "every":
        found = meaning(parts[0], begin, events)
        ended = failure(parts[0], begin, events)
        again = [i for i, _ in found] + ([] if ended is None else [ended])
        return found + [later for i in again for later in meaning(node, i, events)]
    return repeated(node, begin, events, node.times)


def failure(node: Node, begin: int, events: Sequence[Event]) -> int | None:
    """The place of the event after which a pattern that has not matched never will."""
    parts = node.parts
    if node.what == "and not":
        ends, found = (meaning(part, begin, events)[:1] for part in reversed(parts))
        return ends[0][0] if ends and (not found or ends[0][0] < found[0][0]) else None
    if node.what == "and":
        return min((f for f in (failure(part, begin, events) for part in parts) if f is not None), default=None)
    if node.what == "->":
        found = meaning(parts[0], begin, events)
        if not found:
            return failure(parts[0], begin, events)
        return None if endless(parts[0]) else failure(parts[1], found[0][0], events)
    return None


def endless(node: Node) -> bool:
    """Whether a pattern may match again and again."""
    return node.what == "every" or (node.what in ("and", "->") and any(endless(part) for part in node.parts))


def repeated(node: Node, begin: int, events: Sequence[Event], times: int) -> Found:
    """`times` matches of a filter, one after the other; the tag has all of them."""
    values: list[int] = []
    for _ in range(times):
        found = meaning(node.parts[0], begin, events)
        if not found:
            return []
        begin = found[0][0]
        values.append(found[0][1][node.parts[0].tag])
    return [(begin, {node.parts[0].tag: values})]


def written(node: Node) -> str:
    """The pattern as EPL."""
    if node.what in "ABC":
        return f"{node.tag}={node.what}(v >= {node.least})"
    inner = [written(part) for part in node.parts]
    if node.what == "every":
        return f"every ({inner[0]})"
    if node.what == "[]":
        return f"([{node.times}] {inner[0]})"
    return f"(({inner[0]}) {node.what} ({inner[1]}))"


def tags(node: Node) -> list[tuple[str, bool]]:
    """The tags, and whether they have several events; those under `not` have none."""
    if node.what in "ABC":
        return [(node.tag, False)]
    if node.what == "[]":
        return [(node.parts[0].tag, True)]
    return [tag for part in node.parts[: 1 if node.what == "and not" else None] for tag in tags(part)]


@st.composite
def patterns(draw: st.DrawFn) -> Node:
    """A pattern. Sides that one event could complete both of, where that leaves the order open, have other types."""
    names = (f"t{n}" for n in count())

    def filter_(kinds: str) -> Node:
        return Node(draw(st.sampled_from(kinds)), tag=next(names), least=draw(st.integers(0, 2)))

    def build(depth: int, kinds: str, many: bool) -> Node:
        choices = ["filter", "filter", "->", "->", "and", "[]", *(["every", "every"] if many else [])]
        choices += ["or", "and not"] if "C" in kinds else []
        what = draw(st.sampled_from(choices)) if depth else "filter"
        if what == "filter":
            return filter_(kinds)
        if what == "[]":
            return Node("[]", (filter_(kinds),), times=draw(st.integers(2, 3)))
        if what == "every":
            return Node("every", (build(depth - 1, kinds, True),))
        if what == "->":
            return Node("->", (build(depth - 1, kinds, many), build(depth - 1, kinds, many)))
        if what == "and":
            return Node("and", (build(depth - 1, kinds, many), build(depth - 1, kinds, many)))
        left = build(depth - 1, "AB", False)  # what ends at its first match, against what shares no event with it
        return Node(what, (left, filter_("C")))

    return build(draw(st.integers(1, 3)), "ABC", True)


EVENTS = st.lists(st.builds(Event, st.sampled_from("ABC"), st.integers(0, 3)), min_size=1, max_size=7)


_AND_NOT = Node("every", (Node("and not", (Node("A", tag="t0"), Node("C", tag="t1"))),))


@examples(40)
@example(_AND_NOT, [Event("C", 0), Event("A", 0)])
@given(patterns(), EVENTS)
def test_a_pattern_matches_what_it_means(pattern: Node, events: list[Event]) -> None:
    wanted = Counter((place, _plain(pattern, match)) for place, match in meaning(pattern, -1, events))
    engine = Engine()
    columns = ", ".join(f"{tag} as {tag}" if many else f"{tag}.v as {tag}" for tag, many in tags(pattern))
    schemas = "".join(f"create schema {kind}(v int); " for kind in "ABC")
    engine.deploy(f"{schemas} @name('q') select {columns} from pattern [{written(pattern)}];")
    found: Counter[Any] = Counter()
    for place, event in enumerate(events):
        engine.send(event.kind, {"v": event.v})
        rows = [row for heard in engine.heard() for row in heard.new]
        found.update((place, _plain(pattern, row)) for row in rows)
    assert found == wanted, written(pattern)


def _plain(pattern: Node, match: Match) -> tuple[Any, ...]:
    """The values of the tags, in order; of several events the list of theirs."""
    values = (match.get(tag) for tag, _ in tags(pattern))
    return tuple(
        tuple(each["v"] if isinstance(each, dict) else each for each in value) if isinstance(value, list) else value
        for value in values
    )
