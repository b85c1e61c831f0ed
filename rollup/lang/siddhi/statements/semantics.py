"""SiddhiQL's words as tables: which operator, function, aggregate and type each stands for.

Numbers: an operation has the type of its widest operand, whole numbers divide to whole numbers, and what does not fit
or is divided by zero is null. Nulls follow SQL.
"""

from __future__ import annotations

import logging
import math
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine import reals
from rollup.engine.aggregates import known as agg
from rollup.engine.operators import Operator
from rollup.engine.sizes import joined, replaced
from rollup.engine.types import ANY, BOOL, DOUBLE, FLOAT, INT, LONG, NULL, STRING, DataType, Kind
from rollup.plan import aggregates
from rollup.plan.aggregates import Gives, Summary
from rollup.plan.types import Type


class _Types(dict[Type, DataType]):
    def __missing__(self, kind: Type) -> DataType:
        raise PlanError(f"statements carry no {kind}", hint=f"one of {', '.join(self)}")


TYPES: Mapping[Type, DataType] = _Types(
    {
        Type.INT: INT,
        Type.LONG: LONG,
        Type.FLOAT: FLOAT,
        Type.DOUBLE: DOUBLE,
        Type.STRING: STRING,
        Type.BOOL: BOOL,
        Type.OBJECT: ANY,
    }
)
COMPARISONS: Mapping[str, Operator] = {
    "==": op.EQUAL,
    "!=": op.UNEQUAL,
    ">": op.GREATER,
    ">=": op.GREATER_EQUAL,
    "<": op.LESS,
    "<=": op.LESS_EQUAL,
}


FITS: Mapping[Kind, Operator] = {Kind.INT: op.FIT_INT, Kind.LONG: op.FIT_LONG, Kind.FLOAT: op.FIT_FLOAT}
"""What a result of each type goes through, so that numbers never wrap."""


def arithmetic(sign: str, kind: DataType) -> Operator:
    """The operator of a sign between numbers whose widest type is `kind`."""
    if sign == "/":
        return op.DIVIDE_CUT if kind.integral else op.DIVIDE_NULL
    return {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "%": op.REMAINDER}[sign]


def _convert(value: Any, target: str) -> Any:
    """convert and cast: unreadable text is null, as is a long that is no int; fractions are cut off at whole numbers,
    and a fraction beyond these is the last of them."""
    try:
        return _CONVERT[target](value)
    except (TypeError, ValueError, OverflowError, KeyError):
        return None


def _whole(low: int, high: int) -> Callable[[Any], int | None]:
    def cut(value: Any) -> int | None:
        if isinstance(value, float):
            return 0 if math.isnan(value) else math.trunc(max(low, min(high, value)))
        number = int(value) if not isinstance(value, str) or _WHOLE.fullmatch(value) else None
        return number if number is not None and low <= number <= high else None

    return cut


def _fraction(value: Any) -> float:
    """Raises ValueError for a text that is no number."""
    text = _FRACTION.fullmatch(value.strip()) if isinstance(value, str) else None
    if isinstance(value, str) and text is None:
        raise ValueError(value)
    return float(value if text is None else text[1])


_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")


_CONVERT: Mapping[str, Callable[[Any], Any]] = {
    "int": _whole(op.INT_MIN, op.INT_MAX),
    "long": _whole(op.LONG_MIN, op.LONG_MAX),
    "float": lambda value: op.single(_fraction(value)),
    "double": _fraction,
    "bool": lambda value: value.lower() == "true" if isinstance(value, str) else value == 1,
    "string": lambda value: ("true" if value else "false") if isinstance(value, bool) else str(value),
}


def _instance_in_object(name: str) -> Callable[[Any], bool]:
    """Of a value whose type nobody has said: a whole number is the narrower type that holds it, a fraction a double."""

    def check(value: Any) -> bool:
        if isinstance(value, int) and not isinstance(value, bool):
            return name == ("int" if op.INT_MIN <= value <= op.INT_MAX else "long")
        return name != "float" and _instance(name)(value)

    return check


