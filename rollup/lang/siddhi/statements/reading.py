"""SiddhiQL's expressions, read into `rollup.lang.siddhi.statements.tree`."""

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from rollup.engine.operators import single
from rollup.lang.siddhi.statements import tree
from rollup.plan.types import Type

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


def place_of(meta: Meta) -> tree.Place:
    """Where a rule begins, as line and column."""
    return (getattr(meta, "line", 1), getattr(meta, "column", 1))


@v_args(meta=True)
class ReadExpressions(Transformer[Token, Any]):
    """Constants, names, operations: one method a rule of the grammar."""

    def name(self, meta: Meta, parts: list[Token]) -> str:
        return str(parts[0]).strip("`")

    def string(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(str(parts[0])[1:-1], Type.STRING, place_of(meta))

    def integer(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        value = int(parts[0])
        return tree.Constant(value, Type.INT if value < 2**31 else Type.LONG, place_of(meta))

    def long(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(int(parts[0][:-1]), Type.LONG, place_of(meta))

    def float_(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(single(float(parts[0][:-1])), Type.FLOAT, place_of(meta))

    def double(self, meta: Meta, parts: list[Token]) -> tree.Constant:
        return tree.Constant(float(parts[0].rstrip("dD")), Type.DOUBLE, place_of(meta))

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
        return tree.Constant(total, Type.LONG, place_of(meta))

    def reference(self, meta: Meta, parts: list[str]) -> tree.Name:
        return tree.Name(parts[0], None, None, place_of(meta))

    def qualified(self, meta: Meta, parts: list[Any]) -> tree.Name:
        stream = parts[-2] if parts[0] is None else f"#{parts[-2]}"
        return tree.Name(parts[-1], stream, None, place_of(meta))

    def indexed(self, meta: Meta, parts: list[Any]) -> tree.Name:
        return tree.Name(parts[2], parts[0], parts[1], place_of(meta))

    def indexed_event(self, meta: Meta, parts: list[Any]) -> tree.Name:
        return tree.Name(None, parts[0], parts[1], place_of(meta))

    def place(self, meta: Meta, parts: list[Any]) -> int:
        tokens = [part for part in parts if part is not None]
        if tokens[0].type == "LAST":
            return -1 - (int(tokens[-1]) if len(tokens) > 1 else 0)
        return int(tokens[0])

    def function(self, meta: Meta, parts: list[Any]) -> tree.Function:
        space, name, *rest = parts
        arguments = tuple(part for part in rest if part is not None and not isinstance(part, Token))
        return tree.Function(f"{space}:{name}" if space else name, arguments, place_of(meta))

    def folded_condition(self, meta: Meta, parts: list[Any]) -> tree.Function:
        return tree.Function(str(parts[0]).lower(), (parts[-1],), place_of(meta))

    def call(self, meta: Meta, parts: list[Any]) -> tree.Function:
        return tree.Function(parts[0], tuple(part for part in parts[1:] if part is not None), place_of(meta))

    def operation(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation(str(parts[1]), (parts[0], parts[2]), place_of(meta))

    def is_null(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("is null", (parts[0],), place_of(meta))

    def in_table(self, meta: Meta, parts: list[Any]) -> tree.InTable:
        return tree.InTable(parts[0], parts[1], place_of(meta))

    def negative(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("-", (parts[-1],), place_of(meta))

    def not_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("not", (parts[-1],), place_of(meta))

    def and_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("and", tuple(p for p in parts if not isinstance(p, Token)), place_of(meta))

    def or_(self, meta: Meta, parts: list[Any]) -> tree.Operation:
        return tree.Operation("or", tuple(p for p in parts if not isinstance(p, Token)), place_of(meta))
