"""What a sink must do: where rows of a stream leave to.

Rows are known by their place in a line of output: the first row that the line has given, the second, and so on. The same
events give the same rows in the same order, however they are cut into batches. So a sink that knows how many rows of a
line it has can be brought what it lacks, also after tables have gone back to a backup and batches hold other events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from rollup.core.columns import ColumnEngine


AGAIN = "the job's next start brings them again"
"""What becomes of rows that a sink could not take."""
_MODULUS = 1 << 63


@dataclass(frozen=True)
class Held:
    """How many rows of a line there are, and the sum of their hashes (None where nobody knows it)."""

    rows: int
    digest: int | None = 0

    def after(self, rows: pa.Table, engine: ColumnEngine) -> Held:
        """What there is with some more rows.

        >>> import pyarrow as pa
        >>> from rollup.core.columns import ColumnEngine
        >>> rows, engine = pa.table({"k": ["a", "b", "c"]}), ColumnEngine(threads=1)
        >>> Held(0).after(rows[:1], engine).after(rows[1:], engine) == Held(0).after(rows, engine)
        True
        """
        known = None if self.digest is None else (self.digest + _digest(rows, engine)) % _MODULUS
        return Held(self.rows + rows.num_rows, known)

    def other_than(self, other: Held) -> bool:
        """Whether two are known to be different ones of as many rows."""
        return None not in (self.digest, other.digest) and self.digest != other.digest


def _digest(rows: pa.Table, engine: ColumnEngine) -> int:
    """A sum that is the same in whatever order rows come. Doubles are left out: they are equal to rounding only."""
    names = [field.name for field in rows.schema if not _rounded(field.type)]
    if not rows.num_rows or not names:
        return 0
    columns = ", ".join(f"c{place}" for place in range(len(names)))
    found = engine.run(
        f"SELECT SUM(hash({columns})) AS digest FROM given",
        given=rows.select(names).rename_columns([f"c{place}" for place in range(len(names))]),
    )
    return int(found["digest"][0].as_py()) % _MODULUS


def _rounded(kind: pa.DataType) -> bool:
    from pyarrow import types  # a configuration is read before anything that works on data is loaded

    return types.is_floating(kind) or any(_rounded(kind.field(i).type) for i in range(kind.num_fields))


class Sink(Protocol):
    """Takes the rows of a stream that leaves."""

    @property
    def place(self) -> str:
        """Where its rows are, for people to read: `the table …`."""
        ...

    @property
    def tells(self) -> bool:
        """Whether it knows what it has. One that does not may get the rows of the last batch twice after a crash."""
        ...

    @property
    def filled(self) -> bool:
        """Whether it has rows which it would have twice if they came again, as far as it knows."""
        ...

    def held(self, line: str) -> Held | None:
        """What it has of a line; None when it has nothing, or does not know."""
        ...

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Write rows, and with them that this is what there is of the line now."""
        ...

    def forget(self, line: str, rows: int) -> bool:
        """Take back all but the first rows of a line, and of those whose names go on from it; False where that cannot be."""
        ...


def say_filled(sink: Sink, stream: str) -> None:
    """Say that a sink without rows of a line has others, maybe those of the same events."""
    import structlog  # a configuration is read before this is loaded

    if sink.filled:
        structlog.get_logger("rollup").warning(
            "a sink has rows already which are not of this stream: those of the stream are added to them",
            hint="if the job began anew, after its checkpoint or commit records were lost, the same rows come again: stop it and "
            "remove those that were there before",
            stream=stream,
            sink=sink.place,
        )


class Unfit(NamedTuple):
    """A row that a sink refuses for good: its number in the line from 1, the row, and why."""

    number: int
    row: Mapping[str, Any]
    reason: str


@runtime_checkable
class Choosing(Protocol):
    """A sink that may refuse single rows, as a table with constraints does.

    `aside` gets the line, how many rows there are of it now, and the rows refused, before the others can be seen; without
    it one such row is an error.
    """

    aside: Callable[[str, int, Sequence[Unfit]], None] | None


@runtime_checkable
class Summed(Protocol):
    """A sink with checksums of the files that it has written."""

    def damaged(self) -> Iterator[str]:
        """Those that are no longer as they were written. Raises OSError where they cannot be read."""
        ...
