"""Expressions over the rows of a program, as lines of its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rollup.engine import operators
from rollup.engine.compiler.types import BOOL, CODE, FLOAT, INT, Tuple, Type
from rollup.engine.compiling import Source
from rollup.engine.expressions import Ask, Call, Case, Closure, Const, Expr, Field, Now, RowOf, Variable, lasting, walk
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.types import DataType, Kind

_TYPES: Mapping[Kind, Type] = {
    Kind.BOOL: BOOL,
    Kind.INT: INT,
    Kind.LONG: INT,
    Kind.DOUBLE: FLOAT,
    Kind.STRING: CODE,
    Kind.TIMESTAMP: INT,
}
_OF_TEXTS = (
    operators.EQUAL,
    operators.UNEQUAL,
    operators.SAME,
    operators.NOT_SAME,
    operators.IS_NULL,
    operators.NOT_NULL,
)
"""What a program does with texts, of which it sees codes: it only asks whether two are the same."""
_OF_NUMBERS = (
    *(operators.ADD, operators.SUBTRACT, operators.MULTIPLY, operators.NEGATE, *operators.WRAPPING.values()),
    *(operators.LEAST, operators.GREATEST, operators.TO_DOUBLE, operators.NOT, operators.IS_NULL, operators.NOT_NULL),
    *(operators.EQUAL, operators.UNEQUAL, operators.LESS, operators.LESS_EQUAL, operators.GREATER),
    *(operators.GREATER_EQUAL, operators.BETWEEN),
)


def type_of_value(kind: DataType) -> Type:
    """How a value of a type stands in a program. Raises NotLowered."""
    found = _TYPES.get(kind.kind)
    if found is None:
        raise NotLowered("value", str(kind))
    return found


def key_type(keys: Sequence[Expr], doubles: bool = False) -> Type:
    """The type of a key of some values; of none, a number. `doubles`: their bits may be keys."""
    found = [type_of_value(each.type).optional for each in keys]
    found = [INT.optional if doubles and each == FLOAT.optional else each for each in found]
    if any("float" in each.parts for each in found):
        raise NotLowered("value", "a double as a key")
    return INT if not found else found[0] if len(found) == 1 else Tuple(tuple(found))


def key_text(values: Sequence[str]) -> str:
    """The text of a key of some values."""
    return "0" if not values else values[0] if len(values) == 1 else f"({', '.join(values)})"


def with_bits(keys: Sequence[Expr], values: Sequence[str]) -> list[str]:
    """The texts of values as those of a key, in which doubles are their bits."""
    doubles = [type_of_value(each.type) is FLOAT for each in keys]
    found = zip(doubles, values, strict=True)
    return [f"(None if {value} is None else bits({value}))" if double else value for double, value in found]


def fields_of(exprs: Sequence[Expr | None], input: int) -> set[int]:
    """The fields of an input that expressions read."""
    return {
        each.index
        for expr in exprs
        if expr is not None
        for each in walk(expr)
        if isinstance(each, Field) and each.input == input
    }


def refuse_unsteady(exprs: Sequence[Expr | None]) -> None:
    """Raises NotLowered where something else changes what is said of a row: it would leave another group than its own."""
    if not lasting([each for each in exprs if each is not None]):
        raise NotLowered("value", "of a row, which the clock, a variable or a look-up changes")


def expressions(
    linker: Linker,
    name: str,
    arguments: str,
    exprs: Sequence[Expr],
    rows: Mapping[int, str],
    end: Callable[[list[str]], Sequence[str]],
    slots: Sequence[str] | None = None,
    before: Sequence[str] = (),
) -> str:
    """A function over expressions: `end` makes its last lines of the texts of their values, `before` come first."""
    text = ProgramText(linker, name, rows, slots)
    values = [text.emit(each) for each in exprs]
    return linker.function(name, arguments, [*before, *(line[4:] for line in text.lines), *end(values)])


def test(
    linker: Linker,
    name: str,
    tests: Sequence[Expr],
    rows: Mapping[int, str],
    arguments: str,
    slots: Sequence[str] | None = None,
    before: Sequence[str] = (),
) -> str:
    """A function that says whether conditions are all true."""
    all_true = lambda values: ["return " + " and ".join(f"{value} is True" for value in values)]  # noqa: E731
    return expressions(linker, name, arguments, tests, rows, all_true, slots, before)


class ProgramText(Source):
    """Lines of a program that compute expressions. `known`: the texts of fields that stand elsewhere than in a row."""

    def __init__(
        self,
        linker: Linker,
        name: str,
        rows: Mapping[int, str],
        slots: Sequence[str] | None = None,
        known: Mapping[tuple[int, int], str] | None = None,
    ) -> None:
        super().__init__(rows, slots)
        self._linker, self._name, self._constants = linker, name, 0
        self._known = {} if known is None else known

    def emit(self, expr: Expr) -> str:
        """Add what computes an expression; the answer is the text of its value. Raises NotLowered."""
        match expr:
            case Const() if expr.value is not None and not isinstance(expr.value, bool):
                self._constants += 1
                value = float(expr.value) if expr.type.kind is Kind.DOUBLE else expr.value
                return self._linker.constant(f"{self._name}_c{self._constants}", value, type_of_value(expr.type))
            case Field() if (expr.input, expr.index) in self._known:
                return self._known[expr.input, expr.index]
            case Field():
                type_of_value(expr.type)
                row = self._row(expr.input)
                read = f"{row}[{expr.index}]"
                return self._keep(f"None if {row} is None else {read}" if expr.optional else read)
            case Now():
                return "s.now"
            case Variable():
                return f"s.{self._linker.variable(expr.name, type_of_value(expr.type))}"
            case Ask() if expr.index < len(self._linker.asks):
                asked = self._linker.asks[expr.index]
                if asked.told and not self._rows:
                    raise NotLowered("lookup", "of a row, asked by a group")
                return self._keep(f"{asked.name}({'row' if asked.told else ''})")
            case Ask() | RowOf() | Closure():
                raise NotLowered("lookup", type(expr).__name__)
            case _:
                return super().emit(expr)

    def name(self, value: Any) -> str:
        """An object of Python has no name in a program."""
        raise NotLowered("function", getattr(value, "__name__", type(value).__name__))

    def _call(self, expr: Call) -> str:
        operator = expr.op
        if operator.field is not None:
            raise NotLowered("value", "a row in a row")
        texts = any(each.type.kind is Kind.STRING for each in expr.args)
        if not any(operator is each for each in (_OF_TEXTS if texts else _OF_NUMBERS)):
            raise NotLowered("function", f"{operator.name}{' of texts' if texts else ''}")
        if isinstance(operator.python, str):
            return super()._call(expr)
        assert operator.compiled is not None
        names = [f"a{i}" for i in range(len(expr.args))]
        spelled = "".join(each if each.isalnum() else f"{ord(each):x}" for each in operator.name)
        value = operator.compiled.format(*names)
        self._linker.function(f"native_{spelled}", ", ".join(names), [f"return wrapped({value})"])
        text = f"native_{spelled}({', '.join(f'{{{i}}}' for i in range(len(names)))})"
        return super()._call(replace(expr, op=replace(operator, python=text)))

    def _case(self, expr: Case) -> str:
        result = self.temporary()

        def branch(branches: Sequence[tuple[Expr, Expr]]) -> None:
            if not branches:
                self.line(f"{result} = {self.emit(expr.otherwise)}")
                return
            condition, value = branches[0]
            chosen = self.emit(condition)
            self.block(f"if {chosen} is True:", lambda: self.line(f"{result} = {self.emit(value)}"))
            self.block("else:", lambda: branch(branches[1:]))

        branch(expr.branches)
        return result
