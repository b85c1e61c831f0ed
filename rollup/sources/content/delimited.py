"""CSV: DuckDB reads a file at once; where it raises or a record is missing, the file is read again record by record.

That second way takes any bytes: every record is an event's text or a letter with its line.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import duckdb
import numpy as np
import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.sources.content.lines import blocks
from rollup.sources.content.records import literal, text

_BROKEN = pa.schema([("line", pa.int64()), ("reason", pa.string()), ("raw", pa.string())])
_REJECTS = ("__scans", "__rejects")
_SPAN = 1000
"""Lines that one record may have; a quote that is not closed within them belongs to no pair."""
_UNEVEN = (b'"', b"\r")
"""What a block without empty lines must not have for each of its newlines to be the end of one record."""
_HEAD, _COUNTED = 64 << 10, 1 << 20
"""Bytes that are read at once to see the beginning of a file, and to count its records: these stay in the cache."""
_TITLES = 100
"""The lines among which a header is looked for."""
Read = Callable[[str], tuple[int, pa.Table]]
"""What makes events of a relation of texts: how many rows it has, and its dead letters."""
csv.field_size_limit(sys.maxsize)


def column(place: int) -> str:
    """The name in SQL of the column at a place. Names of files are none there: they may be empty, or differ by case alone."""
    return f"column_{place}"


def is_record(fields: Sequence[str], width: int) -> bool:
    """Whether a line can be a record or the header of a table so many columns wide; titles and remarks are not.

    >>> [is_record(each, 3) for each in (["a", "b", "c"], ["1", "", "2"], ["Report", "", ""], ["# by me"])]
    [True, True, False, False]
    """
    return len(fields) == width and sum(map(bool, fields)) >= min(2, width)


@dataclass(frozen=True)
class Delimited:
    """A CSV file and how it is written; `nulls` are the texts that stand for null.

    `above` are the lines that come before it: those of a title, a remark or `sep=;`.
    """

    path: str
    header: bool
    separator: str
    nulls: tuple[str, ...]
    above: int = 0

    def headed(self, fits: Callable[[Sequence[str]], bool]) -> Delimited:
        """The same from its header on, the first line whose names fit, where no line above it can be a record.

        Without such a line it is the file as it is.
        """
        if not self.header or fits(self.names()):
            return self
        lines = [self._fields(each) for each in next(blocks(self.path, _HEAD), b"").split(b"\n")[:_TITLES]]
        at = next((at for at, names in enumerate(lines) if isinstance(names, list) and fits(names)), 0)
        width = len(lines[at])
        below = not any(isinstance(each, list) and is_record(each, width) for each in lines[:at])
        return replace(self, above=at) if at and below else self

    def names(self) -> list[str]:
        """The names in the first line; one that stands there again has its number beside it.

        A last column without a name is that of a separator at the end of each line, which the first line may lack.
        """
        first, second = (*(fields for *_, fields in islice(self._parsed(most=_SPAN + 2), 2)), [], [])[:2]
        names = first if isinstance(first, list) else []
        if len(second) == len(names) + 1 and second[-1] == "" and names and isinstance(second, list):
            names = [*names, ""]
        return [f"{name}:{number}" if name in names[:number] else name for number, name in enumerate(names)]

    @staticmethod
    def text(names: Sequence[str]) -> str:
        """SQL for a record of a relation `r` of the columns of a file, as JSON."""
        fields = (f"{text(name)}, r.{column(place)}" for place, name in enumerate(names))
        return f"CAST(JSON_OBJECT({', '.join(fields)}) AS VARCHAR)"

    def load(self, engine: ColumnEngine, columns: int, read: Read) -> tuple[int, pa.Table, pa.Table]:
        """What `read` makes of the records, and the lines that are none: `line`, `reason`, `raw`.

        `read` is given a relation of so many columns, see `column`, as texts, and of `__arrival`; it says how many
        rows that has. Perhaps it is called twice, and then the second time counts.
        """
        try:
            found = self._at_once(engine, columns, read)
        except duckdb.Error:
            found = None  # damage, a fault and an odd end of line look alike; reading the bytes tells them apart
        return self._one_by_one(engine, columns, read) if found is None else found

    def _at_once(self, engine: ColumnEngine, columns: int, read: Read) -> tuple[int, pa.Table, pa.Table] | None:
        """None when not every record was seen."""
        for name in _REJECTS:
            engine.connection.execute(f"DROP TABLE IF EXISTS {name}")
        typed = ", ".join(f"{column(place)}: 'VARCHAR'" for place in range(columns))
        options = f"header = {self.header}, skip = {self.above}, delim = {text(self.separator)}, quote = '\"', escape = '\"', nullstr = [{', '.join(map(text, self.nulls))}]"
        rejects = f"store_rejects = true, rejects_scan = {text(_REJECTS[0])}, rejects_table = {text(_REJECTS[1])}"
        rows, dead = read(
            "(SELECT *, ROW_NUMBER() OVER () - 1 AS __arrival FROM "
            f"read_csv({text(literal(self.path))}, columns = {{{typed}}}, {options}, auto_detect = false, "
            f"hive_partitioning = false, {rejects}))"
        )
        broken = engine.run(
            "SELECT line, COALESCE(ARG_MIN(error_message, column_idx), ANY_VALUE(error_message)) AS reason, "
            f"RTRIM(ANY_VALUE(csv_line), CHR(10)) AS raw FROM {_REJECTS[1]} GROUP BY line ORDER BY line"
        ).cast(_BROKEN)
        return (rows, dead, broken) if rows + broken.num_rows + self.header == self._records() else None

    def _records(self) -> int:
        """How many records there are: lines that are not empty, and end where no quote is open."""
        count, opened = 0, 0
        for number, block in enumerate(blocks(self.path, _COUNTED)):
            if self.above and not number:
                block = block.split(b"\n", self.above)[-1]
            if not block:
                continue
            found = np.frombuffer(block, np.uint8)
            newline = found == ord("\n")
            filled = not newline[0] and not (newline[1:] & newline[:-1]).any()
            if filled and not opened and not any(sign in block for sign in _UNEVEN):
                count += int(np.count_nonzero(newline)) + (not block.endswith(b"\n"))
                continue
            ends = np.flatnonzero(newline)
            if not block.endswith(b"\n"):
                ends = np.append(ends, len(block))
            sizes = np.diff(ends, prepend=-1) - 1
            returns = (sizes == 1) & (found[ends - 1] == ord("\r")) if b"\r\n" in block else np.zeros(len(ends), bool)
            filled = (sizes > 0) & ~returns
            if opened or b'"' in block:
                quotes = np.cumsum(found == ord('"')) + opened
                filled &= quotes[np.minimum(ends, len(block) - 1)] % 2 == 0
                opened = int(quotes[-1]) % 2
            count += int(np.count_nonzero(filled))
        return count

    def _one_by_one(self, engine: ColumnEngine, columns: int, read: Read) -> tuple[int, pa.Table, pa.Table]:
        found, broken = self.records(columns)
        placed = found.append_column("__arrival", pa.array(range(found.num_rows), pa.int64()))
        with engine.tables({"csv_rows": placed}):
            return *read("csv_rows"), broken

    def records(self, columns: int, most: int | None = None) -> tuple[pa.Table, pa.Table]:
        """The records, so many fields of each as texts, and the lines that are none, as `load` returns them.

        With `most`, those of the beginning that holds so many lines.
        """
        rows, broken = list[list[str | None]](), list[dict[str, object]]()
        for line, raw, fields in self._parsed(self.header, most):
            if isinstance(fields, str):
                broken.append({"line": line, "reason": fields, "raw": raw})
            elif len(fields) != columns:
                reason = f"Expected Number of Columns: {columns} Found: {len(fields)}"
                broken.append({"line": line, "reason": reason, "raw": raw})
            else:
                rows.append([None if field in self.nulls else field for field in fields])
        found = {column(place): pa.array([row[place] for row in rows], pa.string()) for place in range(columns)}
        return pa.table(found), pa.Table.from_pylist(broken, schema=_BROKEN)

    def _parsed(self, skip: bool = False, most: int | None = None) -> Iterator[tuple[int, str, list[str] | str]]:
        """Of every record the number of its first line, its text, and its fields or why there are none.

        With `most`, of no more of the file than holds so many lines that are not empty.
        """
        lines = list[bytes]()
        for block in blocks(self.path) if most is None else blocks(self.path, _HEAD):
            lines += block.removesuffix(b"\n").split(b"\n")
            if most is not None and len(lines) - lines.count(b"") - lines.count(b"\r") >= most:
                break
        at = self.above
        while at < len(lines):
            upto = self._end(lines, at)
            record = b"\n".join(lines[at:upto])
            if record.strip(b"\r"):
                if not skip:
                    yield at + 1, record.decode(errors="replace").rstrip("\r"), self._fields(record)
                skip = False
            at = upto

    @staticmethod
    def _end(lines: Sequence[bytes], begin: int) -> int:
        """The line after a record: its quotes come in pairs, or it is one line."""
        quotes = 0
        for at in range(begin, min(len(lines), begin + _SPAN)):
            quotes += lines[at].count(b'"')
            if quotes % 2 == 0:
                return at + 1
        return begin + 1

    def _fields(self, record: bytes) -> list[str] | str:
        try:
            plain = record.decode()
        except UnicodeDecodeError:
            return "the line is not encoded in utf-8"
        if plain.count('"') % 2:
            return "a quote is not closed"
        try:
            return next(csv.reader([plain.rstrip("\r")], delimiter=self.separator))
        except (csv.Error, StopIteration) as problem:
            return f"the line is no record: {problem}"
