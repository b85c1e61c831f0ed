"""What questions have in common: a tree with places for values, and its text for whoever computes the answer.

Questions of one form differ only in values, so their text is made once. A value never becomes part of a text that is
read for places again: engines get it as a parameter, or it is printed into its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import Duration
from rollup.core.dialects import Text, computable, kept_name, substituted, to_sql

Value = str | int


class Sides(Enum):
    """Which rows a query reads; what cannot be in the range is left out of it."""

    BOTH = "both"
    STORED = "stored"
    OPEN = "open"


class Asked(ABC):
    """A query over `closed`, `open` and further relations, with named places for values.

    It asks for the buckets of the level `per` with start <= AGG_TIMESTAMP < end.
    """

    made: dict[object, object]
    per: Duration
    start: int
    end: int

    @abstractmethod
    def tree(self, sides: Sides) -> exp.Query:
        """The query; its places are `exp.Placeholder`s."""

    @property
    @abstractmethod
    def values(self) -> Mapping[str, Value]:
        """What stands in the places."""

    @property
    def sided(self) -> bool:
        """Whether its tree can leave stored or open rows out."""
        return False

    @property
    def relations(self) -> Mapping[str, Duration]:
        """The relations of stored rows that the query reads, by name."""
        return {"closed": self.per}

    def ranges(self, level: Duration) -> Sequence[tuple[int, int]]:
        """The ranges of bucket starts that are read of a level."""
        return [(self.start, self.end)]

    @property
    def late(self) -> bool:
        """Whether the query reads the relation `late`."""
        return False

    def tables(self) -> Mapping[str, pa.Table]:
        """Further relations of the query that come with the question."""
        return {}

    @property
    def form(self) -> object:
        """What the tree depends on beside the sides."""
        return None

    def prepared(self, sides: Sides = Sides.BOTH) -> tuple[str, Mapping[str, Value]]:
        """The query for DuckDB with a parameter `$name` for every value in which questions of this form differ."""
        return str(self._made("duckdb", sides, lambda: to_sql(self.tree(sides)))), self.values

    def constant_sql(self, sides: Sides = Sides.BOTH, dialect: str = "duckdb") -> str:
        """The query without parameters."""
        return to_sql(substituted(self.tree(sides), self.values), dialect)

    def filled(self, dialect: str) -> str:
        """As `constant_sql`, from a text that is made once."""
        text = self._made(f"filled {dialect}", Sides.BOTH, lambda: Text.of(self.tree(Sides.BOTH), dialect))
        assert isinstance(text, Text)
        return text.filled(self.values)

    def computable(self, dialect: str) -> bool:
        """Whether a dialect's own server can compute the answer."""
        return bool(self._made(f"computable {dialect}", Sides.BOTH, lambda: computable(self.tree(Sides.BOTH), dialect)))

    def own_names(self) -> Mapping[str, str]:
        """The columns of the answer by the names that PostgreSQL has for them."""
        names = self._made("names", Sides.BOTH, lambda: {kept_name(n): n for n in self.tree(Sides.BOTH).named_selects})
        assert isinstance(names, dict)
        return names

    def _made(self, what: str, sides: Sides, make: Callable[[], object]) -> object:
        key = (what, sides, self.form)
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]
