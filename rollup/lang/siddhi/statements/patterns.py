"""SiddhiQL's patterns and sequences as the engine's."""

from __future__ import annotations

from rollup.core.errors import PlanError, RollupError
from rollup.engine.expressions import All, Expr
from rollup.engine.rows.deliveries.queries import InputSpec
from rollup.engine.rows.patterns.algebra import (
    AbsentNode,
    AndNode,
    CountNode,
    EveryNode,
    FilterNode,
    FollowedNode,
    Node,
    NotNode,
    OrNode,
    Pattern,
    SilenceNode,
)
from rollup.engine.rows.patterns.sequence import Sequence, Step
from rollup.engine.types import RowType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.binding import Input, Scope, condition
from rollup.lang.siddhi.statements.names import Names, qualified


class Lowered:
    """The elements of a pattern with their tags: one a bound or unbound event that can be in a match."""

    def __init__(self, made: tree.Pattern, names: Names) -> None:
        self._names = names
        self.basics = [basic for step in made.steps for basic in _basics(step)]
        self._tags = {id(basic): tag for tag, basic in enumerate(b for b in self.basics if not b.absent)}
        self._bound = [basic for basic in self.basics if not basic.absent]
        lone = {qualified(basic.stream): tag for tag, basic in reversed(list(enumerate(self._bound))) if not basic.name}
        self._lone = set(lone.values())
        """Of the elements without a name the first of each stream: it goes by the name of the stream."""
        self.inputs = [self._as_input(basic) for basic in self._bound]
        known = [basic for step in made.steps for basic in _basics(step, known=True)]
        self._known = {id(basic): rank for rank, basic in enumerate(known)}

    def _as_input(self, basic: tree.Basic) -> Input:
        rows = self._names.rows(basic.stream)
        if qualified(basic.stream) in self._names.tables:
            raise PlanError(f"{basic.stream.name} is a table and never triggers").at(*basic.stream.place)
        tag = self._tags[id(basic)]
        lone = _stream_names(basic) if tag in self._lone else (f"__{tag}",)
        return Input((basic.name,) if basic.name else lone, rows, optional=True, many=basic.count is not None)

    def filter(self, basic: tree.Basic) -> FilterNode:
        """The filter of an element. Its condition sees what was bound before, and its own event without a name, or by the
        name of the element: of a counted one the name alone is the event, with a number those that came before it. Raises
        PlanError for a silence of no time."""
        if basic.span == 0:
            raise PlanError("`not … for` takes a time longer than none", hint="for 1 sec").at(*basic.stream.place)
        rows = self._names.rows(basic.stream)
        scope = Scope([*self._seen(basic), Input(self._own(basic), rows)], preferred=len(self.inputs))
        tests = [condition(h.expression, scope, "a filter") for h in basic.stream.handlers if h.kind == "filter"]
        if len(tests) < len(basic.stream.handlers):
            raise PlanError("a window or a stream function cannot stand in a pattern").at(*basic.stream.place)
        test: Expr | None = None if not tests else tests[0] if len(tests) == 1 else All(tuple(tests))
        return FilterNode(qualified(basic.stream), self._tags.get(id(basic)), test=test)

    def _seen(self, basic: tree.Basic) -> list[Input]:
        """The events that an element's condition may name: none that comes after it."""
        rank = self._known[id(basic)]
        return [
            given if self._known[id(other)] <= rank else _UNSEEN
            for other, given in zip(self._bound, self.inputs, strict=True)
        ]

    def _own(self, basic: tree.Basic) -> tuple[str, ...]:
        """What the condition of an element may call its own event: the name of the stream is that of an earlier element,
        where one of this stream has no name."""
        names = () if basic.name is None else (basic.name,)
        rank = self._known[id(basic)]
        earlier = any(
            qualified(self._bound[tag].stream) == qualified(basic.stream) and self._known[id(self._bound[tag])] < rank
            for tag in self._lone
        )
        return names if earlier else (*_stream_names(basic), *names)

    def node(self, step: tree.Step, last: bool, first: bool) -> Node:
        """The engine's node of a step; `last`: nothing follows, so a count is over at its least."""
        match step:
            case tree.Every():
                inside = self.node(step.step, last, first)
                return EveryNode(inside, retry=first or not _absent(inside))
            case tree.Group():
                return self.chain(step.steps, last, first)
            case tree.Logical():
                _check_alone(step)
                children = (self._operand(step.left, first), self._operand(step.right, first))
                return AndNode(children) if step.word == "and" else OrNode(children)
            case tree.Basic():
                return self._basic(step, last, first)

    def chain(self, steps: tuple[tree.Step, ...], last: bool, first: bool) -> Node:
        """Steps that follow one another."""
        end = len(steps) - 1
        made = tuple(self.node(step, last and i == end, first and i == 0) for i, step in enumerate(steps))
        return made[0] if len(made) == 1 else FollowedNode(made)

    def _basic(self, basic: tree.Basic, last: bool, first: bool) -> Node:
        found = self.filter(basic)
        if basic.absent:
            if basic.span is None:
                raise _alone(basic)
            return AbsentNode(found, basic.span, again=first)
        if basic.count is None:
            return found
        low, high = _count(basic)
        return CountNode(found, low, low if last else high)

    def _operand(self, basic: tree.Basic, first: bool) -> Node:
        found = self.filter(basic)
        if not basic.absent:
            return found
        if basic.span is None:
            return NotNode(found, lingers=True)
        return SilenceNode(found, basic.span) if first else AbsentNode(found, basic.span, late=True)

    def step(self, step: tree.Step) -> Step:
        """A step of a sequence."""
        match step:
            case tree.Logical(left=left, right=right):
                return self._logical_step(left, right, step.word)
            case tree.Basic(absent=True, span=int(span)):
                return Step((), silence=span, never=(self.filter(step),))
            case tree.Basic(absent=False):
                low, high = _count(step)
                return Step((self.filter(step),), low, high, step.count is not None)
            case _:
                problem = "a sequence takes events, `and` and `or` of events, `not … for`, and counts"
                raise PlanError(problem, hint="use a pattern with ->").at(*_basics(step)[0].stream.place)

    def _logical_step(self, left: tree.Basic, right: tree.Basic, word: str) -> Step:
        present = tuple(self.filter(each) for each in (left, right) if not each.absent)
        absent = [each for each in (left, right) if each.absent]
        if not absent:
            return Step(present, 2, 2, together=True) if word == "and" else Step(present)
        spans, never = {each.span for each in absent}, tuple(self.filter(each) for each in absent)
        if len(spans) > 1 or (spans == {None} and (word == "or" or not present)):
            problem = (
                "beside a `not` without `for` a sequence takes `and` with an event, beside one with `for` no other time"
            )
            raise PlanError(problem, hint="use a pattern with ->").at(*absent[0].stream.place)
        both = bool(present) and spans != {None} and word == "and"
        count = 2 if both else 1
        return Step(present, count, count, together=both, never=never, silence=spans.pop())


