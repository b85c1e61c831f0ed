"""Names and types of expressions resolved against a scope; the result is SQL that every dialect prints.

Numbers follow SiddhiQL: an operation has the type of its widest operand and whole numbers divide to whole numbers.
Nulls follow SQL: a comparison with null is unknown and does not pass a filter. An operation whose result leaves its
type is null; no expression raises, whatever the values: one event must not stop a stream, nor one row an answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from rollup.core.dialects import Checked, Quotient, Remainder, not_zero, widened
from rollup.core.errors import PlanError, RollupError
from rollup.plan.app import position
from rollup.plan.functions import Bound, as_type, call, with_decimals
from rollup.plan.likeness import attribute_hint
from rollup.plan.reading import Unreadable, read
from rollup.plan.types import Type, fitting

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
            raise PlanError(f"unknown attribute {wanted!r}", hint=attribute_hint(column.name, known))
        return Bound(found.sql.copy(), found.type)


def bind(node: exp.Expr, scope: Scope) -> Bound:
    """The SQL and type of an expression. Raises PlanError with the position of the part that is wrong."""
    try:
        return _bind(node, scope)
    except RollupError as problem:
        raise problem.at(*position(node)) from None


def ranked(node: exp.Expr, kind: Type | None) -> exp.Expr:
    """An expression as GROUP BY and ORDER BY take it: a bare constant would be the number of a column there."""
    return node if node.find(exp.Column) else exp.cast(node, (kind or Type.STRING).sql)


FILTER = "the filter of a source"


def condition(node: exp.Expr, scope: Scope, what: str) -> exp.Expr:
    """The SQL of a filter; raises PlanError unless it is a bool."""
    bound = bind(node, scope)
    if bound.type is not Type.BOOL:
        raise PlanError(f"{what} must be a bool, not {bound.type}", hint="a comparison, such as v > 0 or k == 'a'").at(
            *position(node)
        )
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
    if isinstance(node, exp.Placeholder):
        return Bound(exp.Placeholder(this=node.name), node.meta["type"])
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
    """A constant. Raises PlanError for a number that its type does not hold."""
    kind: Type = node.meta.get("type") or (Type.STRING if node.is_string else Type.LONG if node.is_int else Type.DOUBLE)
    if kind.numeric and not _holds(kind, node.name):
        raise PlanError(f"{node.name} is no {kind}", hint=f"a {kind} is {_RANGES[kind]}")
    plain = exp.Literal(this=node.this, is_string=node.is_string)
    return Bound(plain if kind in (Type.INT, Type.STRING) else exp.cast(plain, kind.sql), kind)


def _holds(kind: Type, digits: str) -> bool:
    if kind.integral:
        return -(2 ** (kind.bits - 1)) <= int(digits) < 2 ** (kind.bits - 1)
    return abs(float(digits)) <= (_GREATEST_FLOAT if kind is Type.FLOAT else sys.float_info.max)


_GREATEST_FLOAT = 3.4028234663852886e38
_RANGES = {
    Type.INT: "-2147483648 to 2147483647",
    Type.LONG: "-9223372036854775808 to 9223372036854775807",
    Type.FLOAT: "at most 3.4028235e38",
    Type.DOUBLE: "at most 1.7976931348623157e308",
}


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
    left, right = with_decimals((left, right))
    one, other = left.type or Type.INT, right.type or Type.INT
    if (one.exact or other.exact) and isinstance(node, exp.Mul) and all(any(each.digits) for each in (one, other)):
        (p, s), (q, t) = one.digits, other.digits
        kind = fitting(p + q, s + t, f"products of {one} and {other}")
        # DuckDB multiplies in the width of its operands up to 18 digits: one of them has that of the product.
        a, b = _decimal(left, p + q, s), _decimal(right, q, t)
        return Bound(exp.cast(exp.Mul(this=a, expression=b), kind.sql), kind)
    kind = one.widest(other)
    if kind.exact:
        if isinstance(node, (exp.Div, exp.Mod)):
            kind = Type.DOUBLE
        else:
            kind = fitting(kind.digits[0] + 1, kind.digits[1], f"sums of {one} and {other}")
    a, b = (as_type(side, kind) for side in (left, right))
    return Bound(_whole(node, a, b, kind) if kind.integral else _real(node, a, b), kind)


def _decimal(side: Bound, precision: int, scale: int) -> exp.Expr:
    """A whole number or decimal as a decimal of so many digits."""
    return exp.cast(exp.paren(side.sql), Type.decimal(precision, scale).sql)


def _whole(node: exp.Binary, a: exp.Expr, b: exp.Expr, kind: Type) -> exp.Expr:
    """An operation of whole numbers, null where its result leaves their type."""
    if isinstance(node, exp.Div):
        return Quotient(this=a, expression=b, to=kind.sql)
    left, right = (exp.paren(widened(side, kind.sql)) for side in (a, b))
    by = not_zero(right) if isinstance(node, exp.Mod) else right
    return Checked(this=type(node)(this=left, expression=by), to=kind.sql)


def _real(node: exp.Binary, a: exp.Expr, b: exp.Expr) -> exp.Expr:
    a, b = exp.paren(a), exp.paren(b)
    if isinstance(node, exp.Div):
        return exp.Div(this=a, expression=not_zero(b), typed=True, safe=True)
    return Remainder(this=a, expression=b) if isinstance(node, exp.Mod) else type(node)(this=a, expression=b)


def _negated(node: exp.Neg, scope: Scope) -> Bound:
    digits = node.this.unnest()
    if isinstance(digits, exp.Literal) and not digits.is_string:  # the least long is a number, 2^63 is none
        negative = exp.Literal(this=f"-{digits.name}", is_string=False)
        negative.meta["type"] = digits.meta.get("type")
        found = _literal(negative)
        return Bound(exp.paren(found.sql), found.type)
    inner = bind(node.this, scope)
    if inner.type is not None and not inner.type.numeric:
        raise PlanError(f"a minus needs a number, not {inner.type}")
    if inner.type is None or not inner.type.integral:
        return Bound(exp.Neg(this=exp.paren(inner.sql)), inner.type)
    to = inner.type.sql
    return Bound(Checked(this=exp.Neg(this=exp.paren(widened(inner.sql, to))), to=to), inner.type)


def _comparison(node: exp.Binary, left: Bound, right: Bound) -> Bound:
    left, right = _of_times(left, right), _of_times(right, left)
    kinds = {side.type for side in (left, right) if side.type is not None}
    if len(kinds) == 2 and not all(kind.numeric for kind in kinds):
        raise PlanError(
            f"a {left.type} cannot be compared with a {right.type}", hint=f"convert one: convert(x, '{right.type}')"
        )
    if any(kind.exact for kind in kinds):
        left, right = with_decimals((left, right))
        kind = (left.type or Type.INT).widest(right.type or Type.INT)
        left, right = (Bound(as_type(side, kind), kind) for side in (left, right))
    return Bound(type(node)(this=exp.paren(left.sql), expression=exp.paren(right.sql)), Type.BOOL)


def _of_times(side: Bound, other: Bound) -> Bound:
    """A constant text beside an instant or a day as one. Raises PlanError for a text that is none."""
    if other.type is None or not other.type.timed or not (isinstance(side.sql, exp.Literal) and side.sql.is_string):
        return side
    try:
        written = str(read(side.sql.name, other.type))
    except Unreadable:
        raise PlanError(f"{side.sql.name!r} is no {other.type}", hint="e.g. '2018-01-05'") from None
    return Bound(exp.cast(exp.Literal.string(written), other.type.sql), other.type)


def _operand(side: exp.Expr) -> str:
    """What a side of `and` and `or` is called; the filters of a source stand in one `and`."""
    return FILTER if side.unnest().meta.get("filter") else "an operand of `and` and `or`"


def _logic(node: exp.Expr, scope: Scope) -> Bound:
    if isinstance(node, (exp.And, exp.Or)):
        sides = [condition(side, scope, _operand(side)) for side in (node.this, node.expression)]
        return Bound(type(node)(this=exp.paren(sides[0]), expression=exp.paren(sides[1])), Type.BOOL)
    if isinstance(node, exp.Not):
        return Bound(exp.Not(this=exp.paren(condition(node.this, scope, "the operand of `not`"))), Type.BOOL)
    if isinstance(node, exp.Is):
        return Bound(exp.Is(this=exp.paren(bind(node.this, scope).sql), expression=exp.Null()), Type.BOOL)
    if isinstance(node, exp.Neg):
        return _negated(node, scope)
    if isinstance(node, exp.Like):
        side, pattern = bind(node.this, scope), bind(node.expression, scope)
        if side.type not in (Type.STRING, None):
            raise PlanError(f"`like` compares texts, not {side.type}", hint="convert(x, 'string')")
        return Bound(exp.Like(this=exp.paren(side.sql), expression=pattern.sql), Type.BOOL)
    raise PlanError(f"`{node.sql()}` cannot stand here")
