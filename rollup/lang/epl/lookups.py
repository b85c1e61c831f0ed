"""Which names a module has found in the catalog: what it needs, for as long as it runs and when it is begun again."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, MutableMapping
from typing import NamedTuple, TypeVar

V = TypeVar("V")


class Name(NamedTuple):
    """A name and what has it: `stream` (also a window or table), `context`, `variable`, `expression`, `index`."""

    kind: str
    name: str


class Noted(MutableMapping[str, V]):
    """Declarations of one kind by name; each name that is asked for and there is put into `found`.

    >>> found = set()
    >>> variables = Noted("variable", {"x": 1, "y": 2}, found)
    >>> "z" in variables, variables["x"], sorted(variables), found
    (False, 1, ['x', 'y'], {Name(kind='variable', name='x')})
    """

    def __init__(self, kind: str, declared: MutableMapping[str, V], found: set[Name]) -> None:
        self._kind, self._declared, self._found = kind, declared, found

    def __getitem__(self, name: str) -> V:
        value = self._declared[name]
        self._found.add(Name(self._kind, name))
        return value

    def __setitem__(self, name: str, value: V) -> None:
        self._declared[name] = value

    def __delitem__(self, name: str) -> None:
        del self._declared[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def items(self) -> ItemsView[str, V]:
        """All of them, of which none is asked for by its name."""
        return self._declared.items()
