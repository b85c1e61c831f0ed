"""Several windows over one stream: a row stays while all keep it, or while any does; and rows derived from a window."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.compiling import compiled_row
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.windows.base import Host, Window, WindowSpec, key_of
from rollup.engine.rows.windows.counted import Batches


@dataclass(frozen=True)
class Intersection:
    """Rows that every one of the windows keeps; a batch window among them works on what the others keep."""

    parts: tuple[WindowSpec, ...]

    def build(self, host: Host) -> Window:
        """The windows, empty."""
        return _Intersection([part.build(host) for part in self.parts])


class _Several(Window):
    def __init__(self, parts: Sequence[Window]) -> None:
        self._parts, self.forces = parts, any(part.forces for part in parts)
        self.told = all(part.told for part in parts)

    @property
    def timed(self) -> bool:
        return any(part.timed for part in self._parts)

    @property
    def due(self) -> int | None:
        return min((part.due for part in self._parts if part.due is not None), default=None)

    def fire(self, now: int) -> Delta:
        return self._together([p.fire(now) if p.due is not None and p.due <= now else NOTHING for p in self._parts], ())

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new, old = list[Row](), list[Row]()
        for row in rows:
            delta = self._together([part.enter([row], now) for part in self._parts], (row,))
            new += delta.new
            old += delta.old
        return Delta(new, old)

    def remove(self, row: Row) -> None:
        for part in self._parts:
            part.remove(row)

    def _together(self, deltas: Sequence[Delta], arrived: Sequence[Row]) -> Delta:
        raise NotImplementedError

    def snapshot(self) -> Any:
        return [part.snapshot() for part in self._parts]

    def restore(self, state: Any) -> None:
        for part, inner in zip(self._parts, state, strict=True):
            part.restore(inner)


class _Intersection(_Several):
    def __init__(self, parts: Sequence[Window]) -> None:
        super().__init__(parts)
        self._batch = next((part for part in parts if isinstance(part, Batches)), None)
        self.in_batches = self._batch is not None
        self.passes_empty = self._batch is None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        if self._batch is None:
            return super().enter(rows, now)
        kept = list[Row]()
        for row in rows:
            others = [part.enter([row], now) for part in self._parts if part is not self._batch]
            for gone in (each for delta in others for each in delta.old):
                self._batch.remove(gone)
                kept = [each for each in kept if each is not gone]
            if all(row in delta.new for delta in others):
                kept.append(row)
        return self._batch.enter(kept, now) if kept else NOTHING

    def _together(self, deltas: Sequence[Delta], arrived: Sequence[Row]) -> Delta:
        if self._batch is not None:
            return self._fired(deltas)
        old = dict[int, Row]()
        for place, delta in enumerate(deltas):
            for row in delta.old:
                old[row.id] = row
                for other in range(len(self._parts)):
                    if other != place:
                        self._parts[other].remove(row)
        unseen = [row for row in arrived if not all(row in delta.new for delta in deltas)]
        for row in unseen:
            self.remove(row)
        return Delta([row for row in arrived if row not in unseen], [row for row in old.values() if row not in unseen])

    def _fired(self, deltas: Sequence[Delta]) -> Delta:
        own = NOTHING
        for part, delta in zip(self._parts, deltas, strict=True):
            if part is self._batch:
                own = delta
            else:
                for row in delta.old:
                    self._batch.remove(row)  # pyright: ignore[reportOptionalMemberAccess]
        return own

    def content(self) -> Iterable[Row]:
        return (self._batch or self._parts[0]).content()

    def shown(self) -> Iterable[Row]:
        return (self._batch or self._parts[0]).shown()


@dataclass(frozen=True)
class Union:
    """Rows that at least one of the windows keeps: a row comes when it arrives, and leaves when each has let it go.

    What a window has not taken in at all it does not let go either.
    """

    parts: tuple[WindowSpec, ...]

    def build(self, host: Host) -> Window:
        """The windows, empty."""
        return _Union([part.build(host) for part in self.parts])


class _Union(_Several):
    def __init__(self, parts: Sequence[Window]) -> None:
        super().__init__(parts)
        self._kept: dict[int, list[Any]] = {}

    def _together(self, deltas: Sequence[Delta], arrived: Sequence[Row]) -> Delta:
        for row in arrived:
            self._kept[row.id] = [row, len(self._parts)]
        old = list[Row]()
        for row in (row for delta in deltas for row in delta.old):
            entry = self._kept.get(row.id)
            if entry is None:  # taken out
                continue
            entry[1] -= 1
            if not entry[1]:
                del self._kept[row.id]
                old.append(row)
        return Delta(arrived, old)

    def content(self) -> Iterable[Row]:
        return (row for row, _ in self._kept.values())

    def remove(self, row: Row) -> None:
        super().remove(row)
        self._kept.pop(row.id, None)

    def snapshot(self) -> Any:
        return [super().snapshot(), list(self._kept.values())]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._kept = {row.id: [row, count] for row, count in state[1]}


@dataclass(frozen=True)
class Derived:
    """One row of values computed from the content of a window: a new one whenever the content changes, the old leaves.

    The `columns` read the values of the `calls`, and `key`, the same for all rows, follows.
    `quiet`: while the first value is the same as before there is no change.
    """

    inner: WindowSpec
    calls: tuple[AggregateCall, ...]
    columns: tuple[Expr, ...]
    key: tuple[Expr, ...] = ()
    quiet: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Derived(self, host)


class _Derived(Window):
    def __init__(self, spec: Derived, host: Host) -> None:
        self._inner, self._fold, self._host = spec.inner.build(host), Fold(spec.calls), host
        self._columns = compiled_row(spec.columns)
        self._group, self._quiet = self._fold.start(), spec.quiet
        self._key, self._shared = key_of(spec.key, host), tuple[Any, ...]()
        self._last: Row | None = None

    @property
    def due(self) -> int | None:
        return self._inner.due

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        return self._changed(self._inner.enter(rows, now))

    def fire(self, now: int) -> Delta:
        return self._changed(self._inner.fire(now))

    def _changed(self, delta: Delta) -> Delta:
        if not delta:
            return NOTHING
        if self._last is None:
            self._shared = self._key(delta.new[0]) if delta.new else ()
            self._last = self._made()
        for row in delta.new:
            self._fold.enter(self._group, (row,), self._host.environment)
        for row in delta.old:
            self._fold.leave(self._group, (row,), self._host.environment)
        made = self._made()
        if self._quiet and made.values[0] == self._last.values[0]:
            return NOTHING
        before, self._last = self._last, made
        return Delta([made], [before])

    def _made(self) -> Row:
        values = self._columns((), self._fold.values(self._group), self._host.environment)
        return self._host.row((*values, *self._shared))

    def content(self) -> Iterable[Row]:
        return [self._last or self._made()]

    def remove(self, row: Row) -> None:
        """A derived row cannot be taken out."""

    def snapshot(self) -> Any:
        return [self._inner.snapshot(), self._group, self._last, self._shared]

    def restore(self, state: Any) -> None:
        self._inner.restore(state[0])
        self._group, self._last, self._shared = state[1], state[2], tuple(state[3])
