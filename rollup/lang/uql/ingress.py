"""Rows of text into columns: separator `|`, no header, RFC 4180 quoting, blank lines and lines that begin with # skipped.

A large piece of input of plain rows is read by a compiled loop (`scanning.py`), any other by Arrow in one go. Where it meets something unusual (a bad value, a row of another width, a
comment), the piece is cut in two until the unusual lines stand in a small piece, which is read line by line. Both ways
accept the same values; a row that has a value that does not fit is set aside whole, with the reason.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.csv as arrow_csv

from rollup.core.untyped import pc
from rollup.lang.uql import scanning
from rollup.lang.uql.catalog import Field, Kind, Table

CODES = pa.dictionary(pa.int32(), pa.string())
WIDE = {
    Kind.INTEGER: pa.int64(),
    Kind.FLOAT: pa.float64(),
    Kind.TEXT: CODES,
    Kind.BOOLEAN: pa.bool_(),
    Kind.TIME: pa.int64(),
    Kind.SPAN: pa.int64(),
}
"""What a column that was read is made of; times and spans are microseconds."""
_SMALL = 512
_GIVEN_UP = 3
"""Pieces in a row that are not plain, after which none is taken for it."""
_FLOAT32 = 3.4028234663852886e38
_MINUS = "−"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:[Zz]|([+\-])(\d\d)(?::?(\d\d))?)", re.ASCII
)
_WHOLE = re.compile(r"[+-]?\d+|-?0[xX][0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def text_of(name: str) -> str:
    """The column that keeps a time as it was read, beside the column of its instants. No field can have this name."""
    return f"{name} text"


@dataclass(frozen=True)
class Bad:
    """A row that was set aside: its line in the input, counted from 1, and why."""

    line: int
    reason: str


def instant(text: str) -> int:
    """Microseconds since 1970 of a time in RFC 3339, with a hyphen or U+2212 before the offset. Raises ValueError.

    >>> instant("1970-01-01T00:00:01.5Z"), instant("1970-01-01 01:00:00−01:00")
    (1500000, 7200000000)
    """
    found = _TIME.fullmatch(text.replace(_MINUS, "-"))
    if not found:
        raise ValueError(f"{text!r} is no time")
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    away = timedelta(hours=int(found[9] or 0), minutes=int(found[10] or 0))
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise ValueError(f"impossible time: {text!r}") from None
    if away >= timedelta(hours=24) or int(found[10] or 0) > 59:
        raise ValueError(f"impossible time: {text!r}")
    shift = -away if found[8] == "-" else away
    return (moment - _EPOCH - shift) // timedelta(microseconds=1) + int((found[7] or "")[:6].ljust(6, "0"))


class Ingress:
    """Reads the rows of a table. `texts` names the fields of time that are printed again: their text is kept.

    >>> from rollup.lang.uql.catalog import Catalog
    >>> table = Catalog.of({"schemas": [{"name": "foo", "fields": [{"name": "x", "type": "integer8"}]}]}).tables[0]
    >>> rows, bad = Ingress(table).read(b"1\\n200\\n")
    >>> rows.to_pydict(), bad
    ({'x': [1]}, [Bad(line=2, reason="x: '200' is not integer8")])
    """

    def __init__(self, table: Table, texts: Iterable[str] = ()) -> None:
        self._fields = table.fields
        self._texts = frozenset(texts)
        self._types = {f.name: pa.string() if f.name in self._texts else _csv_type(f) for f in self._fields}
        self._strings = {field.name: pa.string() for field in self._fields}
        self.schema = pa.schema(
            [pa.field(field.name, WIDE[field.kind]) for field in self._fields]
            + [pa.field(text_of(field.name), pa.string()) for field in self._fields if field.name in self._texts]
        )
        self.lines = 0
        self._misses = 0 if not self._texts and scanning.fits(self._fields) else _GIVEN_UP
        self._scanner = scanning.Scanner(self._fields)
        self._bytes = 0

    def read(self, piece: bytes | memoryview) -> tuple[pa.Table, list[Bad]]:
        """The good rows of whole lines of input, in order, and the bad ones. Lines are counted over all calls."""
        if not piece:
            return self.schema.empty_table(), []
        rows = self._scanned(piece) if len(piece) >= scanning.LEAST else None
        if rows is not None:
            self.lines += rows.num_rows  # a plain row is a line
            return rows, []
        piece = bytes(piece)
        rows, bad = self._read(piece, self.lines)
        self.lines += piece.count(b"\n")
        return rows, bad

    def _scanned(self, piece: bytes | memoryview) -> pa.Table | None:
        """The rows of a piece in which everything is plain; an input that is not plain is not asked again and again."""
        self._bytes += len(piece)
        if self._misses >= _GIVEN_UP or not self._scanner.ready(self._bytes):
            return None
        columns = self._scanner.scan(piece)
        self._misses = 0 if columns is not None else self._misses + 1
        return None if columns is None else pa.table(columns, schema=self.schema)

    def _read(self, piece: bytes, line: int) -> tuple[pa.Table, list[Bad]]:
        fast = self._whole(piece)
        if fast is not None:
            return fast, []
        cut = _middle(piece) if len(piece) > _SMALL else None
        if cut is None:
            return self._line_by_line(piece, line)
        first, bad = self._read(piece[:cut], line)
        second, worse = self._read(piece[cut:], line + piece.count(b"\n", 0, cut))
        return pa.concat_tables([first, second]), bad + worse

    def _whole(self, piece: bytes) -> pa.Table | None:
        """The rows of a piece in which nothing is unusual, else None."""
        if b"#" in piece and (piece.startswith(b"#") or b"\n#" in piece):
            return None
        quoted = b'"' in piece
        # Arrow drops blanks around numbers, and we do not trim: with blanks in sight texts are read and cast.
        types = self._strings if b" " in piece or b"\t" in piece else self._types
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(piece),
                read_options=arrow_csv.ReadOptions(column_names=[field.name for field in self._fields]),
                parse_options=arrow_csv.ParseOptions(delimiter="|", newlines_in_values=quoted),
                convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[""]),
            )
            return self._typed(table)
        except (pa.ArrowInvalid, ValueError):
            return None

    def _typed(self, table: pa.Table) -> pa.Table:
        """A read table with the types of its fields; raises when a text does not fit."""
        columns = [_cast(table.column(field.name), field) for field in self._fields]
        texts = [table.column(field.name) for field in self._fields if field.name in self._texts]
        return pa.table([*columns, *texts], schema=self.schema)

    def _line_by_line(self, piece: bytes, line: int) -> tuple[pa.Table, list[Bad]]:
        good: list[list[object]] = []
        bad: list[Bad] = []
        for number, record in _records(piece, line):
            try:
                good.append(self._values(record))
            except ValueError as problem:
                bad.append(Bad(number, str(problem)))
        columns = list(zip(*good, strict=True)) if good else [[] for _ in self.schema]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=True)]
        return pa.table(arrays, schema=self.schema), bad

    def _values(self, record: Sequence[str]) -> list[object]:
        if len(record) != len(self._fields):
            raise ValueError(f"{len(record)} fields, {len(self._fields)} expected")
        pairs = list(zip(record, self._fields, strict=True))
        return [value(text, field) for text, field in pairs] + [
            text or None for text, field in pairs if field.name in self._texts
        ]


def value(text: str, field: Field) -> object:
    """The value of one field of a row; an empty one is null, of a text field the empty text. Raises ValueError."""
    if field.kind is Kind.TEXT:
        return text
    if not text:
        return None
    try:
        return _PARSE[field.kind](text, field)
    except (pa.ArrowInvalid, OverflowError, KeyError):
        raise ValueError(f"{field.name}: {text!r} is not {_words(field)}") from None


def _words(field: Field) -> str:
    kinds = {Kind.INTEGER: "integer", Kind.FLOAT: "float", Kind.BOOLEAN: "boolean", Kind.TIME: "timestamp"}
    bits = field.arrow.bit_width if field.kind.numeric else ""
    return f"{kinds[field.kind]}{bits}"


def _whole_number(text: str, field: Field) -> object:
    if not _WHOLE.fullmatch(text):
        raise KeyError(text)
    number = int(text, 16 if "x" in text.lower() else 10)
    return pa.scalar(number, field.arrow).as_py()


def _float(text: str, field: Field) -> object:
    number = float(text) if _FLOAT.fullmatch(text) else None
    if number is None or (field.arrow == pa.float32() and _FLOAT32 < abs(number) < float("inf")):
        raise KeyError(text)
    return number


def _moment(text: str, field: Field) -> object:
    try:
        return instant(text)
    except ValueError as problem:
        raise ValueError(f"{field.name}: {problem}") from None


_PARSE: dict[Kind, Callable[[str, Field], object]] = {
    Kind.INTEGER: _whole_number,
    Kind.FLOAT: _float,
    Kind.BOOLEAN: lambda text, field: _BOOLEANS[text.lower()],
    Kind.TIME: _moment,
}


def _csv_type(field: Field) -> pa.DataType:
    """What Arrow's reader makes of a column: texts as codes, since the same few groups come again and again."""
    return CODES if field.kind is Kind.TEXT else pa.float64() if field.kind is Kind.FLOAT else field.arrow


