"""The scalar functions of SiddhiQL: the types they take, the type they give, and what they are in SQL.

A new function is one entry here. Functions that look at a clock or at chance are refused on purpose: a replay of the
same events must give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal

from sqlglot import exp

from rollup.core.dialects import Checked, Instant, Joined, Milliseconds, Replaced, Rewritten, widened
from rollup.core.errors import PlanError
from rollup.plan.likeness import function_hint
from rollup.plan.time_patterns import letters
from rollup.plan.types import Type, fitting, parse_type

Arguments = Sequence["Bound"]


@dataclass(frozen=True)
class Bound:
    """An expression whose names are resolved: its SQL and its type; `type` None is the null literal."""

    sql: exp.Expr
    type: Type | None


@dataclass(frozen=True)
class Function:
    """A scalar function: how many arguments it takes (at most None: any number) and what it becomes."""

    least: int
    most: int | None
    build: Callable[[Arguments], Bound]


def _typed(*kinds: str) -> Callable[[str, Bound], None]:
    def check(name: str, argument: Bound) -> None:
        if argument.type is not None and argument.type not in kinds:
            raise PlanError(f"{name} takes {' or '.join(kinds)}, not {argument.type}")

    return check


def _number(name: str, argument: Bound) -> None:
    if argument.type is not None and not argument.type.numeric:
        raise PlanError(f"{name} takes a number, not {argument.type}", hint="int, long, float, double or decimal(p, s)")


_text = _typed("string")


def _common(arguments: Arguments) -> Type | None:
    kinds = [argument.type for argument in arguments if argument.type is not None]
    if not kinds:
        return None
    first = kinds[0]
    for kind in kinds[1:]:
        if kind is first:
            continue
        if not (kind.numeric and first.numeric):
            raise PlanError(f"the arguments have the types {first} and {kind}, which have nothing in common")
        first = first.widest(kind)
    return first


def as_type(bound: Bound, kind: Type | None) -> exp.Expr:
    """A bound number as one of a type that is at least as wide; anything else as it is."""
    narrower = bound.type is not None and kind is not None and kind.numeric and bound.type is not kind
    return exp.cast(exp.paren(bound.sql), kind.sql) if narrower and kind is not None else bound.sql


def with_decimals(arguments: Arguments) -> list[Bound]:
    """Numbers that stand together: beside a decimal, a constant with a point is the decimal that is written, not the double
    near it."""
    exact = any(each.type is not None and each.type.exact for each in arguments)
    return [_as_written(each) if exact else each for each in arguments]


def _as_written(given: Bound) -> Bound:
    bare = given.sql.unnest()
    written = bare.this if type(bare) is exp.Cast else None
    if given.type is not Type.DOUBLE or not isinstance(written, exp.Literal) or written.is_string:
        return given
    number = Decimal(written.name).normalize(Context(prec=len(written.name)))
    _, digits, power = number.as_tuple()
    scale = max(0, -int(power))
    kind = fitting(max(len(digits) + max(0, int(power)), scale, 1), scale, written.name)
    return Bound(exp.cast(exp.Literal.string(f"{number:f}"), kind.sql), kind)


def _call(name: str, result: Type, check: Callable[[str, Bound], None]) -> Callable[[Arguments], Bound]:
    def build(arguments: Arguments) -> Bound:
        for argument in arguments:
            check(name, argument)
        return Bound(exp.func(name, *(argument.sql for argument in arguments)), result)

    return build


def _replace(arguments: Arguments) -> Bound:
    """Where no text gets longer by it, it needs no bound."""
    found = _call("REPLACE", Type.STRING, _text)(arguments)
    text, old, new = (each.sql for each in arguments)
    if _constant(old) and _constant(new) and len(new.name) <= len(old.name):
        return found
    return Bound(Replaced(this=text, old=old, new=new), Type.STRING)


def _concat(arguments: Arguments) -> Bound:
    """Constants lengthen a text by what is written; a second text of the event may be as long as the first."""
    if sum(each.type is Type.STRING and not _constant(each.sql) for each in arguments) < 2:
        return _call("CONCAT", Type.STRING, lambda name, argument: None)(arguments)
    return Bound(Joined(expressions=[each.sql for each in arguments]), Type.STRING)


def _constant(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Literal) and tree.is_string


def _real(name: str) -> Callable[[Arguments], Bound]:
    """A function of doubles."""

    def build(arguments: Arguments) -> Bound:
        for argument in arguments:
            _number(name.lower(), argument)
        return Bound(exp.func(name, *(as_type(argument, Type.DOUBLE) for argument in arguments)), Type.DOUBLE)

    return build


def _length(arguments: Arguments) -> Bound:
    """Cast, because its type is not the same everywhere; no text is longer than an int counts."""
    found = _call("LENGTH", Type.INT, _text)(arguments)
    return Bound(exp.cast(found.sql, Type.INT.sql), Type.INT)


def _contains(arguments: Arguments) -> Bound:
    for argument in arguments:
        _text("str:contains", argument)
    text, part = (argument.sql for argument in arguments)
    return Bound(exp.GT(this=exp.StrPosition(this=text, substr=part), expression=exp.Literal.number(0)), Type.BOOL)


def _same(name: str) -> Callable[[Arguments], Bound]:
    def build(arguments: Arguments) -> Bound:
        arguments = with_decimals(arguments)
        kind = _common(arguments)
        return Bound(exp.func(name, *(as_type(argument, kind) for argument in arguments)), kind)

    return build


def _abs(arguments: Arguments) -> Bound:
    argument = arguments[0]
    _number("math:abs", argument)
    if argument.type is None or not argument.type.integral:
        return Bound(exp.Abs(this=argument.sql), argument.type)
    to = argument.type.sql
    return Bound(Checked(this=exp.Abs(this=widened(argument.sql, to)), to=to), argument.type)


def _date_format(arguments: Arguments) -> Bound:
    """`time:dateFormat(x, target, source)`: a time as a text, written by another pattern."""
    _text("time:dateFormat", arguments[0])
    patterns = [argument.sql for argument in arguments[1:]]
    if not all(isinstance(each, exp.Literal) and each.is_string for each in patterns):
        hint = "time:dateFormat(x, 'yyyy-MM-dd HH:mm:ss', 'dd.MM.yyyy HH:mm')"
        raise PlanError("the patterns of time:dateFormat are texts", hint=hint)
    target, source = (exp.Literal.string(letters(each.name)) for each in patterns)
    if "%z" in target.name and "%z" not in source.name:
        raise PlanError("the time is to be written with an offset, and is read without one", hint="Z in both patterns")
    return Bound(Rewritten(this=arguments[0].sql, target=target, source=source), Type.STRING)


def _if(arguments: Arguments) -> Bound:
    condition, yes, no = arguments[0], *with_decimals(arguments[1:])
    _typed("bool")("the condition of ifThenElse", condition)
    kind = _common((yes, no))
    return Bound(exp.case().when(condition.sql, as_type(yes, kind)).else_(as_type(no, kind)), kind)


def _cast(arguments: Arguments) -> Bound:
    value, kind = arguments
    if not (isinstance(kind.sql, exp.Literal) and kind.sql.is_string):
        raise PlanError("the second argument of cast and convert is a type in quotes", hint="e.g. convert(x, 'double')")
    target = parse_type(kind.sql.name)
    if value.type is not None and value.type is not target and (target.timed or value.type.timed):
        return _time_cast(value, value.type, target)
    if target.integral and value.type is not None and value.type.numeric and not value.type.integral:
        # SQL's casts round, each dialect in its own way; SiddhiQL cuts the fraction off.
        negative = exp.LT(this=exp.paren(value.sql), expression=exp.Literal.number(0))
        whole = exp.case().when(negative, exp.func("CEIL", value.sql.copy())).else_(exp.func("FLOOR", value.sql.copy()))
        value = Bound(whole, value.type)
    return Bound(exp.TryCast(this=value.sql, to=target.sql, safe=True), target)


def _time_cast(value: Bound, given: Type, target: Type) -> Bound:
    if (given, target) == (Type.LONG, Type.TIMESTAMP):
        return Bound(Instant(this=exp.paren(value.sql)), target)
    if (given, target) == (Type.TIMESTAMP, Type.LONG):
        return Bound(Milliseconds(this=exp.paren(value.sql)), target)
    if (given, target) not in ((Type.STRING, Type.TIMESTAMP), (Type.STRING, Type.DATE), (Type.DATE, Type.STRING)):
        hint = "a string to both, a timestamp to a long of milliseconds and back, a date to a string"
        raise PlanError(f"a {given} is not converted to a {target}", hint=hint)
    return Bound(exp.TryCast(this=value.sql, to=target.sql, safe=True), target)


def _is_type(kind: Type) -> Callable[[Arguments], Bound]:
    """Whether a value is of a type: a null is of none."""

    def build(arguments: Arguments) -> Bound:
        (given,) = arguments
        there = exp.Not(this=exp.Is(this=given.sql.copy(), expression=exp.Null()))
        return Bound(there if given.type is kind else exp.false(), Type.BOOL)

    return build


def _pick(name: str, said: str) -> Callable[[Arguments], Bound]:
    def build(arguments: Arguments) -> Bound:
        for argument in arguments:
            _number(said, argument)
        return _same(name)(arguments)

    return build


FUNCTIONS: Mapping[str, Function] = {
    "coalesce": Function(1, None, _same("COALESCE")),
    "default": Function(2, 2, _same("COALESCE")),
    "ifThenElse": Function(3, 3, _if),
    "cast": Function(2, 2, _cast),
    "convert": Function(2, 2, _cast),
    "maximum": Function(1, None, _pick("GREATEST", "maximum")),
    "minimum": Function(1, None, _pick("LEAST", "minimum")),
    "instanceOfBoolean": Function(1, 1, _is_type(Type.BOOL)),
    "instanceOfDouble": Function(1, 1, _is_type(Type.DOUBLE)),
    "instanceOfFloat": Function(1, 1, _is_type(Type.FLOAT)),
    "instanceOfInteger": Function(1, 1, _is_type(Type.INT)),
    "instanceOfLong": Function(1, 1, _is_type(Type.LONG)),
    "instanceOfString": Function(1, 1, _is_type(Type.STRING)),
    "math:abs": Function(1, 1, _abs),
    "math:ceil": Function(1, 1, _real("CEIL")),
    "math:floor": Function(1, 1, _real("FLOOR")),
    "math:round": Function(1, 1, _real("ROUND")),
    "math:sqrt": Function(1, 1, _real("SQRT")),
    "math:exp": Function(1, 1, _real("EXP")),
    "math:ln": Function(1, 1, _real("LN")),
    "math:power": Function(2, 2, _real("POWER")),
    "str:lower": Function(1, 1, _call("LOWER", Type.STRING, _text)),
    "str:upper": Function(1, 1, _call("UPPER", Type.STRING, _text)),
    "str:trim": Function(1, 1, _call("TRIM", Type.STRING, _text)),
    "str:replace": Function(3, 3, _replace),
    "time:dateFormat": Function(3, 3, _date_format),
    "str:length": Function(1, 1, _length),
    "str:concat": Function(1, None, _concat),
    "str:contains": Function(2, 2, _contains),
}
_CLOCKS = {"currentTimeMillis", "eventTimestamp", "UUID", "math:rand", "time:currentTimestamp"}


def call(name: str, arguments: Arguments) -> Bound:
    """The call of a scalar function by the name the user wrote, in any case.

    Raises PlanError for an unknown name, a wrong number of arguments or types that do not fit.
    """
    if name in _CLOCKS:
        cure = "select the attribute that @time names" if name == "eventTimestamp" else "put the value into the event"
        raise PlanError(f"{name}() depends on more than the event", hint=f"{cure}; windows and patterns know clocks")
    exact = next((known for known in FUNCTIONS if known.lower() == name.lower()), None)
    if exact is None:
        raise PlanError(f"unknown function {name!r}", hint=function_hint(name, FUNCTIONS))
    function = FUNCTIONS[exact]
    if len(arguments) < function.least or (function.most is not None and len(arguments) > function.most):
        wanted = str(function.least) if function.least == function.most else f"at least {function.least}"
        raise PlanError(f"{exact} takes {wanted} argument(s), not {len(arguments)}")
    return function.build(arguments)
