"""Names and types resolved: SiddhiQL's expressions become the engine's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine.expressions import All, Any_, Ask, Call, Case, Coalesce, Const, Expr, Field, Now, RowOf, Slot
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import Operator
from rollup.engine.row import Row
from rollup.engine.types import ANY, BOOL, LONG, NULL, STRING, DataType, RowType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements import semantics
from rollup.lang.siddhi.statements.kinds import comparable, keyable, ordered, taken
from rollup.plan import aggregates
from rollup.plan.aggregates import Gives, Summary
from rollup.plan.types import Type, parse_type

TIME_SLOT = 0
"""The slot of the event's time; the values of aggregates follow."""


@dataclass(frozen=True)
class Input:
    """An input of a query: the names it goes by, its rows, whether it may be absent, whether it is a list of rows."""

    names: tuple[str, ...]
    type: RowType
    optional: bool = False
    many: bool = False


@dataclass
class Scope:
    """The names that an expression may use.

    * `calls` collects aggregates where they may stand.
    * `aliases` are the columns of the select list, known in `having` and `group by`.
    * `ask` makes a look-up in a table.
    * `preferred` is the input that a name without an input means, where several inputs have the name.
    * `first_slot` is where the aggregates' values begin.
    * `timed`: the bound expression has the time of the selected row, though no aggregate may stand in it.
    * `selected`: a name alone is a column of the select list.
    """

    inputs: Sequence[Input]
    calls: list[AggregateCall] | None = None
    aliases: dict[str, Expr] = field(default_factory=dict[str, Expr])
    ask: Callable[[tree.InTable, Scope], int] | None = None
    preferred: int | None = None
    first_slot: int = 1
    timed: bool = False
    selected: bool = False


ROW_FIELD = Operator("field of a row", lambda row, place: None if row is None else row.values[place], strict=False)
NTH = Operator("nth of a list", lambda rows, place: _nth(rows, place), strict=False)


def _nth(rows: list[Row] | None, place: int) -> Row | None:
    if rows is None:
        return None
    return rows[place] if -len(rows) <= place < len(rows) else None


def bind(node: tree.Expression, scope: Scope) -> Expr:
    """The engine's expression. Raises PlanError with the place of what is wrong."""
    try:
        return _bind(node, scope)
    except PlanError as problem:
        raise problem.at(*node.place) from None


def condition(node: tree.Expression, scope: Scope, what: str) -> Expr:
    """A condition; raises PlanError unless it is a bool."""
    bound = bind(node, scope)
    if bound.type not in (BOOL, NULL):
        raise PlanError(f"{what} must be a bool, not {bound.type}").at(*node.place)
    return bound


def number(node: tree.Expression, what: str) -> int:
    """A whole number that the text says. Raises PlanError for anything else."""
    if isinstance(node, tree.Constant) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    raise PlanError(f"{what} must be a whole number in the text", hint="5, or 5 sec for a time").at(*node.place)


def _bind(node: tree.Expression, scope: Scope) -> Expr:
    match node:
        case tree.Constant():
            value = op.single(node.value) if node.type is Type.FLOAT else node.value
            return Const(value, NULL if node.type is None else semantics.TYPES[node.type])
        case tree.Name():
            return _name(node, scope)
        case tree.Function():
            return _function(node, scope)
        case tree.InTable():
            if scope.ask is None:
                raise PlanError("`in` cannot stand here", hint="in the filter of a stream")
            return Ask(scope.ask(node, scope), BOOL)
        case tree.Operation():
            return _operation(node, scope)


def _name(node: tree.Name, scope: Scope) -> Expr:
    if node.stream is None and node.attribute in scope.aliases:
        return scope.aliases[node.attribute]
    found = [(place, given) for place, given in enumerate(scope.inputs) if _means(node, given)]
    if node.stream is None and scope.selected:
        raise _unknown(node, scope, False)
    if node.index is not None:
        found = [each for each in found if each[1].many] or found
    if scope.preferred is not None and len(found) > 1:
        found = [each for each in found if each[0] == scope.preferred] or found
    if len(found) != 1 or node.attribute is None:
        raise _unknown(node, scope, bool(found))
    place, given = found[0]
    index = given.type.index[node.attribute]
    kind = given.type.fields[node.attribute]
    if not given.many:
        return Field(place, index, kind, given.optional)
    return Call(ROW_FIELD, (_nth_of(place, node.index), Const(index, LONG)), kind)


