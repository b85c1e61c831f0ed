"""Expressions as text: the name of a column that a select gives none, and what messages quote."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from rollup.lang.epl.tree import expressions as ex

_BINDING = {"or": 1, "and": 2, "&": 3, "|": 3, "^": 3, "||": 7, "+": 8, "-": 8, "*": 9, "/": 9, "%": 9}
_EQUALITY, _RELATION, _UNARY, _PRIMARY = 5, 6, 10, 11


def render(expression: ex.Expression) -> str:
    """The expression's text in a normal form: no blanks around arithmetic and comparisons, parentheses where needed.

    >>> from rollup.lang.epl.reader import read_module
    >>> query = read_module("select sum( amount , group_by : account ), (a+b) * 2 from S").statements[0].body
    >>> [render(item.value) for item in query.items]
    ['sum(amount,group_by:account)', '(a+b)*2']
    """
    return _PRINT[type(expression)](expression)


def _binding(expression: ex.Expression) -> int:
    if isinstance(expression, (ex.Logical, ex.Arithmetic)):
        return _BINDING[expression.operator]
    if isinstance(expression, ex.Comparison):
        return _RELATION if expression.operator[0] in "<>" else _EQUALITY
    if isinstance(expression, ex.Quantified):
        return _RELATION if expression.operator[0] in "<>" else _EQUALITY
    if isinstance(expression, (ex.In, ex.InQuery, ex.Between, ex.Like)):
        return _RELATION
    if isinstance(expression, ex.Not):
        return 4
    return _UNARY if isinstance(expression, ex.Sign) else _PRIMARY


def _bound(expression: ex.Expression, least: int) -> str:
    text = render(expression)
    return text if _binding(expression) >= least else f"({text})"


def _list(items: Iterable[ex.Expression]) -> str:
    return ",".join(render(item) for item in items)


def _constant(node: ex.Constant) -> str:
    if node.value is None or isinstance(node.value, bool):
        return str(node.value).lower().replace("none", "null")
    if isinstance(node.value, str):
        return '"' + node.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return f"{node.value}" + {"long": "L", "float": "f"}.get(node.kind, "")


def _parameter(node: ex.Parameter) -> str:
    if node.name is None:
        return "?" if node.type is None else f"?::{node.type}"
    return f"?:{node.name}" + (f":{node.type}" if node.type else "")


def _call(node: ex.Call) -> str:
    of = f"{_bound(node.of, _PRIMARY)}." if node.of else ""
    return f"{of}{node.name}({'distinct ' if node.distinct else ''}{_list(node.arguments)})"


def _arithmetic(node: ex.Arithmetic) -> str:
    level = _BINDING[node.operator]
    return f"{_bound(node.left, level)}{node.operator}{_bound(node.right, level + 1)}"


def _comparison(node: ex.Comparison) -> str:
    level = _binding(node)
    sign = f" {node.operator} " if node.operator.startswith("is") else node.operator
    return f"{_bound(node.left, level)}{sign}{_bound(node.right, level + 1)}"


def _logical(node: ex.Logical) -> str:
    level = _BINDING[node.operator]
    return f"{_bound(node.left, level)} {node.operator} {_bound(node.right, level + 1)}"


def _in(node: ex.In) -> str:
    return f"{_bound(node.value, 7)}{' not' if node.negated else ''} in ({_list(node.items)})"


def _between(node: ex.Between) -> str:
    value, low, high = (_bound(part, 7) for part in (node.value, node.low, node.high))
    no = " not" if node.negated else ""
    if node.low_closed and node.high_closed:
        return f"{value}{no} between {low} and {high}"
    return f"{value}{no} in {'[' if node.low_closed else '('}{low}:{high}{']' if node.high_closed else ')'}"


def _like(node: ex.Like) -> str:
    word = f"{'not ' if node.negated else ''}{'regexp' if node.regexp else 'like'}"
    escape = f" escape {_bound(node.escape, 7)}" if node.escape else ""
    return f"{_bound(node.value, 7)} {word} {_bound(node.pattern, 7)}{escape}"


def _quantified(node: ex.Quantified) -> str:
    items = _list(node.items) if isinstance(node.items, tuple) else "select …"
    return f"{_bound(node.left, _binding(node))}{node.operator}{'all' if node.every else 'any'}({items})"


def _case(node: ex.Case) -> str:
    operand = f" {render(node.operand)}" if node.operand else ""
    branches = "".join(f" when {render(when)} then {render(then)}" for when, then in node.branches)
    otherwise = f" else {render(node.otherwise)}" if node.otherwise else ""
    return f"case{operand}{branches}{otherwise} end"


def _new(node: ex.New) -> str:
    fields = [(name, render(value)) for name, value in node.fields]
    return "new{" + ",".join(name if name == value else f"{name}={value}" for name, value in fields) + "}"


def _lambda(node: ex.Lambda) -> str:
    names = node.parameters[0] if len(node.parameters) == 1 else f"({','.join(node.parameters)})"
    return f"{names} => {render(node.body)}"


_PRINT: dict[type[ex.Expression], Callable[[Any], str]] = {
    ex.Constant: _constant,
    ex.Parameter: _parameter,
    ex.Reference: lambda node: node.name,
    ex.Member: lambda node: f"{_bound(node.of, _PRIMARY)}.{node.name}",
    ex.Index: lambda node: f"{_bound(node.of, _PRIMARY)}[{_list(node.keys)}]",
    ex.Call: _call,
    ex.Sign: lambda node: f"-{_bound(node.operand, _UNARY)}",
    ex.Arithmetic: _arithmetic,
    ex.Comparison: _comparison,
    ex.Logical: _logical,
    ex.Not: lambda node: f"not {_bound(node.operand, 4)}",
    ex.In: _in,
    ex.InQuery: lambda node: f"{_bound(node.value, 7)}{' not' if node.negated else ''} in (select …)",
    ex.Between: _between,
    ex.Like: _like,
    ex.Quantified: _quantified,
    ex.Case: _case,
    ex.Exists: lambda node: "exists (select …)",
    ex.Subquery: lambda node: "(select …)",
    ex.New: _new,
    ex.Array: lambda node: "{" + _list(node.items) + "}",
    ex.Star: lambda node: "*",
    ex.StreamStar: lambda node: f"{node.stream}.*",
    ex.Sorted: lambda node: f"{render(node.value)}{' desc' if node.descending else ''}",
    ex.Named: lambda node: f"{node.name}:{render(node.value)}",
    ex.Group: lambda node: f"({_list(node.items)})",
    ex.Lambda: _lambda,
    ex.ExistsValue: lambda node: f"exists({render(node.value)})",
    ex.Period: lambda node: " ".join(f"{render(quantity)} {unit}" for quantity, unit in node.parts),
    ex.CronAny: lambda node: "*",
    ex.CronStep: lambda node: f"*/{render(node.step)}",
    ex.CronRange: lambda node: f"{render(node.low)}:{render(node.high)}",
    ex.CronList: lambda node: f"[{_list(node.items)}]",
    ex.CronLast: lambda node: "last" if node.day is None else f"{render(node.day)} last",
    ex.CronWeekday: lambda node: "lastweekday" if node.day is None else f"{render(node.day)} weekday",
    ex.Crontab: lambda node: f"({_list(node.fields)})",
}
