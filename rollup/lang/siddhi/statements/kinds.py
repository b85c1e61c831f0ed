"""Which types fit where: an object has no order and tells no rows apart, and functions say what they take."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.core.errors import PlanError
from rollup.engine.expressions import Call, Const, Expr
from rollup.engine.types import ANY, NULL, STRING, DataType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements import semantics

_CURE = "convert(x, 'string')"


def keyable(kind: DataType, node: tree.Expression | tree.Annotation, what: str) -> None:
    """Raise PlanError when rows cannot be told apart by values of a type."""
    if kind == ANY:
        raise PlanError(f"{what} is an object, by which rows are not told apart", hint=_CURE).at(*node.place)


def keyed(value: Expr) -> Expr:
    """What rows are told apart by: an object is known by its text."""
    return Call(semantics.AS_TEXT, (value,), STRING) if value.type == ANY else value


def ordered(kind: DataType, node: tree.Expression, what: str) -> None:
    """Raise PlanError when values of a type are neither greater nor less than others."""
    if kind == ANY:
        raise PlanError(f"{what} is an object, which has no order", hint=_CURE).at(*node.place)


def comparable(values: Sequence[Expr]) -> None:
    """Raise PlanError when values are not compared: objects, and types that differ and are no numbers."""
    kinds = {value.type for value in values} - {NULL}
    if ANY in kinds:
        raise PlanError("an object cannot be compared", hint=_CURE)
    if len(kinds) == 2 and not all(kind.numeric for kind in kinds):
        raise PlanError(f"a {values[0].type} cannot be compared with a {values[1].type}")


def taken(node: tree.Function, scalar: semantics.Scalar, arguments: Sequence[Expr]) -> None:
    """Raise PlanError when a function is given too many arguments, too few, or one of a type that it does not take."""
    if len(arguments) < scalar.least or (scalar.most is not None and len(arguments) > scalar.most):
        raise PlanError(f"{node.name} takes {scalar.least} argument(s), not {len(arguments)}")
    for argument, written in zip(arguments, node.arguments, strict=True):
        kind = argument.type
        if scalar.takes == "number" and not kind.numeric and kind != NULL:
            raise PlanError(f"{node.name} takes a number, not {kind}", hint="convert(x, 'double')").at(*written.place)
        if scalar.takes == "text" and kind not in (STRING, NULL):
            raise PlanError(f"{node.name} takes a string, not {kind}", hint=_CURE).at(*written.place)


def assigned(value: Expr, kind: DataType, at: tree.Assignment) -> Expr:
    """A value as a column of a table holds it; numbers become those of the column. Raises PlanError for other types."""
    if value.type == kind or NULL in (value.type, kind) or kind == ANY:
        return value
    if value.type.numeric and kind.numeric:
        return Call(semantics.CONVERT, (value, Const(str(kind), STRING)), kind)
    column = at.column.attribute
    hint = f"convert(x, '{kind}')"
    raise PlanError(f"{column} is {kind}, and cannot be set to {value.type}", hint=hint).at(*at.column.place)


def alike(given: DataType, wanted: DataType) -> bool:
    """Whether a column that is selected goes into a column of its target."""
    return given in (wanted, NULL) or wanted == ANY
