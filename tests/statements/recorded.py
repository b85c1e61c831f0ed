"""Recorded cases of streaming SQL, UQL and StreamCruncher as the blocks of one app, each with streams of its own.

One source feeds them all: its rows say whose they are. What a case has given must be the recorded rows that leave before
the input ends, which it does not in a job. Cases stay out (`None`) that an app has no words for: times beside the events'
own, tables, punctuations, settings of one query, refusals.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rollup.lang.uql.catalog import Catalog, Kind
from rollup.lang.uql.chain import Chain
from rollup.lang.uql.egress import lines
from rollup.lang.uql.ingress import Ingress, instant
from rollup.lang.uql.plan import plan
from tests.conformance.compare import Case, same_rows

_SLOTS = {"int": 6, "long": 6, "double": 4, "string": 4, "bool": 2}
"""How many columns of each type a row of the source has."""
COLUMNS = {"target": "string", "at": "long"} | {f"{kind[0]}{i}": kind for kind, n in _SLOTS.items() for i in range(n)}
FEED = "Feed"
_TIME = "time_of_event"
Rows = list[list[Any]]


@dataclass(frozen=True)
class Told:
    """A case in the app: its streams with their columns, its block, its events as (ms, stream, values), its answer."""

    name: str
    streams: dict[str, dict[str, str]]
    block: str
    out: str
    events: list[tuple[int, str, list[Any]]]
    wanted: Rows
    ordered: bool
    first_only: bool = False
    """The answer is what was given first: what comes after the recording has ended is not compared."""

    def compare(self, found: Rows) -> None:
        """Raises AssertionError where what was given is not the answer."""
        shown = found[: len(self.wanted)] if self.first_only else found
        assert same_rows(self.wanted, shown, self.ordered), f"{self.name}: wanted {self.wanted}\nfound {found}"


def app(cases: Sequence[Told]) -> str:
    """The text of the app."""
    parts = [f"@time('at') define stream {FEED} ({', '.join(f'{n} {k}' for n, k in COLUMNS.items())});"]
    for case in cases:
        for stream, columns in case.streams.items():
            declared = ", ".join(f"{name} {kind}" for name, kind in (*columns.items(), (_TIME, "long")))
            items = ", ".join(f"{slot} as {name}" for slot, name in zip(_slots(columns), columns, strict=True))
            parts.append(f"@time('{_TIME}') define stream {stream} ({declared});")
            parts.append(f"from {FEED}[target == '{stream}'] select {items}, at as {_TIME} insert into {stream};")
        parts.append(case.block)
    return "\n".join(parts)


def feed(cases: Sequence[Told]) -> list[dict[str, Any]]:
    """The rows of the source: the events of all cases by time, each case's in its order; and a last one, a year later."""
    found = list[tuple[tuple[int, int, int], dict[str, Any]]]()
    for place, case in enumerate(cases):
        clock = 0
        for number, (at, stream, values) in enumerate(case.events):
            clock = max(clock, at)
            row = dict(zip(_slots(case.streams[stream]), values, strict=True))
            found.append(((clock, place, number), {"target": stream, "at": at, **row}))
    found.sort(key=lambda pair: pair[0])
    rows = [row for _, row in found]
    return [*rows, {"target": "nobody", "at": max(row["at"] for row in rows) + 366 * 86_400_000}]


def _slots(columns: dict[str, str]) -> list[str]:
    used, slots = Counter[str](), list[str]()
    for kind in columns.values():
        slots.append(f"{kind[0]}{used[kind]}")
        used[kind] += 1
    return slots


def _fit(columns: dict[str, str]) -> bool:
    return all(n <= _SLOTS.get(kind, 0) for kind, n in Counter(columns.values()).items())


def _renamed(text: str, names: Iterable[tuple[str, str]]) -> str:
    for old, new in names:
        text = re.sub(rf"\b{re.escape(old)}\b", new, text, flags=re.IGNORECASE)
    return text


# UQL

_UQL = {Kind.TEXT: "string", Kind.BOOLEAN: "bool", Kind.INTEGER: "long", Kind.FLOAT: "double"}


