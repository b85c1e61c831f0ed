"""Dimensions: small tables of a user's that questions join with aggregations, `[tables.planes]` of a configuration.

They are read whole when they are asked for, and again when they have changed. A file of CSV or JSON is read by the rules
of sources, so a value that does not fit its type is refused with its place and never becomes null.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.core.calendar import midnight, parse_timestamp, to_instant, to_local
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, RollupError, SourceError, StoreError, TimeError
from rollup.core.identifiers import alike, quoted
from rollup.core.periods import Span
from rollup.core.untyped import pc
from rollup.plan.app import StreamDef
from rollup.plan.filled import Filled
from rollup.plan.types import Type, parse_type

if TYPE_CHECKING:
    from rollup.conf import Conf
    from rollup.program import Program

_PATIENCE = 60.0
"""Seconds for which the rows of a table in a database are not read again: nothing says when they change."""
_KEPT = 2
"""Moments whose rows are held: a question that has begun ends with the rows it began with."""
_MOST = 10_000_000
"""Rows that a dimension may have: they are held in memory."""
_FROM, _TO = "from", "to"
_PERIODS = 10_000
"""Rows of a table that lists periods."""
_CHOICES = "`path` (a CSV, JSON or Parquet file, a folder of them, a Delta table) or `table` (of the SQL store)"


def dimensions(conf: Conf, program: Program) -> list[Dimension]:
    """The dimensions of a configuration; reads none.

    Raises ConfigError for one that says not where it is, or has the name of something else.
    """
    taken = {name.casefold(): "a stream" for name in program.streams}
    taken |= {name.casefold(): "an aggregation" for name in program.aggregations}
    for name in conf.dimensions:
        if (other := taken.get(name.casefold())) is not None:
            raise ConfigError(
                f"{conf.path}: [tables.{name}] has the name of {other}",
                hint="give the table another name; `path` says where it is",
            )
    return [Dimension(name, _content(conf, name, options)) for name, options in conf.dimensions.items()]


def filled(conf: Conf, text: str) -> tuple[Filled, ...]:
    """The dimensions whose names an app's text has: its statements may read them. Opens none."""
    words = set(re.findall(r"`[^`]*`|\w+", text))
    found = [name for name in conf.dimensions if name in words or f"`{name}`" in words]
    return tuple(Filled(name, Dimension(name, _content(conf, name, conf.dimensions[name]))) for name in found)


def calendars(conf: Conf) -> tuple[Listed, ...]:
    """The dimensions as periods that questions may name; whether they list any is seen when one does. Opens none."""
    return tuple(Listed(name, conf) for name in conf.dimensions)


@dataclass(frozen=True)
class Listed:
    """Periods that a table lists in its columns `from` and `to`, see `rollup.core.periods.Calendar`.

    A process reads them once. A day in `to` is the last one of its period, and an instant the first one behind it. Without `to` a
    period ends where the next one begins.
    """

    name: str
    conf: Conf = field(compare=False, repr=False)

    def spans(self, zone_name: str) -> Sequence[Span]:
        """All of them in order. Raises ConfigError where the table lists none, or some overlap."""
        where, starts = f"[tables.{self.name}]", list[tuple[int, int | None]]()
        for low, high in self._rows:
            starts.append((_instant(where, low, zone_name), None if high is None else _end(where, high, zone_name)))
        starts.sort(key=lambda pair: pair[0])
        found = list[Span]()
        for (start, end), following in zip(starts, [*(start for start, _ in starts[1:]), None], strict=True):
            last = following if end is None else end
            if last is None:
                continue
            if last <= start or (following is not None and last > following):
                shown = f"{to_local(start, zone_name):%Y-%m-%d %H:%M}"
                problem = "ends before it begins" if last <= start else "ends behind the beginning of the next one"
                hint = "a day in `to` is the last one of its period; without `to` each ends where the next begins"
                raise ConfigError(f"{where}: the period from {shown} {problem}", hint=hint)
            found.append(Span(start, start, last))
        if not found:
            raise ConfigError(f"{where} lists no period", hint="each row has `from`; the last one needs `to`")
        return found

    @cached_property
    def _rows(self) -> list[tuple[Any, Any]]:
        dimension = Dimension(self.name, _content(self.conf, self.name, self.conf.dimensions[self.name]))
        columns = dimension.stream(self.name).attributes
        if _FROM not in columns:
            hint = f"columns `{_FROM}` and `{_TO}`, with days or times; it has {', '.join(columns)}"
            raise ConfigError(f"[tables.{self.name}] lists no periods: it has no column `{_FROM}`", hint=hint)
        rows = dimension.rows(self.name, dimension.newest())
        if rows.num_rows > _PERIODS:
            raise SourceError(f"[tables.{self.name}] has {rows.num_rows:,} rows, and {_PERIODS:,} may be periods")
        ends = rows[_TO].to_pylist() if _TO in columns else [None] * rows.num_rows
        return list(zip(rows[_FROM].to_pylist(), ends, strict=True))


