"""A module at work: what runs of it, what it has declared, what it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rollup.engine.types import RowType
from rollup.lang.epl.lookups import Name

Undo = Callable[[], None]


@dataclass(frozen=True)
class Deployed:
    """A statement that runs: its name, the rows it delivers (None: it delivers none)."""

    name: str
    type: RowType | None


@dataclass
class Deployment:
    """A module that runs."""

    name: str
    text: str
    module: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    statements: list[Deployed] = field(default_factory=list[Deployed])
    undo: list[Undo] = field(default_factory=list[Undo])
    provides: set[Name] = field(default_factory=set[Name])
    implies: set[str] = field(default_factory=set[str])
    """The types that its inserts have made."""
    needs: set[Name] = field(default_factory=set[Name])
    names: list[str] = field(default_factory=list[str])
    """Those of its statements, hidden ones among them, in the order in which they were taken."""

    def gives(self, kind: str, name: str, undo: Callable[[], Any]) -> None:
        """The module declares a name; `undo` takes it back."""
        self.provides.add(Name(kind, name))
        self.undo.append(lambda: (undo(), None)[1])

    def given(self, implied: Collection[str]) -> set[Name]:
        """What others may need of it; of the streams that its inserts have made those that are `implied` still."""
        return self.provides | {Name("stream", each) for each in self.implies if each in implied}
