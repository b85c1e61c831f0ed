"""The compiled mode: machine code over a state in memory of its own."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.compiler.arrays import Ints
from rollup.engine.compiler.cache import Code, code
from rollup.engine.compiler.codes import Codes
from rollup.engine.compiler.faults import failure
from rollup.engine.compiler.source import Source
from rollup.engine.compiler.types import BOOL, CODE, FAULT, FLOAT, LIVE, WHERE, ColumnsOf, Optional, TableOf, Type


class Compiled:
    """A source at work as machine code, with a state of its own. `checked`: the checked build, whose faults name a line."""

    def __init__(self, source: Source, checked: bool = False, made: Code | None = None) -> None:
        self.source, self.checked = source, checked
        self.codes = Codes()
        self._code = made or code(source, checked)
        state = source.layout.state
        self.memory: Ints = np.zeros(state.size, np.int64)
        for name, kind in state.fields.items():
            begin = state.places[name]
            self.memory[begin : begin + kind.words] = kind.zero
        self.address = self.memory.ctypes.data
        self._fed: dict[str, list[Any]] = {}
        weakref.finalize(self, _dispose, self._code, self.memory).atexit = False  # then LLVM may be gone

    def call(self, entry: str, *arguments: Any) -> None:
        """Call a function from outside. Raises Refused, and in the checked build Fault."""
        self._code.entries[entry](self.address, *arguments)
        if self.memory[FAULT]:
            stopped, where = int(self.memory[FAULT]), int(self.memory[WHERE])
            self.memory[FAULT] = 0
            raise failure(self.source, stopped, where)

    def get(self, field: str) -> Any:
        """A number, a truth value or a text in a field of the state."""
        kind, words = self._words(field)
        if isinstance(kind, Optional):
            if not words[-1]:
                return None
            kind = kind.of
        if kind is CODE:
            return self.codes.decode(words)[0].as_py()
        return (
            words[:1].view(np.float64)[0].item()
            if kind is FLOAT
            else (kind is not BOOL and int(words[0])) or bool(words[0])
        )

    def set(self, field: str, value: Any) -> None:
        """A number, a truth value or a text into a field of the state."""
        kind, words = self._words(field)
        if isinstance(kind, Optional):
            words[-1] = value is not None
            value, kind = (0 if value is None else value), kind.of
        if kind is CODE:
            words[:1] = self.codes.encode(pa.array([value], pa.string()))
        elif kind is FLOAT:
            words[:1].view(np.float64)[:] = value
        else:
            words[0] = value

    def _words(self, field: str) -> tuple[Type, Ints]:
        state = self.source.layout.state
        begin = state.places[field]
        return state.fields[field], self.memory[begin : begin + state.fields[field].words]

    @property
    def live(self) -> int:
        """How many structs there are beside the state."""
        return int(self.memory[LIVE])

    def feed(self, field: str, columns: Sequence[pa.Array]) -> None:
        """Input into a field of type `Columns`. It stays in memory until there is other input."""
        kind, words = self._words(field)
        assert isinstance(kind, ColumnsOf)
        alive = self._fed[field] = []
        words[0] = len(columns[0]) if columns else 0
        for i, (item, column) in enumerate(zip(kind.of, columns, strict=True)):
            inner = item
            if isinstance(item, Optional):
                inner, there = item.of, _there(column)
                words[2 + 2 * i] = _address(there, alive)
                column = column.fill_null(False if inner is BOOL else 0) if column.null_count else column
            words[1 + 2 * i] = _address(self._input(inner, column), alive)

    def _input(self, kind: Type, column: pa.Array) -> Any:
        """The words of a column without nulls, or texts: as Arrow has them where that is a word for each value."""
        if kind is CODE:
            return self.codes.encode(column)
        if column.type.id == (_DOUBLE if kind is FLOAT else _LONG) and len(column):
            return column
        plain = column.to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(plain.astype(np.float64 if kind is FLOAT else np.int64, copy=False))

    def take(self, field: str) -> list[pa.Array]:
        """The output in a field of type `Table`, column by column; the field is empty then."""
        kind, words = self._words(field)
        assert isinstance(kind, TableOf)
        count, words[0] = int(words[0]), 0
        found, addresses = list[pa.Array](), iter(words[2:].tolist())
        for item in kind.of.items:
            inner = item.of if isinstance(item, Optional) else item
            values = _copied(next(addresses), count, inner)
            there = _copied(next(addresses), count, BOOL) if isinstance(item, Optional) else None
            if inner is CODE:
                found.append(self.codes.named(values))
                continue
            nothing = None if there is None or there.all() else ~there
            found.append(pa.array(values, mask=nothing))
        return found


_LONG, _DOUBLE = pa.int64().id, pa.float64().id
_THERE = np.ones(1024, np.uint8)


def _there(column: pa.Array) -> Any:
    """A byte for each value, which says whether it is there."""
    if column.null_count:
        return np.ascontiguousarray(column.is_valid().to_numpy(zero_copy_only=False)).view(np.uint8)
    return _THERE if len(column) <= len(_THERE) else np.ones(len(column), np.uint8)


def _address(values: Any, alive: list[Any]) -> int:
    """Where values stand, as long as they are `alive`."""
    alive.append(values)
    return values.buffers()[1].address + 8 * values.offset if isinstance(values, pa.Array) else values.ctypes.data


def _copied(address: int, count: int, kind: Type) -> Any:
    """A column of output."""
    plain = np.dtype(np.bool_ if kind is BOOL else np.float64 if kind is FLOAT else np.int64)
    return np.frombuffer(ctypes.string_at(address, count * plain.itemsize) if count else b"", plain)


def _dispose(made: Code, memory: Ints) -> None:
    """Free all memory of a state."""
    made.dispose(memory.ctypes.data)