def _instant(where: str, value: Any, zone_name: str) -> int:
    """The instant of a day's beginning or of a time; texts are either. Raises ConfigError."""
    try:
        match value:
            case datetime():
                return to_instant(value)
            case date():
                return midnight(datetime(value.year, value.month, value.day), zone_name)
            case str():
                return parse_timestamp(value, zone_name)[0]
            case _:
                raise ConfigError(f"{where} has {value!r} as an end of a period", hint="a day, or a time with a day")
    except TimeError as problem:
        raise ConfigError(f"{where}: {problem.message}", hint="a day as 2024-02-03, or a time in ISO form") from None


def _end(where: str, value: Any, zone_name: str) -> int:
    """Where a period ends that has this as `to`."""
    if isinstance(value, str) and len(value.strip()) == len("yyyy-mm-dd"):
        value = to_local(_instant(where, value, zone_name), zone_name).date()
    if isinstance(value, date) and not isinstance(value, datetime):
        return _instant(where, value + timedelta(days=1), zone_name)
    return _instant(where, value, zone_name)


class Dimension:
    """One dimension: a reader of one table, see `rollup.retrieval.tables.TableReader`. Several threads may use it."""

    note = "a table of the configuration, as it is now"

    def __init__(self, name: str, content: Content) -> None:
        self.name, self._content = name, content
        self._lock = threading.Lock()
        self._moments = dict[int, tuple[str, pa.Table]]()
        self._number = 0

    @property
    def names(self) -> list[str]:
        """Its own name."""
        return [self.name]

    @cached_property
    def _engine(self) -> ColumnEngine:
        return ColumnEngine()

    @cached_property
    def _stream(self) -> StreamDef:
        return StreamDef(self.name, self._content.columns())

    def stream(self, name: str) -> StreamDef:
        """Its columns, which stay those of the first look. Raises ConfigError."""
        return self._stream

    @property
    def described(self) -> str:
        """Where it is, and its columns. Raises ConfigError."""
        columns = ", ".join(f"{name} {kind}" for name, kind in self._stream.attributes.items())
        return f"table {self.name} from {self._content.place}: {columns}"

    def newest(self) -> int:
        """The number of what is there now, whose rows are read when that is new."""
        with self._lock:
            at, made = self._content.made()
            if self._number not in self._moments or self._moments[self._number][0] != made:
                rows = self._content.rows(self._stream, self._engine)
                self._number = max(self._number + 1, at)
                self._moments[self._number] = made, rows
                for oldest in sorted(self._moments)[:-_KEPT]:
                    del self._moments[oldest]
            return self._number

    def made(self, number: int) -> str:
        """What files, of which size and age, its rows were read from."""
        return self._moment(number)[0]

    def line(self, number: int) -> str:
        """Where it is: what is there has one history."""
        return self._content.place

    def rows(self, shown: str, number: int) -> pa.Table:
        """Its rows. Raises StoreError when they have changed twice since."""
        return self._moment(number)[1]

    def _moment(self, number: int) -> tuple[str, pa.Table]:
        with self._lock:
            if number not in self._moments:
                raise StoreError(f"the rows of {self.name} have changed meanwhile", hint="ask again")
            return self._moments[number]


@dataclass(frozen=True)
class Content:
    """Where a dimension's rows are: `made` is when they changed last, and differs once they have; `columns` are their types."""

    place: str
    made: Callable[[], tuple[int, str]]
    columns: Callable[[], Mapping[str, Type]]
    rows: Callable[[StreamDef, ColumnEngine], pa.Table]


