"""Typed expressions over columns: the same trees as `compiling.py`, evaluated for all rows of a batch at once.

A column is an Arrow array; null is unknown. What Arrow computes as the operator says is computed by Arrow, what numpy
does by numpy, and for the rest the operator's own Python is called row by row, so every operator works here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.dialects import MOST_CHARACTERS
from rollup.core.errors import PlanError
from rollup.core.untyped import pc
from rollup.engine import operators as op
from rollup.engine.columns.groups import spans
from rollup.engine.columns.numbering import as_double
from rollup.engine.compiling import compiled
from rollup.engine.expressions import All, Any_, Call, Case, Coalesce, Const, Expr, Field, constant, walk
from rollup.engine.operators import Operator
from rollup.engine.room import LONG, counts
from rollup.engine.row import Row
from rollup.engine.types import DataType, Kind, RowType

Columns = Sequence[pa.Array]

_ARRAY = 1 << 31
"""Bytes of text that an array of Arrow cannot hold."""
_WHOLE = (Kind.INT, Kind.LONG, Kind.TIMESTAMP, Kind.DURATION)
_COMPARE: Mapping[str, Callable[..., Any]] = {
    op.EQUAL.name: pc.equal,
    op.UNEQUAL.name: pc.not_equal,
    op.LESS.name: pc.less,
    op.LESS_EQUAL.name: pc.less_equal,
    op.GREATER.name: pc.greater,
    op.GREATER_EQUAL.name: pc.greater_equal,
}
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    op.ADD.name: pc.add_checked,
    op.SUBTRACT.name: pc.subtract_checked,
    op.MULTIPLY.name: pc.multiply_checked,
    op.NEGATE.name: pc.negate_checked,
}


def evaluate(expr: Expr, columns: Columns, rows: int) -> pa.Array:
    """The values of an expression for each of `rows` rows; `Field(0, i)` is column i.

    Raises PlanError for what has no meaning over columns: rows of patterns, variables, look-ups.
    """
    match expr:
        case Field():
            return plain(columns[expr.index])
        case Const():
            return pa.repeat(pa.scalar(expr.value, arrow(expr.type)), rows)
        case All():
            return _fold(pc.and_kleene, expr.args, columns, rows)
        case Any_():
            return _fold(pc.or_kleene, expr.args, columns, rows)
        case Coalesce():
            return pc.coalesce(*(evaluate(arg, columns, rows) for arg in expr.args))
        case Case():
            return _case(expr, columns, rows)
        case Call(op=op.ROW, args=args, type=DataType(row=RowType(fields=names))):
            return pa.StructArray.from_arrays([evaluate(arg, columns, rows) for arg in args], list(names))
        case Call(op=Operator(field=int(place)), args=(row,)):
            return plain(pc.struct_field(evaluate(row, columns, rows), [place]))
        case Call():
            return _call(expr, columns, rows)
        case _:
            raise PlanError(f"{type(expr).__name__} cannot be computed over columns")


def passing(expr: Expr | None, columns: Columns, rows: int) -> pa.Array | None:
    """Which rows meet a condition, as a mask without nulls; None when all do because there is no condition."""
    return None if expr is None else pc.fill_null(evaluate(expr, columns, rows), False)


def flags(mask: pa.Array | None, rows: int) -> np.ndarray:
    """A mask without nulls as numpy has it; None: of `rows` rows each."""
    return np.ones(rows, bool) if mask is None else mask.to_numpy(zero_copy_only=False)


def arrow(kind: DataType) -> pa.DataType:
    """The Arrow type of a column of this type."""
    if kind.arrow is None:
        raise PlanError(f"values of type {kind} have no column")
    return kind.arrow


def carried(kind: DataType) -> pa.DataType:
    """The Arrow type of a field of events: of values that are open in shape (decimals, lists, rows) nothing is carried."""
    return kind.arrow or pa.null()


def field(values: Sequence[Any], kind: DataType) -> pa.Array:
    """A field of some events as a column, from its value in each.

    >>> from rollup.engine.types import DECIMAL, LONG
    >>> field([1, None], LONG).to_pylist(), field(["0.5", "1.5"], DECIMAL).to_pylist()
    ([1, None], [None, None])
    """
    return pa.nulls(len(values)) if kind.arrow is None else pa.array(values, kind.arrow)


def plain(column: pa.Array) -> pa.Array:
    """A column as values: codes of a dictionary are looked up, and parts of other lists are lists of their own."""
    if pa.types.is_list_view(column.type):
        return _listed(column)
    if pa.types.is_struct(column.type):
        fields = [plain(column.field(place)) for place in range(column.type.num_fields)]
        missing = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(fields, [field.name for field in column.type], mask=missing)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _listed(views: pa.ListViewArray) -> pa.ListArray:
    sizes = np.where(views.is_null(), 0, views.sizes)
    ends = np.cumsum(sizes)
    shifts, values = views.offsets.to_numpy() - ends + sizes, views.values
    if (shifts[sizes > 0] != 0).any() or (ends[-1] if len(ends) else 0) != len(values):  # the lists share values
        values = values.take(pa.array(spans(views.offsets.to_numpy(), sizes)))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
    return pa.ListArray.from_arrays(offsets, plain(values), mask=views.is_null())


def _fold(combine: Callable[..., Any], args: Sequence[Expr], columns: Columns, rows: int) -> pa.Array:
    result = evaluate(args[0], columns, rows)
    for arg in args[1:]:
        result = combine(result, evaluate(arg, columns, rows))
    return result


def _case(expr: Case, columns: Columns, rows: int) -> pa.Array:
    values = [evaluate(value, columns, rows) for value in (*(value for _, value in expr.branches), expr.otherwise)]
    wide = expr.type.kind is Kind.INT and any(each.type == pa.int64() for each in values)
    kind = pa.int64() if wide else arrow(expr.type)
    result = _of(kind, values[-1])
    for (condition, _), value in zip(reversed(expr.branches), reversed(values[:-1]), strict=True):
        taken = pc.fill_null(evaluate(condition, columns, rows), False)
        result = pc.if_else(taken, _of(kind, value), result)
    return result


def unfit(exprs: Sequence[Expr], columns: Columns, rows: int, of: pa.Array | None = None) -> int:
    """How many results of arithmetic 64 bits do not hold, each of which is null therefore; `of`: those of which rows count."""
    found = 0
    for call in (part for each in exprs for part in walk(each) if isinstance(part, Call) and part.op is op.FIT_LONG):
        (inner,) = call.args
        if not isinstance(inner, Call) or inner.op is op.DIVIDE_CUT:  # which is null for a division by 0
            continue
        lost = pc.is_null(evaluate(call, columns, rows))
        for arg in inner.args:
            lost = pc.and_(lost, pc.is_valid(evaluate(arg, columns, rows)))
        found += pc.sum(lost if of is None else pc.and_(lost, of)).as_py() or 0
    return found


def _of(kind: pa.DataType, values: pa.Array) -> pa.Array:
    """Values as those of a type; a cast that changes nothing takes its time all the same."""
    return values if values.type == kind else values.cast(kind)


def _operand(expr: Expr, columns: Columns, rows: int) -> Any:
    """An operand for Arrow: a constant stays one value, which Arrow compares with a whole column."""
    if isinstance(expr, Const):
        return pa.scalar(expr.value, arrow(expr.type))
    return evaluate(expr, columns, rows)


def _call(expr: Call, columns: Columns, rows: int) -> pa.Array:
    if expr.op is op.FIT_LONG and isinstance(expr.args[0], Call):
        return _fitting(expr, expr.args[0], columns, rows)
    if constant(expr):
        return pa.repeat(_worked_out(expr), rows)
    args = [_operand(arg, columns, rows) for arg in expr.args]
    if expr.op.name in _ARITHMETIC and expr.type.kind is Kind.INT:
        return _narrowed(_ARITHMETIC[expr.op.name](*(arg.cast(pa.int64()) for arg in args)))
    known = _arrow_form(expr, args)
    if known is not None:
        return known
    if expr.op.name not in _COMPARE and expr.op.numpy is None and (known := _by_value(expr, args)) is not None:
        return known
    arrays = [pa.repeat(arg, rows) if isinstance(arg, pa.Scalar) else arg for arg in args]
    if expr.op is op.DIVIDE_IEEE and not all(map(_as_double, arrays)):
        return _row_by_row(expr, arrays)
    if expr.op.name == op.REMAINDER.name and (expr.op is op.REMAINDER or all(map(_is_whole, arrays))):
        return _remainder(arrays, arrow(expr.type))
    if expr.op.numpy is not None and expr.op.strict and all(_flat(array.type) for array in arrays):
        return _numpy_form(expr.op.numpy, arrays, arrow(expr.type))
    if expr.op.doubles is not None and all(pa.types.is_float64(array.type) for array in arrays):
        return _numpy_form(expr.op.doubles, arrays, arrow(expr.type))
    return _row_by_row(expr, arrays)


def _worked_out(expr: Call) -> pa.Scalar:
    """The value of a call of constants; arithmetic of what variables are worth may leave its type."""
    value: Any = compiled(expr)((), (), None)
    try:
        return pa.scalar(value, arrow(expr.type))
    except (pa.ArrowInvalid, OverflowError):
        return pa.scalar(value)


def _arrow_form(expr: Call, args: Sequence[Any]) -> pa.Array | None:
    compare = _COMPARE.get(expr.op.name)
    if compare is not None and not (pa.types.is_boolean(args[0].type) and compare not in (pc.equal, pc.not_equal)):
        return compare(*_alike(args))
    simple: Mapping[str, Callable[..., Any]] = {
        op.NOT.name: pc.invert,
        op.IS_NULL.name: pc.is_null,
        op.NOT_NULL.name: pc.is_valid,
        op.TO_DOUBLE.name: lambda x: x.cast(pa.float64(), safe=False),
    }
    if expr.op.name in simple:
        return simple[expr.op.name](*args)
    if expr.op in (op.SAME, op.NOT_SAME) and any(pa.types.is_null(arg.type) for arg in args):
        asked = next((arg for arg in args if isinstance(arg, pa.Array)), None)
        return None if asked is None else (pc.is_null if expr.op is op.SAME else pc.is_valid)(asked)
    if expr.op is op.CONCAT and all(pa.types.is_string(arg.type) for arg in args) and _short(args):
        return pc.binary_join_element_wise(*args, pa.scalar(""))
    if expr.op is op.MEMBER and _whole_choices(expr, args):
        found = pc.is_in(args[0].cast(pa.int64()), pa.array([choice.as_py() for choice in args[1:]], pa.int64()))
        return pc.if_else(pc.is_valid(args[0]), found, pa.scalar(None, pa.bool_()))
    if expr.op is op.TO_STRING and pa.types.is_integer(args[0].type):
        return args[0].cast(pa.string())
    if expr.op is op.DIVIDE_NULL:
        return pc.divide(args[0].cast(pa.float64()), _nonzero(args[1].cast(pa.float64())))
    if expr.op is op.DIVIDE_CUT:
        return pc.divide(args[0], _nonzero(args[1]))
    return None


def _short(texts: Sequence[Any]) -> bool:
    """Whether no row's texts, one after the other, are too long, or all of them together for an array. Raises NoRoom."""
    sizes = [pc.binary_length(each) for each in texts]
    longest = sum(int(pc.max(size).as_py() or 0) if isinstance(size, pa.Array) else size.as_py() or 0 for size in sizes)
    rows = max((len(size) for size in sizes if isinstance(size, pa.Array)), default=1)
    if longest >= LONG:
        counts(longest * rows)
    return longest <= MOST_CHARACTERS and longest * rows < _ARRAY


