"""Windows of plans become window operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.compiler.types import INT, QueueOf, Reference, Struct, Type
from rollup.engine.expressions import Expr
from rollup.engine.programs.lowering.expressions import (
    expressions,
    key_text,
    key_type,
    refuse_unsteady,
    test,
    with_bits,
)
from rollup.engine.programs.lowering.grouping import ROW, aggregates
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import windows
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Sorted
from rollup.engine.rows.windows.timed import Time, TimeAccumulating, TimeBatch
from rollup.engine.types import Kind

Ports = Mapping[str, Sequence[str]]


def window(linker: Linker, spec: WindowSpec | None, name: str, row: Reference, ports: Ports) -> str:
    """A window of a plan before the operators that `ports` names. Raises NotLowered."""
    lower = WINDOWS.get(type(spec))
    if lower is None:
        raise NotLowered("window", type(spec).__name__)
    operator, constants, types, more = lower(linker, spec, name, row)
    return linker.operator(operator, name, constants, {"Row": row, **types}, {"emit_present": [], **ports, **more})


Lowered = tuple[type[windows.Window], Mapping[str, Any], Mapping[str, Type], Ports]
"""The operator, its constants, the types of names in its annotations, and its own ports."""


def with_constants(operator: type[windows.Window], *constants: str) -> Callable[..., Lowered]:
    """A window whose constants have the names that the plan has."""
    return lambda linker, spec, name, row: (operator, {each: getattr(spec, each) for each in constants}, {}, {})


def _time(linker: Linker, spec: Time, name: str, row: Reference) -> Lowered:
    if spec.size is not None:
        raise NotLowered("window", "Time with a size")
    return windows.Time, {"span": spec.span}, _stamped(linker, name, row), {}


def _stamped(linker: Linker, name: str, row: Reference) -> Mapping[str, Type]:
    """The type of a row with a time."""
    made = linker.structs[f"Stamped_{name}"] = Struct(f"Stamped_{name}", {"time": INT, "row": row})
    return {"Stamped": Reference(made.name)}


def _length_batch(linker: Linker, spec: LengthBatch, name: str, row: Reference) -> Lowered:
    if spec.early or not spec.size:
        raise NotLowered("window", "LengthBatch that shows rows early")
    return windows.LengthBatch, {"size": spec.size}, {}, {}


def _time_batch(linker: Linker, spec: TimeBatch, name: str, row: Reference) -> Lowered:
    if spec.eager or spec.forced or spec.each or spec.early:
        raise NotLowered("window", "TimeBatch that begins, delivers or shows rows otherwise")
    origin = {} if spec.origin is None else {"origin": spec.origin}
    return windows.TimeBatch, {"span": spec.span, "aligned": spec.origin is not None, **origin}, {}, {}


def _timed(linker: Linker, spec: ExternalTime | ExternalTimeBatch, name: str) -> Ports:
    """The port that gives the time of a row."""
    kind = type(spec).__name__
    if not linker.timely:
        raise NotLowered("window", f"{kind}, of events that may have no time")
    if spec.time.type.kind not in (Kind.INT, Kind.LONG, Kind.TIMESTAMP):
        raise NotLowered("window", f"{kind} by a {spec.time.type}")
    return {
        "time": [expressions(linker, f"{name}_time", "row", [spec.time], ROW, lambda values: [f"return {values[0]}"])]
    }


def _external(linker: Linker, spec: ExternalTime, name: str, row: Reference) -> Lowered:
    constants = {"span": spec.span, "least": spec.span - 2**63}
    return windows.ExternalTime, constants, _stamped(linker, name, row), _timed(linker, spec, name)


def _external_batch(linker: Linker, spec: ExternalTimeBatch, name: str, row: Reference) -> Lowered:
    if isinstance(spec.origin, Expr):
        raise NotLowered("window", "ExternalTimeBatch whose edges begin by a value")
    origin = {} if spec.origin is None else {"origin": spec.origin % spec.span}
    constants = {"span": spec.span, "aligned": spec.origin is not None, **origin}
    return windows.ExternalTimeBatch, constants, {}, _timed(linker, spec, name)


def _expressed(linker: Linker, spec: Expressed, name: str, row: Reference) -> Lowered:
    refuse_unsteady([each for call in spec.calls for each in (*call.args, call.where)])
    group = linker.structs[f"Content_{name}"] = Struct(f"Content_{name}", {})
    slots, values = aggregates(linker, f"{name}_content", spec.calls, group, "row", ROW)
    built_in = ["rows", "expired", "s.now", "since"]
    linker.state[f"{name}_content"] = Reference(group.name)
    lines = [f"if s.{name}_content is None:", f"    s.{name}_content = {group.name}()", f"return s.{name}_content"]
    linker.function(f"{name}_known", "", lines)
    for way in ("accumulate", "retract"):
        linker.function(f"{name}_{way}", "row", [f"{name}_content_{way}({name}_known(), row)"])
    test(
        linker, f"{name}_holds", [spec.condition], {0: "newest", 1: "oldest"},
        "oldest, newest, since, rows, expired", [*built_in, *slots], [f"group = {name}_known()", *values],
    )  # fmt: skip
    ports = {each: [f"{name}_{each}"] for each in ("accumulate", "retract", "holds")}
    return windows.Expressed, {}, _stamped(linker, name, row), ports


def _keyed(linker: Linker, key: Sequence[Expr], name: str) -> tuple[dict[str, Type], Ports]:
    """The type of a window's key, and the port that gives that of a row."""
    refuse_unsteady(key)
    end = lambda values: [f"return {key_text(with_bits(key, values))}"]  # noqa: E731
    return {"Key": key_type(key, True)}, {"key": [expressions(linker, f"{name}_key", "row", key, {0: "row"}, end)]}