def _content(conf: Conf, name: str, options: Mapping[str, Any]) -> Content:
    where, types = f"{conf.path}: [tables.{name}]", _types(f"{conf.path}: [tables.{name}]", options.get("types", {}))
    if ("path" in options) == ("table" in options):
        raise ConfigError(f"{where} says not where the table is, or twice", hint=_CHOICES)
    if "table" in options:
        if conf.store["kind"] != "sql":
            raise ConfigError(
                f"{where} names a table of the SQL store, and the store is no database", hint="`path` = …"
            )
        return _in_database(where, conf, options["table"], types)
    path = Path(options["path"])
    given = {key: value for key, value in options.items() if key not in ("path", "types")}
    if (path / "_delta_log").is_dir():
        return _columnar(where, path, types, conf.zone, lambda: _delta(path))
    if _is_parquet(path):
        return _columnar(where, path, types, conf.zone, lambda: _parquet(path))
    return _records(where, path, types, given)


def _types(where: str, given: Mapping[str, str]) -> dict[str, Type]:
    try:
        return {column: parse_type(word) for column, word in given.items()}
    except RollupError as problem:
        raise ConfigError(f"{where} types: {problem.message}", hint=problem.hint) from None


def _said(where: str, types: Mapping[str, Type], seen: Mapping[str, Type]) -> dict[str, Type]:
    """The types of the columns that are there.

    Raises ConfigError for a column that is said and not there, and for two that are one to SQL.
    """
    if one := alike([*seen]):
        raise ConfigError(
            f"{where}: the columns {', '.join(one)} differ by case alone, and SQL does not tell them apart",
            hint="give one of them another name",
        )
    for column in types:
        if column not in seen:
            raise ConfigError(f"{where} types names {column!r}, which is no column", hint=f"it has {', '.join(seen)}")
    return {**seen, **types}


# CSV and JSON: records that are read as those of a source


def _records(where: str, path: Path, types: Mapping[str, Type], given: Mapping[str, Any]) -> Content:
    from rollup.sources.looking import look

    def seen() -> tuple[str, Path, dict[str, Any], dict[str, Type]]:
        try:
            found = look(str(path))
        except ConfigError as problem:
            raise ConfigError(f"{where}: {problem.message}", hint=problem.hint) from None
        assert found.place is not None
        options = {**found.options, **given, "kind": found.kind, "path": str(found.place)}
        columns = {each.name: Type.STRING if each.signs else each.type for each in found.columns if each.name}
        return found.kind, found.place, options, _said(where, types, columns)

    def rows(stream: StreamDef, engine: ColumnEngine) -> pa.Table:
        from rollup.sources.files import Files

        *_, options, _ = seen()
        source = Files(stream, options)
        files = sorted(source.folder.new(), key=source.order)
        batch = pa.table({"path": [each.path for each in files], "modified": [each.modified * 1000 for each in files]})
        columns = ", ".join(map(quoted, stream.attributes))
        schema = pa.schema([(column, kind.arrow) for column, kind in stream.attributes.items()])
        tables = list[pa.Table]()
        for part in source.parts(engine, batch):
            if part.dead.num_rows:
                first = part.dead.slice(0, 1).to_pylist()[0]
                raise SourceError(
                    f"[tables.{stream.name}]: {part.dead.num_rows} of its rows cannot be read, the first at {first['position']}:"
                    f" {first['reason']}: {str(first['raw'])[:80]}",
                    hint=f"[tables.{stream.name}] types says of which type a column is, null which text stands for no value",
                )
            tables.append(engine.run(f"SELECT {columns} FROM {part.view} ORDER BY __arrival").cast(schema))
        _check_size(stream.name, sum(table.num_rows for table in tables))
        return pa.concat_tables(tables) if tables else schema.empty_table()

    return Content(str(path), lambda: _made(where, path), lambda: seen()[3], rows)


def _check_size(name: str, rows: int) -> None:
    if rows > _MOST:
        raise SourceError(
            f"[tables.{name}] has {rows} rows, and {_MOST} are held in memory at most",
            hint="join a table of that size where it is, in Spark or the database",
        )


def _made(where: str, path: Path) -> tuple[int, str]:
    """When the newest file was written, and names, sizes and ages of all; of a Delta table of its log."""
    log = path / "_delta_log"
    root = log if log.is_dir() else path
    try:
        found = sorted(_files(root)) if root.is_dir() else [_file(root)]
    except OSError as problem:
        raise ConfigError(f"{where}: cannot read {path}: {problem.strerror}") from None
    return max((modified for *_, modified in found), default=0), repr(found)


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    for root, _, names in os.walk(folder):
        yield from (_file(Path(root, name)) for name in names if not name.startswith("."))


