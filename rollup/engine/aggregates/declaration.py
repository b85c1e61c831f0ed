"""What an aggregate function is: its state, how a value enters, leaves and merges, its result, and what a table keeps.

The lines are Python over the names of the slots (`{n}`, `{total}` …) and the value `{x}` (with further arguments `{y}`,
`{z}`). So the row executor and the compiled columnar cores are generated from the same declaration, and no column
name is in it. A slot's `start` is a Python expression.

* `skips`: nulls do not enter.
* `leave`: how a value leaves. None: values never leave (the *ever* functions). A window then refuses the aggregate, or
  keeps it growing where the language says so.
* `merge` adds another state, whose slots are `{o_n}` …. It is a commutative monoid (tests/engine/test_aggregate_laws.py).
* `at`: the value is the second argument of the row at that place among the rows of the window. The place counts from the
  first row, or, below 0, from the last. The first argument identifies the row.
* `foremost`: the value is the third argument, a row, of the first row in order. The order is that of the values in the
  second argument, a call, and downwards where `foremost` says so. Null is below all, and equal rows keep their arrival.
* `listed`: the value is the list of the second argument's values in order of arrival, null when there are none. With
  `foremost` it is the list of all rows in their order.
* `beyond`: an expression of the slots, true when `value` is null because 64 bits do not hold it. None: it never is.

`kept` is the same function where rows of tables are merged, as SQL trees: a rollup keeps its partials. A test holds
both forms equal (tests/aggregation/test_kept_laws.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from rollup.engine.aggregates.partials import Find, Partial
from rollup.engine.types import DataType


@dataclass(frozen=True)
class Kept:
    """What is kept of a group in a table, and the value over the merged partials.

    `value` is given the partials by their names, and the constants that stand behind the argument: `constants` says how
    many at least and at most. `text`: the value is the text of one of the arguments.
    """

    partials: tuple[Partial, ...]
    value: Callable[[Find, Sequence[exp.Expr]], exp.Expr]
    constants: tuple[int, int] = (0, 0)
    text: bool = False

    @property
    def arguments(self) -> int:
        """How many arguments there are before the constants."""
        return 2 if any(partial.of for partial in self.partials) else 1


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function; see the module for the form of its lines.

    >>> from rollup.engine.aggregates.known import SUM
    >>> SUM.enter, [partial.name for partial in SUM.kept.partials]
    ('{n} += 1; {total} += {x}', ['sum'])
    """

    name: str
    slots: Mapping[str, str]
    enter: str
    leave: str | None
    value: str
    result: Callable[[Sequence[DataType]], DataType]
    merge: str | None = None
    skips: bool = True
    arguments: tuple[int, int] = (1, 1)
    objects: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kept: Kept | None = None
    beyond: str | None = None
    at: int | None = None
    foremost: tuple[bool, ...] | None = None
    listed: bool = False

    @property
    def standing(self) -> bool:
        """Whether the value is of the rows as they stand one after the other."""
        return self.foremost is None and (self.listed or self.at is not None)
