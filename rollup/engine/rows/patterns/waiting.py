"""What a filter of a pattern puts into the index: worked out once, but for what depends on what is bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollup.engine.compiling import compiled, row_test
from rollup.engine.expressions import Ask, Expr, inputs_read, lasting, walk
from rollup.engine.index import Entry, Interval, Receiver, Test, both_tests, equal
from rollup.engine.ranges import intervals, paths
from rollup.engine.row import Row
from rollup.engine.rows.patterns.algebra import FilterNode
from rollup.engine.rows.patterns.state import Match
from rollup.engine.rows.runner import Environment

Narrowing = tuple[Mapping[int, Any], Test | None]
"""What a partition adds to a filter: equalities by place, and a further test."""


class Waiting:
    """A filter of a pattern that has `tags`; `narrowing`: what the partition adds to filters over its stream."""

    def __init__(self, node: FilterNode, tags: int, environment: Environment, narrowing: Narrowing | None) -> None:
        self._environment = environment
        self._equals = [(place, compiled(value)) for place, value in node.equals]
        self.same_again = lasting(value for _, value in node.equals)
        """Whether what is bound alone says what it puts into the index."""
        self._bind = None if node.test is None else row_test(node.test, tags)
        self._ranges = paths(node.test, tags)
        bounds = [bound for each in self._ranges for bound in (each.low, each.high) if bound is not None]
        self._tags = {tag for bound in bounds for tag in inputs_read([bound]) - {tags}}
        """Those that the ranges' bounds read."""
        self._values: dict[int, Callable[..., Any]] = {id(bound): compiled(bound) for bound in bounds}
        self._nothing = (None,) * tags
        self._alone = node.test is None or not (inputs_read([node.test]) - {tags} or _asks(node.test))
        """Whether no tag matters to the test."""
        self._narrowed, self._further = ({}, None) if narrowing is None else narrowing
        self._test = both_tests(self._further, self._bound_test(self._nothing)) if self._alone else None
        self._ways = None if self._tags else self._with((*self._nothing, None))
        """The ranges, where they are the same for all."""
        alike = self._alone and not (self._equals or self._tags)
        self._always = dict(self._narrowed) if alike else None
        """The values that are known, where what is bound says nothing at all."""

    def entry(self, receiver: Receiver, number: int, begin: Match) -> Entry:
        """The filter of a state, its `number` the input, with what is bound as known values and what the partition adds."""
        if self._always is not None:
            return Entry(receiver, number, self._always, self._test, ways=self._ways or ())
        bound, e, more = (*begin, None), self._environment, self._narrowed
        equals = {place: value(bound, (), e) for place, value in self._equals}
        if more:
            if not equal(equals, {place: value for place, value in more.items() if place in equals}):
                return Entry(receiver, number, equals, lambda row: False)
            equals.update(more)
        test = self._test if self._alone else both_tests(self._further, self._bound_test(begin))
        return Entry(receiver, number, equals, test, ways=self._with(bound) if self._ways is None else self._ways)

    def _bound_test(self, begin: Match) -> Test | None:
        return None if self._bind is None else self._bind(self._environment, begin)

    def _with(self, bound: Match) -> tuple[Interval, ...]:
        """The ranges with what is bound; none where a tag that they read is not bound to a row."""
        if not all(isinstance(bound[tag], Row) for tag in self._tags):
            return ()
        return intervals(self._ranges, lambda bound_: self._values[id(bound_)](bound, (), self._environment))


def _asks(expr: Expr) -> bool:
    return any(isinstance(each, Ask) for each in walk(expr))
