"""What a source must do. Its driver half gives Spark a streaming DataFrame; its task half turns a batch into events.

A part of a batch is what one ordering covers: a file, or the rows of a Kafka task. Its events are a view in the task's
engine with the stream's attributes, `__arrival` (rising within the part) and `__received` (ms). The driver puts parts
in order by `order` and numbers arrivals over the whole batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.plan.app import StreamDef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEAD = pa.schema([("stream", pa.string()), ("reason", pa.string()), ("position", pa.string()), ("raw", pa.string())])
"""A record that could not be used: why, where it stands in its source, and its text."""


@dataclass(frozen=True)
class Part:
    """Events of one ordering: their view, how many, where they come from, and the records that are no events.

    `numbered` says that `__arrival` is the source's own number over all parts; otherwise it counts from 0 in the part.
    `places` is a relation of `__arrival` and `__position` (where an event stands in its source) when that is not simply
    the origin and `__arrival`. `looked` says which attributes its records have, see `rollup.sources.content.presence`.
    `parsed` says that the view holds what it cost much to read.
    """

    view: str
    rows: int
    origin: str
    order: int
    dead: pa.Table
    numbered: bool = False
    places: str = ""
    looked: pa.Table | None = None
    parsed: bool = False


class Source(Protocol):
    """A kind of source, made from its options and the stream it feeds."""

    def check(self) -> None:
        """Look, before anything is started, whether there is something to read; change nothing. Raises ConfigError."""
        ...

    def frame(self, spark: SparkSession, checkpoint: Path) -> DataFrame:
        """The streaming DataFrame of the driver, whose query has a checkpoint; its rows reach `parts` as Arrow.

        A column of the rows identifies a batch that comes again, see `rollup.checkpoint.inputs`. It is `path`, the name of
        a file that comes once, or a number that rises: `__arrival` alone, or `kafka_offset` in each `kafka_partition`.
        There `kafka_start` and `kafka_end` may stand for many offsets.
        """
        ...

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> DataFrame | pa.Table:
        """What the tasks of a batch read: the rows that Spark gives it, or a table that says where more of them are, of
        which each task takes an equal slice.

        `checkpoint` is that of the streaming query. It is the same each time the batch is tried.
        """
        ...

    def damaged(self, place: str, problem: BaseException) -> str:
        """The reason of the dead letter of a whole part (`Part.origin`) on which reading failed.

        Raises SourceError unless it is proven that its content cannot be read.
        """
        ...

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        """The parts of a task's share of a batch; the view of one is gone when the next is asked for."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A source behind a network."""

    def reach(self, seconds: float) -> None:
        """Wait at most so long until its server answers at all. Raises SourceError with the address."""
        ...


def nulls(options: Mapping[str, Any]) -> tuple[str, ...]:
    """The texts of a CSV that stand for no value; without the option `null` the empty one does.

    >>> nulls({}), nulls({"null": "NA"}), nulls({"null": ["", "-"]})
    (('',), ('NA',), ('', '-'))
    """
    said: str | list[str] = options.get("null", "")
    return (said,) if isinstance(said, str) else tuple(said)


def need(stream: StreamDef, options: Mapping[str, Any], *names: str) -> None:
    """Raise ConfigError unless all options are there."""
    for name in names:
        if name not in options:
            raise ConfigError(f"[sources.{stream.name}] lacks `{name}`")
