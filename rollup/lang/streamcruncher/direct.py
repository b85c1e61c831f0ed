"""A select that needs no database: columns and conditions of one window's rows, evaluated row by row.

Most running queries are one: a status, comparisons, columns, a case. What is anything more (a join, a group, an order of
its own, a function, a type whose comparison SQL has its own view of) is left to the database, which answers the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rollup.core.conditions import conjuncts
from rollup.engine import operators as op
from rollup.engine.expressions import All, Any_, Call, Case, Const, Expr, Field
from rollup.engine.operators import Operator
from rollup.engine.rows.cycles.relating import AGE, STATUS, Projection
from rollup.engine.types import BOOL, DOUBLE, INT, LONG, NULL, STRING, TIMESTAMP, DataType, RowType

_COMPARISONS: Mapping[type[exp.Expr], Operator] = {
    exp.EQ: op.EQUAL,
    exp.NEQ: op.UNEQUAL,
    exp.LT: op.LESS,
    exp.LTE: op.LESS_EQUAL,
    exp.GT: op.GREATER,
    exp.GTE: op.GREATER_EQUAL,
}
_NUMBERS = (INT, LONG, DOUBLE, TIMESTAMP)
_WHOLE = (INT, LONG, TIMESTAMP)
_STATUSES: Mapping[tuple[type[exp.Expr], int], frozenset[int]] = {
    (exp.EQ, 1): frozenset({1}),
    (exp.EQ, -1): frozenset({-1}),
    (exp.GTE, 0): frozenset({0, 1}),
}
_PARTS = {"expressions", "from_", "from", "where", "order", "kind", "hint", "operation_modifiers"}


class _NotDirect(Exception):
    """The select is more than this."""


def direct(select: exp.Expr, tables: Mapping[str, RowType]) -> Projection | None:
    """The projection that a select is; None: the database must answer it."""
    try:
        return _Direct(select, tables).projection()
    except _NotDirect:
        return None


class _Direct:
    def __init__(self, select: exp.Expr, tables: Mapping[str, RowType]) -> None:
        if not isinstance(select, exp.Select) or any(
            value for name, value in select.args.items() if name not in _PARTS
        ):
            raise _NotDirect
        found = list(select.find_all(exp.Table))
        if len(found) != 1 or found[0].parent_select is not select or found[0].name not in tables or len(tables) > 1:
            raise _NotDirect
        self._select, self._table = select, found[0]
        self._rows = tables[self._table.name]
        self._statuses: frozenset[int] | None = None

    def projection(self) -> Projection:
        """The statuses, the condition, the columns."""
        self._by_age()
        where = self._select.args.get("where")
        tests = [test for part in conjuncts(where and where.this) if (test := self._unless_status(part)) is not None]
        columns = [self._column(each) for each in self._select.expressions]
        names = tuple(name for name, _ in columns)
        test = None if not tests else tests[0] if len(tests) == 1 else All(tuple(tests))
        statuses = self._statuses or frozenset({1})  # of alerts, which are all new, none is asked
        return Projection(self._table.name, statuses, test, tuple(expr for _, expr in columns), names)

    def _by_age(self) -> None:
        order = self._select.args.get("order")
        keys = (
            []
            if order is None
            else [each.this if isinstance(each, exp.Ordered) else each for each in order.expressions]
        )
        if [key.name for key in keys if isinstance(key, exp.Column)] != [AGE] or len(keys) != 1:
            raise _NotDirect

    def _unless_status(self, part: exp.Expr) -> Expr | None:
        """A condition; one of the status is kept apart."""
        if isinstance(part.this, exp.Column) and part.this.name == STATUS:
            statuses = _STATUSES.get((type(part), _whole(part.expression)))
            if statuses is None or self._statuses is not None:
                raise _NotDirect
            self._statuses = statuses
            return None
        return self._condition(part)

    def _column(self, node: exp.Expr) -> tuple[str, Expr]:
        expr = self._bind(node.this if isinstance(node, exp.Alias) else node)
        if not node.output_name:
            raise _NotDirect
        return node.output_name, expr

    def _condition(self, node: exp.Expr) -> Expr:
        bound = self._bind(node)
        if bound.type != BOOL:
            raise _NotDirect
        return bound

    def _bind(self, node: exp.Expr) -> Expr:
        match node:
            case exp.Paren():
                return self._bind(node.this)
            case exp.Column():
                return self._field(node)
            case exp.Literal():
                return _literal(node)
            case exp.And() | exp.Or():
                sides = tuple(self._condition(side) for side in (node.this, node.expression))
                return All(sides) if isinstance(node, exp.And) else Any_(sides)
            case exp.Not():
                return Call(op.NOT, (self._condition(node.this),), BOOL)
            case exp.Is() if isinstance(node.expression, exp.Null):
                return Call(op.IS_NULL, (self._bind(node.this),), BOOL)
            case exp.Case() if node.this is None:
                return self._case(node)
            case _:
                return self._comparison(node)

    def _field(self, node: exp.Column) -> Expr:
        known = {name.lower(): (place, kind) for place, (name, kind) in enumerate(self._rows.fields.items())}
        place, kind = known.get(node.name.lower(), (None, NULL))
        if place is None or len(known) < len(self._rows.fields) or node.table not in ("", self._table.alias_or_name):
            raise _NotDirect
        if kind not in (*_NUMBERS, STRING, BOOL):
            raise _NotDirect
        return Field(0, place, kind)

    def _comparison(self, node: exp.Expr) -> Expr:
        operator = _COMPARISONS.get(type(node))
        if operator is None:
            raise _NotDirect
        sides = (self._bind(node.this), self._bind(node.expression))
        kinds = {side.type for side in sides}
        if not (kinds <= set(_WHOLE) or kinds <= {INT, DOUBLE} or kinds == {STRING}):
            raise _NotDirect  # 64-bit numbers beside doubles, and texts beside numbers, are converted by the database
        return Call(operator, sides, BOOL)

    def _case(self, node: exp.Case) -> Expr:
        if node.args.get("default") is None:
            raise _NotDirect
        branches = tuple((self._condition(each.this), self._bind(each.args["true"])) for each in node.args["ifs"])
        otherwise = self._bind(node.args["default"])
        if len({otherwise.type, *(value.type for _, value in branches)}) > 1:
            raise _NotDirect
        return Case(branches, otherwise, otherwise.type)


def _literal(node: exp.Literal) -> Expr:
    if node.is_string:
        return Const(node.this, STRING)
    kind: DataType = INT if node.this.isdigit() and int(node.this) < 2**31 else DOUBLE
    if kind == DOUBLE and ("." not in node.this or "e" in node.this.lower() or len(node.this) > 15):
        raise _NotDirect
    return Const(int(node.this) if kind == INT else float(node.this), kind)


def _whole(node: exp.Expr) -> int:
    sign, node = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    return sign * int(node.this) if isinstance(node, exp.Literal) and str(node.this).isdigit() else 99
