"""Expressions as Python functions: the source is generated once a plan, so that nothing is decided once a row.

>>> from rollup.engine.expressions import Call, Const, Field
>>> from rollup.engine.operators import ADD
>>> from rollup.engine.row import Row
>>> from rollup.engine.types import LONG
>>> plus_one = compiled(Call(ADD, (Field(0, 0, LONG), Const(1, LONG)), LONG))
>>> plus_one((Row(1, (41,)),), (), None), plus_one((Row(2, (None,)),), (), None)
(42, None)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from types import CodeType
from typing import Any, Literal, TypeVar

from rollup.engine.expressions import (
    All,
    Any_,
    Ask,
    Call,
    Case,
    Closure,
    Coalesce,
    Const,
    Expr,
    Field,
    Local,
    Now,
    RowOf,
    Slot,
    Variable,
    walk,
)
from rollup.engine.operators import AS_KEY
from rollup.engine.row import Row
from rollup.engine.types import DataType, Kind

Evaluate = Callable[[Any, Any, Any], Any]
"""`f(r, s, e)`: the rows of the inputs, the slots, the environment."""
_TOGETHER = 8
_NO_KEYS_YET = (Kind.LIST, Kind.DOUBLE, Kind.FLOAT, Kind.ANY)
Part = TypeVar("Part")


def compiled(expr: Expr) -> Evaluate:
    """The function of one expression; it returns the value."""
    return _function(Same((expr,)), "value")


def compiled_row(exprs: Sequence[Expr]) -> Evaluate:
    """The function of several expressions; it returns their values as a tuple."""
    return _function(Same(tuple(exprs)), "values")


def compiled_key(exprs: Sequence[Expr]) -> Evaluate:
    """The function of values by which rows are told apart: a list is its elements, and NaN is NaN."""
    return compiled_row(exprs if all(is_key(expr.type) for expr in exprs) else as_keys(exprs))


def as_keys(exprs: Sequence[Expr]) -> list[Expr]:
    """Expressions whose values can be keys."""
    return [expr if is_key(expr.type) else Call(AS_KEY, (expr,), expr.type) for expr in exprs]


def is_key(type: DataType) -> bool:
    """Whether each value of a type is a key as it is; lists are none, nor is what is no number."""
    return type.kind not in _NO_KEYS_YET


def predicate(expr: Expr | None) -> Callable[[Any, Any, Any], bool]:
    """The function of a condition; unknown does not pass, no condition always passes."""
    if expr is None:
        return lambda r, s, e: True
    return _function(Same((expr,)), "test")


def row_test(expr: Expr, place: int = 0) -> Callable[..., Callable[[Row], bool]]:
    """A condition on the row at `place`: `row_test(expr, place)(e, before)` is its function of that row alone."""
    return _row_test(Same((expr,)), place)


def row_key(exprs: Sequence[Expr]) -> Callable[..., Callable[[Row], tuple[Any, ...]]]:
    """Values over one row alone by which rows are told apart: `row_key(exprs)(e)` is their function of that row."""
    return _row_values(Same(tuple(as_keys(exprs))), 0)


def row_values(exprs: Sequence[Expr], place: int = 0) -> Callable[..., Callable[[Row], tuple[Any, ...]]]:
    """The same with values as they are, over the row of the input at `place`."""
    return _row_values(Same(tuple(exprs)), place)


def shared_test(expr: Expr, e: Any) -> Callable[[Row], bool]:
    """A condition on a row alone; where it reads nothing beside the row, all who ask for it get the very same function."""
    return _test_alone(Same((expr,))) or row_test(expr)(e)


@lru_cache(maxsize=4096)
def _test_alone(these: Same) -> Callable[[Row], bool] | None:
    """The function of a condition on a row that reads nothing else: the same one for all who ask."""
    outside = any(isinstance(each, (Ask, Variable, Now)) or _of_another(each) for each in walk(these.items[0]))
    return None if outside else row_test(these.items[0])(None)


def _of_another(expr: Expr) -> bool:
    return isinstance(expr, (Field, RowOf)) and expr.input != 0


class Same:
    """These very things as the key of a cache: every partition of a plan asks for the functions of the same ones."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items

    def __hash__(self) -> int:
        return hash(tuple(map(id, self.items)))

    def __eq__(self, other: object) -> bool:
        # Not ==, to which 0.0 and -0.0 are one; and what is equal by identity costs nothing to compare.
        return (
            isinstance(other, Same)
            and len(self.items) == len(other.items)
            and all(mine is others for mine, others in zip(self.items, other.items, strict=True))
        )