def _cast(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    """A column as it was read, in the wide type of its kind; raises when a text or a number does not fit."""
    if field.kind is Kind.TEXT:
        return column.cast(CODES) if not pa.types.is_dictionary(column.type) else column
    if pa.types.is_string(column.type):
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
        if field.kind is Kind.TIME:
            column = pc.replace_substring(column, _MINUS, "-")
            column = pc.replace_substring_regex(column, r"(\.\d{6})\d+", r"\1")
        column = column.cast(_csv_type(field))
    if field.arrow == pa.float32():
        _check_float32(column)
    return column.cast(WIDE[field.kind])


def _check_float32(column: pa.ChunkedArray) -> None:
    finite = pc.filter(column, pc.fill_null(pc.is_finite(column), False))
    most = pc.max(pc.abs(finite)).as_py()
    if most is not None and most > _FLOAT32:
        raise ValueError(f"{most} does not fit float32")


def _middle(piece: bytes) -> int | None:
    """Where to cut a piece in two: after the end of a record near the middle; None when there is only one."""
    at = piece.find(b"\n", len(piece) // 2) + 1
    while 0 < at < len(piece):
        if piece.count(b'"', 0, at) % 2 == 0:
            return at
        at = piece.find(b"\n", at) + 1
    at = piece.rfind(b"\n", 0, len(piece) // 2) + 1
    while at > 0:
        if piece.count(b'"', 0, at) % 2 == 0:
            return at
        at = piece.rfind(b"\n", 0, at - 1) + 1
    return None


def _records(piece: bytes, line: int) -> Iterable[tuple[int, list[str]]]:
    """Each record with the line it begins at; blank lines and comments left out."""
    lines = piece.decode(errors="replace").split("\n")
    at = 0
    while at < len(lines):
        first, at = at, at + 1
        text = lines[first].removesuffix("\r")
        if not text or text.startswith("#"):
            continue
        while text.count('"') % 2 and at < len(lines):
            text, at = f"{text}\n{lines[at]}", at + 1
        yield line + first + 1, next(csv.reader([text], delimiter="|"))