def _instance(name: str) -> Callable[[Any], bool]:
    kinds: Mapping[str, type] = {"bool": bool, "string": str, "int": int, "long": int, "float": float, "double": float}

    def check(value: Any) -> bool:
        return isinstance(value, kinds[name]) and (name == "bool" or not isinstance(value, bool))

    return check


Result = DataType | Callable[[list[DataType]], DataType]


@dataclass(frozen=True)
class Scalar:
    """A function: its operator, its result (a type, or made of the arguments' types), how many arguments it takes."""

    operator: Operator
    result: Result
    least: int
    most: int | None
    takes: str = ""
    """What each argument is: a number, a text, or anything."""
    leaves: bool = False
    """Whether the result may be beyond its type."""


def _numbers(types: list[DataType]) -> DataType:
    wrong = next((kind for kind in types if not kind.numeric and kind != NULL), None)
    if wrong is not None:
        raise PlanError(f"numbers are compared, not {wrong}", hint="convert(x, 'double')")
    return alike(types, "what is compared")


def set_size(types: list[DataType]) -> DataType:
    """The type of a set's size; raises PlanError for what is known to be no set."""
    if types[0] not in (ANY, NULL):
        raise PlanError(f"a set is expected, not {types[0]}", hint="createSet, unionSet")
    return INT


def _members(value: Any) -> tuple[Any, ...] | None:
    """A set, or None of an object that is none: a list that came with an event counts when its values are told apart."""
    try:
        return tuple(dict.fromkeys(value)) if isinstance(value, tuple | list) else None
    except TypeError:
        return None


