"""Questions by their form: texts that differ only in bounds and in constants compared under `on` are planned once.

A chart that moves through time, or a page that asks for another key, sends the same text with other constants. Reading
and planning a text takes milliseconds, finding its form microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from rollup.core.errors import PlanError, RollupError
from rollup.core.periods import may_say
from rollup.lang.siddhi.apps import parse_query
from rollup.lang.siddhi.constants import Constant, constants_of
from rollup.plan.aggregation import Aggregation
from rollup.plan.app import Retrieval, position
from rollup.plan.types import Type
from rollup.retrieval.questions import Ask, bounds, place, plan

_MOST_CONSTANTS = 16
_KEPT = 1024
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(frozen=True)
class _Form:
    """A planned question and which of its text's constants are free: bounds of `within`, and constants under `on`."""

    ask: Ask
    bounds: tuple[int, ...]
    constants: tuple[int, ...]


class Planner:
    """Turns texts into checked questions. May be used by several threads at once."""

    def __init__(self, aggregations: Mapping[str, Aggregation]) -> None:
        self.aggregations = aggregations
        self._free: dict[Outline, tuple[int, ...]] = {}
        self._forms: dict[tuple[Outline, tuple[str, ...]], _Form] = {}
        self._known: Callable[[str], Ask] = lru_cache(maxsize=_KEPT)(self._ask)

    def ask(self, text: str) -> Ask:
        """The question of a text. Raises a RollupError with the position of what is wrong."""
        return self._ask(text) if may_say(text) else self._known(text)

    def _ask(self, text: str) -> Ask:
        outline, found = _outline(text)
        free = self._free.get(outline)
        if free is not None:
            form = self._forms.get((outline, _fixed(found, free)))
            if form is not None:
                try:
                    return _of_form(form, found)
                except RollupError:
                    pass  # reading the whole text says where it is wrong
        return self._planned(text, outline, found)

    def _planned(self, text: str, outline: Outline, found: Sequence[Constant]) -> Ask:
        query = parse_query(text)
        offsets = {constant.start: index for index, constant in enumerate(found)}
        places = [_offset(text, node) for node in query.within]
        if any(at not in offsets for at in places):
            return plan(query, self.aggregations)
        free, constants = _freed(query, text, offsets)
        try:
            ask = plan(free, self.aggregations, tuple(found[index].value for index in constants))
        except PlanError:  # what is compared with a constant decides what this is: a text beside a day is one
            constants, ask = (), plan(query, self.aggregations)
        form = _Form(ask, tuple(offsets[at] for at in places if at is not None), constants)
        if len(self._forms) > _KEPT:
            self._forms.clear()
            self._free.clear()
        changing = tuple(sorted((*form.bounds, *form.constants)))
        self._forms[outline, _fixed(found, changing)] = form
        self._free[outline] = changing
        return ask


def _of_form(form: _Form, found: Sequence[Constant]) -> Ask:
    ask = form.ask
    zone = ask.period.zone if ask.period and ask.period.zone else ask.aggregation.zone
    start, end = bounds([found[index].value for index in form.bounds], zone)
    return replace(ask, constants=tuple(found[index].value for index in form.constants)).over(start, end)


Outline = tuple[str | tuple[Type], ...]
"""A text cut at its constants, each of which has left its type; texts of one outline are read into one tree."""


def _outline(text: str) -> tuple[Outline, Sequence[Constant]]:
    """The text without its constants, and the constants in order."""
    found = constants_of(text)
    parts, at = list[str | tuple[Type]](), 0
    for constant in found:
        parts += (text[at : constant.start], (constant.type,))
        at = constant.end
    return (*parts, text[at:]), found


def _fixed(found: Sequence[Constant], free: Sequence[int]) -> tuple[str, ...]:
    return tuple(constant.text for index, constant in enumerate(found) if index not in free)


def _offset(text: str, node: exp.Expr) -> int | None:
    """The offset of a constant in the text."""
    line, col = position(node) if isinstance(node, exp.Literal) else (None, None)
    if line is None or col is None:
        return None
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start + col - 1


def _freed(query: Retrieval, text: str, offsets: dict[int, int]) -> tuple[Retrieval, tuple[int, ...]]:
    """The query with places for the constants that `on` compares with, and which constants of the text these are."""
    if query.on is None:
        return query, ()
    on = query.on.copy()
    compared = [node for node in on.find_all(exp.Literal) if _is_compared(node)]
    found = [offsets.get(_offset(text, node) or 0) for node in compared]
    if len(compared) > _MOST_CONSTANTS or None in found:
        return query, ()
    for index, node in enumerate(compared):
        free = exp.Placeholder(this=place(index))
        free.meta.update(node.meta)
        node.replace(free)
    return replace(query, on=on), tuple(index for index in found if index is not None)


def _is_compared(node: exp.Literal) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    whole = node.meta.get("type") in (Type.INT, Type.LONG) and int(node.name) < 2**63
    return isinstance(parent, _COMPARISONS) and (whole or node.meta.get("type") is Type.STRING)
