"""A row that comes or leaves alone, or one that comes as another leaves, as nearly all do, as one generated function: its group,
the aggregates, and what is shown of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from rollup.engine.compiling import Same, Source, as_keys
from rollup.engine.expressions import Ask, Slot, walk
from rollup.engine.folding import Direction, Fold
from rollup.engine.row import Rows
from rollup.engine.rows.selects.grouping import Groups
from rollup.engine.rows.selects.projecting import Projector, Values

OfOne = Callable[[Rows], tuple[Values | None, Values | None]]
"""A row: the values of the row that comes with it, and of that which leaves; None where there is none."""
Shows = Literal["row", "group", "total"]
"""What is shown: each row of the input, its group, or all rows in one."""


OfTwo = Callable[[Rows, Rows], tuple[Values | None, Values | None]]
"""A row comes and another leaves for it: the values of the rows that are shown then; None where there is none."""


class Alone(NamedTuple):
    """What a row does that comes, one that leaves, and both together where nobody wants what was there before."""

    come: OfOne
    leave: OfOne
    exchange: OfTwo | None = None


@dataclass(frozen=True)
class Form:
    """What the two are made of: the first `tests` of `exprs` are conditions, the others columns. `leaving`: what leaves is
    made as well; `ever`: a group that has emptied is remembered."""

    shows: Shows
    exprs: Same
    tests: int
    keys: Same
    calls: Same
    leaving: bool
    ever: bool


def alone(
    projector: Projector,
    level: Groups,
    shows: Shows,
    leaving: bool,
    nothing: Rows = (),
    rows: Any = None,
    ever: bool = False,
) -> Alone | None:
    """For a level of a statement, None where rows are ordered or the input's own. `rows`: where a group's row is noted by
    level and key; `nothing`: the row of the input as which a total sees none."""
    shown = projector.projection
    if shown.order or shown.whole:
        return None
    having = () if shown.having is None else (shown.having,)
    exprs, keys = Same((*having, *shown.columns)), level.level.keys
    form = Form(shows, exprs, len(having), Same(keys), Same(level.level.calls), leaving, ever)
    bind = _generated(form)
    return Alone(*bind(projector.environment, level.groups, level.emptied, rows, nothing))


@lru_cache(maxsize=4096)
def _generated(form: Form) -> Callable[..., tuple[OfOne, OfOne, OfTwo | None]]:
    return _Writing(form).functions()


class _Writing:
    """The lines of the two."""

    def __init__(self, form: Form) -> None:
        self._form, self._fold = form, Fold(form.calls.items)
        self._keys = as_keys(form.keys.items)
        keyed = len(self._keys) if form.shows == "group" else 0
        self._slots = [*(f"k[{i}]" for i in range(keyed)), *(f"v{i}" for i in range(len(form.calls.items)))]
        parts = [each for expr in form.exprs.items for each in walk(expr)]
        read = {each.index for each in parts if isinstance(each, Slot)}
        self._asks = any(isinstance(each, Ask) for each in parts)
        self._wanted = [i for i in range(len(form.calls.items)) if self._asks or keyed + i in read]
        self._source: Source = self._fold.source(self._slots)
        self._source.objects["start"] = self._fold.start

    def functions(self) -> Callable[..., tuple[OfOne, OfOne, OfTwo | None]]:
        """`bind(e, groups, emptied, rows, nothing)` gives them."""
        source = self._source
        source.line("s = ()")
        source.block("def come(r):", self._come)
        source.block("def leave(r):", self._leave)
        if not self._form.leaving:
            source.block("def exchange(r, old):", self._exchange)
        source.line(f"return come, leave, {'None' if self._form.leaving else 'exchange'}")
        return source.function("bind", "e, groups, emptied, rows, nothing")

    def _come(self) -> None:
        source = self._source
        self._begin()
        self._entered()
        if self._form.shows == "group":
            source.line("rows[0, k] = r")
        source.line("e.arriving = True")
        self._shown("a")
        source.line("return a, b")

    def _leave(self) -> None:
        source, form = self._source, self._form
        self._begin()
        source.line("h = groups.get(k)")
        source.block("if h is not None and h[1] > 0:" if self._keys else "if h is not None:", self._left)
        if form.shows == "group":
            self._note("k", "r")
        if form.shows == "row" and not form.leaving:
            source.line("return None, None")
            return
        source.line("g = start() if h is None else h[0]")
        if form.shows == "row":
            self._lines("a, e.arriving = None, False")
            self._shown("b")
            source.line("e.arriving = True")
        else:
            source.line("e.arriving = True")
            self._shown("a")
        source.line("return a, b")

    def _entered(self) -> None:
        """The row is in its group; those that were empty before it came are forgotten."""
        if self._keys:
            self._source.block(
                "if emptied:", lambda: self._lines("for each in emptied: groups.pop(each, None)", "emptied.clear()")
            )
        self._lines("h = groups.get(k)", "if h is None: h = groups[k] = [start(), 0]")
        self._moved("enter", "+")

    def _exchange(self) -> None:
        source, by_group = self._source, self._form.shows == "group"
        source.line(self._key())
        self._entered()
        source.line("new, key, to, r = r, k, h, old")
        self._lines(self._key(), "h = groups.get(k)")
        source.block("if h is not None and h[1] > 0:" if self._keys else "if h is not None:", self._left)
        self._lines("left, r, k, g = k, new, key, to[0]", "a, b, e.arriving = None, None, True")
        self._shown("a")
        if by_group:
            source.line("rows[0, key] = new")
            source.block("if left != key:", self._other)
        source.line("return a, b")

    def _other(self) -> None:
        """Another group that the row has left, which is shown with it."""
        self._note("left", "old")
        self._lines("r, k, g = old, left, start() if h is None else h[0]")
        self._shown("b")

    def _key(self) -> str:
        return f"k = ({''.join(f'{self._source.emit(each)}, ' for each in self._keys)})"

    def _note(self, key: str, row: str) -> None:
        """The row with which a group is shown that one has left."""
        if self._form.ever:
            self._source.line(f"rows[0, {key}] = {row}")
        else:
            self._lines(f"if h is not None and h[1] > 0: rows[0, {key}] = {row}", f"else: rows.pop((0, {key}), None)")

    def _begin(self) -> None:
        """The group, and what was shown of it before."""
        form = self._form
        self._lines(self._key(), "b = None")
        if form.leaving and form.shows != "row":
            self._lines("e.arriving, h = False, groups.get(k)", "g = start() if h is None else h[0]")
            self._shown("b")

    def _left(self) -> None:
        self._moved("leave", "-")
        if self._keys:
            self._source.line("if h[1] <= 0: emptied[k] = None")

    def _moved(self, direction: Direction, sign: str) -> None:
        self._lines(f"h[1] {sign}= 1", "g = h[0]")
        self._fold.changes(self._source, direction)

    def _shown(self, name: str) -> None:
        """The columns over the slots `g`, None where a condition does not hold."""
        source, total = self._source, self._form.shows == "total"
        if total:
            source.line("own, r = r, nothing")
        for place in self._wanted:
            source.line(f"v{place} = {self._fold.value(place)}")
        if self._asks:  # a look-up is given all slots
            source.line(f"s = ({''.join(f'{slot}, ' for slot in self._slots)})")
        tests, columns = self._form.exprs.items[: self._form.tests], self._form.exprs.items[self._form.tests :]
        if tests:
            source.line(f"{name} = None")
        self._passing(tests, lambda: source.line(f"{name} = ({''.join(f'{source.emit(each)}, ' for each in columns)})"))
        if total:
            source.line("r = own")

    def _passing(self, tests: Sequence[Any], then: Callable[[], None]) -> None:
        if not tests:
            then()
            return
        test = self._source.emit(tests[0])
        self._source.block(f"if {test} is True:", lambda: self._passing(tests[1:], then))

    def _lines(self, *lines: str) -> None:
        for each in lines:
            self._source.line(each)
