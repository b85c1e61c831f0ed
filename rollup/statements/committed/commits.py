"""What is committed of statements: their states, what a batch gave, and which input it all holds, in one record.

A record stands beside those of the rollups and is read and checked by the same code. Its one file of rows has

    component   the component, or for rows that were given their stream
    name        `table` and the name of one of its state, `scalars`, or `given`; of none: `id`, that of the line of commits,
                `format`, and `texts`, the fingerprints of all components, also of those that have no state yet
    content     an Arrow stream, or packed scalars

Among those of no component are `outputs`, how many rows each stream has been given in all, `sinks`, where rows go to, and
`passed`, the time that went on without events. `begun` says of a batch in parts up to where it is held.

The output of a batch is in its own commit. So the next start brings to a sink what a killed job had not yet brought
there. The record comes first and the sinks after it. The next record comes only when all sinks have the output of this one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.checkpoint.records import Record, RecordFolder, home
from rollup.core.errors import StoreError
from rollup.core.packing import pack, unpack
from rollup.engine.state import NODES, State, packed, unpacked
from rollup.plan.app import StreamDef
from rollup.sinks.base import Held
from rollup.statements.committed.begun import Begun
from rollup.statements.committed.passed import Passed
from rollup.statements.compiled import Part
from rollup.statements.flow import States
from rollup.stores.faults import point

FOLDER = "_statements"
"""Where the commits are, beside those of aggregations."""
FILES = "__files"
"""Among the scalars of a component's state: the files of its shards, which the record names."""
FORMAT = 4
"""How states are kept; one more whenever a state of before could not be gone on with. Without a number it was the first."""
_SCALARS, _GIVEN, _ID, _TEXTS, _TABLE, _FILE = "scalars", "given", "id", "texts", "table ", "statements"
_FORMAT, _OUTPUTS, _SINKS, _PASSED, _BEGUN = "format", "outputs", "sinks", "passed", "begun"
_SCHEMA = pa.schema([("component", pa.string()), ("name", pa.string()), ("content", pa.large_binary())])


@dataclass(frozen=True)
class Saved:
    """A commit: its number from 1, the states, the marks of the input by stream, and the rows that streams were given.

    `texts` are the fingerprints of the components, of which some have no state yet; `id` tells this line of commits from another
    that begins at 1. `outputs` are the rows that streams with sinks were given in all, those of this commit with them;
    `sinks` the place of each sink, and the row that it began with. `passed` are the steps of time without an event;
    `begun` by stream the batches of which the marks do not say yet that a part of them is held.
    """

    number: int = 0
    id: str = ""
    states: States = field(default_factory=dict[str, State])
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])
    given: Mapping[str, pa.Table] = field(default_factory=dict[str, pa.Table])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    outputs: Mapping[str, Held] = field(default_factory=dict[str, Held])
    sinks: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    passed: Passed = field(default_factory=Passed)
    begun: Mapping[str, Begun] = field(default_factory=dict[str, Begun])


def homes(saved: Saved, texts: Mapping[str, str]) -> dict[str, str]:
    """Where components with these fingerprints have their states in a commit: a text keeps its own under a new name.

    Blocks are numbered, so one that is put before others or taken away gives those after it new names. Files of shards
    say the name that they are of, and stay with it.

    >>> homes(Saved(texts={"block 1": "x", "block 2": "y"}), {"block 1": "y", "block 2": "z"})
    {'block 1': 'block 2'}
    """
    same = {name for name, text in texts.items() if saved.texts.get(name) == text}
    in_files = {name for name, state in saved.states.items() if FILES in state.scalars}
    others = {text: name for name, text in saved.texts.items() if name not in same | in_files}
    moved = {name: others.pop(text) for name, text in texts.items() if name not in same and text in others}
    return {**{name: name for name in texts if name in same}, **moved}


def changed(saved: Saved, texts: Mapping[str, str]) -> list[str]:
    """The components whose state in a commit is that of another text.

    >>> changed(Saved(states={"block 1": State({}, {})}, texts={"block 1": "x"}), {"block 1": "y", "block 2": "z"})
    ['block 1']
    """
    places = homes(saved, texts)
    return [name for name in saved.states if name in texts and name not in places and name not in places.values()]


