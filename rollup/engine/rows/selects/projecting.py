"""What a row of a statement looks like: its columns, the condition it must fulfil, and what it is ordered by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rollup.engine.compiling import Same, compiled_row, predicate
from rollup.engine.expressions import Ask, Expr, Slot, walk
from rollup.engine.folding import Direction, Fold
from rollup.engine.row import Row, Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.grouping import Groups, Key

OfGroup = Callable[[Key | None, Rows], Row | None]
"""The row for a row of the input and the key of its group; None when it does not fulfil the condition."""
Values = tuple[Any, ...]
ValuesOf = Callable[[Key | None, Rows], Values | None]
"""The values of that row alone."""
Step = Callable[[Sequence[Rows], Sequence[Rows]], Values | None]
"""Rows come, then rows leave: the values of the one row that there is then; None when it does not fulfil the condition."""
_Form = Literal["row", "values", "step"]


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

    @property
    def columns(self) -> tuple[Expr, ...] | None:
        """What is shown of every group alike, nothing looked up: None where there is a condition, an order or a whole row."""
        shown = self.projection
        if shown.having is not None or shown.order or shown.whole:
            return None
        return (
            None if any(isinstance(each, Ask) for column in shown.columns for each in walk(column)) else shown.columns
        )

    def of_group(self, groups: Groups | None, keyed: bool = False) -> OfGroup | None:
        """The same as one function, None where rows are ordered: the slots are the values of one level, after its key if `keyed`.

        Who calls it has said whether the row arrives.
        """
        return None if self.projection.order else self._bound("row", groups, keyed)

    def values_of(self, groups: Groups | None = None, keyed: bool = False) -> ValuesOf:
        """The same for one to whom the values matter and not their order."""
        return self._bound("values", groups, keyed)

    def stepping(self, groups: Groups, width: int) -> Step:
        """The same for a level without keys, whose only group the rows enter and leave first; its row has no input (of `width`)."""
        return self._bound("step", groups, nothing=(None,) * width)

    def _bound(self, form: _Form, groups: Groups | None, keyed: bool = False, nothing: Rows = ()) -> Any:
        projection = self.projection
        having = () if projection.having is None else (projection.having,)
        keys, calls = (0, ()) if groups is None else (len(groups.level.keys) * keyed, groups.level.calls)
        bind = _generated(form, Same((*having, *projection.columns)), len(having), projection.whole, keys, Same(calls))
        return bind(self.environment, {} if groups is None else groups.groups, self._make, nothing)


@lru_cache(maxsize=4096)
def _generated(form: _Form, exprs: Same, tests: int, whole: bool, keys: int, calls: Same) -> Callable[..., Any]:
    """Generated: `bind(e, groups, make, nothing)` gives `shown(k, r)` or, as a step, `shown(came, left)`."""
    fold = Fold(calls.items)
    read = {each.index for expr in exprs.items for each in walk(expr) if isinstance(each, Slot)}
    asks = any(isinstance(each, Ask) for expr in exprs.items for each in walk(expr))
    wanted = [place for place in range(len(calls.items)) if asks or keys + place in read]
    slots = [*(f"k[{place}]" for place in range(keys)), *(f"v{place}" for place in range(len(calls.items)))]
    source = fold.source(slots)
    source.objects["start"] = fold.start

    def found() -> None:
        if wanted:
            source.line("h = groups.get(k)")
            source.line("g = start() if h is None else h[0]")

    def stepped() -> None:
        source.line("k, s = (), ()")
        source.line("h = groups.get(k)")
        source.line("if h is None: h = groups[k] = [start(), 0]")
        source.line("g = h[0]")
        source.block("for r in came:", lambda: moved("enter", "+"))
        source.block("for r in left:", lambda: moved("leave", "-"))
        source.line("r, e.arriving = nothing, True")

    def moved(direction: Direction, sign: str) -> None:
        source.line(f"h[1] {sign}= 1")
        fold.changes(source, direction)

    def shown() -> None:
        for place in wanted:
            source.line(f"v{place} = {fold.value(place)}")
        if asks:  # a look-up is given all slots
            source.line(f"s = ({''.join(f'{slot}, ' for slot in slots)})")
        for expr in exprs.items[:tests]:
            source.line(f"if {source.emit(expr)} is not True: return None")
        if whole:
            source.line(f"if r[0] is not None: return {'r[0]' if form == 'row' else 'r[0].values'}")
        values = f"({''.join(f'{source.emit(expr)}, ' for expr in exprs.items[tests:])})"
        source.line(f"return make({values})" if form == "row" else f"return {values}")

    def body() -> None:
        stepped() if form == "step" else found()
        shown()

    source.block("def shown(came, left):" if form == "step" else "def shown(k, r):", body)
    source.line("return shown")
    return source.function("bind", "e, groups, make, nothing")
