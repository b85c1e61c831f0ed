"""Files that appear in a folder: Parquet, CSV and JSON lines.

Spark only streams numbers of entries in a log of new files; each task reads its files with DuckDB, which is faster than
the way through the JVM. The order of arrival is (second of the modification time, path, row).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.core.identifiers import alike, quoted
from rollup.core.objects import ObjectPath, at, is_object
from rollup.plan.app import StreamDef
from rollup.plan.reading import cast
from rollup.plan.types import Type
from rollup.sources import file_stream
from rollup.sources.base import DEAD, Part, need, nulls
from rollup.sources.content.arrow_rows import arrow_rows
from rollup.sources.content.by_loop import SCANNED, Records, events, held, scanned_lines, scanner_for
from rollup.sources.content.damage import PASSING, Unchanged, damaged, unreadable
from rollup.sources.content.delimited import Delimited, column
from rollup.sources.content.documents import IS_OBJECT, OK, Documents, read_documents
from rollup.sources.content.encodings import in_utf8, no_text, written_in
from rollup.sources.content.lines import blocks, lines
from rollup.sources.content.presence import check_names, great, json_looked, looked, objects
from rollup.sources.content.records import Readers, check_paths, literal, nothing, text, view
from rollup.sources.content.typed import ROW, Columns
from rollup.sources.file_log import Listed, in_order, planned
from rollup.sources.new_files import Folder, Listing, NewFiles, matcher
from rollup.sources.small_files import Odd, Row, dealt, runs, together

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMES = pa.schema([("path", pa.string()), ("modified", pa.int64()), ("place", pa.int64())])
"""`place`: of a small file, which one of the batch it is; -1 for others."""
_ENDINGS = {"parquet": "*.parquet", "csv": "*.csv*", "json": "*.json*"}
_Read = tuple[int, pa.Table, pa.Table]
"""How many records a file has, its dead letters, and what it has of the attributes."""
_HEAD = 64 << 10
_AT_ONCE = 8
"""Requests for objects at a time."""
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


class Files:
    """Options: `path` (a folder), `glob`, `max_files_per_batch` (100), `columns` (rename), `optional` (attributes that
    need not be there).

    For csv and json also `encoding` (of the files' text, UTF-8); for csv `header` (true), `separator` (,) and `null` (the
    texts that stand for null, the empty one). The header of a CSV file is the first line that names the attributes'
    columns; titles and remarks may stand above it.

    A file counts when its name appears, whatever its age, so write it aside and rename it. `create` (false) makes the
    folder when it is not there.
    """

    def __init__(self, stream: StreamDef, options: Mapping[str, Any]) -> None:
        need(stream, options, "path")
        self.stream = stream
        self.options = options
        self.kind: str = options["kind"]
        self.renamed: Mapping[str, str] = options.get("columns", {})
        self._optional = frozenset[str](options.get("optional", ()))
        self._encoding: str | None = options.get("encoding")
        self._copies: dict[str, str] = {}
        self._folder = ""

    def frame(self, spark: SparkSession, checkpoint: Path) -> DataFrame:
        """The new files, which have no rows for Spark. Raises ConfigError when there is no folder."""
        self.check()
        self.begin()
        most = int(self.options.get("max_files_per_batch", 100))
        return file_stream.streamed(spark, NewFiles(self.folder, self.order, checkpoint, most))

    @property
    def folder(self) -> Listing:
        """Where its files are, and which they are."""
        return Folder(at(self.options["path"]), self._glob)

    @property
    def _glob(self) -> str:
        return self.options.get("glob", _ENDINGS[self.kind])

    @staticmethod
    def order(file: Listed) -> tuple[int, str]:
        """The place of a file among others: those that were made within one second are in the order of their names."""
        return in_order(file.modified), file.path

    def check(self) -> None:
        """See `Source.check`."""
        check_names(self.stream, self.options)
        check_paths(self.stream, self.renamed if self.kind == "json" else {})
        matcher(self._glob)
        folder = at(self.options["path"])
        if not folder.is_dir() and not self.options.get("create", False):
            raise ConfigError(
                f"[sources.{self.stream.name}]: there is no folder {folder}",
                hint="`create = true` makes one for files to come",
            )

    def begin(self) -> None:
        """Make the folder that `create` asks for. Raises ConfigError when that cannot be."""
        folder = at(self.options["path"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise ConfigError(
                f"[sources.{self.stream.name}]: cannot make the folder {folder}: {problem.strerror}"
            ) from None

    def planned(self, frame: DataFrame, checkpoint: Path, batch: int) -> pa.Table:
        """The files of a batch as the query's log has them, dealt to one task a core."""
        found = sorted(planned(checkpoint, batch), key=self.order)
        tasks = max(1, frame.sparkSession.sparkContext.defaultParallelism)
        shares = dealt(self._sizes([at(file.path) for file in found]), tasks)
        columns = {
            "path": [found[at].path for at, _ in shares],
            "modified": [found[at].modified * 1000 for at, _ in shares],
            "place": [place for _, place in shares],
        }
        return pa.table(columns, schema=_NAMES)

    @staticmethod
    def _sizes(files: Sequence[Path]) -> list[int]:
        if not any(isinstance(file, ObjectPath) for file in files):
            return list(map(_size, files))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(_size, files))

    def parts(self, engine: ColumnEngine, batch: pa.Table) -> Iterator[Part]:
        for rows in runs(batch):
            with self._fetched([row["path"] for row in rows]):
                yield from self._parts(engine, rows)

    def _parts(self, engine: ColumnEngine, rows: Sequence[Row]) -> Iterator[Part]:
        """Files whose places follow one another: one part, or one each."""
        part = None
        if len(rows) > 1 and self._encoding is None:
            with ExitStack() as unchanged:
                for row in rows:
                    unchanged.enter_context(Unchanged(self.near(row["path"])))
                part = self._together(engine, rows)
                if part is not None:
                    yield part
        for row in rows if part is None else ():
            with Unchanged(self.near(row["path"])):
                yield self._part(engine, row["path"], row["modified"])

    @contextmanager
    def _fetched(self, files: Sequence[str]) -> Generator[None]:
        """Copies of objects on this machine, and a folder for texts in UTF-8, for as long as their parts are read."""
        objects = {name: f"{number}-{Path(name).name}" for number, name in enumerate(files) if is_object(name)}
        if not objects and self._encoding is None:
            yield
            return
        with TemporaryDirectory(prefix="rollup-files-") as self._folder:
            self._copies = {name: f"{self._folder}/{copy}" for name, copy in objects.items()}
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(_fetch, self._copies, self._copies.values()))
            yield
        self._copies = {}

    def near(self, path: str) -> str:
        """Where a file is read: the copy of an object or of a text in another encoding, or the file itself."""
        return self._copies.get(path, path)

    def _as_utf8(self, path: str) -> None:
        """Make a copy of a text in another encoding; it is read once the whole of it is there."""
        if self._encoding is not None:
            copy = f"{self._folder}/utf8"
            in_utf8(self.near(path), self._encoding, copy)
            self._copies[path] = copy

    def _together(self, engine: ColumnEngine, rows: Sequence[Row]) -> Part | None:
        """Small files as one part; None where they are to be read one by one, which also says what is wrong with which."""
        try:
            return together(self, engine, rows)
        except (Odd, duckdb.Error, *PASSING):
            return None

    def damaged(self, place: str, problem: BaseException) -> str:
        """See `Source.damaged`."""
        return damaged(self.near(place), self.kind, problem, place)

    def _part(self, engine: ColumnEngine, path: str, modified: int) -> Part:
        try:
            self._as_utf8(path)
            rows, dead, found = getattr(self, f"_{self.kind}")(engine, path, modified // 1000)
        except (duckdb.Error, *PASSING) as problem:
            rows, dead, found = self._nothing(engine), self._dead(self.damaged(path, problem), path), None
        order = in_order(modified // 1000)
        return Part("__batch", rows, path, order, dead, looked=found, parsed=self.kind != "parquet")

    def _column(self, name: str) -> str:
        return self.renamed.get(name, name)

    def _parquet(
        self, engine: ColumnEngine, path: str, received: int, partition: Mapping[str, str | None] | None = None
    ) -> _Read:
        """`partition` are columns whose value is that of the whole file and stands outside of it."""
        beside = self._folders(path) if partition is None else partition
        file = f"read_parquet({text(literal(self.near(path)))}, file_row_number = true, hive_partitioning = false)"
        try:
            return self._columns(engine, path, file, received, beside)
        except duckdb.Error:
            rows = arrow_rows(self.near(path))
        engine.connection.execute("DROP VIEW IF EXISTS __batch")
        with engine.tables({"parquet_rows": rows}):
            engine.connection.execute("CREATE OR REPLACE TEMP TABLE __held AS SELECT * FROM parquet_rows")
        return self._columns(engine, path, "__held", received, beside)

    def _columns(
        self, engine: ColumnEngine, path: str, file: str, received: int, beside: Mapping[str, str | None]
    ) -> _Read:
        """Columns of the right type are read as they are; others are converted, and what does not fit is a dead letter."""
        types = {row[0]: row[1] for row in engine.connection.execute(f"DESCRIBE SELECT * FROM {file}").fetchall()}
        constants = [
            f"CAST({'NULL' if value is None else text(value)} AS VARCHAR) AS {quoted(name)}"
            for name, value in beside.items()
            if name not in types
        ]
        types |= {name: "VARCHAR" for name in beside if name not in types}
        more = [*constants, "file_row_number AS __arrival", f"CAST({received} AS BIGINT) AS __received"]
        relation = f"(SELECT *, {', '.join(more)} FROM {file})"
        columns = Columns.of(engine, types, relation, self.own_names)
        missing = self.missing(columns.names)
        by_case = alike(pq.read_schema(self.near(path)).names) if missing else []
        found = self.looked([*columns.names, *by_case], path)
        if missing:
            apart = f"the columns {', '.join(by_case)} differ by case alone, which only CSV and JSON keep apart"
            return self._nothing(engine), self._dead(apart if by_case else self._lacks(missing, types), path), found
        readers, relation = columns.readers(self.stream, self.renamed), f"{relation} AS {ROW}"
        if columns.exact(self.stream, self.renamed):
            read = ", ".join(f"{read} AS {quoted(name)}" for name, (read, _) in readers.items())
            engine.connection.execute(
                f"CREATE OR REPLACE TEMP VIEW __batch AS SELECT {read}, __arrival, __received FROM {relation}"
            )
            return engine.count(f"SELECT COUNT(*) FROM {file}"), DEAD.empty_table(), found
        raw = columns.raw(self.stream, self.renamed)
        made = view(engine, self.stream, relation, readers, raw, "true", self._place(path))
        return *made, pa.concat_tables(
            [found, great(engine, self.stream, columns.converted(self.stream, self.renamed))]
        )

    def missing(self, there: Container[str]) -> list[str]:
        """The attributes that must be there and have no column."""
        return [
            name for name in self.stream.attributes if self._column(name) not in there and name not in self._optional
        ]

    def twice(self, there: Sequence[str]) -> list[str]:
        """The columns of attributes that a CSV file has more than once, see `Delimited.names`; `columns` may name each."""
        own = self.own_names
        numbered = {f"{name}:{place}" for name in own for place in range(len(there))}.difference(own)
        again = {
            name.rpartition(":")[0]
            for place, name in enumerate(there)
            if name in numbered and name.endswith(f":{place}")
        }
        return [name for name in own if name in again]

    def looked(self, there: Collection[str], path: str) -> pa.Table:
        """Of a file that names its columns, if it has any: what it has of those that the configuration names."""
        wanted = [name for name in self.renamed if there and name not in self._optional]
        return looked({name: self._column(name) in there for name in wanted}, path)

    def _lacks(self, missing: Iterable[str], there: Iterable[str]) -> str:
        wanted, found = map(self._column, missing), (name for name in there if name != "file_row_number")
        return f"the file has no column {', '.join(wanted)}; it has {', '.join(found)}"

    def _folders(self, path: str) -> dict[str, str | None]:
        """The values that folders below the source's say for a file, `symbol=a/day=3`: of columns that it lacks."""
        folders = Path(os.path.relpath(path, self.options["path"])).parts[:-1]
        said = [folder.partition("=") for folder in folders if "=" in folder]
        return {unquote(name): None if value == _HIVE_NULL else unquote(value) for name, _, value in said}

    @property
    def own_names(self) -> list[str]:
        """The columns that the attributes are read from."""
        return [self._column(name) for name in self.stream.attributes]

    def delimited(self, path: str) -> Delimited:
        """A CSV file as it is configured."""
        header = bool(self.options.get("header", True))
        file = Delimited(self.near(path), header, self.options.get("separator", ","), nulls(self.options))
        return file.headed(lambda names: not self.missing(names))

    def _csv(self, engine: ColumnEngine, path: str, received: int) -> _Read:
        file = self.delimited(path)
        found = file.names() if file.header else self.own_names
        if missing := self.missing(found):
            reason = self._lacks(missing, found) if found else _nameless(self.near(path))
            return self._nothing(engine), self._dead(reason, path), self.looked(found, path)
        if twice := self.twice(found):
            first = twice[0]
            which = ", ".join(name for name in found if name.startswith(f"{first}:"))
            reason = f"the file has two columns {', '.join(twice)}: `columns` may name {first} and {which}"
            return self._nothing(engine), self._dead(reason, path), None
        readers, raw = self.text_readers(found), Delimited.text(found)

        def read(records: str) -> tuple[int, pa.Table]:
            relation = f"(SELECT *, CAST({received} AS BIGINT) AS __received FROM {records}) AS r"
            return view(engine, self.stream, relation, readers, raw, "true", self._place(path))

        rows, dead, broken = file.load(engine, len(found), read)
        seen = pa.concat_tables([self.looked(found, path), great(engine, self.stream)])
        return rows, pa.concat_tables([dead, self.letters(path, broken)]), seen

    def text_readers(self, there: Sequence[str]) -> Readers:
        """How attributes are read of the columns of a CSV file, which has these; one that is not there is null."""
        nothing = {name: (f"CAST(NULL AS {kind.duckdb})", "false") for name, kind in self.stream.attributes.items()}
        return nothing | {
            name: self._text(column(there.index(found)), kind)
            for name, kind in self.stream.attributes.items()
            if (found := self._column(name)) in there
        }

    def letters(self, path: str, broken: pa.Table) -> pa.Table:
        """The dead letters of the lines of a CSV file that are no record."""
        rows = [
            {
                "stream": self.stream.name,
                "reason": row["reason"],
                "position": f"{path}:line {row['line']}",
                "raw": row["raw"],
            }
            for row in broken.to_pylist()
        ]
        return pa.Table.from_pylist(rows, schema=DEAD)

    @staticmethod
    def _place(path: str) -> str:
        return f"{text(path + ':')} || __arrival"

    def _text(self, read: str, kind: Type) -> tuple[str, str]:
        return cast(read, kind, self.stream.zone), f"{read} IS NOT NULL"

    def _json(self, engine: ColumnEngine, path: str, received: int) -> _Read:
        placed = f"record AS __arrival, CAST({received} AS BIGINT) AS __received"
        raw, place = f"RTRIM(raw, {text(chr(10) + chr(13))})", self._place(path)

        def read(documents: Documents) -> tuple[int, pa.Table]:
            with engine.tables({"json_lines": lines(self.near(path))}):
                relation = documents.relation(f"(SELECT raw, readable, plain, {placed} FROM json_lines)")
                return view(engine, self.stream, relation, documents.readers(), raw, OK, place)

        scanned = self._scanned(path)
        taken = None
        if scanned is not None:
            relation = f"(SELECT *, {placed} FROM {SCANNED})"
            taken = events(engine, self.stream, self.renamed, scanned, relation, raw, place)
        rows, dead = read_documents(self.stream, self.renamed, read) if taken is None else taken
        found = objects("json_lines", f"readable AND {IS_OBJECT}", "record", path, "record")
        with engine.tables({"json_lines": lines(self.near(path))}):
            return rows, dead, json_looked(engine, self.stream, self.options, found)

    def _scanned(self, path: str) -> Records | None:
        """The lines of a file as a loop reads them; None where that is for DuckDB."""
        file = self.near(path)
        scanner = scanner_for(self.stream, self.renamed, os.stat(file).st_size)
        return None if scanner is None else held(scanned_lines(file, scanner))

    def _nothing(self, engine: ColumnEngine) -> int:
        return nothing(engine, self.stream)

    def _dead(self, reason: str, path: str) -> pa.Table:
        return pa.table([[self.stream.name], [reason], [path], [""]], schema=DEAD)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # the task that is to read it says so


def _fetch(name: str, copy: str) -> None:
    """Raises SourceError: the batch is tried again."""
    path = at(name)
    assert isinstance(path, ObjectPath)
    try:
        path.fetch(Path(copy))
    except OSError as problem:
        raise unreadable(name, problem) from None


def _nameless(path: str) -> str:
    """Why the first line of a file names no columns."""
    head = next(blocks(path, _HEAD), b"")
    if what := no_text(head):
        return f"the file is no CSV: {what}"
    encoding = written_in(head)
    return (
        f'the file is no UTF-8; `encoding = "{encoding}"` in its table of the configuration may be what it is'
        if encoding
        else "the file is empty; its first line names the columns"
    )
