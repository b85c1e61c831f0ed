"""A Kafka topic of events in JSON or Avro. The order of arrival is that of timestamps, and within a partition that of offsets.

Spark only streams offsets; each task reads its messages itself, which is faster than the way through the JVM, unless a
setting of the source keeps it from that (`rollup.sources.topics.ways`).

It is one 64-bit number, a function of the messages of a batch alone; what comes in a later batch has arrived later.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import structlog

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, SourceError, TimeError
from rollup.core.untyped import pc
from rollup.plan.app import StreamDef
from rollup.sources.base import DEAD, Part, need
from rollup.sources.content.by_loop import SCANNED, events, scanned_rows, scanner_for
from rollup.sources.content.documents import IS_OBJECT, OK, Documents, plain, read_documents
from rollup.sources.content.presence import HAS, check_names, expected, great, json_looked, looked, objects
from rollup.sources.content.records import NO_VALUE, check_paths, nothing, text, view
from rollup.sources.content.typed import ROW, Columns
from rollup.sources.kinds import FORMAT
from rollup.sources.topics.metadata import KEY, OPTION, TOPIC_COLUMN, Metadata
from rollup.sources.topics.ranges import END, RANGES, Range, Topics, begun_at, dealt, planned
from rollup.sources.topics.value_kinds import REGISTRY, VALUES, values_of
from rollup.sources.topics.values import Unread, Values, texts
from rollup.sources.topics.ways import READ, TASKS, way

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Longs = npt.NDArray[np.int64]
_BITS = 20
"""Of an arrival number, below the millisecond."""
_LATEST = 1 << 42
"""Timestamps from the year 2109 on, and those before 1970, say nothing of when a message arrived."""
CHANGES = 2
"""How many records a message of changes gives at most: the row as it was, and as it is."""
COPIES = "copies"
"""The option that says how many numbers each event takes, see `Program.numbered`."""
_ROOM = (1 << 63) - (1 << 60)
"""All of an event's numbers are below it, and those of the messages after it have room above."""
_PARTITIONS = 256
BY_OFFSET = "by_offset"
"""The option of a batch whose timestamps are too far apart for 64 bits: messages are numbered by their offsets alone."""

_PLACED = ("kafka_partition", "kafka_offset")
_VALUE = "CAST(value AS BINARY) AS value"
_PLACE = ("unix_millis(timestamp) AS timestamp", "partition AS kafka_partition", "offset AS kafka_offset")

_PATIENCE = 3.0
"""Seconds for a broker to take a connection."""


