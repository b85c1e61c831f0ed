"""What a query or a part of it becomes: a node of flows, and the names of its columns."""

from __future__ import annotations

from dataclasses import dataclass

from rollup.engine.flows.flow import Column, Node


@dataclass(frozen=True)
class Rel:
    """A planned stream: its node, and the names of its columns."""

    node: Node
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns, in the order of the names."""
        return self.node.columns[: len(self.names)]

    def under(self, alias: str) -> dict[tuple[str, str], Column]:
        """The columns by alias and name."""
        return {(alias, name): column for name, column in zip(self.names, self.columns, strict=True)}
