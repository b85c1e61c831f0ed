"""What a run says of records that are no events: how many, why, the likely cause and the line that cures it.

A dead letter never stops a stream, so a source that is read in the wrong way looks like success with an empty table.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rollup.core.errors import RollupError
from rollup.core.untyped import pc
from rollup.hosts.reporting.late_events import AGAIN, share
from rollup.hosts.reporting.report import BatchReport
from rollup.plan.likeness import near
from rollup.sources.base import DEAD
from rollup.sources.content.records import NO_RECORD, NO_VALUE

SHARE = 0.01
"""Of the records of a batch: more is worth a warning."""
_REASONS, _SHOWN = 3, 160
"""So many reasons are said, and so many signs of a record's text."""
_LOOKED = 200
"""Letters that are looked at for a cause."""
_TABLE = "`rollup dead CONF` lists them"
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]?")
_THOUSANDS = re.compile(r"[\"';\t|]-?\d{1,3}(?:,\d{3})+\.\d+[\"';\t|]|[\"';\t|]-?\d{1,3}(?:,\d{3}){2,}[\"';\t|]")
_COMMA = re.compile(r"[\"';\t|]-?(?:(?P<points>\d{1,3}(?:\.\d{3})+)|\d+),\d+[\"';\t|]")


class TooManyDead(RollupError):
    """More of the records of a run are dead than the configuration allows."""


@dataclass
class _Total:
    dead: int = 0
    taken: int = 0
    warned: float = -AGAIN
    reasons: Counter[str] = field(default_factory=Counter[str])

    def add(self, report: BatchReport, letters: pa.Table) -> None:
        self.dead += letters.num_rows
        self.taken += report.taken
        self.reasons.update(letters["reason"].to_pylist())


