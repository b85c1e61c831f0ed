"""Windows of plans become window operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.compiler.types import INT, QueueOf, Reference, Struct, Type
from rollup.engine.programs.lowering.expressions import expressions, key_text, key_type, refuse_unsteady
from rollup.engine.programs.lowering.linking import Linker
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import windows
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length, LengthBatch
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
    linker.structs[f"Stamped_{name}"] = Struct(f"Stamped_{name}", {"time": INT, "row": row})
    return windows.Time, {"span": spec.span}, {"Stamped": Reference(f"Stamped_{name}")}, {}


def _length_batch(linker: Linker, spec: LengthBatch, name: str, row: Reference) -> Lowered:
    if spec.early or not spec.size:
        raise NotLowered("window", "LengthBatch that shows rows early")
    return windows.LengthBatch, {"size": spec.size}, {}, {}


def _time_batch(linker: Linker, spec: TimeBatch, name: str, row: Reference) -> Lowered:
    if spec.eager or spec.forced or spec.each or spec.early:
        raise NotLowered("window", "TimeBatch that begins, delivers or shows rows otherwise")
    origin = {} if spec.origin is None else {"origin": spec.origin}
    return windows.TimeBatch, {"span": spec.span, "aligned": spec.origin is not None, **origin}, {}, {}


def _unique(linker: Linker, spec: Unique, name: str, row: Reference) -> Lowered:
    if spec.first:
        raise NotLowered("window", "Unique that keeps the first")
    refuse_unsteady(spec.key)
    key = expressions(linker, f"{name}_key", "row", spec.key, {0: "row"}, lambda values: [f"return {key_text(values)}"])
    return windows.Unique, {}, {"Key": key_type(spec.key)}, {"key": [key]}


def _by_key(linker: Linker, spec: Grouped, name: str, row: Reference) -> Lowered:
    if not isinstance(spec.inner, Length):
        raise NotLowered("window", f"Grouped of {type(spec.inner).__name__}")
    refuse_unsteady(spec.key)
    key = expressions(linker, f"{name}_key", "row", spec.key, {0: "row"}, lambda values: [f"return {key_text(values)}"])
    linker.structs[f"Bucket_{name}"] = Struct(f"Bucket_{name}", {"rows": QueueOf(row)})
    types = {"Key": key_type(spec.key), "Bucket": Reference(f"Bucket_{name}")}
    return windows.LengthByKey, {"size": spec.inner.size}, types, {"key": [key]}


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
    TimeBatch: _time_batch,
    LengthBatch: _length_batch,
    Unique: _unique,
    Grouped: _by_key,
    Sorted: _sorted,
}
"""By the plan's window, what makes its operator: a new kind of window is a class and a line here."""