def _nth_of(place: int, index: int | None) -> Expr:
    return Call(NTH, (RowOf(place, ANY), Const(index or 0, LONG)), ANY)


def _event(node: tree.Expression, scope: Scope) -> Expr | None:
    """The event that `e1` or `e1[0]` means, for `is null`; None: it is no event but an attribute or a value."""
    name = _named_event(node, scope)
    for place, given in enumerate(scope.inputs):
        if name is not None and (name.stream or name.attribute) in given.names:
            return _nth_of(place, name.index) if given.many else RowOf(place, ANY)
    return None


def _named_event(node: tree.Expression, scope: Scope) -> tree.Name | None:
    """The name of an input, `e1` or `e1[0]`; None for an attribute or a value."""
    if not isinstance(node, tree.Name) or (node.attribute is not None and node.stream is not None):
        return None
    if node.stream is None and any(_means(node, given) for given in scope.inputs):
        return None
    return node if any((node.stream or node.attribute) in given.names for given in scope.inputs) else None


def _means(node: tree.Name, given: Input) -> bool:
    return (node.stream is None or node.stream in given.names) and node.attribute in given.type.index


def _unknown(node: tree.Name, scope: Scope, ambiguous: bool) -> PlanError:
    wanted = f"{node.stream}.{node.attribute}" if node.stream else str(node.attribute)
    known = [f"{i.names[0]}.{name}" for i in scope.inputs for name in i.type.fields if not name.startswith("__")]
    what = "is ambiguous" if ambiguous else "is not known"
    return PlanError(
        f"attribute {wanted!r} {what}", hint=f"known are {', '.join([*scope.aliases, *known]) or 'none here'}"
    )


def _operation(node: tree.Operation, scope: Scope) -> Expr:
    if node.sign in ("and", "or"):
        sides = tuple(condition(each, scope, f"an operand of `{node.sign}`") for each in node.operands)
        return All(sides) if node.sign == "and" else Any_(sides)
    if node.sign == "not":
        return Call(op.NOT, (condition(node.operands[0], scope, "the operand of `not`"),), BOOL)
    if node.sign == "is null" and (event := _event(node.operands[0], scope)) is not None:
        return Call(op.IS_NULL, (event,), BOOL)
    values = tuple(bind(each, scope) for each in node.operands)
    if node.sign == "is null":
        return Call(op.IS_NULL, values, BOOL)
    if node.sign in semantics.COMPARISONS and any(value == Const(None, NULL) for value in values):
        raise PlanError("nothing compares with null", hint="x is null")
    if node.sign in semantics.COMPARISONS:
        return _comparison(node.sign, values)
    if node.sign == "like":
        if values[0].type not in (STRING, NULL):
            raise PlanError(f"like takes a string, not {values[0].type}", hint="convert(x, 'string')")
        return Call(op.LIKE, values, BOOL)
    return _arithmetic(node.sign, values)


def _comparison(sign: str, values: tuple[Expr, ...]) -> Expr:
    comparable(values)
    unordered = next((value.type for value in values if not value.type.numeric and value.type != NULL), None)
    if sign not in ("==", "!=") and unordered is not None:
        raise PlanError(f"a {unordered} has no order", hint="== or !=, or a statement of another language")
    return Call(semantics.COMPARISONS[sign], values, BOOL)


def _arithmetic(sign: str, values: tuple[Expr, ...]) -> Expr:
    for value in values:
        if not value.type.numeric and value.type != NULL:
            raise PlanError(f"arithmetic needs numbers, not {value.type}", hint="convert(x, 'double')")
    kinds = [value.type for value in values if value.type.numeric] or [LONG]
    kind = kinds[0] if len(kinds) == 1 else kinds[0].widest(kinds[1])
    if len(values) == 1:
        return fitted(Call(op.NEGATE, values, kind))
    return fitted(Call(semantics.arithmetic(sign, kind), values, kind))