def _file(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return str(path), found.st_size, found.st_mtime_ns


# Parquet and Delta: columns that have types


def _is_parquet(path: Path) -> bool:
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    return path.suffix.lower() in (".parquet", ".pq")


def _parquet(path: Path) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive")


def _delta(path: Path) -> Any:
    from deltalake import DeltaTable

    return DeltaTable(path).to_pyarrow_dataset()


def _columnar(where: str, path: Path, types: Mapping[str, Type], zone: str, opened: Callable[[], Any]) -> Content:
    from deltalake.exceptions import DeltaError

    def columns() -> Mapping[str, Type]:
        try:
            schema = opened().schema
        except (DeltaError, pa.ArrowException, OSError) as problem:
            raise ConfigError(f"{where}: cannot read {path}: {str(problem).splitlines()[0]}") from None
        found = {field.name: kind for field in schema if (kind := type_of(field.type)) is not None}
        return _said(where, types, found)

    def rows(stream: StreamDef, engine: ColumnEngine) -> pa.Table:
        try:
            dataset = opened()
            _check_size(stream.name, dataset.count_rows())
            return _typed(dataset.to_table(columns=list(stream.attributes)), stream, zone)
        except (DeltaError, pa.ArrowException, OSError) as problem:
            raise SourceError(f"[tables.{stream.name}]: {path}: {str(problem).splitlines()[0]}") from None

    return Content(str(path), lambda: _made(where, path), columns, rows)


def type_of(kind: pa.DataType) -> Type | None:
    """The type that takes all values of an Arrow type; None where none does.

    >>> type_of(pa.int16()), type_of(pa.uint64()), type_of(pa.list_(pa.int8()))
    ('int', 'decimal(20, 0)', None)
    """
    if pa.types.is_dictionary(kind):
        return type_of(kind.value_type)
    if pa.types.is_decimal(kind):
        return Type.decimal(kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision <= 38 else None
    if pa.types.is_integer(kind):
        narrow = kind.bit_width < 32 or kind == pa.int32()
        return Type.INT if narrow else Type.decimal(20, 0) if kind == pa.uint64() else Type.LONG
    if pa.types.is_floating(kind):
        return Type.DOUBLE if kind.bit_width == 64 else Type.FLOAT
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return Type.STRING
    if pa.types.is_timestamp(kind):
        return Type.TIMESTAMP
    if pa.types.is_date(kind):
        return Type.DATE
    return Type.BOOL if pa.types.is_boolean(kind) else None


def _typed(rows: pa.Table, stream: StreamDef, zone: str) -> pa.Table:
    """Rows of the declared types; times without a zone are those of `zone`."""
    columns = list[Any]()
    for (_, kind), column in zip(stream.attributes.items(), rows.columns, strict=True):
        naive = pa.types.is_timestamp(column.type) and column.type.tz is None
        found = pc.assume_timezone(column, zone, ambiguous="earliest", nonexistent="latest") if naive else column
        columns.append(found.cast(kind.arrow))
    return pa.table(columns, names=rows.column_names)


# A table of the SQL store


def _in_database(where: str, conf: Conf, table: str, types: Mapping[str, Type]) -> Content:
    import sqlalchemy as sa
    from sqlalchemy.exc import SQLAlchemyError

    from rollup.stores.sql.options import StoreOptions

    options = StoreOptions.of(conf.store)

    def read(limit: int | None) -> pa.Table:
        engine = sa.create_engine(options.url)
        try:
            with engine.connect() as connection:
                found = sa.Table(table, sa.MetaData(), autoload_with=connection)
                answer = connection.execute(sa.select(found).limit(limit))
                names, rows = list(answer.keys()), answer.fetchall()
        except SQLAlchemyError as problem:
            said = str(problem.args[0] if problem.args else problem).strip().splitlines()[0]
            raise ConfigError(f"{where}: the table {table} of {options.shown} cannot be read: {said}") from None
        finally:
            engine.dispose()
        return pa.table([_column([row[at] for row in rows]) for at in range(len(names))], names=names)

    def rows(stream: StreamDef, engine: ColumnEngine) -> pa.Table:
        found = read(_MOST + 1)
        _check_size(stream.name, found.num_rows)
        try:
            return _typed(found, stream, conf.zone)
        except pa.ArrowException as problem:
            raise SourceError(f"[tables.{stream.name}]: {table} of {options.shown}: {problem}") from None

    return Content(
        f"{table} of {options.shown}",
        lambda: (at := int(time.time() // _PATIENCE), str(at)),
        lambda: _said(where, types, {f.name: type_of(f.type) or Type.STRING for f in read(10_000).schema}),
        rows,
    )


def _column(values: list[Any]) -> pa.Array:
    """Values of one column; as texts where Arrow has no type for them."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
