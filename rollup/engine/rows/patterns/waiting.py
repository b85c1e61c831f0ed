"""What a filter of a pattern puts into the index: worked out once, but for what depends on what is bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollup.engine.compiling import compiled, row_test
from rollup.engine.expressions import Ask, Expr, Now, Variable, inputs_read, walk
from rollup.engine.index import Entry, Interval, Receiver, Test, both_tests, equal
from rollup.engine.ranges import intervals, paths
from rollup.engine.row import Row
from rollup.engine.rows.patterns.algebra import FilterNode
from rollup.engine.rows.patterns.state import Match
from rollup.engine.rows.runner import Environment


class Waiting:
    """A filter of a pattern that has `tags`."""

    def __init__(self, node: FilterNode, tags: int, environment: Environment) -> None:
        self._environment = environment
        self._equals = [(place, compiled(value)) for place, value in node.equals]
        self.same_again = not any(isinstance(each, (Ask, Now, Variable)) for _, v in node.equals for each in walk(v))
        """Whether what is bound alone says what it puts into the index."""
        self._bind = None if node.test is None else row_test(node.test, tags)
        self._ranges = paths(node.test, tags)
        bounds = [bound for each in self._ranges for bound in (each.low, each.high) if bound is not None]
        self._tags = {tag for bound in bounds for tag in inputs_read([bound]) - {tags}}
        """Those that the ranges' bounds read."""
        self._values: dict[int, Callable[..., Any]] = {id(bound): compiled(bound) for bound in bounds}
        nothing = (None,) * tags
        alone = node.test is None or not (inputs_read([node.test]) - {tags} or _asks(node.test))
        self._test = self._bind(environment, nothing) if self._bind is not None and alone else None
        """The test, where no tag matters to it."""
        self._ways = None if self._tags else self._with((*nothing, None))
        """The ranges, where they are the same for all."""

    def entry(
        self, receiver: Receiver, number: int, begin: Match, narrowing: tuple[Mapping[int, Any], Test | None] | None
    ) -> Entry:
        """The filter of a state, its `number` the input, with what is bound as known values and what a partition adds."""
        bound, e = (*begin, None), self._environment
        equals = {place: value(bound, (), e) for place, value in self._equals}
        test = self._test if self._test is not None or self._bind is None else self._bind(e, begin)
        if narrowing is not None:
            more, further = narrowing
            if not equal(equals, {place: value for place, value in more.items() if place in equals}):
                return Entry(receiver, number, equals, lambda row: False)
            equals, test = {**equals, **more}, both_tests(further, test)
        return Entry(receiver, number, equals, test, ways=self._with(bound) if self._ways is None else self._ways)

    def _with(self, bound: Match) -> tuple[Interval, ...]:
        """The ranges with what is bound; none where a tag that they read is not bound to a row."""
        if not all(isinstance(bound[tag], Row) for tag in self._tags):
            return ()
        return intervals(self._ranges, lambda bound_: self._values[id(bound_)](bound, (), self._environment))


def _asks(expr: Expr) -> bool:
    return any(isinstance(each, Ask) for each in walk(expr))