def _alike(args: Sequence[Any]) -> Sequence[Any]:
    """What is compared: whole numbers as doubles beside such; Arrow refuses those that no double is."""
    found = list(map(as_double, args))
    if not any(pa.types.is_floating(each.type) for each in found):
        return found
    return [each.cast(pa.float64(), safe=False) if _is_whole(each) else each for each in found]


def _whole_choices(expr: Call, args: Sequence[Any]) -> bool:
    """Whether a whole number is looked for among literals that are such."""
    literals = all(isinstance(each, Const) and type(each.value) is int for each in expr.args[1:])
    return literals and isinstance(args[0], pa.Array) and _is_whole(args[0])


def _is_whole(values: Any) -> bool:
    return pa.types.is_integer(values.type)


def _narrowed(values: pa.Array) -> pa.Array:
    """Whole numbers as 32 bits where all of them fit: those of the row executor do not wrap."""
    ends = pc.min_max(values).as_py()
    fits = ends["min"] is None or (ends["min"] >= op.INT_MIN and ends["max"] <= op.INT_MAX)
    return values.cast(pa.int32()) if fits else values


def _as_double(array: pa.Array) -> bool:
    """Whether each value is a double, too."""
    if not pa.types.is_integer(array.type) or array.type.bit_width < 64:
        return True
    ends = pc.min_max(array).as_py()
    return ends["min"] is None or max(-ends["min"], ends["max"]) <= op.EXACT