class Kafka:
    """A topic. Its options:

    * `servers`, `topic`, `topics` or `topic_pattern`, `partitions` (256, not less than a topic has), `starting_offsets` (earliest, see
      `begun_at`)
    * `max_events_per_batch`, `columns` (rename), `optional` (attributes that may be missing)
    * `message`, see `rollup.sources.topics.metadata`
    * `slack` (1 day), see `rollup.lifecycle.replay.raw_kafka`
    * `options` of Spark's Kafka source
    * `registry`, `registry_settings`, `schema_file`, `values`, `separator`, `null`, `fields`: what values are, see
      `rollup.sources.topics.value_kinds`; JSON without them
    * `format`: "debezium" where messages are changes of rows, see `rollup.sources.topics.debezium`
    * `read`: who reads the messages, `tasks` or `spark`; by default tasks where they can
    """

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "servers")
        self.topics = Topics.of(stream.name, options, _PARTITIONS)
        self.stream = stream
        self.options = options
        self.way = way(options)
        self._renamed: Mapping[str, str] = options.get("columns", {})

    @cached_property
    def values(self) -> Values:
        """How the bytes of its messages are read. Raises ConfigError."""
        renamed = [self._renamed.get(name, name) for name in self.stream.own if name not in self.metadata.fields]
        return values_of(self.stream.name, self.options, renamed)

    @cached_property
    def _start(self) -> dict[str, str]:
        """Spark's options for where the topic is begun. Raises ConfigError."""
        try:
            return begun_at(str(self.options.get("starting_offsets", "earliest")))
        except TimeError:
            raise ConfigError(
                f"[sources.{self.stream.name}] starting_offsets is {self.options['starting_offsets']!r}",
                hint='"earliest", "latest", a time with its offset as "2018-01-05T12:00:00Z", or Spark\'s JSON of offsets',
            ) from None

    @cached_property
    def metadata(self) -> Metadata:
        """What events take of messages beside their values. Raises ConfigError."""
        return Metadata.of(self.stream, self.options)

    def check(self) -> None:
        """See `Source.check`."""
        if self.options.get(READ) == TASKS and self.way.settings is None:
            raise ConfigError(
                f'[sources.{self.stream.name}] {READ} is "{TASKS}": {self.way.reason}',
                hint=f"without `{READ}` Spark reads the messages, as that option says",
            )
        if self.topics.several and self.way.settings is None:
            raise ConfigError(
                f"[sources.{self.stream.name}] several topics are read by tasks, and {self.way.reason}",
                hint="a source for each topic, whose streams queries put together",
            )
        assert self.values is not None and self.metadata is not None and self._start
        if FORMAT in self.options and VALUES in self.options:
            raise ConfigError(
                f"[sources.{self.stream.name}] has `{FORMAT}` and `{VALUES}`",
                hint="changes of rows are objects with names",
            )
        moving = [name for name, field in self.metadata.fields.items() if field != KEY]
        if FORMAT in self.options and moving:
            raise ConfigError(
                f"[sources.{self.stream.name}]: {OPTION} gives {moving[0]} the {self.metadata.fields[moving[0]]} of a message, "
                "and a row is taken back by another message than it came with",
                hint=f"with `{FORMAT}`, {OPTION} takes `{KEY}` alone",
            )
        check_names(self.stream, self.options)
        check_paths(self.stream, self.options.get("columns", {}))

    def reach(self, seconds: float) -> None:
        """See `Remote.reach`: of the brokers one address takes a connection, and so does the registry."""
        until = time.monotonic() + seconds
        servers = [each.strip() for each in str(self.options["servers"]).split(",")]
        self._wait("no broker can", servers, until, "`servers` are their addresses, host:port")
        if REGISTRY in self.options:
            self._wait("the registry cannot", [_server(self.options[REGISTRY])], until, "`registry` is its address")

    def _wait(self, cannot: str, servers: Sequence[str], until: float, hint: str) -> None:
        """Wait until one of some servers takes a connection. Raises SourceError."""
        while True:
            said = dict[str, str]()
            for server in servers:
                host, _, port = server.rpartition("://")[2].rpartition(":")
                try:
                    socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
                except (OSError, ValueError) as problem:
                    said[server] = str(getattr(problem, "strerror", None) or problem)
                    continue
                return
            if time.monotonic() > until:
                tried = "; ".join(f"{server}: {why}" for server, why in said.items())
                raise SourceError(
                    f"[sources.{self.stream.name}]: {cannot} be reached ({tried})",
                    hint=f"{hint}, as this machine sees them",
                )
            time.sleep(0.5)

    def frame(self, spark: SparkSession, checkpoint: Path) -> DataFrame:
        """Messages, or of those that tasks are to read nothing but where they stand."""
        structlog.get_logger("rollup").info(
            "a topic is read", stream=self.stream.name, topic=self.topics.said, how=self.way.described
        )
        if self.topics.pattern is not None and self.way.settings is not None:
            from rollup.sources.topics.identity import say_none

            say_none(self.topics.pattern, self.way.settings)
        reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.options["servers"])
        reader = reader.options(**self.topics.subscribed, **self._start)
        if "max_events_per_batch" in self.options:
            reader = reader.option("maxOffsetsPerTrigger", int(self.options["max_events_per_batch"]))
        for name, value in self.options.get("options", {}).items():
            reader = reader.option(name, value)
        if self.way.settings is not None:
            return reader.load().selectExpr(*_PLACE)
        return self._messages(reader.option("includeHeaders", bool(self.metadata.binary)).load())

    def between(self, spark: SparkSession, starts: Mapping[int, int], ends: Mapping[int, int]) -> DataFrame:
        """A bounded read: of every partition of the topic the offsets from its start to before its end."""
        if self.way.settings is not None:
            ranges = [Range(p, at, ends[p]) for p, at in sorted(starts.items()) if at < ends[p]]
            return spark.createDataFrame(dealt(ranges, spark.sparkContext.defaultParallelism))  # type: ignore[arg-type]
        reader = spark.read.format("kafka").option("kafka.bootstrap.servers", self.options["servers"])
        reader = reader.options(**self.topics.subscribed)
        for name, value in self.options.get("options", {}).items():
            if not name.lower().startswith(("starting", "ending", "maxoffsets", "minoffsets", "maxtrigger")):
                reader = reader.option(name, value)
        for name, offsets in (("startingOffsets", starts), ("endingOffsets", ends)):
            reader = reader.option(name, json.dumps({self.topics.said: {str(p): o for p, o in offsets.items()}}))
        return self._messages(reader.option("includeHeaders", bool(self.metadata.binary)).load())

    def _messages(self, frame: DataFrame) -> DataFrame:
        """What tasks are given of messages that Spark reads."""
        from pyspark.sql import functions as f

        return frame.select(*map(f.expr, (_VALUE, *_PLACE)), *self.metadata.selected())

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> DataFrame | pa.Table:
        """The offsets of a batch as the query's log has them, dealt to one task a core; or the rows that Spark gives."""
        from rollup.sources.topics import identity  # its client is loaded where a batch is planned

        if self.way.settings is None:
            return frame
        topics = self.topics
        if topics.pattern is not None:
            topics = identity.matched(topics, checkpoint, batch, self.way.settings)
        identity.refuse_others(checkpoint, topics.names, self.way.settings)
        ranges = planned(checkpoint, batch, topics)
        return dealt(ranges, frame.sparkSession.sparkContext.defaultParallelism)

    def damaged(self, place: str, problem: BaseException) -> str:
        """No record of it stands for others, so nothing is proven of all of them."""
        raise SourceError(f"cannot read events of {place}: {problem}") from None

    @property
    def _latest(self) -> int:
        """Timestamps below it give messages their numbers. Of five copies and more even one of today has no room in 64
        bits: then offsets alone give the order, as in a batch that asks for it."""
        copies = int(self.options.get(COPIES, 1)) * (CHANGES if FORMAT in self.options else 1)
        return 0 if BY_OFFSET in self.options else min(_LATEST, _ROOM // copies >> _BITS)

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        if END in batch.column_names and batch.num_rows:
            batch = self._read(batch)
        if not batch.num_rows:
            return
        groups, unread = self.values.read(batch["value"])
        placed = self._placed(batch.drop_columns(["value"]))
        if FORMAT in self.options:
            unread = [one for one in unread if one.reason != NO_VALUE]  # it stands behind a delete
        if unread:
            yield self._unread(engine, placed, unread)
        for group in groups:
            messages = placed if len(group.places) == placed.num_rows else placed.take(group.places)
            if FORMAT in self.options:
                yield from self._of_changes(engine, messages, group.records)
            else:
                yield self._of_records(engine, messages, group.records)

    def _read(self, ranges: pa.Table) -> pa.Table:
        """The messages of ranges of offsets, as Spark would give them."""
        from rollup.sources.topics.messages import read  # its client is loaded where messages are read, not to plan

        assert self.way.settings is not None
        wanted, found = [Range(*row.values()) for row in ranges.select(RANGES.names).to_pylist()], list[pa.Table]()
        for place, some in self.topics.by_topic(wanted).items():
            table = read(some, self.topics.names[place], self.way.settings, self.metadata.binary)
            if place:
                at = table.column_names.index(_PLACED[0])
                table = table.set_column(at, table.schema.field(at), self._numbered(table[_PLACED[0]], place))
            found.append(table)
        return pa.concat_tables(found)

    def _numbered(self, partitions: pa.ChunkedArray, place: int) -> pa.ChunkedArray:
        """The numbers of partitions of the topic at a place."""
        return pc.add(partitions, place * self.topics.room).cast(partitions.type)

    def _placed(self, batch: pa.Table) -> pa.Table:
        """Where messages stand, with the number of each and when it was received."""
        most = max(self.topics.room * len(self.topics.names), pc.max(batch["kafka_partition"]).as_py() + 1)
        numbers, times = arrivals(batch, most, self._latest), batch["timestamp"]
        known = pc.and_(pc.greater_equal(times, 0), pc.less(times, _LATEST))
        received = pc.if_else(known, times, pa.scalar(int(time.time() * 1000), pa.int64()))  # it arrives all the same
        batch = self._named(batch) if self.topics.several or self.metadata.topic else batch
        return batch.append_column("__arrival", pa.array(numbers)).append_column("__received", received)

    def _named(self, batch: pa.Table) -> pa.Table:
        """Messages with their topics, and the partitions as these have them."""
        at, names = batch.column_names.index(_PLACED[0]), pa.array(self.topics.names)
        numbers = batch[_PLACED[0]]
        topic = pc.divide(numbers, self.topics.room) if self.topics.several else pc.multiply(numbers, 0)
        own = pc.subtract(numbers, pc.multiply(topic, self.topics.room)) if self.topics.several else numbers
        batch = batch.set_column(at, batch.schema.field(at), own.cast(numbers.type))
        return batch.append_column(TOPIC_COLUMN, names.take(topic.combine_chunks()))

    @property
    def _stands(self) -> tuple[str, ...]:
        """The columns that say where a message stands, behind the name of the topic where there is one alone."""
        return (TOPIC_COLUMN, *_PLACED) if self.topics.several else _PLACED

    @property
    def _position(self) -> str:
        topic = TOPIC_COLUMN if self.topics.several else text(self.topics.said)
        return f"{topic} || ':' || kafka_partition || ':' || kafka_offset"

    def _place(self, placed: pa.Table, at: int) -> str:
        """As `_position`, of one message."""
        own = ":".join(str(placed[name][at]) for name in self._stands)
        return own if self.topics.several else f"{self.topics.said}:{own}"

    def _part(self, rows: int, dead: pa.Table, found: pa.Table | None, places: str = "__places") -> Part:
        return Part("__batch", rows, self.topics.said, 0, dead, numbered=True, places=places, looked=found, parsed=True)

    def _unread(self, engine: ColumnEngine, placed: pa.Table, unread: Sequence[Unread]) -> Part:
        """Messages that hold no record, each a dead letter."""
        nothing(engine, self.stream)
        places = (self._place(placed, one.place) for one in unread)
        letters = [
            {"stream": self.stream.name, "reason": one.reason, "position": place, "raw": one.raw}
            for one, place in zip(unread, places, strict=True)
        ]
        return self._part(len(letters), pa.Table.from_pylist(letters, schema=DEAD), None, places="")

    def _of_changes(
        self, engine: ColumnEngine, placed: pa.Table, messages: pa.Array | pa.ChunkedArray
    ) -> Iterator[Part]:
        """Changes to events, each with a number of its own: of one message, what goes stands before what comes."""
        from rollup.sources.topics.debezium import changes

        found, unread = changes(engine, messages, any(kind.exact for kind in self.stream.attributes.values()))
        if unread:
            yield self._unread(engine, placed, unread)
        place = placed.column_names.index("__arrival")
        for rows in found:
            own = placed.take(rows.places)
            numbers = pc.add(pc.multiply(own["__arrival"], CHANGES), int(rows.sign > 0))
            yield self._of_records(engine, own.set_column(place, "__arrival", numbers), rows.records)

    def _of_records(self, engine: ColumnEngine, placed: pa.Table, records: pa.Array | pa.ChunkedArray) -> Part:
        """Records to events, however they are written."""
        made = self._of_structs if pa.types.is_struct(records.type) else self._of_documents
        return made(engine, placed, records)

    def _of_structs(self, engine: ColumnEngine, placed: pa.Table, records: pa.Array) -> Part:
        """Records with types to events."""
        records = self.metadata.in_structs(records, placed)
        with engine.tables({"kafka_rows": placed.append_column(ROW, records)}):
            told = engine.connection.execute(f"DESCRIBE SELECT UNNEST({ROW}) FROM kafka_rows").fetchall()
            asked = [self._renamed.get(name, name) for name in self.stream.attributes]
            columns = Columns.of(engine, {row[0]: row[1] for row in told}, "kafka_rows", asked)
            raw, readers = columns.raw(self.stream, self._renamed), columns.readers(self.stream, self._renamed)
            rows, dead = view(engine, self.stream, "kafka_rows", readers, raw, "true", self._position, self._stands)
        where = f"{self._place(placed, 0)}{HAS}{', '.join(columns.types)}"
        has = {name: self._renamed.get(name, name) in columns.names for name in expected(self.stream, self.options)}
        seen = great(engine, self.stream, columns.converted(self.stream, self._renamed))
        return self._part(rows, dead, pa.concat_tables([looked(has, where), seen]))

    def _of_documents(self, engine: ColumnEngine, placed: pa.Table, values: pa.Array | pa.ChunkedArray) -> Part:
        """JSON objects to events."""
        raw, readable = texts(values)
        raw = self.metadata.in_documents(engine, raw, placed)
        placed = placed.append_column("raw", raw).append_column("readable", readable)
        placed = placed.append_column("plain", pa.repeat(plain(raw), placed.num_rows))

        def read(documents: Documents) -> tuple[int, pa.Table]:
            relation, readers = documents.relation("kafka_rows"), documents.readers()
            return view(engine, self.stream, relation, readers, "raw", OK, self._position, self._stands)

        own = None if self.topics.several else self.topics.said
        with engine.tables({"kafka_rows": placed}):
            scanner, taken = scanner_for(self.stream, self._renamed, raw.nbytes), None
            if scanner is not None:
                scanned = scanned_rows(placed, scanner)
                taken = events(
                    engine, self.stream, self._renamed, scanned, SCANNED, "raw", self._position, self._stands
                )
            rows, dead = read_documents(self.stream, self._renamed, read) if taken is None else taken
            found = objects("kafka_rows", f"readable AND {IS_OBJECT}", "__arrival", own, *self._stands)
            return self._part(rows, dead, json_looked(engine, self.stream, self.options, found))


def _server(url: str) -> str:
    """The host and port of an address.

    >>> _server("https://registry.example.org/api")
    'registry.example.org:443'
    """
    found = urlsplit(url)
    return f"{found.hostname}:{found.port or (443 if found.scheme == 'https' else 80)}"


def arrivals(batch: pa.Table, most: int, latest: int = _LATEST) -> Longs:
    """The number of each message, for partitions below `most`; timestamps from `latest` on say nothing.

    In a partition the order is that of its offsets, also where a producer's clock goes back or a message has no timestamp.
    Each number is that of its timestamp, or the next one that is free when that is greater. So a millisecond
    may have any number of messages. From 1 << _BITS / `most` of one partition on (4096), numbers run ahead of its time.
    """
    partitions, offsets = (batch[name].to_numpy() for name in _PLACED)
    times = batch["timestamp"].to_numpy()
    numbers = np.empty(len(times), np.int64)
    for partition in np.unique(partitions):
        own = np.flatnonzero(partitions == partition)
        if (np.diff(offsets[own]) < 0).any():
            own = own[np.argsort(offsets[own], kind="stable")]
        place = np.arange(1, len(own) + 1, dtype=np.int64) * most
        known = (times[own] >= 0) & (times[own] < latest)
        # Never below its place: a message of 1970 must not come before one without a time that stands before it.
        ahead = np.where(known, (np.where(known, times[own], 0) << _BITS) - place, 0)
        numbers[own] = place + np.maximum(np.maximum.accumulate(ahead), 0) + int(partition) % most
    return numbers
