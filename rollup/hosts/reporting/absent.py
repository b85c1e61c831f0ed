"""Attributes that no record of a batch has: a column that the configuration names stops the job, any other is said once.
So is one whose whole numbers are too great for its type.

A column that has been there in this run and then is not in a batch is a matter of the data, and no reason to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from rollup.core.errors import ConfigError
from rollup.plan.likeness import near
from rollup.plan.reading import rounded
from rollup.sources.content.presence import HAS, absent, present


class Absent:
    """What of the attributes of one stream has been seen in a run, and said of them."""

    def __init__(self, stream: str, options: Mapping[str, Any]) -> None:
        self._stream = stream
        self._options = options
        self._seen, self._said, self._rounded = set[str](), set[str](), set[str]()

    def observe(self, looked: Iterable[pa.Table]) -> list[str]:
        """The warnings of a batch, from what its parts have. Raises ConfigError for a column that was never there."""
        tables = list(looked)
        lacking = absent(tables)
        for name, place in lacking.items():
            if name in self._columns and name not in self._seen:
                raise ConfigError(
                    f"[sources.{self._stream}]: no record of the batch has {self._columns[name]!r}, which columns gives "
                    f"for {name}; the first one is {place}",
                    hint=f'correct the name, or say that it need not be there: optional = ["{name}"]',
                )
        self._seen |= present(tables)
        new = [name for name in lacking if name not in self._said]
        self._said |= set(new)
        return [*(self._warning(name, lacking[name]) for name in new), *self._great(tables)]

    def _great(self, tables: Iterable[pa.Table]) -> list[str]:
        found = {row["attribute"]: row["rounded"] for table in tables for row in table.to_pylist() if row["rounded"]}
        new = {name: kind for name, kind in found.items() if name not in self._rounded}
        self._rounded |= new.keys()
        return [f"warning: {rounded(self._stream, name, kind)}." for name, kind in new.items()]

    @property
    def _columns(self) -> Mapping[str, str]:
        return self._options.get("columns", {})

    def _warning(self, name: str, place: str) -> str:
        close = near(name, place.partition(HAS)[2].split(", "))
        cure = f'`columns = {{ {name} = "{close}" }}` in' if close else "`columns` in"
        return (
            f"warning: stream {self._stream}: no record of the batch has {self._columns.get(name, name)!r}, so {name} is "
            f"null in all of them; the first one is {place}. {cure} [sources.{self._stream}] names another member, "
            f'optional = ["{name}"] says that it need not be there.'
        )
