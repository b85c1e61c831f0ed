"""A snapshot of the engine: named Arrow tables and scalars, nothing else, whatever executor made it.

    rows      the rows that anything still holds, each once: `id`, `values` (packed)
    nodes     what each node keeps: `path` (statement/partition/node), `state` (packed, rows by their number)
    scalars   plain numbers and texts: the clock, the next numbers

A node gives its state as plain values (numbers, texts, lists, dicts, tuples, decimals, sorted lists) in which `Row`
objects may stand anywhere; here they become numbers, so that a row held by three windows is one row again afterwards.
A row without an identity (number 0: a value made of others, as by `new {…}`) is written where it stands. So is an event
as one of an inherited schema, which has the event's number and other values.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, ItemsView, Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import msgpack
import pyarrow as pa
from sortedcontainers import SortedList

from rollup.core.errors import StoreError
from rollup.engine.reals import orderable, ordered_value
from rollup.engine.row import NAN, Row, comparable

_ROW, _DECIMAL, _TUPLE, _SET, _SORTED, _BIG, _PAIRS, _VALUES, _SEEN_AS = range(1, 10)
_HELD = "held"
NODES = pa.schema([("path", pa.string()), ("state", pa.binary())])
_NO_ROWS = pa.table({"id": pa.array([], pa.int64()), "values": pa.array([], pa.binary())})


@dataclass(frozen=True)
class State:
    """Named Arrow tables and scalars."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    scalars: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @staticmethod
    def holding(
        states: Mapping[str, State], scalars: Mapping[str, Any], own: Mapping[str, pa.Table] | None = None
    ) -> State:
        """One state of several by name, with scalars of its own, and tables of its `own` whose names are one word.

        >>> both = State.holding({"a b": State({}, {"n": 1}), "c": State({}, {"n": 2})}, {"clock": 7})
        >>> both.scalars["clock"], {name: dict(state.scalars) for name, state in both.held().items()}
        (7, {'a b': {'n': 1}, 'c': {'n': 2}})
        """
        scalars = {**scalars, _HELD: {name: dict(state.scalars) for name, state in states.items()}}

        def tables() -> dict[str, pa.Table]:
            held = {
                f"{place} {name}": table
                for place, state in enumerate(states.values())
                for name, table in state.tables.items()
            }
            return {**held, **(own or {})}

        lives = any(isinstance(each, Live) for each in states.values())
        return Live(states, scalars, tables, own or {}) if lives else State(tables(), scalars)

    def held(self) -> dict[str, State]:
        """The states that `holding` made this one of."""
        tables: list[dict[str, pa.Table]] = [{} for _ in self.scalars[_HELD]]
        for key, table in self.tables.items():
            place, apart, name = key.partition(" ")
            if apart:
                tables[int(place)][name] = table
        return {
            name: State(mine, scalars)
            for (name, scalars), mine in zip(self.scalars[_HELD].items(), tables, strict=True)
        }

    def instead(self, states: Mapping[str, State]) -> State:
        """The same with others held."""
        return State.holding(states, self.scalars, self.own)

    @property
    def own(self) -> Mapping[str, pa.Table]:
        """Its tables that are none of the states held."""
        return {key: table for key, table in self.tables.items() if " " not in key}


class Live(State):
    """A state whose tables are made when somebody asks for them, but for its `own`. `of`: what goes on, or the states held."""

    of: Any

    def __init__(
        self,
        of: Any,
        scalars: Mapping[str, Any],
        made: Callable[[], Mapping[str, pa.Table]],
        own: Mapping[str, pa.Table] | None = None,
    ) -> None:
        for name, value in (("of", of), ("scalars", scalars), ("tables", _Tables(made, own))):
            object.__setattr__(self, name, value)

    def held(self) -> dict[str, State]:
        """The states that `holding` made this one of."""
        return dict(self.of)

    @property
    def own(self) -> Mapping[str, pa.Table]:
        """Its tables that are none of the states held."""
        assert isinstance(self.tables, _Tables)
        return self.tables.own or {}


class _Tables(Mapping[str, pa.Table]):
    """The tables of a live state; its `own` are all whose names are one word, where it holds others."""

    def __init__(self, made: Callable[[], Mapping[str, pa.Table]], own: Mapping[str, pa.Table] | None) -> None:
        self._made, self.own = made, own

    def __getitem__(self, name: str) -> pa.Table:
        return self._made()[name] if self.own is None or " " in name else self.own[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())

    def items(self) -> ItemsView[str, pa.Table]:
        """All of them, made once."""
        return self._made().items()

    def keys(self) -> KeysView[str]:
        """Their names."""
        return self._made().keys()


@contextmanager
def taking_up(what: str, cure: str) -> Generator[None]:
    """While an engine takes a snapshot up: whatever does not fit is a StoreError, not the error of who came upon it.

    >>> with taking_up("a snapshot", "take another"): State().scalars["now"]
    Traceback (most recent call last):
    rollup.core.errors.StoreError: a snapshot does not fit this version of rollup: KeyError: 'now' (take another)
    """
    try:
        yield
    except StoreError as problem:  # of who takes it up for somebody, who knows what is to be done
        raise StoreError(problem.message, hint=cure) from problem
    except (LookupError, TypeError, ValueError, AttributeError, pa.ArrowException) as problem:
        said = f"{what} does not fit this version of rollup: {type(problem).__name__}: {problem}"
        raise StoreError(said, hint=cure) from problem


