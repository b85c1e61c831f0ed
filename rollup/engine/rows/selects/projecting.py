"""What a row of a statement looks like: its columns, the condition it must fulfil, and what it is ordered by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from rollup.engine.compiling import Same, compiled_row, predicate
from rollup.engine.expressions import Ask, Expr, Slot, walk
from rollup.engine.folding import Fold
from rollup.engine.row import Row, Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.grouping import Groups, Key

OfGroup = Callable[[Key | None, Rows], Row | None]
"""The row for a row of the input and the key of its group; None when it does not fulfil the condition."""
Values = tuple[Any, ...]


class Out(NamedTuple):
    """A row on its way out, with the values it is ordered by."""

    row: Row
    order: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Projection:
    """The columns of a row, the condition it must fulfil, and what it is ordered by; `whole`: the input's row itself."""

    columns: tuple[Expr, ...]
    having: Expr | None = None
    order: tuple[Expr, ...] = ()
    whole: bool = False

    @property
    def evaluated(self) -> tuple[Expr, ...]:
        """The columns, then the condition."""
        return self.columns if self.having is None else (*self.columns, self.having)

    def changed(self, change: Callable[[Expr], Expr]) -> Projection:
        """The same with each column, and the condition, changed."""
        having = None if self.having is None else change(self.having)
        return replace(self, columns=tuple(map(change, self.columns)), having=having)


class Projector:
    """Makes rows."""

    def __init__(self, projection: Projection, environment: Environment, make: Callable[[Sequence[Any]], Row]) -> None:
        self._columns = compiled_row(projection.columns)
        self._having = predicate(projection.having) if projection.having is not None else None
        self._order = compiled_row(projection.order) if projection.order else None
        self.environment, self._make, self.projection = environment, make, projection

    def out(self, r: Rows, s: Sequence[Any], arriving: bool) -> Out | None:
        """The row, None when it does not fulfil the condition."""
        e = self.environment
        e.arriving = arriving
        if self._having is not None and not self._having(r, s, e):
            return None
        whole = r[0] if self.projection.whole else None
        row = whole if whole is not None else self._make(self._columns(r, s, e))
        return Out(row, self._order(r, s, e) if self._order is not None else ())

    def of_group(self, groups: Groups | None, keyed: bool = False) -> OfGroup | None:
        """The same as one function, None where rows are ordered: the slots are the values of one level, after its key if `keyed`.

        Who calls it has said whether the row arrives.
        """
        projection = self.projection
        if projection.order:
            return None
        having = () if projection.having is None else (projection.having,)
        keys, calls = (0, ()) if groups is None else (len(groups.level.keys) * keyed, groups.level.calls)
        bind = _generated(Same((*having, *projection.columns)), len(having), projection.whole, keys, Same(calls))
        return bind(self.environment, {} if groups is None else groups.groups, self._make)


@lru_cache(maxsize=4096)
def _generated(exprs: Same, tests: int, whole: bool, keys: int, calls: Same) -> Callable[..., Any]:
    """Generated: `bind(e, groups, make)` gives `shown(k, r)`."""
    fold = Fold(calls.items)
    read = {each.index for expr in exprs.items for each in walk(expr) if isinstance(each, Slot)}
    asks = any(isinstance(each, Ask) for expr in exprs.items for each in walk(expr))
    wanted = [place for place in range(len(calls.items)) if asks or keys + place in read]
    slots = [*(f"k[{place}]" for place in range(keys)), *(f"v{place}" for place in range(len(calls.items)))]
    source = fold.source(slots)
    source.objects["start"] = fold.start

    def shown() -> None:
        if wanted:
            source.line("h = groups.get(k)")
            source.line("g = start() if h is None else h[0]")
        for place in wanted:
            source.line(f"v{place} = {fold.value(place)}")
        if asks:  # a look-up is given all slots
            source.line(f"s = ({''.join(f'{slot}, ' for slot in slots)})")
        for expr in exprs.items[:tests]:
            source.line(f"if {source.emit(expr)} is not True: return None")
        if whole:
            source.line("if r[0] is not None: return r[0]")
        source.line(f"return make(({''.join(f'{source.emit(expr)}, ' for expr in exprs.items[tests:])}))")

    source.block("def shown(k, r):", shown)
    source.line("return shown")
    return source.function("bind", "e, groups, make")
