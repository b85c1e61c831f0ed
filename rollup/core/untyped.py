"""Libraries whose functions are made when they are imported, where no type checker can see them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _OnDemand:
    """A module that is loaded when something of it is first used; each thing found is then an attribute of its own."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)
        return found


pc: Any = _OnDemand("pyarrow.compute")
"""`pyarrow.compute`, which makes its functions while it is loaded: most questions need none of them."""