@lru_cache(maxsize=4096)
def _function(these: Same, form: Literal["value", "values", "test"]) -> Evaluate:
    source = Source()
    values = [source.emit(expr) for expr in these.items]
    match form:
        case "value":
            source.line(f"return {values[0]}")
        case "values":
            source.line(f"return ({''.join(value + ', ' for value in values)})")
        case "test":
            source.line(f"return {values[0]} is True")
    return source.function("f", "r, s, e")


@lru_cache(maxsize=4096)
def _row_test(these: Same, place: int) -> Callable[..., Callable[[Row], bool]]:
    source = Source({place: "row", **{known: f"before[{known}]" for known in range(place)}})

    def body() -> None:
        if any(isinstance(each, Ask) for each in walk(these.items[0])):
            source.line("r, s = (*before, row), ()")
        source.line(f"return {source.emit(these.items[0])} is True")

    source.block("def test(row):", body)
    source.line("return test")
    return source.function("bind", "e, before=()")


@lru_cache(maxsize=4096)
def _row_values(these: Same, place: int) -> Callable[..., Callable[[Row], tuple[Any, ...]]]:
    source = Source({place: "row"})

    def body() -> None:
        if any(isinstance(each, Ask) for expr in these.items for each in walk(expr)):
            source.line(f"r, s = ({'None, ' * place}row,), ()")
        source.line(f"return ({''.join(f'{source.emit(expr)}, ' for expr in these.items)})")

    source.block("def key(row):", body)
    source.line("return key")
    return source.function("bind", "e")


@lru_cache(maxsize=4096)
def _code(text: str, name: str) -> CodeType:
    """Constants and functions are no part of the text, so one code serves many expressions."""
    with warnings.catch_warnings():  # `3 is null` is the user's, and no word of ours is to be said of it
        warnings.simplefilter("ignore", SyntaxWarning)
        return compile(text, f"<{name}>", "exec")