class DeadRecords:
    """Counts the dead letters of a run by stream; `sources` has the options of each stream's source.

    With `fail_above` a run ends when more than that share of its records is dead.
    """

    def __init__(
        self,
        sources: Mapping[str, Mapping[str, Any]] | None = None,
        fail_above: float | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sources, self._fail_above, self._now = sources or {}, fail_above, now
        self._totals: dict[str, _Total] = {}

    def observe(self, report: BatchReport) -> list[str]:
        """The warnings of a batch; at most one a stream in ten minutes."""
        letters = _of(report.stream, report.letters)
        total = self._totals.setdefault(report.stream, _Total())
        total.add(report, letters)
        records = letters.num_rows + report.taken
        if letters.num_rows <= SHARE * records or self._now() < total.warned + AGAIN:
            return []
        total.warned = self._now()
        said = _told(letters.num_rows, records)
        causes = "".join(f"{cause}. " for cause in _causes(letters, self._sources.get(report.stream, {})))
        return [
            f"warning: stream {report.stream}: of batch {report.number}, {said}: {_reasons(letters)}. {causes}{_TABLE}."
        ]

    def summary(self) -> list[str]:
        """A line a stream of which records of this run are dead."""
        return [
            f"stream {name}: {_told(total.dead, total.dead + total.taken)}: "
            + "; ".join(f"{count:,} × {reason}" for reason, count in total.reasons.most_common(_REASONS))
            for name, total in self._totals.items()
            if total.dead
        ]

    @property
    def nothing_taken(self) -> bool:
        """Whether there were records in this run, and none of them was an event."""
        return any(total.dead for total in self._totals.values()) and not self._taken

    def check(self) -> None:
        """Raise TooManyDead where more records are dead than the configuration allows."""
        dead = sum(total.dead for total in self._totals.values())
        if self._fail_above is not None and dead > self._fail_above * (dead + self._taken):
            raise TooManyDead(
                f"{_told(dead, dead + self._taken)}, and [dead_letters] fail_above is {100 * self._fail_above:g} %",
                hint=f"what is right has been taken; {_TABLE}",
            )

    @property
    def _taken(self) -> int:
        return sum(total.taken for total in self._totals.values())


def _of(stream: str, letters: pa.Table) -> pa.Table:
    """The letters of a stream's own records (those that it derives have other ones) with which something is wrong."""
    rows = [row for row in letters.to_pylist() if row["stream"] == stream and row["reason"] != NO_VALUE]
    return pa.Table.from_pylist(rows, schema=DEAD)


def _told(dead: int, records: int) -> str:
    return f"{dead:,} of {records:,} records ({share(dead, records)}) could not be used and are dead letters"


def _reasons(letters: pa.Table) -> str:
    """The most frequent reasons, each with the place and the text of the first record."""
    rows = letters.to_pylist()
    counts = Counter(row["reason"] for row in rows)
    found = list[str]()
    for reason, count in counts.most_common(_REASONS):
        first = next(row for row in rows if row["reason"] == reason)
        text = shown(first["raw"])
        found.append(f"{count:,} × {reason}, the first at {first['position']}" + (f": {text}" if text else ""))
    return "; ".join(found)


def _causes(letters: pa.Table, options: Mapping[str, Any]) -> list[str]:
    """The likely cause of all letters, else those of the most frequent reasons, as several things may be wrong."""
    if (whole := cause_of(letters, options)) is not None:
        return [whole]
    counts = Counter(letters["reason"].to_pylist())
    alike = (letters.filter(pc.equal(letters["reason"], reason)) for reason, _ in counts.most_common(_REASONS))
    return list(dict.fromkeys(cause for each in alike if (cause := cause_of(each, options)) is not None))


def shown(raw: Any) -> str:
    """The text of a record, on one line and not too long."""
    text = repr(raw or "")[1:-1]
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def cause_of(letters: pa.Table, options: Mapping[str, Any]) -> str | None:
    """The likely cause of dead letters and the line that cures it, where they look alike enough to say it.

    >>> row = {"stream": "S", "reason": "ts is not a long", "position": "f:0", "raw": '{"ts": "2024-01-01T00:00:00Z"}'}
    >>> cause_of(pa.Table.from_pylist([row], schema=DEAD), {"kind": "json"})
    'ts is probably an ISO time: `ts string` in the app reads it, and `aggregate by ts` takes it'
    """
    rows = letters.slice(0, _LOOKED).to_pylist()
    for tell in (_prefix, _encoded, _separator, _parts, _no_json, _column, _iso, _thousands, _comma):
        found = [cause for row in rows if (cause := tell(row["reason"], row["raw"] or "", options))]
        if found and len(found) * 2 >= len(rows):
            return Counter(found).most_common(1)[0][0]
    return None


def _prefix(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    if reason != NO_RECORD or raw[:1] != "\0" or raw[5:].lstrip()[:1] != "{":
        return None
    number = int.from_bytes(raw[1:5].encode("latin-1", "replace"), "big")
    return (
        f"before each document stands the prefix of a schema registry (byte 0 and the id {number}), which is not read: "
        '`registry = "http://…"` in its table of the configuration reads it'
    )


def _encoded(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    wide = "\0" in raw and reason == NO_RECORD
    other = "utf-8" in reason or ("\ufffd" in raw and reason == NO_RECORD)
    if "encoding" in options or not (wide or other):
        return None
    if options.get("kind") not in ("csv", "json"):
        return "the values are probably no UTF-8, which is read"
    found, name = ("UTF-16", "utf-16") if wide else ("the usual encoding of spreadsheets", "cp1252")
    return f'the files are probably written in {found}: `encoding = "{name}"` in its table of the configuration'


def _parts(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    found = raw.strip()
    part = found in ("{", "}", "},", "[", "]") or re.fullmatch(r'"[^"]+"\s*:.*', found)
    if reason != NO_RECORD or options.get("kind") != "json" or not part:
        return None
    return "a document probably stands on several lines: one JSON object a line is read (`jq -c . FILE` writes that)"


def _separator(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    if options.get("kind") != "csv":
        return None
    columns = re.search(r"Found: 1$|has no column", reason)
    text = raw or reason.partition("it has ")[2]
    signs = [sign for sign in ";\t|" if sign in text and sign != options.get("separator", ",")]
    if columns is None or not signs:
        return None
    shown = repr(signs[0])[1:-1]
    return f'the separator is probably another one: `separator = "{shown}"` in its table of the configuration'


def _no_json(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    if reason != NO_RECORD or options.get("kind") not in ("json", "kafka"):
        return None
    text = raw.lstrip()
    if text.startswith("["):
        return "a line is a list: one JSON object a line is read"
    if text and not text.startswith("{") and options.get("kind") == "json" and re.search(r"[,;\t|]", text):
        return 'the files are probably no JSON lines: `kind = "csv"` reads separated values'
    return None


def _column(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    found = re.match(r"the file has no column (.+); it has (.+)", reason)
    if found is None:
        return None
    lacking, there = (each.split(", ") for each in found.groups())
    pairs = [(name, close) for name in lacking if (close := near(name, there))]
    if not pairs:
        return None
    renamed = ", ".join(f'{name} = "{close}"' for name, close in pairs)
    return f"a column has probably another name: `columns = {{ {renamed} }}` in its table of the configuration"


def _iso(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    found = re.match(r"(\w+) is not a (?:long|int)$", reason)
    if found is None or not _TIME.search(raw):
        return None
    name = found.group(1)
    return f"{name} is probably an ISO time: `{name} string` in the app reads it, and `aggregate by {name}` takes it"


def _thousands(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    found = re.match(r"(\w+) is not a (?:double|float|long|int)$", reason)
    if found is None or not _THOUSANDS.search(f"|{raw}|"):
        return None
    return f"numbers are probably written with a comma between thousands: {_replaced(found.group(1), {',': ''})}"


def _comma(reason: str, raw: str, options: Mapping[str, Any]) -> str | None:
    found = re.match(r"(\w+) is not a (?:double|float|long|int)$", reason)
    written = _COMMA.search(f"|{raw}|")
    if found is None or written is None:
        return None
    points = {".": ""} if written["points"] else {}  # without any, a point may be a decimal one
    return f"numbers are probably written with a decimal comma: {_replaced(found.group(1), {**points, ',': '.'})}"


def _replaced(name: str, by: Mapping[str, str]) -> str:
    text = name
    for one, other in by.items():
        text = f"str:replace({text}, '{one}', '{other}')"
    return f"`{name} string` in the app and `convert({text}, 'double')` in a query before the aggregation read them"


def reasons(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, int, Mapping[str, Any]]]:
    """Letters by stream, reason and for whom they are dead, the most frequent first: stream, reason, how many, and the first of them."""
    counts = Counter((row["stream"], row["reason"], row["by"]) for row in rows)
    first = {(row["stream"], row["reason"], row["by"]): row for row in reversed(rows)}
    return [(stream, reason, count, first[stream, reason, by]) for (stream, reason, by), count in counts.most_common()]