def _unique(linker: Linker, spec: Unique, name: str, row: Reference) -> Lowered:
    return windows.FirstUnique if spec.first else windows.Unique, {}, *_keyed(linker, spec.key, name)


def _by_key(linker: Linker, spec: Grouped, name: str, row: Reference) -> Lowered:
    operator = _BY_KEY.get(type(spec.inner))
    if operator is None:
        raise NotLowered("window", f"Grouped of {type(spec.inner).__name__}")
    size = WINDOWS[type(spec.inner)](linker, spec.inner, name, row)[1]
    linker.structs[f"Bucket_{name}"] = Struct(f"Bucket_{name}", {"rows": QueueOf(row)})
    types, ports = _keyed(linker, spec.key, name)
    return operator, size, types | {"Bucket": Reference(f"Bucket_{name}")}, ports


def _sorted(linker: Linker, spec: Sorted, name: str, row: Reference) -> Lowered:
    pairs = list(zip(spec.by, spec.descending, strict=True))
    if len(pairs) != 1 or pairs[0][0].type.kind not in (Kind.INT, Kind.DOUBLE) or spec.ties != "oldest":
        raise NotLowered("window", "Sorted by anything but one number")
    ((key, descending),) = pairs
    sign = "" if descending else "-"
    nothing = f"{'-' if descending else ''}{2**63 - 1}"  # null stands first upwards, and last downwards

    def ranked(values: list[str]) -> list[str]:
        return [f"return {nothing} if {values[0]} is None else {sign}order(float({values[0]}))"]

    rank = expressions(linker, f"{name}_rank", "row", [key], {0: "row"}, ranked)
    return windows.Sort, {"size": spec.size}, {}, {"rank": [rank]}


WINDOWS: dict[type[Any], Callable[..., Lowered]] = {
    type(None): with_constants(windows.Unwindowed),
    KeepAll: with_constants(windows.KeepAll),
    Length: with_constants(windows.Length, "size"),
    FirstLength: with_constants(windows.FirstLength, "size"),
    TimeAccumulating: with_constants(windows.TimeAccumulating, "span"),
    Time: _time,
    ExternalTime: _external,
    ExternalTimeBatch: _external_batch,
    Expressed: _expressed,
    TimeBatch: _time_batch,
    LengthBatch: _length_batch,
    Unique: _unique,
    Grouped: _by_key,
    Sorted: _sorted,
}
"""By the plan's window, what makes its operator: a new kind of window is a class and a line here."""
_BY_KEY: dict[type[Any], type[windows.Window]] = {Length: windows.LengthByKey, LengthBatch: windows.LengthBatchByKey}
"""The operators of a window for each key."""
