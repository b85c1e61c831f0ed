"""What a sink must do: where rows of a stream leave to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


AGAIN = "the job's next start brings them again"
"""What becomes of rows that a sink could not take."""


class Sink(Protocol):
    """Takes the rows of a stream that leaves; a batch that comes again must not add rows twice where that can be helped."""

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Write the rows of one batch."""
        ...

    def forget(self, query: str, batch: int) -> None:
        """Take back the rows of batches after one, where that can be: they will come again, cut in other batches."""
        ...