def text_of(value: Any) -> str:
    """The text of any value; a list is written [1, a], an object {k=1}."""
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(text_of, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{text_of(key)}={text_of(of)}' for key, of in value.items())}}}"
    return _CONVERT["string"](value)


AS_TEXT = Operator("as a text", text_of)
AS_SET = Operator("as a set", _members)
ORDERED = {"min", "max", "minforever", "maxforever"}
COUNTED = {"distinctcount"}


def alike(types: list[DataType], what: str) -> DataType:
    """The one type of values that stand for one another; null has any. Raises PlanError where they differ."""
    known = [kind for kind in types if kind not in (NULL, ANY)]
    if any(kind != known[0] for kind in known):
        raise PlanError(f"{what} must be of one type, not {' and '.join(map(str, types))}", hint="convert(x, 'double')")
    return known[0] if known else types[0]


def _first(types: list[DataType]) -> DataType:
    return types[0]


def _math(name: str, function: Callable[..., float], arguments: int = 1) -> tuple[str, Scalar]:
    return f"math:{name}", Scalar(Operator(f"math:{name}", function), DOUBLE, arguments, arguments, "number")


FUNCTIONS: Mapping[str, Scalar] = {
    "maximum": Scalar(op.MAXIMUM, _numbers, 1, None),
    "minimum": Scalar(op.MINIMUM, _numbers, 1, None),
    "math:abs": Scalar(Operator("abs", "abs({0})"), _first, 1, 1, "number", leaves=True),
    **dict(
        (
            _math("ceil", reals.finite(math.ceil)),
            _math("floor", reals.finite(math.floor)),
            _math("round", reals.half_up),
            _math("sqrt", reals.root),
            _math("exp", reals.exponential),
            _math("ln", reals.logarithm(math.log)),
            _math("cos", reals.circular(math.cos)),
            _math("sin", reals.circular(math.sin)),
            _math("toRadians", math.radians),
            _math("power", reals.power, 2),
        )
    ),
    "UUID": Scalar(Operator("uuid", lambda: str(uuid4()), strict=False), STRING, 0, 0),
    "createSet": Scalar(Operator("createSet", lambda value: (value,), strict=False), ANY, 1, 1),
    "sizeOfSet": Scalar(
        Operator("sizeOfSet", lambda values: len(_members(values) or ()), strict=False), set_size, 1, 1
    ),
    "str:lower": Scalar(Operator("lower", "{0}.lower()"), STRING, 1, 1, "text"),
    "str:upper": Scalar(Operator("upper", "{0}.upper()"), STRING, 1, 1, "text"),
    "str:trim": Scalar(Operator("trim", "{0}.strip()"), STRING, 1, 1, "text"),
    "str:replace": Scalar(
        Operator("replace", lambda text, old, new: replaced(text, old, new) if old else text), STRING, 3, 3, "text"
    ),
    "str:length": Scalar(Operator("length", "len({0})"), INT, 1, 1, "text"),
    "str:concat": Scalar(
        Operator("concat", lambda *parts: joined(*(_CONVERT["string"](p) for p in parts))), STRING, 1, None
    ),
    "str:contains": Scalar(Operator("contains", "({1} in {0})"), BOOL, 2, 2, "text"),
}
INSTANCES: Mapping[str, Type] = {
    "instanceOfBoolean": Type.BOOL,
    "instanceOfDouble": Type.DOUBLE,
    "instanceOfFloat": Type.FLOAT,
    "instanceOfInteger": Type.INT,
    "instanceOfLong": Type.LONG,
    "instanceOfString": Type.STRING,
}
LOG = Operator("log", lambda words, *values: _log(words, values), strict=False)
"""True, after a line of the log with what `#log` was given and the row."""


def _log(words: str, values: tuple[Any, ...]) -> bool:
    logging.getLogger("rollup.siddhiql").info("%s %s", words, list(values))
    return True


CONVERT = Operator("convert", _convert)
TO_BOOL = Operator("convert to bool", lambda value: _convert(value, "bool") or False, strict=False)
"""What is no text or number that means true is false, null as well."""
INSTANCE_IN_OBJECT: Mapping[Type, Operator] = {
    kind: Operator(f"instance of {kind} in an object", _instance_in_object(str(kind)), strict=False)
    for kind in INSTANCES.values()
}
INSTANCE_OF: Mapping[Type, Operator] = {
    kind: Operator(f"instance of {kind}", _instance(str(kind)), strict=False) for kind in INSTANCES.values()
}


def result(summary: Summary, argument: DataType) -> DataType:
    """The type of an aggregate's value."""
    found = summary.value(argument.integral)
    return argument if found is None else TYPES[found]


NET_SUM = replace(
    agg.SUM,
    name="net sum",
    slots={**agg.SUM.slots, "empty": "True"},
    enter="{n} += 1; {total} += {x}; {empty} = False",
    leave="{n} -= 1; {total} -= {x}; {empty} = not {n}",
    value="None if {empty} else {total}",
    merge="{n} += {o_n}; {total} += {o_total}; {empty} = {empty} and {o_empty}",
)
"""What came less what left, whichever was first: a reader of a window's expired rows sees only what leaves, and a join
may let go of other rows than it took. It is null when the last has left."""
NET_AVG = replace(agg.AVG, name="net avg", leave="{n} -= 1; {total} -= {x}")
AGGREGATES: Mapping[str, Summary] = ChainMap(
    {
        "sum": Summary(NET_SUM, Gives.SUM, numeric=True),
        "avg": Summary(NET_AVG, Gives.DOUBLE, numeric=True),
        "and": Summary(agg.ALL_TRUE, Gives.BOOL),
        "or": Summary(agg.ANY_TRUE, Gives.BOOL),
        "unionSet": Summary(agg.UNION, Gives.OBJECT),
        "minForever": Summary(agg.MINEVER, Gives.ARGUMENT),
        "maxForever": Summary(agg.MAXEVER, Gives.ARGUMENT),
    },
    aggregates.AGGREGATES,  # type: ignore[arg-type]  # only read
)
"""Those that only windows have, or have otherwise, and those of the rollups."""
