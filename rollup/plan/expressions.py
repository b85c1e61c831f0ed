"""Names and types of expressions resolved against a scope; the result is SQL that every dialect prints.

Numbers follow SiddhiQL: an operation has the type of its widest operand and whole numbers divide to whole numbers.
Nulls follow SQL: a comparison with null is unknown and does not pass a filter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollup.errors import PlanError, RollupError
from rollup.plan.app import position
from rollup.plan.functions import Bound, call
from rollup.plan.types import Type

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)


@dataclass(frozen=True)
class Scope:
    """The names an expression may use: `columns[(qualifier, name)]`, qualifier '' for names that stand alone.

    `aggregates`, when given, sees every function call first and may answer it.
    """

    columns: Mapping[tuple[str, str], Bound]
    aggregates: Callable[[exp.Anonymous, Scope], Bound | None] | None = None

    @classmethod
    def of(cls, attributes: Mapping[str, Type], *qualifiers: str) -> Scope:
        """A scope of plain columns, each also known under the qualifiers."""
        return cls(
            {
                (qualifier, name): Bound(exp.column(exp.to_identifier(name, quoted=True)), kind)
                for name, kind in attributes.items()
                for qualifier in ("", *qualifiers)
            }
        )

    def find(self, column: exp.Column) -> Bound:
        """The column a reference stands for. Raises PlanError that lists the known names."""
        found = self.columns.get((column.table, column.name))
        if found is None:
            known = sorted({f"{q}.{n}" if q else n for q, n in self.columns if q == column.table or not column.table})
            wanted = f"{column.table}.{column.name}" if column.table else column.name
            raise PlanError(f"unknown attribute {wanted!r}", hint=f"known are {', '.join(known) or 'none here'}")
        return Bound(found.sql.copy(), found.type)


def bind(node: exp.Expr, scope: Scope) -> Bound:
    """The SQL and type of an expression. Raises PlanError with the position of the part that is wrong."""
    try:
        return _bind(node, scope)
    except RollupError as problem:
        raise problem.at(*position(node)) from None


def condition(node: exp.Expr, scope: Scope, what: str) -> exp.Expr:
    """The SQL of a filter; raises PlanError unless it is a bool."""
    bound = bind(node, scope)
    if bound.type is not Type.BOOL:
        raise PlanError(f"{what} must be a bool, not {bound.type}").at(*position(node))
    return bound.sql


def _bind(node: exp.Expr, scope: Scope) -> Bound:
    if isinstance(node, exp.Paren):
        return bind(node.this, scope)
    if isinstance(node, exp.Column):
        return scope.find(node)
    if isinstance(node, exp.Literal):
        return _literal(node)
    if isinstance(node, exp.Boolean):
        return Bound(node.copy(), Type.BOOL)
    if isinstance(node, exp.Null):
        return Bound(exp.Null(), None)
    if isinstance(node, exp.Anonymous):
        return _function(node, scope)
    if isinstance(node, _ARITHMETIC):
        return _arithmetic(node, bind(node.this, scope), bind(node.expression, scope))
    if isinstance(node, _COMPARISONS):
        return _comparison(node, bind(node.this, scope), bind(node.expression, scope))
    return _logic(node, scope)


def _literal(node: exp.Literal) -> Bound:
    kind: Type = node.meta.get("type") or (Type.STRING if node.is_string else Type.LONG if node.is_int else Type.DOUBLE)
    plain = exp.Literal(this=node.this, is_string=node.is_string)
    return Bound(plain if kind in (Type.INT, Type.STRING) else exp.cast(plain, kind.sql), kind)


def _function(node: exp.Anonymous, scope: Scope) -> Bound:
    if scope.aggregates is not None:
        answer = scope.aggregates(node, scope)
        if answer is not None:
            return answer
    return call(node.name, [bind(argument, scope) for argument in node.expressions])


def _arithmetic(node: exp.Binary, left: Bound, right: Bound) -> Bound:
    for side in (left, right):
        if side.type is not None and not side.type.numeric:
            raise PlanError(f"arithmetic needs numbers, not {side.type}")
    kind = (left.type or Type.INT).widest(right.type or Type.INT)
    a, b = exp.paren(left.sql), exp.paren(right.sql)
    if isinstance(node, exp.Div):
        return Bound(_quotient(a, b, kind), kind)
    if isinstance(node, exp.Mod):
        return Bound(exp.Mod(this=a, expression=_not_zero(b)), kind)
    return Bound(type(node)(this=a, expression=b), kind)


def _not_zero(divisor: exp.Expr) -> exp.Expr:
    """A division by zero is null in every dialect, so that one event with a zero cannot stop a stream."""
    return exp.func("NULLIF", divisor, exp.Literal.number(0))


def _quotient(a: exp.Expr, b: exp.Expr, kind: Type) -> exp.Expr:
    if kind.integral:
        return exp.cast(exp.IntDiv(this=a, expression=_not_zero(b)), kind.sql)
    return exp.Div(this=exp.cast(a, kind.sql), expression=_not_zero(exp.cast(b, kind.sql)), typed=True, safe=True)


def _comparison(node: exp.Binary, left: Bound, right: Bound) -> Bound:
    kinds = {side.type for side in (left, right) if side.type is not None}
    if len(kinds) == 2 and not all(kind.numeric for kind in kinds):
        raise PlanError(f"a {left.type} cannot be compared with a {right.type}")
    return Bound(type(node)(this=exp.paren(left.sql), expression=exp.paren(right.sql)), Type.BOOL)


def _logic(node: exp.Expr, scope: Scope) -> Bound:
    if isinstance(node, (exp.And, exp.Or)):
        sides = [condition(side, scope, "an operand of `and` and `or`") for side in (node.this, node.expression)]
        return Bound(type(node)(this=exp.paren(sides[0]), expression=exp.paren(sides[1])), Type.BOOL)
    if isinstance(node, exp.Not):
        return Bound(exp.Not(this=exp.paren(condition(node.this, scope, "the operand of `not`"))), Type.BOOL)
    if isinstance(node, exp.Is):
        return Bound(exp.Is(this=exp.paren(bind(node.this, scope).sql), expression=exp.Null()), Type.BOOL)
    if isinstance(node, exp.Neg):
        inner = bind(node.this, scope)
        if inner.type is not None and not inner.type.numeric:
            raise PlanError(f"a minus needs a number, not {inner.type}")
        return Bound(exp.Neg(this=exp.paren(inner.sql)), inner.type)
    raise PlanError(f"`{node.sql()}` cannot stand here")
