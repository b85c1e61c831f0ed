"""Patterns whose matches take other partial matches away: found by the rows that they hold, as by looking through all."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.engine.rows.patterns.combining import AndState
from rollup.engine.rows.patterns.discarding import Holders
from rollup.engine.rows.patterns.matcher import Matcher
from rollup.engine.rows.patterns.state import State, ids, shares
from rollup.live import Engine
from tests.engine.test_pattern_oracle import EVENTS, Event, Node, patterns, tags, written
from tests.profiles import examples

Found = list[tuple[int, list[dict[str, Any]]]]


def looked_through(state: State, rows: frozenset[int]) -> None:
    """Every state from the root down is asked whether it holds one of the rows."""
    if shares(state.begin, rows):
        state.fail()
        return
    if isinstance(state, AndState) and any(shares(match, rows) for found in state.matches for match in found):
        state.lose(rows)
    for child in list(state.children()):
        if not child.dead:
            looked_through(child, rows)


@contextmanager
def looking_through() -> Generator[None]:
    """Matches take partial matches away as `looked_through` does."""
    found = dict[Holders, Matcher]()
    made: Callable[..., None] = Matcher.__init__

    def begun(matcher: Matcher, *given: Any) -> None:
        made(matcher, *given)
        found[matcher._holders] = matcher  # pyright: ignore[reportArgumentType]

    def lose(holders: Holders, rows: frozenset[int]) -> None:
        root = found[holders].root
        if root is not None:
            looked_through(root, rows)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Matcher, "__init__", begun)
        patch.setattr(Holders, "lose", lose)
        yield


def asked(pattern: Node) -> Engine:
    """An engine that looks for a pattern."""
    engine, columns = Engine(), ", ".join(tag for tag, _ in tags(pattern))
    engine.deploy("".join(f"create schema {kind}(v int, place int); " for kind in "ABC"))
    engine.deploy(f"@name('q') select {columns} from pattern @DiscardPartialsOnMatch [{written(pattern)}];")
    return engine


def told(pattern: Node, events: Sequence[Event], restart: int) -> Found:
    """What a pattern finds at each event, with a restart before that one of them: the places of the events of each match."""
    engine, found = asked(pattern), Found()
    for place, event in enumerate(events):
        if place == restart:
            engine = Engine.restored(engine.snapshot())
        engine.send(event.kind, {"v": event.v, "place": place})
        found += [(place, list(heard.new)) for heard in engine.heard()]
    return found


_EVERY_A, _EVERY_B, _EVERY_C = (Node("every", (Node(kind, tag=f"t{n}"),)) for n, kind in enumerate("ABC"))
_GOING_ON = Node("->", (_EVERY_A, _EVERY_B))
_GATHERED = Node("every", (Node("and", (Node("->", (_EVERY_A, Node("B", tag="t1"))), _EVERY_C)),))
_FROM_BOTH = Node("->", (Node("and", (_EVERY_A, _EVERY_B)), Node("C", tag="t2")))
_TO_BOTH = Node("->", (_EVERY_A, Node("and", (_EVERY_B, _EVERY_C))))
_A, _B, _C = (Event(kind, 0) for kind in "ABC")


_SEVEN = [_A, _C, _A, _B, _C, _A, _B]
_NEVER = 7


def cases(test: Callable[..., None]) -> Callable[..., None]:
    """Random patterns and events with a restart, and those in which each way of holding rows decides."""
    test = given(patterns(), EVENTS, st.integers(0, _NEVER))(test)
    for case in (
        (_GOING_ON, [_A, _B, _B], 1),
        (_GOING_ON, [_A, _B, _B], _NEVER),
        (_GATHERED, _SEVEN, 3),
        (_GATHERED, _SEVEN, _NEVER),
        (_FROM_BOTH, [_A, _B, _C, _B, _C], 2),
        (_TO_BOTH, [_A, _B, _C, _B, _C], _NEVER),
    ):
        test = example(*case)(test)
    return examples(20)(test)


@cases
def test_what_a_match_takes_away_is_found_by_its_rows(pattern: Node, events: list[Event], restart: int) -> None:
    found = told(pattern, events, restart)
    with looking_through():
        assert told(pattern, events, restart) == found, written(pattern)


@cases
def test_no_event_of_a_match_is_in_one_that_is_complete_later(pattern: Node, events: list[Event], restart: int) -> None:
    taken = set[int]()
    for place, matches in told(pattern, events, restart):
        of_these = {each for match in matches for each in _places(match)}
        assert not taken & of_these, (written(pattern), place)
        taken |= of_these


def _places(match: dict[str, Any]) -> Iterator[int]:
    for value in match.values():
        for event in value if isinstance(value, list) else [value]:
            if event is not None:
                yield event["place"]


@cases
def test_by_row_there_is_what_waits_with_it_and_nothing_else(pattern: Node, events: list[Event], restart: int) -> None:
    engine = asked(pattern)
    for place, event in enumerate(events):
        if place == restart:
            engine = Engine.restored(engine.snapshot())
        engine.send(event.kind, {"v": event.v, "place": place})
    instance = engine._component.root.instances["q"]
    matcher = instance._matchers[0]
    assert matcher._holders is not None
    waiting = set[int]() if matcher.root is None else set(_held(matcher.root))
    assert matcher._holders._by_row.keys() == waiting, written(pattern)


def _held(state: State) -> Iterator[int]:
    """The numbers of the rows with which a state and all below it wait."""
    yield from ids(state.begin)
    if isinstance(state, AndState):
        yield from (row for found in state.matches for match in found for row in ids(match))
    for child in state.children():
        yield from _held(child)
