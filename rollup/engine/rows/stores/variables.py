"""Variables of a context: every partition has its own."""

from __future__ import annotations

from typing import Any

from rollup.engine.row import Delta, Row
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.timers import Order


class OwnVariable(Instance):
    """A variable in one partition."""

    def __init__(self, statement: str, variable: str, value: Any, where: Partition, order: Order) -> None:
        where.own(variable, value)  # before the environment of any statement that names it
        super().__init__(statement, (), (), where, order)
        self._variable = variable

    def changed(self, deltas: dict[int, Delta]) -> None:
        """A variable has no inputs."""

    def rows(self) -> list[Row]:
        """Its value."""
        return [self.row([self.partition.variables[self._variable]])]

    def kept(self) -> Any:
        """The value."""
        return self.partition.variables[self._variable]

    def restore_kept(self, state: Any) -> None:
        """The value."""
        self.partition.variables[self._variable] = state
