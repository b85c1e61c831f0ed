"""A plan as text: the operators of each query in the order in which rows pass them, and the columns that come out."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.lang.uql import tree
from rollup.lang.uql.egress import span_text
from rollup.lang.uql.plan import Plan


def describe(plans: Sequence[Plan]) -> list[str]:
    """One line an operator, as in the document: ingress, filter, window, aggregate, filter, project, filter, egress."""
    return [line for plan in plans for line in _lines(plan)]


def _lines(plan: Plan) -> list[str]:
    query = plan.query
    fields = ", ".join(f"{field.name} {field.kind}" for field in plan.table.fields)
    aggregates = ", ".join(f"{a.function}({_arguments(a)}) as {a.alias.text}" for a in query.aggregates)
    outputs = ", ".join(f"{output.name} {output.kind}" for output in plan.outputs)
    lines = [f"ingress    {plan.table.name} ({fields})"]
    if query.rows_where:
        lines.append(f"filter     {expression(query.rows_where)}")
    lines.append(f"window     {_window(plan)}")
    groups = f" by {', '.join(name.text for name in query.group_by)}" if query.group_by else ""
    lines.append(f"aggregate  {aggregates}{groups}")
    if query.windows_where:
        lines.append(f"filter     {expression(query.windows_where)}")
    lines.append(f"project    {', '.join(f'{expression(item.value)} as {item.name}' for item in query.items)}")
    if query.output_where:
        lines.append(f"filter     {expression(query.output_where)}")
    return [*lines, f"egress     {query.target.text} ({outputs})"]


def _arguments(node: tree.Aggregation) -> str:
    return ", ".join("*" if isinstance(argument, tree.Star) else expression(argument) for argument in node.arguments)


def _window(plan: Plan) -> str:
    window, based = plan.query.window, plan.query.based_on
    on = f" based on {based.text}" if based else " on the wall clock" if plan.wall_clock else ""
    if isinstance(window, tree.Slice):
        return f"slice {_width(window.width)}{on}"
    if isinstance(window, tree.Slide):
        return f"slide {_width(window.width)} advance every {_width(window.advance)}{on}"
    end = f" end {expression(window.end)} {'inclusive' if window.inclusive else 'exclusive'}" if window.end else ""
    life = f" expire after {_width(window.life)}" if window.life else ""
    return f"session begin {expression(window.begin)}{end}{life}{on}"


def _width(width: tree.Width) -> str:
    return f"{width.amount} rows" if width.unit == "rows" else f"{span_text(width.amount)} seconds"


def expression(node: tree.Expr) -> str:
    """An expression with the parentheses that show how it was read.

    >>> from rollup.lang.uql.reader import parse
    >>> expression(parse("from a where x > 1 or y = 2 and z = 3 window slice 1 rows aggregate count() as n append n to b")[0].rows_where)
    '(x > 1) or ((y == 2) and (z == 3))'
    """
    match node:
        case tree.Name():
            return node.text
        case tree.Number():
            return str(node.value)
        case tree.Text():
            return f'"{node.value}"'
        case tree.Time():
            return f"'{node.value}'"
        case tree.Span():
            return f"{span_text(node.microseconds)} seconds"
        case tree.Unary():
            return f"{node.operator} {_inner(node.operand)}"
        case tree.Binary():
            return f"{_inner(node.left)} {node.operator} {_inner(node.right)}"
        case tree.Call():
            return f"{node.function}({', '.join(expression(argument) for argument in node.arguments)})"


def _inner(node: tree.Expr) -> str:
    text = expression(node)
    return f"({text})" if isinstance(node, (tree.Binary, tree.Unary)) else text