def uql(case: Case) -> Told | None:
    """A case of UQL: the first time of its rows is that of the events."""
    if "expected" not in case or "tolerance" in case or "input_times_ms" in case or "refused_rows" in case:
        return None
    plans = plan(case["query"], Catalog.of(case["schema"]))
    table, stream, out = plans[0].table, f"U_{case['name']}", f"Out_U_{case['name']}"
    times = [field.name for field in table.fields if field.kind is Kind.TIME]
    columns = {f.name: str(_UQL.get(f.kind)) for f in table.fields if f.kind is not Kind.TIME}
    if len(times) != 1 or not _fit(columns) or re.search(r"\\\s*$", case["query"], re.MULTILINE):
        return None
    ingress = Ingress(table, plans[0].texts)
    rows, bad = ingress.read("".join(f"{row}\n" for row in case["input_rows"]).encode())
    if bad or any(micros % 1000 for micros in rows.column(times[0]).to_pylist()):
        return None
    chain = Chain(plans)
    _, given = chain.step(chain.start(), rows, 0)
    kinds = [output.kind for output in plans[-1].outputs]
    printed = csv.reader(io.StringIO(lines(given, plans[-1].outputs).decode(), newline=""), delimiter="|")
    wanted = [[_value(text, kind) for text, kind in zip(row, kinds, strict=True)] for row in printed]
    source = plans[0].query.source.text
    query = _renamed(case["query"], [(source, stream), (plans[-1].query.target.text, out), (times[0], "rowtime")])
    events = [
        (at // 1000, stream, list(values))
        for at, *values in zip(rows.column(times[0]).to_pylist(), *(rows.column(n).to_pylist() for n in columns), strict=True)
    ]  # fmt: skip
    return Told(
        stream, {stream: columns}, f"@lang('uql') {{ {query} }}", out, events, wanted, case["order"] == "listed"
    )


def _value(text: str, kind: Kind) -> Any:
    if kind is Kind.TEXT:
        return text
    if not text:
        return None
    match kind:
        case Kind.INTEGER:
            return int(text)
        case Kind.FLOAT:
            return float(text)
        case Kind.TIME:
            return instant(text) // 1000
        case Kind.BOOLEAN:
            return text == "true"
        case _:
            return round(float(text) * 1_000_000)


# streaming SQL

_SQL = {"INTEGER": "int", "BIGINT": "long", "DOUBLE": "double", "VARCHAR": "string", "BOOLEAN": "bool"}


def sql(case: Case) -> Told | None:
    """A case of streaming SQL over streams whose rowtime may only rise."""
    if "expected_emitted_when" not in case or case["tables"] or case.get("expected_subset"):
        return None
    if any("row" not in event or "table" in event for event in case["input_events"]):
        return None
    if re.search(r"STREAM\s+\*", case["query"]):  # the columns are others there
        return None
    streams, names = dict[str, dict[str, str]](), dict[str, str]()
    for name, declared in case["schema"].items():
        first, *rest = [column.strip() for column in declared.split(",")]
        columns = {column.split()[0]: str(_SQL.get(column.split()[1])) for column in rest}
        if first != "rowtime TIMESTAMP (monotonic increasing)" or "monotonic" in ",".join(rest) or not _fit(columns):
            return None
        names[name] = f"S_{case['name']}_{name}"
        streams[names[name]] = columns
    out = f"Out_S_{case['name']}"
    query = _renamed(case["query"].rstrip().rstrip(";"), names.items())
    pairs = zip(case["expected"], case["expected_emitted_when"], strict=True)
    wanted = [[_moment(value) for value in row] for row, when in pairs if when.startswith("event")]
    events = [(_moment(e["row"][0]), names[e["stream"]], e["row"][1:]) for e in case["input_events"]]
    return Told(out, streams, f"@lang('sql', into='{out}') {{ {query} }}", out, events, wanted, False)


def _moment(value: Any) -> Any:
    """A time as milliseconds, as streams have it."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", value):
        return int(datetime.fromisoformat(value).replace(tzinfo=UTC).timestamp() * 1000)
    return value


# StreamCruncher

_CRUNCHER = {"str": "string", "int": "int", "long": "long", "double": "double"}


def cruncher(case: Case) -> Told | None:
    """A case of StreamCruncher whose events come at their own time."""
    if any(word in case for word in ("settings", "tables_sql", "expected_property", "expected_error")):
        return None
    if re.search(r"select\s+\*|\.\*", case["query"]) or any("rows" not in step for step in case["input"]):
        return None
    streams, names, places = dict[str, dict[str, str]](), list[tuple[str, str]](), dict[str, int]()
    for stream in case["schema"]:
        columns = {c["name"]: str(_CRUNCHER.get(c["type"])) for c in stream["columns"] if c["type"] != "ts"}
        own, time = f"C_{case['name']}_{stream['name']}", stream["timestamp_column"]
        if not _fit(columns) or len(columns) + 1 != len(stream["columns"]):
            return None
        places[own] = [c["name"] for c in stream["columns"]].index(time)
        streams[own] = columns
        names += [(stream["name"], own), (time, "rowtime")]
    events = list[tuple[int, str, list[Any]]]()
    for step in case["input"]:
        own, place = dict(names)[step["stream"]], places[dict(names)[step["stream"]]]
        events += [(step["at_ms"], own, [*row[:place], *row[place + 1 :]]) for row in step["rows"]]
        if any(row[place] != step["at_ms"] for row in step["rows"]):
            return None
    out = f"Out_C_{case['name']}"
    kinds = ", ".join(f"c{i} {_CRUNCHER[kind]}" for i, kind in enumerate(case["result_column_types"]))
    block = (
        f"define stream {out} ({kinds});\n@lang('streamcruncher', into='{out}') {{ {_renamed(case['query'], names)} }}"
    )
    wanted = [row for batch in case["expected"] for row in batch["rows"]]
    return Told(out, streams, block, out, events, wanted, False, first_only=True)


LANGUAGES: dict[str, Callable[[Case], Told | None]] = {"uql": uql, "calcite": sql, "streamcruncher": cruncher}
