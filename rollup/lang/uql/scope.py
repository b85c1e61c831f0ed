"""Names and kinds: an expression of a query lowered to one of the engine, everything wrong in it refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rollup.core.errors import PlanError, RollupError
from rollup.engine import operators as op
from rollup.engine.expressions import All, Any_, Call, Const
from rollup.engine.expressions import Expr as Lowered
from rollup.engine.types import BOOL, DOUBLE, DURATION, LONG, STRING, TIMESTAMP
from rollup.lang.uql import tree
from rollup.lang.uql.catalog import Kind
from rollup.lang.uql.ingress import instant
from rollup.lang.uql.reader import span
from rollup.lang.uql.semantics import ARITHMETIC, COMPARISONS, SPAN_FUNCTIONS, negative

_LIMIT = 2**63


class Value(NamedTuple):
    """A lowered expression and the kind of its values."""

    expr: Lowered
    kind: Kind


class Scope:
    """The names that an expression may use. A name whose value is None means several things.

    >>> from rollup.engine.expressions import Field
    >>> scope = Scope({"x": Value(Field(0, 0, LONG), Kind.INTEGER)})
    >>> from rollup.lang.uql.tree import Name, Number, Binary
    >>> scope.condition(Binary(1, 3, "<", Name(1, 1, "x"), Number(1, 5, 2))).op.name
    '<'
    """

    def __init__(self, names: Mapping[str, Value | None]) -> None:
        self._names = names

    def condition(self, node: tree.Expr) -> Lowered:
        """A condition. Raises PlanError for anything else."""
        value = self.value(node)
        if value.kind is not Kind.BOOLEAN:
            raise _refused(node, f"a condition is needed here, not {_article(value.kind)}", "a comparison, as x > 0")
        return value.expr

    def value(self, node: tree.Expr) -> Value:
        """Any expression. Raises PlanError with its place for unknown names and kinds that do not fit."""
        match node:
            case tree.Name():
                return self._name(node)
            case tree.Number():
                return _number(node)
            case tree.Text():
                return Value(Const(node.value, STRING), Kind.TEXT)
            case tree.Time():
                return _time(node)
            case tree.Span():
                return Value(Const(node.microseconds, DURATION), Kind.SPAN)
            case tree.Unary():
                return self._unary(node)
            case tree.Call():
                return self._call(node)
            case tree.Binary():
                return self._binary(node)

    def _name(self, node: tree.Name) -> Value:
        if node.text in self._names:
            found = self._names[node.text]
            if found is None:
                raise _refused(node, f"{node.text} is the name of several columns here", "name them apart with as")
            return found
        if node.text in ("true", "false"):
            return Value(Const(node.text == "true", BOOL), Kind.BOOLEAN)
        raise _refused(node, f"unknown name: {node.text}", f"known here: {', '.join(self._names)}")

    def _unary(self, node: tree.Unary) -> Value:
        if node.operator == "not":
            return Value(Call(op.NOT, (self.condition(node.operand),), BOOL), Kind.BOOLEAN)
        value = self.value(node.operand)
        if value.kind not in (Kind.INTEGER, Kind.FLOAT, Kind.SPAN):
            raise _refused(node, f"a minus before {_article(value.kind)}", "numbers and spans have a sign")
        return Value(negative(value.expr), value.kind)

    def _call(self, node: tree.Call) -> Value:
        size = SPAN_FUNCTIONS.get(node.function)
        if size is None:
            hint = f"functions of a span are {', '.join(SPAN_FUNCTIONS)}; aggregates stand in the aggregate clause"
            raise _refused(node, f"unknown function: {node.function}", hint)
        values = [self.value(argument) for argument in node.arguments]
        if len(values) != 1 or values[0].kind is not Kind.SPAN:
            raise _refused(node, f"{node.function}(..) needs one span of time", "as in seconds(end - begin)")
        return Value(Call(op.DIVIDE_CUT, (values[0].expr, Const(size, LONG)), LONG), Kind.INTEGER)

    def _binary(self, node: tree.Binary) -> Value:
        if node.operator in ("and", "or"):
            parts = (self.condition(node.left), self.condition(node.right))
            return Value(All(parts) if node.operator == "and" else Any_(parts), Kind.BOOLEAN)
        left, right = self._operands(node)
        if node.operator in COMPARISONS:
            return self._comparison(node, left, right)
        found = ARITHMETIC.get((node.operator, left.kind, right.kind))
        if found is None:
            raise _refused(
                node, f"{_article(left.kind)} {node.operator} {_article(right.kind)} has no meaning", _COMPUTED
            )
        kind, build = found
        return Value(build(left.expr, right.expr), kind)

    def _operands(self, node: tree.Binary) -> tuple[Value, Value]:
        """Both sides; a text like "10 seconds" beside a time or a span is a span."""
        left, right = self.value(node.left), self.value(node.right)
        return _beside(left, right, node.left), _beside(right, left, node.right)

    def _comparison(self, node: tree.Binary, left: Value, right: Value) -> Value:
        comparable = left.kind is right.kind or (left.kind.numeric and right.kind.numeric)
        ordered = left.kind is not Kind.BOOLEAN or node.operator in ("==", "!=")
        if not comparable or not ordered:
            hint = "seconds(..) makes a number of a span" if Kind.SPAN in (left.kind, right.kind) else _ALIKE
            sides = f"{_article(left.kind)} {node.operator} {_article(right.kind)}"
            raise _refused(node, f"{sides} cannot be compared", hint)
        return Value(Call(COMPARISONS[node.operator], (left.expr, right.expr), BOOL), Kind.BOOLEAN)


_COMPUTED = "numbers compute with numbers, a time with a time or a span, a span with a number"
_ALIKE = """both of one kind: a number, a "text", a 'time', true or false (those are = or != alone)"""


def _beside(value: Value, other: Value, node: tree.Expr) -> Value:
    if isinstance(node, tree.Text) and other.kind in (Kind.TIME, Kind.SPAN):
        microseconds = span(node.value)
        if microseconds is not None:
            return Value(Const(microseconds, DURATION), Kind.SPAN)
    return value


def _number(node: tree.Number) -> Value:
    if isinstance(node.value, float):
        return Value(Const(node.value, DOUBLE), Kind.FLOAT)
    if not -_LIMIT <= node.value < _LIMIT:
        raise _refused(node, f"{node.value} is beyond 64 bits", f"{float(node.value)!r} is a float")
    return Value(Const(node.value, LONG), Kind.INTEGER)


def _time(node: tree.Time) -> Value:
    try:
        return Value(Const(instant(node.value), TIMESTAMP), Kind.TIME)
    except ValueError as problem:
        raise _refused(node, str(problem), "as in '2030-01-01T17:00:01-07:00'") from None


def _article(kind: Kind) -> str:
    return f"{'an' if kind is Kind.INTEGER else 'a'} {kind}"


def _refused(node: tree.Node, message: str, hint: str | None = None) -> RollupError:
    return PlanError(message, line=node.line, column=node.column, hint=hint)
