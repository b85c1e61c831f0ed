"""Questions by their form: texts that differ only in bounds and in constants compared under `on` are planned once.

A chart that moves through time, or a page that asks for another key, sends the same text with other constants. Reading
and planning a text takes milliseconds, finding its form microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from rollup.aggregation.retrieval import Ask, bounds, plan, stitched
from rollup.errors import RollupError
from rollup.lang.siddhi import parse_query
from rollup.plan.aggregation import Aggregation
from rollup.plan.app import Retrieval, position
from rollup.plan.types import Type

_TOKEN = re.compile(
    r"""(?P<skip>--[^\n]*|/\*.*?\*/|`[^`]*`|[A-Za-z_]\w*)|(?P<text>'[^']*'|"[^"]*")|(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[lLfFdD]?)""",
    re.DOTALL,
)
_MOST_CONSTANTS = 16
_KEPT = 1024
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_WIDEST_INT = 2**31


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
        self._free: dict[str, tuple[int, ...]] = {}
        self._forms: dict[tuple[str, tuple[str, ...]], _Form] = {}
        self.ask: Callable[[str], Ask] = lru_cache(maxsize=_KEPT)(self._ask)

    def _ask(self, text: str) -> Ask:
        """The question of a text. Raises a RollupError with the position of what is wrong."""
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

    def _planned(self, text: str, outline: str, found: Sequence[re.Match[str]]) -> Ask:
        query = parse_query(text)
        offsets = {match.start(): index for index, match in enumerate(found)}
        places = [_place(text, node) for node in query.within]
        if any(place not in offsets for place in places) or "__c" in text:
            return plan(query, self.aggregations)
        marked, constants = _marked(query, text, offsets)
        ask = plan(marked, self.aggregations, tuple(_value(found[index]) for index in constants))
        form = _Form(ask, tuple(offsets[place] for place in places if place is not None), constants)
        if len(self._forms) > _KEPT:
            self._forms.clear()
            self._free.clear()
        free = tuple(sorted((*form.bounds, *form.constants)))
        self._forms[outline, _fixed(found, free)] = form
        self._free[outline] = free
        return ask


def _of_form(form: _Form, found: Sequence[re.Match[str]]) -> Ask:
    start, end = bounds([_value(found[index]) for index in form.bounds])
    constants = tuple(_value(found[index]) for index in form.constants)
    ask = replace(form.ask, start=start, end=end, constants=constants)
    if ask.segments is None:
        return ask
    segments = stitched(ask.aggregation, start, end)
    return replace(ask, segments=segments, per=max(segments))


def _outline(text: str) -> tuple[str, list[re.Match[str]]]:
    """The text with a mark in place of each constant, and the constants in order."""
    found, parts, at = list[re.Match[str]](), list[str](), 0
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            found.append(match)
            parts += (text[at : match.start()], _kind(match))
            at = match.end()
    return "".join((*parts, text[at:])), found


def _kind(match: re.Match[str]) -> str:
    """A mark for the type of a constant, as the grammar sees it."""
    if match.lastgroup == "text":
        return "\0s"
    word = match.group()
    if word.isdigit():
        return "\0i" if int(word) < _WIDEST_INT else "\0l"
    return "\0L" if word[:-1].isdigit() and word[-1] in "lL" else "\0d"


def _value(match: re.Match[str]) -> str | int:
    word = match.group()
    return word[1:-1] if match.lastgroup == "text" else int(word.rstrip("lL"))


def _fixed(found: Sequence[re.Match[str]], free: Sequence[int]) -> tuple[str, ...]:
    return tuple(match.group() for index, match in enumerate(found) if index not in free)


def _place(text: str, node: exp.Expr) -> int | None:
    """The offset of a constant in the text."""
    line, col = position(node) if isinstance(node, exp.Literal) else (None, None)
    if line is None or col is None:
        return None
    start = 0
    for _ in range(line - 1):
        start = text.index("\n", start) + 1
    return start + col - 1


def _marked(query: Retrieval, text: str, offsets: dict[int, int]) -> tuple[Retrieval, tuple[int, ...]]:
    """The query with marks for the constants that `on` compares with, and which constants of the text these are."""
    if query.on is None:
        return query, ()
    on = query.on.copy()
    compared = [node for node in on.find_all(exp.Literal) if _is_compared(node)]
    places = [offsets.get(_place(text, node) or 0) for node in compared]
    if len(compared) > _MOST_CONSTANTS or None in places:
        return query, ()
    for index, node in enumerate(compared):
        node.set("this", f"__c{index}")
    return replace(query, on=on), tuple(place for place in places if place is not None)


def _is_compared(node: exp.Literal) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, _COMPARISONS) and node.meta.get("type") in (Type.STRING, Type.INT, Type.LONG)
