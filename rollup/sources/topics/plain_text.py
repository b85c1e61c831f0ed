"""Values of messages that are text without names: fields with a separator between them, or one text as it is."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from rollup.sources.topics.values import Group, Unread, without_value

csv.field_size_limit(sys.maxsize)  # a message is not longer than the broker allows
_NO_TEXT = "it is no UTF-8"


class Csv:
    """A line of CSV each, whose fields are named by their places.

    >>> groups, unread = Csv(["k", "v"]).read(pa.chunked_array([[b'"a,b",1', b"c,", b"d", None]]))
    >>> groups[0].records.to_pylist()
    [{'k': 'a,b', 'v': '1'}, {'k': 'c', 'v': None}]
    >>> [(one.place, one.reason) for one in unread]
    [(3, 'no value (a tombstone)'), (2, 'it has 1 field, and k, v are 2')]
    """

    def __init__(self, names: Sequence[str], separator: str = ",", nulls: Collection[str] = ("",)) -> None:
        self.names, self.separator, self.nulls = tuple(names), separator, nulls

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """See `Values`."""
        return _read(values, self.names, self._row)

    def _row(self, text: str) -> list[str | None]:
        """The fields of a line. Raises ValueError, and csv.Error."""
        found = list(csv.reader(io.StringIO(text, newline=""), delimiter=self.separator, strict=True))
        if len(found) != 1:
            raise ValueError(f"it has {len(found)} lines, and an event is one")
        fields, count = found[0], len(self.names)
        if len(fields) != count:
            has = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
            raise ValueError(f"it has {has}, and {', '.join(self.names)} are {count}")
        return [None if field in self.nulls else field for field in fields]


class Text:
    """One text each, which is the value of one attribute.

    >>> Text("line").read(pa.chunked_array([[b"GET /"]]))[0][0].records.to_pylist()
    [{'line': 'GET /'}]
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, values: pa.ChunkedArray) -> tuple[list[Group], list[Unread]]:
        """See `Values`."""
        return _read(values, [self.name], lambda text: [text])


def _read(
    values: pa.ChunkedArray, names: Sequence[str], row: Callable[[str], Sequence[str | None]]
) -> tuple[list[Group], list[Unread]]:
    """Messages as structs of texts; `row` raises ValueError or csv.Error for a text that is no record."""
    places, messages, unread = without_value(values)
    rows, read = list[Sequence[str | None]](), list[int]()
    for place, message in zip(places.to_pylist(), messages.to_pylist(), strict=True):
        try:
            rows.append(row(message.decode()))
            read.append(place)
        except UnicodeDecodeError:
            unread.append(Unread(place, _NO_TEXT, message.decode(errors="replace")))
        except (csv.Error, ValueError) as problem:
            unread.append(Unread(place, str(problem), message.decode()))
    if not rows:
        return [], unread
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    return [Group(pa.array(read, pa.int64()), pa.StructArray.from_arrays(columns, list(names)))], unread