class Source:
    """Python source that grows line by line: the temporaries, the indentation, and the objects that the lines name.

    `rows`: the names of inputs' rows where they are not those of `r`; `slots`: what stands for a slot, if not that of `s`.
    """

    def __init__(self, rows: Mapping[int, str] | None = None, slots: Sequence[str] | None = None) -> None:
        self._rows, self._slots = rows or {}, slots
        self.lines: list[str] = []
        self.objects: dict[str, Any] = {}
        self._depth = 1
        self._temporaries = 0

    def line(self, text: str) -> None:
        """One more line at the present depth."""
        self.lines.append("    " * self._depth + text)

    def block(self, head: str, body: Callable[[], None]) -> None:
        """A line and, one deeper, what `body` adds."""
        self.line(head)
        self._depth += 1
        body()
        self._depth -= 1

    def temporary(self) -> str:
        """A name that no other line uses."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def name(self, value: Any) -> str:
        """A name under which the lines find an object: constants and functions never become text."""
        name = f"o{len(self.objects)}"
        self.objects[name] = value
        return name

    def function(self, name: str, parameters: str) -> Callable[..., Any]:
        """The function of all the lines, which are its `__doc__`."""
        scope, text = dict(self.objects), f"def {name}({parameters}):\n" + "\n".join(self.lines) + "\n"
        exec(_code(text, name), scope)
        made = scope[name]
        made.__doc__ = text
        return made

    def emit(self, expr: Expr) -> str:
        """Add what computes an expression; the answer is the name or the atom that holds its value."""
        match expr:
            case Const():
                return (
                    repr(expr.value) if expr.value is None or type(expr.value) in (bool, int) else self.name(expr.value)
                )
            case Field():
                row = self._row(expr.input)
                read = f"{row}.values[{expr.index}]"
                return self._keep(f"None if {row} is None else {read}" if expr.optional else read)
            case RowOf():
                return self._row(expr.input)
            case Slot():
                return f"s[{expr.index}]" if self._slots is None else self._slots[expr.index]
            case Variable():
                return self._keep(f"e.variables[{self.name(expr.name)}]")
            case Now():
                return "e.now"
            case Ask():
                return self._keep(f"e.ask[{expr.index}](r, s, e)")
            case Local():
                return expr.name
            case Call():
                return self._call(expr)
            case All():
                return self._logic(expr.args, stop="False")
            case Any_():
                return self._logic(expr.args, stop="True")
            case Case():
                return self._case(expr)
            case Coalesce():
                return self._coalesce(expr.args)
            case Closure():
                return self._closure(expr)

    def _row(self, input: int) -> str:
        return self._rows.get(input, f"r[{input}]")

    def _keep(self, text: str) -> str:
        name = self.temporary()
        self.line(f"{name} = {text}")
        return name

    def _call(self, expr: Call) -> str:
        values = [self.emit(argument) for argument in expr.args]
        if isinstance(expr.op.python, str):
            text = expr.op.python.format(*values)
        else:
            text = f"{self.name(expr.op.python)}({', '.join(values)})"
        doubtful = [
            value
            for value, argument in zip(values, expr.args, strict=True)
            if not (isinstance(argument, Closure) or (isinstance(argument, Const) and argument.value is not None))
        ]
        if expr.op.strict and doubtful:
            unknown = " or ".join(f"{value} is None" for value in dict.fromkeys(doubtful))
            text = f"None if {unknown} else {text}"
        return self._keep(text)

    def _logic(self, args: Sequence[Expr], stop: str) -> str:
        """`and` and `or`: `stop` is the value that decides; unknown stays unless a later one decides."""
        result = self._keep({"False": "True", "True": "False"}[stop])

        def rest(args: Sequence[Expr]) -> None:
            value = self.emit(args[0])
            self.line(f"if {value} is {stop}: {result} = {stop}")
            self.line(f"elif {value} is None: {result} = None")
            if len(args) > 1:
                self.block(f"if {value} is not {stop}:", lambda: rest(args[1:]))

        self._in_turn(args, f"if {result} is not {stop}:", rest)
        return result

    def _in_turn(self, items: Sequence[Part], undecided: str, add: Callable[[Sequence[Part]], None]) -> None:
        """Add what many parts need, neighbours in one another, where those before them have left it undecided: Python
        knows no more than 100 levels of indentation."""
        for at in range(0, len(items), _TOGETHER):
            some = partial(add, items[at : at + _TOGETHER])
            if at:
                self.block(undecided, some)
            else:
                some()

    def _case(self, expr: Case) -> str:
        nothing = self.name(object())
        result = self._keep(nothing)
        undecided = f"if {result} is {nothing}:"

        def branch(branches: Sequence[tuple[Expr, Expr]]) -> None:
            condition, value = branches[0]
            test = self.emit(condition)
            self.block(f"if {test} is True:", lambda: self.line(f"{result} = {self.emit(value)}"))
            if len(branches) > 1:
                self.block("else:", lambda: branch(branches[1:]))

        self._in_turn(expr.branches, undecided, branch)
        self.block(undecided, lambda: self.line(f"{result} = {self.emit(expr.otherwise)}"))
        return result

    def _coalesce(self, args: Sequence[Expr]) -> str:
        result = self._keep(self.emit(args[0]))
        for arg in args[1:]:
            self.block(f"if {result} is None:", lambda arg=arg: self.line(f"{result} = {self.emit(arg)}"))
        return result

    def _closure(self, expr: Closure) -> str:
        name = self.temporary()

        def body() -> None:
            self.line(f"return {self.emit(expr.body)}")

        self.block(f"def {name}({', '.join(expr.parameters)}):", body)
        return name
