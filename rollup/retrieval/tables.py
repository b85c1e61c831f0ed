"""Tables that stand beside aggregations in a question: what statements keep, and the dimensions of a configuration."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from rollup.core.errors import ConfigError
from rollup.plan.app import StreamDef


class TableReader(Protocol):
    """Reads some tables as they were at one moment, which a number names."""

    @property
    def names(self) -> Collection[str]:
        """The tables; to say which they are reads none of them."""
        ...

    def stream(self, name: str) -> StreamDef:
        """The columns of one. Raises a RollupError where these cannot be known."""
        ...

    @property
    def note(self) -> str:
        """What tools show beside the name of a table."""
        ...

    def newest(self) -> int:
        """The number of the newest moment; greater than those before. Raises a RollupError where there is none."""
        ...

    def made(self, number: int) -> str:
        """Differs between a moment and another one of its number."""
        ...

    def line(self, number: int) -> str:
        """The history that a moment belongs to: numbers of two histories do not compare."""
        ...

    def rows(self, shown: str, number: int) -> pa.Table:
        """A table at a moment. Raises a RollupError when it cannot be read, or is there no more."""
        ...


class Tables(Mapping[str, StreamDef]):
    """The tables of several readers, by their names. Raises ConfigError where two have one name."""

    def __init__(self, readers: Sequence[TableReader]) -> None:
        self.readers, self._readers = readers, dict[str, TableReader]()
        for reader in readers:
            for name in reader.names:
                if name.casefold() in map(str.casefold, self._readers):
                    raise ConfigError(f"two tables have the name {name}", hint="give that of [tables] another name")
                self._readers[name] = reader

    def only(self, names: Collection[str]) -> Tables:
        """Those of some names."""
        made = Tables([])
        made.readers = self.readers
        made._readers = {name: reader for name, reader in self._readers.items() if name in names}
        return made

    def __getitem__(self, name: str) -> StreamDef:
        return self._readers[name].stream(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, name: object) -> bool:
        return name in self._readers

    def reader(self, name: str) -> TableReader:
        """Who reads a table."""
        return self._readers[name]