def fitted(expr: Expr) -> Expr:
    """A number as its type holds it."""
    fit = semantics.FITS.get(expr.type.kind)
    return expr if fit is None else Call(fit, (expr,), expr.type)


def _function(node: tree.Function, scope: Scope) -> Expr:
    summary = _named(node.name, semantics.AGGREGATES)
    if summary is not None and not (node.name.lower() in ("min", "max") and len(node.arguments) > 1):
        return _aggregate(node, summary, scope)
    if node.where is not None:
        raise PlanError(f"{node.name} is no aggregate, and has no filter", hint="sum(x) filter (where …)")
    special = SPECIAL.get(node.name.lower())
    if special is not None:
        return special(node, scope)
    instance = _named(node.name, semantics.INSTANCES)
    arguments = tuple(bind(each, scope) for each in node.arguments)
    if instance is not None and len(arguments) != 1:
        raise PlanError(f"{node.name} takes 1 argument, not {len(arguments)}")
    if instance is not None:
        given = arguments[0].type
        same = given in (ANY, semantics.TYPES[instance])
        checks = semantics.INSTANCE_IN_OBJECT if given == ANY else semantics.INSTANCE_OF
        return Call(checks[instance], arguments, BOOL) if same else Const(False, BOOL)
    scalar = _named(node.name, semantics.FUNCTIONS)
    if scalar is None:
        known = [*semantics.FUNCTIONS, *semantics.AGGREGATES, *semantics.INSTANCES, *SPECIAL]
        raise PlanError(f"unknown function {node.name!r}", hint=f"known are {', '.join(sorted(known))}")
    taken(node, scalar, arguments)
    result = scalar.result if isinstance(scalar.result, DataType) else scalar.result([a.type for a in arguments])
    made = Call(scalar.operator, arguments, result)
    return fitted(made) if scalar.leaves else made


_Entry = TypeVar("_Entry")


def _named(name: str, table: Mapping[str, _Entry]) -> _Entry | None:
    return next((entry for known, entry in table.items() if known.lower() == name.lower()), None)


def _aggregate(node: tree.Function, summary: Summary, scope: Scope) -> Expr:
    if scope.calls is None:
        raise PlanError(f"the aggregate {node.name} cannot stand here", hint="in select or having")
    if summary.function.leave is None and _named(node.name, aggregates.AGGREGATES):
        raise PlanError(f"{node.name} is of aggregations: its values do not leave", hint="`define aggregation` has it")
    calls, scope.calls = scope.calls, None
    arguments = tuple(bind(each, scope) for each in node.arguments)
    scope.calls = calls
    if summary.constant is not None and len(arguments) > 1:
        summary = summary.constant
    least, most = summary.function.arguments
    if not least <= len(arguments) <= most:
        raise PlanError(f"{node.name} takes {most} argument(s), not {len(arguments)}")
    given = summary.function.kept.arguments if summary.function.kept is not None else 1
    for constant in arguments[given:]:
        aggregates.check_constant(node.name, constant.value if isinstance(constant, Const) else None)
    kind = arguments[0].type if arguments else LONG
    for one in [kind, *(argument.type for argument in arguments[1:given])] if summary.numeric else ():
        if not one.numeric:
            raise PlanError(f"{node.name} takes a number, not {one}")
    if summary.gives is Gives.BOOL and kind != BOOL:
        raise PlanError(f"{node.name} takes a bool, not {kind}")
    if node.name.lower() in semantics.ORDERED:
        ordered(kind, node, f"the argument of {node.name}")
    if node.name.lower() == "unionset":
        semantics.set_size([kind])
        arguments = (Call(semantics.AS_SET, arguments, ANY),)
    if node.name.lower() in semantics.COUNTED:
        keyable(kind, node, f"the argument of {node.name}")
    where = (
        None if node.where is None else condition(node.where, replace(scope, calls=None), "the filter of an aggregate")
    )
    call = AggregateCall(summary.function, () if node.name.lower() == "count" else arguments, where=where)
    if call not in calls:
        calls.append(call)
    return fitted(Slot(scope.first_slot + calls.index(call), semantics.result(summary, kind)))


