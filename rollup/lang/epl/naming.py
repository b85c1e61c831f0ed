"""The name of a column that a select gives none: the text of its expression, as Esper writes it; names that get a number."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import count

from rollup.lang.epl.render import render
from rollup.lang.epl.scope import is_aggregate, with_parts
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.node import Node

_OPERATORS = (ex.Arithmetic, ex.Comparison, ex.Logical, ex.Not, ex.In, ex.Between, ex.Like, ex.Quantified)
_PREVIOUS = {"prev": 1, "prevtail": 0}
"""Which row they mean where the text has no number."""


def column_name(node: ex.Expression, numbers: Iterator[int]) -> str:
    """The name of a column: of a sub-query with one column that of its column, of any other the next of the numbers.

    >>> from rollup.lang.epl.reader import read_module
    >>> query = read_module("select -a, sum(a)/count(*), (select b from T), exists (select * from T) from S").statements[0].body
    >>> numbers = count(1)
    >>> [column_name(item.value, numbers) for item in query.items]
    ['-1*a', '(sum(a))/(count(*))', 'b', 'subselect_2']
    """
    return render(_written(node, numbers))


def asked_by(node: Node) -> sm.Query | None:
    """The sub-query that an expression is, None of another."""
    if isinstance(node, (ex.Subquery, ex.Exists, ex.InQuery)):
        return node.query
    return node.items if isinstance(node, ex.Quantified) and isinstance(node.items, sm.Query) else None


def _written(node: ex.Expression, numbers: Iterator[int]) -> ex.Expression:
    """An expression whose text is Esper's: sub-queries by number, what is left out said, aggregates in parentheses."""
    query = asked_by(node)
    if query is not None:
        return ex.Reference(_name_of(query, next(numbers)))
    match with_parts(node, lambda part: _written(part, numbers)):
        case ex.Sign(operand) if not isinstance(operand, ex.Constant):
            return ex.Arithmetic("*", ex.Constant(-1, "int"), operand)
        case ex.Constant(value, kind) if kind in ("long", "float"):
            return ex.Constant(value, "int" if kind == "long" else "double")
        case ex.Reference(name) if name.lower() == "current_timestamp":
            return ex.Call(name)
        case ex.Call("leaving", ()) as call:
            return replace(call, arguments=(ex.Star(),))
        case ex.Call(name, (value,)) as call if name.lower() in _PREVIOUS:
            return replace(call, arguments=(ex.Constant(_PREVIOUS[name.lower()], "int"), value))
        case ex.Expression() as found if isinstance(found, _OPERATORS):
            return with_parts(found, lambda part: ex.Group((part,)) if is_aggregate(part) else part)
        case found:
            return found


def _name_of(query: sm.Query, number: int) -> str:
    if len(query.items) != 1 or isinstance(query.items[0].value, (ex.Star, ex.StreamStar)):
        return f"subselect_{number}"
    return query.items[0].name or column_name(query.items[0].value, count(1))


class Numbered:
    """Names that get a number where they are taken.

    >>> Numbered().free("sum", {"sum"}, {"sum-2"})
    'sum-3'
    """

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}
        """The number below which none is free: or all would be tried from the first."""

    def free(self, wanted: str, *known: Container[str]) -> str:
        """The wanted name, or the first one with a number that is not among the known ones."""
        number, found = self._taken.get(wanted, 1), wanted
        while any((found := f"{wanted}-{number}" if number > 1 else wanted) in each for each in known):
            number += 1
        self._taken[wanted] = number
        return found

    def clear(self) -> None:
        """Some names are free again."""
        self._taken.clear()
