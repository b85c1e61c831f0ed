"""JSON objects to events: one parse a record where that is exact, and attribute by attribute where it is not.

The exact reading takes the text of each attribute out of the document and reads it with the attribute's type. The quick
one lets DuckDB make a struct of the whole document, which is twice as fast and nearly the same: it takes `true` for 1,
rounds, and reads odd texts as numbers. So a record is read quickly only where none of this can be, by the range of its
values and by signs that its text does not have; a test holds both readings equal on hostile documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import duckdb
import pyarrow as pa

from rollup.core.dialects import to_sql
from rollup.plan.app import StreamDef
from rollup.plan.reading import cast
from rollup.plan.types import Type
from rollup.sources.content.records import Readers, is_member, json_paths, text

IS_OBJECT = "CASE WHEN json_valid(raw) THEN json_type(raw) = 'OBJECT' ELSE false END"
"""Whether `raw` is a JSON object. A CASE, because AND does not keep json_type from seeing what is no JSON."""
OK = "__ok"
"""The column of `Documents.relation` that says whether a record is a JSON object."""
QUICK = "__quick"
"""The column of records that says whether the values that have been read of one are those of the exact reading."""
_WIDEST = {Type.DOUBLE: "1e300", Type.LONG: "9e15", Type.INT: "2147483648"}
"""What is read as a double by the quick way must be nearer to zero than this: then a whole number is exactly that."""
SIGNS = b"+", b"\\"
"""What a document read the quick way does not have. Where `plain` says that no document near it has one, it is not searched."""
_SIGNS = "CASE WHEN plain THEN true ELSE NOT contains(raw, '+') AND NOT contains(raw, '\\') END"
_ODD = "'true|false|[0-9._ ][eE]'"
"""What may be behind a 0 or 1 that is none: a truth, or a text that stands for a number with a great exponent."""
_EXPONENT = (
    "CASE WHEN contains({0}, 'e-') OR contains({0}, 'e+') THEN NOT regexp_matches({0}, '[0-9]e[-+][0-9]') ELSE true END"
)
_WRITTEN = f"CASE WHEN {{0}} < ':' THEN {_EXPONENT} ELSE true END"
"""A number that is asked for as a text is written `1e+16` by the quick way and `1e16` by the exact one. What begins with a
letter is none, and is told at once."""


_LONG = "regexp_matches(raw, '[0-9][0-9.]{15}')"
"""Whether a number of a record may have more digits than a double keeps, which DuckDB makes of a number of JSON."""
_NUMBER = r"((?:\"(?:[^\"\\]|\\.)*\"|[^\"0-9-])*)(-?[0-9][0-9.eE+-]*)"
DIGITS = f"CASE WHEN {_LONG} THEN REGEXP_REPLACE(raw || '0', {text(_NUMBER)}, '\\1\"\\2\"', 'g')[:-4] ELSE raw END"
"""A record with its long numbers as texts: what stands before a number is texts and signs, and behind the last one a 0."""


_PIECE = 1 << 20
Found = TypeVar("Found")
_broken = set[str]()
"""Streams of which this process has met a record that is no JSON: it asks each of their records at once."""


def read_documents(stream: StreamDef, renamed: Mapping[str, str], read: Callable[[Documents], Found]) -> Found:
    """What `read` makes of documents, which are taken for JSON at first: asking each would cost a parse of its own.

    Where one is none, DuckDB refuses all of them, and they are read once more with the question.
    """
    if stream.name not in _broken:
        with suppress(duckdb.InvalidInputException):
            return read(Documents(stream, renamed, asking=False))
        _broken.add(stream.name)
    return read(Documents(stream, renamed))


def value_of(number: int) -> str:
    """The column of what has been read of an attribute, by its number."""
    return f"__value_{number}"


def plain(documents: pa.ChunkedArray) -> bool:
    """Whether none of some texts has one of `SIGNS`; perhaps false where only texts beside them in memory have one."""
    views = (memoryview(data) for chunk in documents.chunks if (data := chunk.buffers()[2]))
    pieces = (bytes(view[at : at + _PIECE]) for view in views for at in range(0, len(view), _PIECE))
    return not any(sign in piece for piece in pieces for sign in SIGNS)


@dataclass(frozen=True)
class Documents:
    """How the attributes of a stream are taken from documents, by name or by what `renamed` gives.

    A missing attribute is null. `http.status` is the member of that name, or else `status` in `http`; `$.a[0].b` is a path
    of DuckDB's. `quick` may be switched off, to compare. Without `asking`, a record that is no JSON is an error of DuckDB's
    in whatever reads the relation. `scanned` says that lines have values already (`rollup.sources.content.by_loop`).
    """

    stream: StreamDef
    renamed: Mapping[str, str]
    quick: bool = True
    asking: bool = True
    scanned: bool = False

    def relation(self, lines: str) -> str:
        """`lines` (with `raw`, `readable` and `plain`, see `SIGNS`) and what `readers` reads: each document is parsed here,
        except those that have been read already where they are `scanned`."""
        known = lines if self.scanned else f"(SELECT *, {self._quick} AS __quick FROM {self._typed(lines)})"
        exact = self._found(known)
        parts = [f"__found[{number + 1}] AS __text_{number}" for number in range(len(self._together))]
        return f"(SELECT * EXCLUDE (__found), {', '.join(parts)} FROM {exact})"

    def readers(self) -> Readers:
        """For each attribute SQL over `relation`, see `Readers`."""
        readers: dict[str, tuple[str, str]] = {}
        for number, (name, kind) in enumerate(self.stream.attributes.items()):
            found = [self._text(path, kind.exact) for path in json_paths(self._named(name))]
            value = found[0] if len(found) == 1 else f"COALESCE({', '.join(found)})"
            read, has = cast(value, kind, self.stream.zone), f"{value} IS NOT NULL"
            if self.scanned:
                read, has = f"CASE WHEN __quick THEN {value_of(number)} ELSE {read} END", f"NOT __quick AND {has}"
            elif self._plain:
                read = f"CASE WHEN __quick THEN {_plainly(value_of(number), kind, self.stream.zone)} ELSE {read} END"
                # A text is there or not; what the quick way reads as a number is one.
                has = f"CASE WHEN __quick THEN {f'{value_of(number)} IS NOT NULL' if kind not in _WIDEST else 'false'} ELSE {has} END"
            readers[name] = (read, has)
        return readers

    def _named(self, name: str) -> str:
        return self.renamed.get(name, name)

    @property
    def _plain(self) -> bool:
        """Whether every attribute is a member of the document itself, and no two of them are one to DuckDB."""
        names = [self._named(name) for name in self.stream.attributes]
        alike = len({name.lower() for name in names}) < len(names)
        return self.quick and not alike and all(is_member(name) for name in names)

    def _typed(self, lines: str) -> str:
        """The documents as structs, their members as `__value_0` …"""
        if not self._plain:
            return lines
        kinds = {
            self._named(name): "DOUBLE" if kind in _WIDEST else "VARCHAR"
            for name, kind in self.stream.attributes.items()
        }
        document = (
            "CASE WHEN readable AND json_valid(raw) THEN raw END" if self.asking else "CASE WHEN readable THEN raw END"
        )
        struct = f"json_transform({document}, {text(json.dumps(kinds))})"
        values = [f"struct_extract(__struct, {text(name)}) AS {value_of(number)}" for number, name in enumerate(kinds)]
        return f"(SELECT * EXCLUDE (__struct), {', '.join(values)} FROM (SELECT *, {struct} AS __struct FROM {lines}))"

    @property
    def _quick(self) -> str:
        """Whether the quick reading of a record is that of the exact one."""
        if not self._plain:
            return "false"
        numbers = [
            (value_of(number), kind) for number, kind in enumerate(self.stream.attributes.values()) if kind in _WIDEST
        ]
        tests = [f"ABS({value}) < {_WIDEST[kind]}" for value, kind in numbers]
        tests += [f"{value} = FLOOR({value})" for value, kind in numbers if kind is not Type.DOUBLE]
        odd = " OR ".join(f"{value} IN (0, 1)" for value, _ in numbers)
        tests += [f"CASE WHEN {odd} THEN NOT regexp_matches(raw, {_ODD}) ELSE true END"] if odd else []
        kinds = enumerate(self.stream.attributes.values())
        tests += [_WRITTEN.format(value_of(number)) for number, kind in kinds if kind is Type.STRING]
        tests += [f"NOT {_LONG}"] if any(kind.exact for kind in self.stream.attributes.values()) else []
        # A number says by itself that there is an object; without one that is to be asked.
        tests += [_SIGNS, *([] if numbers else ["starts_with(raw, '{') AND readable AND json_valid(raw)"])]
        return f"COALESCE({' AND '.join(tests)}, false)"

    def _found(self, typed: str) -> str:
        """`__ok`, and `__found`: the texts that the exact reading needs, for records that are not read quickly."""
        whole = "CASE WHEN starts_with(raw, '{') THEN true ELSE json_type(raw) = 'OBJECT' END"
        ok = f"CASE WHEN __quick THEN true WHEN readable AND json_valid(raw) THEN {whole} ELSE false END"
        paths = {exact: [text(path) for path, digits in self._together if digits is exact] for exact in (False, True)}
        taken = f"json_extract_string(raw, [{', '.join(paths[False])}])"
        taken += f" || json_extract_string({DIGITS}, [{', '.join(paths[True])}])" if paths[True] else ""
        return f"(SELECT *, CASE WHEN {OK} AND NOT __quick THEN {taken} END AS __found FROM (SELECT *, {ok} AS {OK} FROM {typed}))"

    @property
    def _together(self) -> list[tuple[str, bool]]:
        """The paths that are taken out in one parse, and then those whose numbers are to have all their digits."""
        attributes = self.stream.attributes.items()
        found = [(path, kind.exact) for name, kind in attributes for path in json_paths(self._named(name))]
        return sorted(dict.fromkeys(found), key=lambda each: each[1])

    def _text(self, path: str, exact: bool) -> str:
        return f"__text_{self._together.index((path, exact))}"


def _plainly(value: str, kind: Type, zone: str) -> str:
    """A value of the quick reading as its type: of a double that is whole and near enough, or of a text."""
    if kind.exact or kind.timed or kind is Type.FLOAT:
        return cast(value, kind, zone)
    return value if kind in (Type.STRING, Type.DOUBLE) else f"TRY_CAST({value} AS {to_sql(kind.sql)})"
