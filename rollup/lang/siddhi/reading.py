"""SiddhiQL's expressions, read into `rollup.lang.siddhi.tree`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from rollup.core.errors import PlanError
from rollup.lang.siddhi import tree
from rollup.plan.types import Type, parse_type, written

UNITS = {
    "millisec": 1,
    "sec": 1000,
    "min": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
    "month": 2_592_000_000,
    "year": 31_536_000_000,
}
"""Milliseconds of a unit, by the word it begins with; a month is 30 days, a year 365."""
_SAME = {"=": "==", "<>": "!="}
"""Signs of SQL, which says the same by others."""


def place_of(meta: Meta) -> tree.Place:
    """Where a rule begins, as line and column."""
    return (getattr(meta, "line", 1), getattr(meta, "column", 1))


def _operands(parts: list[Any]) -> tuple[tree.Expression, ...]:
    """The expressions among the parts of a rule, without its words and signs."""
    return tuple(part for part in parts if isinstance(part, tree.Expression))


def _unless(parts: list[Any], found: tree.Expression) -> tree.Expression:
    """What was found, or its opposite where `not` stands among the parts."""
    negated = any(isinstance(part, Token) and part.type == "NOT" for part in parts)
    return tree.Operation("not", (found,), found.place) if negated else found


class ReadExpressions(Transformer[Token, Any]):
    """Attributes, kinds of joins, constants, names, operations: one method a rule of the grammar."""

    def attribute(self, meta: Meta, parts: list[Any]) -> tuple[str, Type]:
        return str(parts[0]), parts[1]

    def type(self, meta: Meta, parts: list[str | None]) -> Type:
        return parse_type(written(parts), *place_of(meta))

    def inner(self, meta: Meta, parts: list[Any]) -> str:
        return "inner"

    def left(self, meta: Meta, parts: list[Any]) -> str:
        return "left"

    def right(self, meta: Meta, parts: list[Any]) -> str:
        return "right"

    def full(self, meta: Meta, parts: list[Any]) -> str:
        return "full"

    def name(self, meta: Meta, parts: list[Token]) -> str:
        return str(parts[0]).strip("`")

    def string(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return self._constant(meta, str(parts[0])[1:-1], Type.STRING, str)

    def integer(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return self._constant(meta, str(parts[0]), Type.INT if int(parts[0]) < 2**31 else Type.LONG, int)

    def long(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return self._constant(meta, parts[0][:-1], Type.LONG, int)

    def float_(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return self._constant(meta, parts[0][:-1], Type.FLOAT, float)

    def double(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return self._constant(meta, parts[0].rstrip("dD"), Type.DOUBLE, float)

    def _constant(self, meta: Meta, text: str, kind: Type, value: Callable[[str], Any]) -> tree.Constant:
        return tree.Constant(value(text), kind, place_of(meta), text)

    def true(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(True, Type.BOOL, place_of(meta))

    def false(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(False, Type.BOOL, place_of(meta))

    def null(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(None, None, place_of(meta))

    def time(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        total = 0
        for amount, unit in zip(parts[::2], parts[1::2], strict=True):
            total += int(amount) * next(ms for word, ms in UNITS.items() if unit.lower().startswith(word))
        return tree.Constant(total, Type.LONG, place_of(meta), str(total))

    def reference(self, meta: Meta, parts: list[str]) -> tree.Name:
        return tree.Name(str(parts[0]), None, None, place_of(meta))

    def qualified(self, meta: Meta, parts: list[Any]) -> tree.Name:
        stream = str(parts[-2]) if parts[0] is None else f"#{parts[-2]}"
        return tree.Name(str(parts[-1]), stream, None, place_of(meta))

    def indexed(self, meta: Meta, parts: list[Any]) -> tree.Name:
        return tree.Name(str(parts[2]), str(parts[0]), parts[1], place_of(meta))

    def indexed_event(self, meta: Meta, parts: list[Any]) -> tree.Name:
        return tree.Name(None, str(parts[0]), parts[1], place_of(meta))

    def place(self, meta: Meta, parts: list[Any]) -> int:
        tokens = [part for part in parts if part is not None]
        if tokens[0].type == "LAST":
            return -1 - (int(tokens[-1]) if len(tokens) > 1 else 0)
        return int(tokens[0])

    def function(self, meta: Meta, parts: list[Any]) -> tree.Function:
        space, name, *rest = parts
        called, arguments = f"{space}:{name}" if space else str(name), _operands(rest)
        if any(isinstance(part, Token) and part.type == "DISTINCT" for part in rest):
            if called.lower() != "count" or len(arguments) != 1:
                raise PlanError("distinct stands in count(distinct x)", hint="distinctCount(x)").at(*place_of(meta))
            called = "distinctCount"
        where = next((part[0] for part in rest if isinstance(part, list)), None)
        return tree.Function(called, arguments, place_of(meta), where)

    def filtered(self, meta: Meta, parts: list[tree.Expression]) -> list[tree.Expression]:
        return parts

    def folded_condition(self, meta: Meta, parts: list[Any]) -> tree.Function:
        return tree.Function(str(parts[0]).lower(), (parts[-1],), place_of(meta))

    def call(self, meta: Meta, parts: list[Any]) -> tree.Function:
        return tree.Function(parts[0], tuple(part for part in parts[1:] if part is not None), place_of(meta))

    def when(self, meta: Meta, parts: list[tree.Expression]) -> tuple[tree.Expression, tree.Expression]:
        return parts[0], parts[1]

    def case(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        of, *choices, made = parts
        made = tree.Constant(None, None, place_of(meta)) if made is None else made
        for condition, value in reversed(choices):
            if of is not None:
                condition = tree.Operation("==", (of, condition), condition.place)
            made = tree.Function("ifThenElse", (condition, value, made), place_of(meta))
        return made

    def operation(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        sign = str(parts[1])
        return tree.Operation(_SAME.get(sign, sign), (parts[0], parts[2]), place_of(meta))

    def is_null(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        return _unless(parts, tree.Operation("is null", (parts[0],), place_of(meta)))

    def among(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        one, *listed = _operands(parts)
        equal = tuple(tree.Operation("==", (one, each), place_of(meta)) for each in listed)
        return _unless(parts, equal[0] if len(equal) == 1 else tree.Operation("or", equal, place_of(meta)))

    def between(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        one, low, high = _operands(parts)
        both = tuple(tree.Operation(sign, (one, each), place_of(meta)) for sign, each in ((">=", low), ("<=", high)))
        return _unless(parts, tree.Operation("and", both, place_of(meta)))

    def like(self, meta: Meta, parts: list[Any]) -> tree.Expression:
        pattern = self.string(meta, [parts[-1]])
        if "\\" in pattern.value:
            problem = PlanError("a pattern of like has no backslash", hint="% stands for any text, _ for any letter")
            raise problem.at(parts[-1].line, parts[-1].column)
        return _unless(parts, tree.Operation("like", (parts[0], pattern), place_of(meta)))

    def in_table(self, meta: Meta, parts: list[Any]) -> tree.InTable:
        return tree.InTable(parts[0], str(parts[1]), place_of(meta))

    def negative(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("-", (parts[-1],), place_of(meta))

    def not_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("not", (parts[-1],), place_of(meta))

    def and_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("and", _operands(parts), place_of(meta))

    def or_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("or", _operands(parts), place_of(meta))


v_args(meta=True)(ReadExpressions)  # in place: as a decorator it would hide the type of the class