def _default(node: tree.Function, scope: Scope) -> Expr:
    if len(node.arguments) != 2:
        raise PlanError(f"{node.name} takes 2 arguments, a value and what stands for null", hint="default(x, 0)")
    return _coalesce(node, scope)


def _coalesce(node: tree.Function, scope: Scope) -> Expr:
    arguments = tuple(bind(each, scope) for each in node.arguments)
    if not arguments:
        raise PlanError(f"{node.name} takes at least 1 argument")
    return Coalesce(arguments, semantics.alike([a.type for a in arguments], f"what {node.name} chooses from"))


def _choice(node: tree.Function, scope: Scope) -> Expr:
    if len(node.arguments) != 3:
        raise PlanError("ifThenElse takes 3 arguments: a condition and two values")
    test = condition(node.arguments[0], scope, "the condition of ifThenElse")
    yes, no = (bind(each, scope) for each in node.arguments[1:])
    return Case(((test, yes),), no, semantics.alike([yes.type, no.type], "the values of ifThenElse"))


def _converted(node: tree.Function, scope: Scope) -> Expr:
    value, target = node.arguments if len(node.arguments) == 2 else (None, None)
    if value is None or not isinstance(target, tree.Constant) or not isinstance(target.value, str):
        raise PlanError("the second argument of cast and convert is a type in quotes", hint="convert(x, 'double')")
    kind, given = semantics.TYPES[parse_type(target.value)], bind(value, scope)
    if kind == ANY:
        raise PlanError(f"{node.name} makes no objects", hint="'int', 'long', 'float', 'double', 'bool' or 'string'")
    if kind == STRING and given.type.kind in op.WORDS:
        return Call(op.WORDS[given.type.kind], (given,), STRING)
    if kind == BOOL and node.name.lower() == "convert":
        return Call(semantics.TO_BOOL, (given,), BOOL)
    return Call(semantics.CONVERT, (given, Const(target.value.lower(), STRING)), kind)


def _event_time(node: tree.Function, scope: Scope) -> Expr:
    """The time of what is selected; in aggregates, windows and filters, that of the row that they are over. With an
    event as its argument (`e1`, `e1[0]`, a side of a join, `last` of a window's condition), that event's."""
    if len(node.arguments) == 1 and (event := _named_event(node.arguments[0], scope)) is not None:
        return bind(replace(event, stream=event.stream or event.attribute, attribute=TIME), scope)
    if node.arguments:
        raise PlanError(f"{node.name} takes an event, or nothing", hint="eventTimestamp(e1), of a pattern or a join")
    if scope.calls is not None or scope.timed:
        return Slot(TIME_SLOT, LONG)
    place = 0 if len(scope.inputs) == 1 else scope.preferred
    if place is None or TIME not in scope.inputs[place].type.index:
        raise PlanError(f"{node.name} is of no one event here", hint="in select, having, or the filter of one stream")
    given = scope.inputs[place]
    return Field(place, given.type.index[TIME], LONG, given.optional)


def _clock(node: tree.Function, scope: Scope) -> Expr:
    if node.arguments:
        raise PlanError(f"{node.name} takes no argument, not {len(node.arguments)}", hint=f"{node.name}()")
    return Now()


SPECIAL: Mapping[str, Callable[[tree.Function, Scope], Expr]] = {
    "coalesce": _coalesce,
    "default": _default,
    "ifthenelse": _choice,
    "cast": _converted,
    "convert": _converted,
    "eventtimestamp": _event_time,
    "currenttimemillis": _clock,
}
"""Functions whose arguments are more than values, by their names in lower case."""


def row_type(name: str, attributes: Sequence[tuple[str, Type]]) -> RowType:
    """The rows of a stream, window or table: its attributes and, last, the event's time."""
    return RowType(name, {**{each: semantics.TYPES[kind] for each, kind in attributes}, TIME: LONG})


TIME = "__time"
"""The field, last of every row, that holds the event's time."""


def attributes_of(rows: RowType) -> dict[str, DataType]:
    """The attributes of rows with their types, without the event's time."""
    return {name: kind for name, kind in rows.fields.items() if name != TIME}