def packed(value: Any) -> bytes:
    """Plain values as bytes: what a state of a node may be, without rows.

    >>> unpacked(packed({"a": (1, Decimal("0.5")), "b": 2**70}))
    {'a': (1, Decimal('0.5')), 'b': 1180591620717411303424}
    """
    return Packer().packed(value)


def unpacked(blob: bytes) -> Any:
    """The values that `packed` made bytes of."""
    return Unpacker(State({"rows": _NO_ROWS, "nodes": NODES.empty_table()})).unpacked(blob)


class Packer:
    """Turns the states of nodes into a `State`."""

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._nodes: list[tuple[str, bytes]] = []

    def node(self, path: str, state: Any) -> None:
        """Add what a node keeps."""
        self._nodes.append((path, self.packed(state)))

    def state(self, scalars: Mapping[str, Any]) -> State:
        """All that was added."""
        ids, packed = list[int](), list[bytes]()
        while len(ids) < len(self._rows):  # packing a row may find rows inside it
            for id in list(self._rows)[len(ids) :]:
                ids.append(id)
                packed.append(self.packed(tuple(self._rows[id].values)))
        rows = pa.table({"id": pa.array(ids, pa.int64()), "values": pa.array(packed, pa.binary())})
        nodes = pa.Table.from_pylist([{"path": path, "state": state} for path, state in self._nodes], schema=NODES)
        return State({"rows": rows, "nodes": nodes}, dict(scalars))

    def packed(self, value: Any) -> bytes:
        """A value as bytes; its rows are added."""
        return msgpack.packb(value, default=self._unusual, strict_types=True) or b""

    def _unusual(self, value: Any) -> Any:
        if isinstance(value, Row) and not value.id:
            return msgpack.ExtType(_VALUES, self.packed(list(value.values)))
        if isinstance(value, Row):
            held = self._rows.setdefault(value.id, value)
            if held is not value and held.values != value.values:
                return msgpack.ExtType(_SEEN_AS, self.packed([value.id, *value.values]))
            return msgpack.ExtType(_ROW, msgpack.packb(value.id))
        if isinstance(value, Decimal):
            return msgpack.ExtType(_DECIMAL, str(value).encode())
        if isinstance(value, SortedList):
            return msgpack.ExtType(_SORTED, self.packed(list(map(ordered_value, value))))
        if isinstance(value, (set, frozenset)):
            return msgpack.ExtType(_SET, self.packed(list(value)))
        if isinstance(value, tuple):
            return msgpack.ExtType(_TUPLE, self.packed(list(value)))
        if isinstance(value, int):
            return msgpack.ExtType(_BIG, str(value).encode())
        if isinstance(value, Mapping):
            return msgpack.ExtType(_PAIRS, self.packed([[key, inner] for key, inner in value.items()]))
        if isinstance(value, Iterable):
            return list(value)
        raise TypeError(f"{type(value).__name__} cannot be part of a state")


class Unpacker:
    """Gives nodes their states back; each row is made once, whoever holds it."""

    def __init__(self, state: State) -> None:
        table = state.tables["rows"]
        self._blobs = dict(zip(table["id"].to_pylist(), table["values"].to_pylist(), strict=True))
        self._rows: dict[int, Row] = {}
        nodes = state.tables["nodes"]
        self._nodes = dict(zip(nodes["path"].to_pylist(), nodes["state"].to_pylist(), strict=True))

    def node(self, path: str) -> Any:
        """What the node of that path kept. Raises StoreError when the snapshot does not know it."""
        if path not in self._nodes:
            raise StoreError(f"the snapshot holds nothing for {path!r}", hint="it was taken with other statements")
        return self.unpacked(self._nodes[path])

    def paths(self) -> Iterable[str]:
        """The paths of all nodes that the snapshot holds."""
        return self._nodes

    def unpacked(self, blob: bytes) -> Any:
        """A value of bytes."""
        return msgpack.unpackb(blob, ext_hook=self._usual, object_pairs_hook=_pairs, strict_map_key=False)

    def _usual(self, code: int, blob: bytes) -> Any:
        if code == _ROW:
            return self._row(msgpack.unpackb(blob))
        if code == _DECIMAL:
            return Decimal(blob.decode())
        if code == _BIG:
            return int(blob.decode())
        inner = self.unpacked(blob)
        if code == _VALUES:
            return Row(0, tuple(inner))
        if code == _SEEN_AS:
            return Row(inner[0], tuple(inner[1:]))
        if code == _PAIRS:
            return _pairs(inner)
        return {_TUPLE: _key, _SET: set, _SORTED: _sorted}[code](inner)

    def _row(self, id: int) -> Row:
        if id not in self._rows:
            self._rows[id] = Row(id, self.unpacked(self._blobs[id]))
        return self._rows[id]


def _key(values: list[Any]) -> tuple[Any, ...]:
    """A tuple may be a key, and what is no number is the same one."""
    return tuple([value if value == value else NAN for value in values])


def _pairs(found: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    return {comparable(key): value for key, value in found}


def _sorted(values: Iterable[Any]) -> SortedList:
    return SortedList(map(orderable, values))