class Commits:
    """The commits of an app's statements, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        cure = (
            f"remove the newest commit-….json of {folder} to go back to the one before, from which streams come again"
        )
        self._records = RecordFolder(folder, f"{cure}; or the folder, to begin all statements anew")

    @classmethod
    def beside(cls, tables: Path) -> Commits:
        """Those of the statements whose configuration has its tables in a folder."""
        return cls(home(tables, FOLDER))

    def numbers(self) -> list[int]:
        """Those that are kept, in order."""
        return self._records.numbers()

    def newest(self) -> Saved:
        """The last commit. Raises StoreError when it is damaged."""
        record = self._records.newest()
        if record is None:
            self._records.create()
            return Saved()
        return self._read(record)

    def whole(self) -> Saved | None:
        """The last commit, all of whose files have been read; None before the first. Raises StoreError when one is damaged."""
        record = self._records.newest()
        if record is None:
            return None
        for name in record.open:
            self._records.require(record.files(name))
        return self._read(record)

    def identity(self, number: int) -> tuple[int, ...]:
        """Differs between two commits, also where statements begun anew have come to the same number."""
        return self._records.identity(number)

    def read(self, number: int) -> Saved:
        """A commit that is kept. Raises FileNotFoundError when it is gone, StoreError when it is damaged."""
        return self._read(self._records.read(number))

    def _read(self, record: Record) -> Saved:
        rows = self._records.read_rows(record.files(_FILE))
        try:
            return saved_in(rows, record.number, record.source)
        except (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError) as problem:
            raise StoreError(
                f"the state of statements in {self.folder} cannot be read: {problem}",
                hint="go on with the version of rollup that wrote it, or remove that folder to begin all statements anew",
            ) from None

    def begin_anew(self, saved: Saved, names: Collection[str]) -> None:
        """Let some components begin anew behind a commit, in one of its own; all others keep their states."""
        kept, texts = (
            {name: one for name, one in each.items() if name not in names} for each in (saved.states, saved.texts)
        )
        self.write(replace(saved, number=saved.number + 1, states=kept, texts=texts))

    def write(self, saved: Saved) -> None:
        """Make a commit. Raises FencedError when its number is taken."""
        point("statements.begin")
        self._records.refuse_taken(saved.number)
        name = self._records.write_rows(f"open-{_FILE}-{saved.number:012d}.arrow", rows_of(saved))
        point("statements.rows")
        files = {_FILE: name, **_files(saved.states)}
        self._records.write(Record(saved.number, {}, files, {}, None, dict(saved.source)))
        point("statements.record")
        if saved.number % 16 == 0:
            self._records.tidy()


def fingerprint(part: Part, streams: Mapping[str, StreamDef]) -> str:
    """Of all that a state depends on: the text, and the attributes and keys of the streams that it names."""
    named = [streams[name] for name in sorted(part.names.reads | part.names.writes) if name in streams]
    said = [" ".join(part.section.text.split()), *(f"{each.name} {dict(each.attributes)}" for each in named)]
    said += [f"table {each.name} {dict(each.stream.attributes)}" for each in part.names.tables]
    said += [f"{each.name} by {', '.join(each.table)}" for each in named if each.table is not None]
    return hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]


def rows_of(saved: Saved) -> pa.Table:
    """The rows of a commit, but for its number and marks, which are in its record."""
    found = [
        ("", _ID, saved.id.encode()),
        ("", _FORMAT, b"%d" % FORMAT),
        ("", _TEXTS, pack(_packed(dict(saved.texts)))),
        ("", _OUTPUTS, pack(_packed({name: [held.rows, held.digest] for name, held in saved.outputs.items()}))),
        ("", _SINKS, pack(_packed({name: list(one) for name, one in saved.sinks.items()}))),
        ("", _PASSED, pack(_packed(saved.passed.packed()))),
        ("", _BEGUN, pack(_packed({name: one.packed() for name, one in saved.begun.items()}))),
    ]
    for component, state in saved.states.items():
        found += [(component, _TABLE + name, pack(table)) for name, table in state.tables.items()]
        kept = {"text": saved.texts.get(component, ""), "scalars": dict(state.scalars)}
        found.append((component, _SCALARS, pack(_packed(kept))))
    found += [(name, _GIVEN, pack(table)) for name, table in saved.given.items() if table.num_rows]
    columns = [pa.array([row[i] for row in found], kind.type) for i, kind in enumerate(_SCHEMA)]
    return pa.table(columns, schema=_SCHEMA)


def saved_in(rows: pa.Table, number: int = 0, source: Mapping[str, Any] | None = None) -> Saved:
    """The commit that `rows_of` gave. Raises ValueError, KeyError or pyarrow.ArrowException for other rows.

    >>> saved_in(pa.table({"component": [""], "name": ["format"], "content": [b"0"]}))
    Traceback (most recent call last):
    ValueError: it is of format 0, and this version of rollup reads 4
    """
    tables, scalars = dict[str, dict[str, pa.Table]](), dict[str, dict[str, Any]]()
    given, texts, id = dict[str, pa.Table](), dict[str, str](), ""
    outputs, sinks, passed, begun = dict[str, Held](), dict[str, tuple[str, int]](), Passed(), dict[str, Begun]()
    kept = [(row["component"], row["name"], row["content"]) for row in rows.to_pylist()]
    format = next((int(content) for _, name, content in kept if name == _FORMAT), 1)
    if format != FORMAT:
        raise ValueError(f"it is of format {format}, and this version of rollup reads {FORMAT}")
    for component, name, content in kept:
        if name == _FORMAT:
            continue
        if name == _ID:
            id = content.decode()
        elif name == _TEXTS:
            texts |= _unpacked(unpack(content))
        elif name == _OUTPUTS:
            outputs = {stream: Held(*held) for stream, held in _unpacked(unpack(content)).items()}
        elif name == _SINKS:
            sinks = {stream: (one[0], one[1]) for stream, one in _unpacked(unpack(content)).items()}
        elif name == _PASSED:
            passed = Passed.unpacked(_unpacked(unpack(content)))
        elif name == _BEGUN:
            begun = {stream: Begun.unpacked(one) for stream, one in _unpacked(unpack(content)).items()}
        elif name == _GIVEN:
            given[component] = unpack(content)
        elif name == _SCALARS:
            found = _unpacked(unpack(content))
            scalars[component], texts[component] = found["scalars"], found["text"]
        else:
            tables.setdefault(component, {})[name.removeprefix(_TABLE)] = unpack(content)
    states = {name: State(tables.get(name, {}), found) for name, found in scalars.items()}
    return Saved(number, id, states, source or {}, given, texts, outputs, sinks, passed, begun)


def _files(states: States) -> dict[str, list[str]]:
    """The files beside the commit that hold states of shards, by component."""
    return {name: list(state.scalars[FILES]) for name, state in states.items() if FILES in state.scalars}


def _packed(value: Any) -> pa.Table:
    """Plain values as a table, in the form that states of nodes have."""
    return pa.Table.from_pylist([{"path": "", "state": packed(value)}], schema=NODES)


def _unpacked(table: pa.Table) -> Any:
    return unpacked(table["state"][0].as_py())
