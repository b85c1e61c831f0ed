"""What each kind of pattern node does: a tree of states, one an active instance of a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rollup.engine.rows.patterns.algebra import (
    AbsentNode,
    AndNode,
    CountNode,
    EveryNode,
    FilterNode,
    FollowedNode,
    IntervalNode,
    NotNode,
    OrNode,
    RepeatNode,
    ScheduleNode,
    SilenceNode,
    WhileNode,
    WithinNode,
)
from rollup.engine.rows.patterns.combining import AndState, FollowedState, NotState, OrState
from rollup.engine.rows.patterns.guarding import AbsentState, AlarmState, SilenceState, WhileState, WithinState
from rollup.engine.rows.patterns.repeating import CountState, EveryState, FilterState, RepeatState
from rollup.engine.rows.patterns.state import Parent, State

if TYPE_CHECKING:
    from rollup.engine.rows.patterns.matcher import Matcher

STATES: dict[type, Callable[[Matcher, Any, Parent], State]] = {
    FilterNode: FilterState,
    FollowedNode: FollowedState,
    AndNode: AndState,
    OrNode: OrState,
    NotNode: NotState,
    EveryNode: EveryState,
    RepeatNode: RepeatState,
    CountNode: CountState,
    AbsentNode: AbsentState,
    SilenceNode: SilenceState,
    WithinNode: WithinState,
    WhileNode: WhileState,
    IntervalNode: AlarmState,
    ScheduleNode: AlarmState,
}
