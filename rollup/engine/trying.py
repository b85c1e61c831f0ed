"""Queries for DuckDB that give a null where the same query as written is an error: of a cast, or of arithmetic."""

from __future__ import annotations

from sqlglot import exp

_COMPUTING = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Sqrt, exp.Ln, exp.Pow, exp.Exp)
_GROUPED = (exp.AggFunc, exp.Window)

LIFTING = "common_subexpressions"
"""An optimizer of DuckDB's to be switched off for such queries: lifted out of two TRYs, what they share is tried by none."""


def tried(query: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """The query with such nulls, and for each place that may have one a condition that says whether it does.

    >>> from sqlglot import parse_one
    >>> tried(parse_one("SELECT CAST(a AS INT) FROM t"))[0].sql("duckdb")
    'SELECT TRY_CAST(a AS INT) FROM t'
    """
    found, flags = query.copy(), list[exp.Expr]()
    for node in reversed(list(found.walk())):
        if node.find_ancestor(exp.Lambda):
            continue  # what it is of has no name outside
        if isinstance(node, exp.Cast):
            attempt: exp.Expr = exp.TryCast(**node.args)
        elif not isinstance(node, _COMPUTING) or node.find(exp.Query) or _raises(node):
            continue
        elif node.find(*_GROUPED):
            if node.find_ancestor(exp.Having):
                continue  # DuckDB takes what the attempt is over for columns there
            attempt = _of_groups(node)
        else:
            attempt = exp.Anonymous(this="TRY", expressions=[node.copy()])
        node.replace(attempt)
        given = [exp.Is(this=part.copy(), expression=exp.Null()).not_() for part in _parts(node).values()]
        flags.append(exp.and_(exp.Is(this=attempt.copy(), expression=exp.Null()), *given))
    return found, flags


def _raises(node: exp.Expr) -> bool:
    """Whether a part is an error by itself, as that of a text that is too long: DuckDB does not try those."""
    return any(each.name.upper() == "ERROR" for each in node.find_all(exp.Anonymous))


def _of_groups(node: exp.Expr) -> exp.Expr:
    """TRY takes no aggregates: they are the fields of one structure, which a function without a name is applied to."""
    inner, fields = node.copy(), list[exp.Expr]()
    for name, part in _parts(node).items():
        fields.append(exp.PropertyEQ(this=exp.to_identifier(name), expression=part.copy()))
        inner.set(name, exp.Dot(this=exp.to_identifier("of"), expression=exp.to_identifier(name)))
    attempt = exp.Lambda(this=exp.Anonymous(this="TRY", expressions=[inner]), expressions=[exp.to_identifier("of")])
    structures = exp.Array(expressions=[exp.Struct(expressions=fields)])
    return exp.Bracket(this=exp.Transform(this=structures, expression=attempt), expressions=[exp.Literal.number(0)])


def _parts(node: exp.Expr) -> dict[str, exp.Expr]:
    return {name: part for name in ("this", "expression") if isinstance(part := node.args.get(name), exp.Expr)}
