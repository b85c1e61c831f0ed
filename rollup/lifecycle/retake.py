"""Dead letters that are taken in again after a fix, each once, however often it is asked for and wherever it is killed.

A request is written first: the letters, and the events that their records are now. Then every aggregation, and the
statements, take the events as one batch whose mark is in their commit. Events that only some statements have refused go
to these statements alone. Then the letters leave their table, in a transaction with the same mark, and the request is
removed. A request that is found there was interrupted, and is done to its end before another.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.aggregation.event_times import AT
from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.marks import arrivals
from rollup.checkpoint.records import RecordFolder
from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, StoreError
from rollup.core.objects import at, write_durably
from rollup.core.untyped import pc
from rollup.hosts.local import LocalHost
from rollup.hosts.statements.outlets import outlets_of
from rollup.hosts.statements.refusals import letters_of
from rollup.lifecycle.book import Book
from rollup.lifecycle.change import settle
from rollup.lifecycle.lease.places import held, leases_of
from rollup.lifecycle.status import newest_state
from rollup.plan.lateness import ahead_of
from rollup.program import Program
from rollup.sources.registry import source
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Refused
from rollup.stores.dead_letters import SCHEMA, DeadLetters, whole
from rollup.stores.faults import point
from rollup.stores.registry import open_store

_QUERY = "retaken"
_FOLDER = "_retake"
_LOST = "bring the file back; without it nobody knows which of its records were taken in already"
_TIMES = "the time"
"""How reasons begin that are of an event, not of its record: such a letter has the attributes, by their own names."""


class _Host(LocalHost):
    """Takes one batch of a stream into the stores of a job."""

    def __init__(self, conf: Conf, program: Program) -> None:
        commits, outlets = (
            (None, None) if program.statements is None else (Commits.beside(conf.tables), outlets_of(conf, program))
        )
        super().__init__(
            program, lambda each, engine: open_store(conf, each, engine), commits, ahead_of(conf.ahead), outlets
        )
        self.stream, self.number, self.following, self.again = "", 0, 0, 0
        self._letters, self._positions = DeadLetters(conf.tables), dict[int, str]()

    @property
    def _key(self) -> str:
        return f"{self.stream} ({_QUERY})"

    def marks(self, before: Mapping[str, Any]) -> Mapping[str, Any]:
        """With one that says that this batch was had."""
        return {**before, self._key: {"query": _QUERY, "batch": self.number, "arrivals": self.following}}

    def take(self, events: pa.Table, by: str | None) -> None:
        """The batch: events for everybody, or for the statements that alone have refused them."""
        scale = self.program.scale(self.stream) if by is None else 1
        arrivals, places = (events[name].to_pylist() for name in ("__arrival", _POSITION))
        self._positions, self.again = {n * scale: place for n, place in zip(arrivals, places, strict=True)}, 0
        events = events.drop_columns([_POSITION])
        if by is None:
            self.process(self.stream, events)
        elif self.statements is not None and self.lacks(self.statements.source):
            given = self.statements.flow.arrived(self.program.streams, {self.stream: events})
            self.statements.advance(self.engine, given, self.marks(self.statements.source), self.aside, by)

    def aside(self, refused: Sequence[Refused]) -> None:
        """What statements refuse now is dead for them, where it stood."""
        scale = self.program.scale(self.stream)
        places = [self._positions.get(n, self._positions.get(n // scale * scale, "")) for n in _arrivals(refused)]
        letters = letters_of(refused, self.program)
        place = letters.schema.get_field_index("position")
        letters = letters.set_column(place, "position", pa.array(places, pa.string()))
        self._letters.append(letters, f"{_QUERY}-statements", self.number)
        self.again = len(set(_arrivals(refused)))

    def lacks(self, marks: Mapping[str, Any]) -> bool:
        """Whether this batch is new to somebody."""
        return self._key not in marks or marks[self._key]["batch"] < self.number

    def begin(self, stream: str) -> int:
        """The first arrival of a batch, behind all of the stream."""
        marks = [one.source.get(stream) for one in self.pipelines.values()]
        return max(map(arrivals, marks), default=0) if self.program.scale(stream) == 1 else 0


class Retake:
    """Takes the dead letters of a job in again."""

    def __init__(self, conf: Conf, program: Program) -> None:
        self._conf, self._program = conf, program
        self._letters, self._home = DeadLetters(conf.tables), conf.local / "_rollup" / _FOLDER
        self._aside = self._home.with_name(f"{_FOLDER}-aside")
        """Where a request is written and removed, so that it is there whole or not at all."""
        self._engine = ColumnEngine(threads=2)

    def run(self, stream: str | None, reason: str | None) -> Iterator[str]:
        """A line for each stream: what was taken in again, and what is still dead. Raises StoreError while a job is at work."""
        leases = leases_of(self._conf, self._program, "retake")
        with held(leases, "stop it first: letters are taken in between two runs"):
            self._settle()
            host = _Host(self._conf, self._program)
            shutil.rmtree(self._aside, ignore_errors=True)  # of one that was killed
            if self._home.exists():
                yield self._done(host, begun=True)
            self._letters.require_whole()
            rows = self._letters.read()
            rows = rows if stream is None else rows.filter(pc.equal(rows["stream"], stream))
            rows = rows if reason is None else rows.filter(pc.match_substring(rows["reason"], reason))
            if not rows.num_rows:
                yield "no dead letters to take in"
            for name in sorted(set(rows["stream"].to_pylist())):
                chosen = rows.filter(pc.equal(rows["stream"], name))
                for by in sorted(set(chosen["by"].to_pylist()), key=str):
                    some = chosen.filter(pc.is_null(chosen["by"]) if by is None else pc.equal(chosen["by"], by))
                    if name in (self._program.inputs if by is None else self._program.streams):
                        yield self._retaken(host, name, some, by)
                    else:
                        yield f"{name}: {some.num_rows:,} records stay dead, as the app does not read this stream"

    def _settle(self) -> None:
        """What a changed declaration means for the tables, as at the start of a job. Raises StoreError when it is refused."""
        for name, aggregation in self._program.aggregations.items():
            store = open_store(self._conf, aggregation, self._engine)
            settle(Book.of(self._conf, name), store, aggregation, newest_state(store))

    def _retaken(self, host: _Host, stream: str, letters: pa.Table, by: str | None) -> str:
        if by is None:
            self._refuse_joins(stream)
        events, gone, added = self._events(host, stream, letters) if by is None else self._refused(stream, letters, by)
        if not events.num_rows:
            if added.num_rows:
                self._letters.replace(gone, added, time.time_ns() // 1_000_000)
            return _none(stream, letters.num_rows)
        self._write(stream, events, gone, added)
        point("retake.request")
        rest = letters.num_rows - gone.num_rows + added.num_rows
        return self._done(host, rest)

    def _done(self, host: _Host, rest: int = 0, begun: bool = False) -> str:
        """The request that is there, done to its end."""
        events, gone, added, said = self._read()
        host.stream, host.number = said["stream"], said["number"]
        host.following = int(pc.max(events["__arrival"]).as_py()) + 1
        host.take(events, gone["by"][0].as_py())
        point("retake.taken")
        self._letters.replace(gone, added, host.number)
        point("retake.letters")
        # In one piece: a request of which a part is removed would be one that has lost its records.
        self._home.rename(self._aside)
        shutil.rmtree(self._aside)
        taken = events.num_rows - host.again
        if not taken:
            return _none(host.stream, events.num_rows)
        rest += host.again
        more = " (begun before, and now done to its end)" if begun else f"; {rest:,} are still dead" if rest else ""
        return f"{host.stream}: {taken:,} records were taken in again{more}"

    def _refused(self, stream: str, letters: pa.Table, by: str) -> tuple[pa.Table, pa.Table, pa.Table]:
        """As `_events`, of events that some statements alone have refused: with the time that they had."""
        statements, rows = self._program.statements, letters.to_pylist()
        if statements is None or by not in {part.name for part in statements.parts}:
            rows = []
        table = self._of_records(stream, rows, renamed=False)
        gone = [rows[place] for place in table["__arrival"].to_pylist()]
        table = table.append_column(AT, pa.array([row["at"] for row in gone], pa.int64()))
        return _placed(table, gone), pa.Table.from_pylist(gone, schema=SCHEMA), SCHEMA.empty_table()

    def _events(self, host: _Host, stream: str, letters: pa.Table) -> tuple[pa.Table, pa.Table, pa.Table]:
        """The events that records of letters are now; the letters that are none any more; and those that are new, of the
        other records of a file that was dead as a whole."""
        found, gone, added = list[pa.Table](), list[dict[str, Any]](), list[dict[str, Any]]()
        rows = letters.to_pylist()
        for renamed in (True, False):
            some = [row for row in rows if row["raw"] and row["reason"].startswith(_TIMES) is not renamed]
            table = self._of_records(stream, some, renamed)
            places = pa.array(range(len(gone), len(gone) + table.num_rows), pa.int64())
            gone += [some[place] for place in table["__arrival"].to_pylist()]
            found.append(table.append_column("__letter", places))
        for row in rows:
            if not row["raw"] and at(row["position"]).is_file():
                table, dead = self._of_file(stream, row["position"])
                if table.num_rows or dead.num_rows:
                    found.append(table.append_column("__letter", pa.array([len(gone)] * table.num_rows, pa.int64())))
                    gone.append(row)
                    added += [{**row, **each} for each in dead.to_pylist() if each["position"] != row["position"]]
        events = pa.concat_tables(found) if found else pa.table({})
        return self._judged(host, stream, events, gone, added)

    def _judged(
        self, host: _Host, stream: str, events: pa.Table, gone: list[dict[str, Any]], added: list[dict[str, Any]]
    ) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Without the events that someone who takes them refuses for their time: their letters stay."""
        first = host.begin(stream)
        numbers = pa.array(range(first, first + events.num_rows), pa.int64())
        events = events.set_column(events.schema.get_field_index("__arrival"), "__arrival", numbers)
        refused = host.refused(stream, events.drop_columns(["__letter"]))
        keeps = set(
            pc.take(events["__letter"], pa.array(sorted(each - first for each in refused), pa.int64())).to_pylist()
        )
        taken = pa.array([letter not in keeps for letter in events["__letter"].to_pylist()], pa.bool_())
        left = [row for place, row in enumerate(gone) if place not in keeps]
        events = events.filter(taken)
        return (
            _placed(events.drop_columns(["__letter"]), [gone[place] for place in events["__letter"].to_pylist()]),
            pa.Table.from_pylist(left, schema=SCHEMA),
            pa.Table.from_pylist(added, schema=SCHEMA),
        )

    def _of_records(self, stream: str, letters: list[dict[str, Any]], renamed: bool) -> pa.Table:
        """The records of letters, read as the configuration reads them now; `__arrival` is the place of each letter."""
        options: dict[str, Any] = {"kind": "json"}
        if renamed and "columns" in self._conf.sources[stream]:
            options["columns"] = self._conf.sources[stream]["columns"]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "letters.json"
            texts = (" ".join(str(row["raw"]).splitlines()) or "-" for row in letters)
            file.write_text("".join(f"{text}\n" for text in texts))
            table, _ = self._read_by({**options, "path": folder}, stream, file)
        return table

    def _of_file(self, stream: str, path: str) -> tuple[pa.Table, pa.Table]:
        return self._read_by(self._conf.sources[stream], stream, at(path))

    def _read_by(self, options: Mapping[str, Any], stream: str, file: Path) -> tuple[pa.Table, pa.Table]:
        """The events of a file and the letters of its records that are none."""
        definition = self._program.streams[stream]
        schema = pa.schema([*((name, kind.arrow) for name, kind in definition.attributes.items()), *_PLACED])
        batch = pa.table({"path": [str(file)], "modified": [int(time.time() * 1e6)]})
        events, dead = schema.empty_table(), SCHEMA.empty_table().select(["stream", "reason", "position", "raw"])
        if file.stat().st_size:
            for part in source(definition, options).parts(self._engine, batch):
                rows = self._engine.run(f"FROM {part.view} ORDER BY __arrival").select(schema.names).cast(schema)
                events, dead = pa.concat_tables([events, rows]), pa.concat_tables([dead, part.dead])
        return events, dead

    def _refuse_joins(self, stream: str) -> None:
        reached = {stream, *(each.target for each in self._program.fed_by(stream))}
        for join in self._program.joins:
            if join.source.stream in reached:
                raise ConfigError(
                    f"the events of {stream} ask aggregations (a join into {join.target}): such a stream is not taken in again",
                    hint="send these records to its source anew",
                )

    # the request

    def _write(self, stream: str, events: pa.Table, gone: pa.Table, added: pa.Table) -> None:
        self._aside.mkdir(parents=True)
        records, tables = RecordFolder(self._aside, _LOST), {"events": events, "gone": gone, "added": added}
        files = {name: records.write_rows(f"{name}-0.arrow", table) for name, table in tables.items()}
        said = {"stream": stream, "number": time.time_ns() // 1_000_000, "files": files}
        write_durably(self._aside / "said", sealed(said))
        self._aside.rename(self._home)

    def _read(self) -> tuple[pa.Table, pa.Table, pa.Table, dict[str, Any]]:
        try:
            said = unsealed((self._home / "said").read_bytes(), ("stream", "number", "files"))
        except (OSError, ValueError) as problem:
            raise StoreError(f"the request in {self._home} cannot be read: {problem}", hint=_LOST) from None
        records = RecordFolder(self._home, _LOST)
        events, gone, added = (records.read_rows(said["files"][name]) for name in ("events", "gone", "added"))
        return events, whole(gone), whole(added), said


_PLACED, _POSITION = (("__arrival", pa.int64()), ("__received", pa.int64())), "__position"


def _placed(events: pa.Table, letters: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Events with the place of each, that of its letter."""
    return events.append_column(_POSITION, pa.array([letter["position"] for letter in letters], pa.string()))


def _arrivals(refused: Sequence[Refused]) -> list[int]:
    return [each.event.key[0] for each in refused]


def _none(stream: str, records: int) -> str:
    return f"{stream}: none of {records:,} records can be used yet"