def _by_value(expr: Call, args: Sequence[Any]) -> pa.Array | None:
    """What depends on one column of texts and on nothing else is computed once for each different text."""
    columns = [place for place, arg in enumerate(args) if isinstance(arg, pa.Array)]
    if len(columns) != 1 or not expr.op.pure or not pa.types.is_string(args[columns[0]].type):
        return None
    found = args[columns[0]].dictionary_encode(null_encoding="encode")
    each = [pa.repeat(arg, len(found.dictionary)) if isinstance(arg, pa.Scalar) else found.dictionary for arg in args]
    return _row_by_row(expr, each).take(found.indices)


def _remainder(args: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    return _numpy_form("np.fmod({0}, {1})", [args[0], _nonzero(args[1])], kind)


def _nonzero(divisor: Any) -> Any:
    return pc.if_else(pc.equal(divisor, pa.scalar(0, divisor.type)), pa.scalar(None, divisor.type), divisor)


def _fitting(outer: Call, inner: Call, columns: Columns, rows: int) -> pa.Array:
    """Whole-number arithmetic whose result is null where it leaves 64 bits."""
    args = [_operand(arg, columns, rows) for arg in inner.args]
    checked = _ARITHMETIC.get(inner.op.name)
    whole = all(arg.type == pa.int64() for arg in args)
    if checked is not None and whole:
        try:
            result = checked(*args)
            return pa.repeat(result, rows) if isinstance(result, pa.Scalar) else result
        except pa.ArrowInvalid:
            pass  # one of the rows leaves 64 bits: find out which, in whole numbers of any size
    arrays = [pa.repeat(arg, rows) if isinstance(arg, pa.Scalar) else arg for arg in args]
    fields = tuple(Field(0, i, arg.type) for i, arg in enumerate(inner.args))
    return _row_by_row(Call(outer.op, (Call(inner.op, fields, inner.type),), outer.type), arrays, whole=True)


def _flat(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


@cache
def _numpy_function(text: str, arity: int) -> Callable[..., Any]:
    names = [f"a{i}" for i in range(arity)]
    return eval(compile(f"lambda {', '.join(names)}: {text.format(*names)}", "<numpy>", "eval"), {"np": np})


def _numpy_form(text: str, arrays: Sequence[pa.Array], kind: pa.DataType) -> pa.Array:
    """An operator over arrays without nulls; the nulls are put back afterwards."""
    missing = np.zeros(len(arrays[0]), bool)
    values: list[np.ndarray] = []
    for array in arrays:
        if array.null_count:
            missing |= np.asarray(pc.is_null(array))
            array = pc.fill_null(array, pa.scalar(0, array.type) if array.type != pa.bool_() else False)
        values.append(array.to_numpy(zero_copy_only=False))
    with np.errstate(all="ignore"):
        result = _numpy_function(text, len(values))(*values)
    mask = missing if missing.any() else None
    try:
        return pa.array(result, kind, mask=mask)
    except pa.ArrowInvalid:
        return pa.array(result, mask=mask)  # wider than the type says


def _row_by_row(expr: Call, arrays: Sequence[pa.Array], whole: bool = False) -> pa.Array:
    """The operator's own Python for each row of its arguments; `whole`: `expr` already reads them as fields."""
    fields = tuple(Field(0, i, arg.type) for i, arg in enumerate(expr.args))
    function = compiled(expr if whole else Call(expr.op, fields, expr.type))
    rows = zip(*(array.to_pylist() for array in arrays), strict=True)
    values = [function((Row(0, each),), (), None) for each in rows]
    try:
        return pa.array(values, arrow(expr.type))
    except (pa.ArrowInvalid, OverflowError):
        return pa.array(values)  # wider than the type says


def takes(operator: Operator) -> bool:
    """Whether an operator is computed for a whole column at once."""
    known = {*_COMPARE, *_ARITHMETIC, op.NOT.name, op.IS_NULL.name, op.NOT_NULL.name, op.TO_DOUBLE.name}
    return operator.name in known or operator.numpy is not None