def _count(basic: tree.Basic) -> tuple[int, int | None]:
    """How many events an element is, from the least to the most. Raises PlanError where that is none at all."""
    low, high, _ = basic.count or tree.Count(1, 1)
    if high is not None and high < max(low, 1):
        raise PlanError(f"a count from {low} to {high} is of no event", hint="<2>, <1:3>, <2:>").at(*basic.stream.place)
    return low, high


def _check_counts(basics: list[tree.Basic]) -> None:
    """Raise PlanError for a count that only a sequence takes."""
    for basic in basics:
        if basic.count is not None and basic.count.sign:
            least, most, sign = basic.count
            problem = f"`{sign}` counts the events of a sequence, not of a pattern"
            raise PlanError(problem, hint=f"<{least}:{'' if most is None else most}>").at(*basic.stream.place)


def _check_events(basics: list[tree.Basic]) -> None:
    """Raise PlanError for a pattern that is true of no event at all: it would never have a match to give."""
    if all(basic.count is not None and basic.count.least == 0 for basic in basics):
        problem = "every element of this pattern may be of no event, so nothing begins a match"
        raise PlanError(problem, hint="one event at least, <1:2>").at(*basics[0].stream.place)


def _absent(node: Node) -> bool:
    """Whether a step is, or has, something that must not come."""
    children = node.children if isinstance(node, AndNode | OrNode) else (node,)
    return any(isinstance(child, AbsentNode | SilenceNode | NotNode) for child in children)


def _check_alone(step: tree.Logical) -> None:
    """Raise PlanError for a `not` without `for` beside `or`, or beside another `not`: nothing says when it is true."""
    alone = next((each for each in (step.left, step.right) if each.absent and each.span is None), None)
    if alone is not None and (step.word == "or" or (step.left.absent and step.right.absent)):
        raise _alone(alone)


def _alone(basic: tree.Basic) -> RollupError:
    return PlanError("`not` alone needs `for`, or `and` with an event", hint="not A for 1 sec").at(*basic.stream.place)


_UNSEEN = Input((), RowType("", {}))
"""An event that a condition may not name, since it comes later."""


def _stream_names(basic: tree.Basic) -> tuple[str, ...]:
    """The names of an element's stream, of an inner one with its sign and without."""
    return (basic.stream.name, qualified(basic.stream)) if basic.stream.inner else (basic.stream.name,)


def _basics(step: tree.Step, known: bool = False) -> list[tree.Basic]:
    """The elements of a step in the order of the text; `known`: in that in which conditions know them, where of two events
    that `and` or `or` joins the left one may name the right one."""
    match step:
        case tree.Every():
            return _basics(step.step, known)
        case tree.Group():
            return [basic for inner in step.steps for basic in _basics(inner, known)]
        case tree.Logical():
            return [step.right, step.left] if known and not step.right.absent else [step.left, step.right]
        case tree.Basic():
            return [step]


def lower_pattern(made: tree.Pattern, names: Names) -> tuple[InputSpec, list[Input]]:
    """The engine's pattern or sequence, and the inputs that its select sees."""
    lowered = Lowered(made, names)
    tags = len(lowered.inputs)
    if not made.strict:
        _check_counts(lowered.basics)
        _check_events(lowered.basics)
        return Pattern(lowered.chain(made.steps, True, True), tags, span=made.span, textual=True), lowered.inputs
    first, *rest = made.steps
    every = isinstance(first, tree.Every)
    steps = [first.step if isinstance(first, tree.Every) else first, *rest]
    return Sequence(tuple(lowered.step(step) for step in steps), tags, every, made.span), lowered.inputs
