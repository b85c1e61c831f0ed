"""What a query of Calcite may not mix: a condition is no number, and the branches of a CASE are of one kind."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rollup.lang.calcite.model import Model
from rollup.lang.calcite.semantics import Kind, Kinds, branches, kind, kind_of_type, refused

_NUMBERS = (exp.Sum, exp.Avg, exp.Count)


def check_types(query: exp.Query, model: Model) -> None:
    """Raises PlanError, with the place, for kinds that DuckDB would cast without a word, or only finds beside a row."""
    of = _certain(query, model)
    for node in query.walk():
        for what, condition in _conditions(node):
            _check_condition(what, condition, of)
        if isinstance(node, (exp.Case, exp.Coalesce)):
            _check_branches(node, of)
        if isinstance(node, (exp.Floor, exp.Ceil)) and node.args.get("to") and kind(node.this, of).numeric:
            name = node.key.upper()
            said = f"{name} to a unit takes a time, and this is a number"
            raise refused(node.this, said, f"as {name}(rowtime TO HOUR), or {name}(x)")


def _certain(query: exp.Query, model: Model) -> Kinds:
    """The kinds of the columns of tables of the model; what a sub-query makes is of none that is certain here."""
    tables = {table.alias_or_name.lower(): model.find(table.name) for table in query.find_all(exp.Table)}
    for each in query.find_all(exp.Subquery, exp.CTE):
        tables[each.alias.lower()] = None
    kinds = {
        (alias, name.lower()): kind_of_type(type_)
        for alias, table in tables.items()
        for name, type_ in (() if table is None else table.columns)
    }

    def of(column: exp.Column) -> Kind:
        return kinds.get((column.table.lower(), column.name.lower()), Kind.OTHER)

    return of


def _conditions(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    match node:
        case exp.Where() if isinstance(node.parent, exp.Filter):
            yield "FILTER", node.this
        case exp.Where() | exp.Having():
            yield node.key.upper(), node.this
        case exp.Join() if node.args.get("on") is not None:
            yield "ON", node.args["on"]
        case exp.Case() if node.this is None:
            yield from (("WHEN", branch.this) for branch in node.args["ifs"])
        case exp.And() | exp.Or():
            yield from ((f"a side of {node.key.upper()}", side) for side in (node.left, node.right))
        case exp.Not():
            yield "what NOT stands before", node.this
        case _:
            return


def _check_condition(what: str, condition: exp.Expr, of: Kinds) -> None:
    found = kind(condition, of)
    number = found.numeric or isinstance(condition, _NUMBERS)  # in HAVING columns have no kinds yet
    if number or found is Kind.TEXT:
        said = f"{what} is no condition: it is a {'number' if number else 'text'}"
        raise refused(condition, said, "a comparison, as x <> 0")


def _check_branches(node: exp.Case | exp.Coalesce, of: Kinds) -> None:
    found = [(kind(branch, of), branch) for branch in branches(node)]
    text = next((branch for each, branch in found if each is Kind.TEXT), None)
    if text is not None and any(each.numeric for each, _ in found):
        said = f"{node.key.upper()} gives texts and numbers"
        raise refused(text, said, "one kind: CAST(.. AS VARCHAR), or CAST(.. AS INTEGER)")
