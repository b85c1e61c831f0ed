"""Partitions: a statement's instances live in one; contexts make and end them (`contexts.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rollup.engine.index import Test, both_tests
from rollup.engine.row import Row
from rollup.engine.rows.plans import Narrow, Narrowing

if TYPE_CHECKING:
    from rollup.engine.rows.component import Component
    from rollup.engine.rows.instance import Instance


class OwnVariables(dict[str, Any]):
    """The variables that a partition has for itself; the others are the engine's."""

    def __init__(self, shared: dict[str, Any]) -> None:
        super().__init__()
        self._shared = shared

    def __missing__(self, name: str) -> Any:
        return self._shared[name]


class Partition:
    """One partition: its number in its context, the properties that expressions see, what it adds to filters."""

    def __init__(
        self,
        component: Component,
        context: str = "",
        number: int = 0,
        properties: Mapping[str, Any] | None = None,
        narrowings: Sequence[Narrow] = (),
    ) -> None:
        self.component, self.context, self.number = component, context, number
        self.properties: Mapping[str, Any] = properties or {}
        self._narrowings = narrowings
        self.instances: dict[str, Instance] = {}
        self.variables: dict[str, Any] = component.runner.environment.variables

    def narrow(self, stream: str) -> Narrowing:
        """What the levels of the context add to a filter over a stream: of a window of the context, what fits into it."""
        component = self.component
        if self.context and stream in component.stores and component.context_of(stream) == self.context:
            return component.store(stream, self).narrowing()
        equals: dict[int, Any] = {}
        test: Test | None = None
        for each in self._narrowings:
            more, further = each(stream)
            equals.update(more)
            test = both_tests(test, further)
        return equals, test

    def own(self, name: str, value: Any) -> None:
        """Have a variable for itself, with its first value."""
        if not isinstance(self.variables, OwnVariables):
            self.variables = OwnVariables(self.variables)
        self.variables[name] = value

    @property
    def path(self) -> str:
        """The name of the partition in a snapshot."""
        return f"{self.context}#{self.number}" if self.context else ""


def key_narrowing(places: Sequence[int], values: Sequence[Any]) -> Narrowing:
    """Rows whose fields are those values; null is a value like others."""
    equals = {place: value for place, value in zip(places, values, strict=True) if value is not None}
    empty = [place for place, value in zip(places, values, strict=True) if value is None]
    if not empty:
        return equals, None

    def test(row: Row) -> bool:
        return all(row.values[place] is None for place in empty)

    return equals, test
