"""SiddhiQL's expressions in SQL, as aggregations and questions have them; nodes know their place in the text."""

from __future__ import annotations

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.lang.siddhi import tree
from rollup.plan.composed import filtered
from rollup.plan.types import Type

_BINARY: dict[str, type[exp.Expr]] = {
    "==": exp.EQ,
    "!=": exp.NEQ,
    ">": exp.GT,
    ">=": exp.GTE,
    "<": exp.LT,
    "<=": exp.LTE,
    "+": exp.Add,
    "-": exp.Sub,
    "*": exp.Mul,
    "/": exp.Div,
    "%": exp.Mod,
}


def sql_of(node: tree.Expression) -> exp.Expr:
    """An expression in SQL, with names still unresolved. Raises PlanError for what has a meaning in statements alone.

    >>> sql_of(tree.Operation(">", (tree.Name("x", "e", None, (1, 1)), tree.Constant(5, None, (1, 5), "5")), (1, 1))).sql()
    '(e."x") > (5)'
    """
    try:
        made = _in_sql(node)
    except PlanError as problem:
        raise problem.at(*node.place) from None
    made.meta.setdefault("line", node.place[0])
    made.meta.setdefault("column", node.place[1])
    return made


def _in_sql(node: tree.Expression) -> exp.Expr:
    match node:
        case tree.Constant():
            return _constant(node)
        case tree.Name(attribute=str(name), index=None, stream=stream) if not (stream or "").startswith("#"):
            return exp.column(exp.to_identifier(name, quoted=True), table=stream)
        case tree.Operation(sign=sign, operands=operands):
            return _operation(sign, [sql_of(each) for each in operands])
        case tree.Function():
            call = exp.Anonymous(this=node.name, expressions=[sql_of(each) for each in node.arguments])
            call.meta.update(line=node.place[0], column=node.place[1])
            return call if node.where is None else filtered(call, sql_of(node.where))
        case tree.Name():
            raise PlanError(
                "events of a pattern and inner streams are of queries over streams", hint="a name, or S.name"
            )
        case tree.InTable(table=table):
            what = f"`in {table}` asks a table, as the filter of a query over streams does"
            raise PlanError(what, hint="a list of values: x in ('a', 'b')")


def _constant(node: tree.Constant) -> exp.Expr:
    if node.value is None:
        return exp.Null()
    if node.type is Type.BOOL:
        return exp.Boolean(this=node.value)
    made = exp.Literal(this=node.written, is_string=node.type is Type.STRING)
    made.meta["type"] = node.type
    return made


def _operation(sign: str, operands: list[exp.Expr]) -> exp.Expr:
    if sign in ("and", "or"):
        return (exp.and_ if sign == "and" else exp.or_)(*operands, copy=False)
    one, *other = (exp.paren(each, copy=False) for each in operands)
    match sign:
        case "like":
            return exp.Like(this=one, expression=operands[1])
        case "not":
            return exp.Not(this=one)
        case "is null":
            return exp.Is(this=one, expression=exp.Null())
        case "-" if not other:
            return exp.Neg(this=one)
        case _:
            return _BINARY[sign](this=one, expression=other[0])
