"""A look at data that nobody has described: what its columns are, which one is the time, how far out of order it is.

The records at the beginning are looked at, as values and not as a schema: a column is a number if
all its values are read as one by the rules of `rollup.plan.reading`.
"""

from __future__ import annotations

import csv
import itertools
import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from rollup.core.calendar import GMT, parse_timestamp
from rollup.core.dialects import parsed_time
from rollup.core.errors import ConfigError, RollupError
from rollup.plan.reading import Unreadable, read
from rollup.plan.time_patterns import letters
from rollup.plan.types import Type
from rollup.sources.content.delimited import Delimited, column, is_record
from rollup.sources.content.encodings import in_utf8, no_text, written_in
from rollup.sources.content.lines import blocks, lines
from rollup.sources.topics.value_kinds import values_of

Values = Sequence[Any]
Signs = tuple[tuple[str, str], ...]
"""What to replace in a text, in turn, and by what."""
MOST = 10_000
"""Records that are looked at."""
_FILES, _HEAD, _BYTES = 20, 1 << 20, 64 << 20
"""Files that are looked at, bytes that say how a file is written, and bytes of one that is not UTF-8."""
_TOPIC, _PATIENCE = "kafka://", 10.0
_ENDINGS = {"parquet": (".parquet",), "csv": (".csv", ".tsv", ".psv"), "json": (".json", ".jsonl", ".ndjson")}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_NULLS = ("NA", "N/A", "NULL", "null", "None", "\\N", "-", "nan", "NaN", "#N/A")
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
"""Numbers whose thousands are apart by commas."""
_COMMA = re.compile(r"\d{1,3}(?:[. \u00a0\u202f'’]\d{3})+(?:,\d+)?|\d+(?:,\d+)?")
"""Numbers with a decimal comma, whose thousands are apart by points or blanks."""
_AMOUNT = re.compile(r"\(?-?[$€£¥₹]?\s?-?(\d[\d., \u00a0\u202f'’]*?)\s?[$€£¥₹%]?\)?")
"""A number with what people write around it; one in brackets is negative."""
_ABBREVIATED = re.compile(r"\d\s*[A-Z]{2,5}$")
"""A time with a zone such as CEST, which means another one elsewhere."""
_WHOLE = re.compile(r"[+-]?\d+")
_LEADING_ZERO = re.compile(r"0\d+")
_TIME_NAME = re.compile(r"time|date|stamp|^ts$|_ts$|_at$|^at$|when|epoch|^day$|zeit|datum|fecha|heure", re.IGNORECASE)
_SUMMED = 28
"""Digits of decimals that are added up."""
_MONEY = re.compile(
    r"price|amount|cost|fee|tax|revenue|balance|paid|payment|salary|betrag|preis|umsatz|kosten|importe|prix|montant",
    re.IGNORECASE,
)
_ODD = 10
"""Of so many values in a column that is called a time, one may be none: its record is a dead letter."""
_ROOM = 3
"""Digits that numbers may have more than those that were seen."""
_CLOCKS = (" HH:mm:ss", " HH:mm", " hh:mm:ss a", " hh:mm a")
_EPOCHS = (("seconds", 1e8, 5e9, Decimal(1000)), ("milliseconds", 1e11, 5e12, Decimal(1)),
           ("microseconds", 1e14, 5e15, Decimal("1e-3")), ("nanoseconds", 1e17, 9e18, Decimal("1e-6")))  # fmt: skip
PATTERNS = (
    "yyyyMMdd'T'HHmmssZ", "yyyyMMdd'T'HHmmss", "yyyyMMddHHmmss", "YYYY-'W'ww-u", "yyyy-DDD", "dd/MMM/yyyy:HH:mm:ss Z",
    "EEE, dd MMM yyyy HH:mm:ss Z", "EEE MMM d HH:mm:ss yyyy", "yyyy-MM-dd HH:mm:ss Z", "MMM d, yyyy h:mm:ss a",
    *(
        f"{day}{clock}"
        for day in ("dd.MM.yyyy", "MM/dd/yyyy", "dd/MM/yyyy", "yyyy/MM/dd", "dd-MM-yyyy", "dd-MMM-yyyy", "dd MMM yyyy",
                    "yyyyMMdd", "dd.MM.yy", "MM/dd/yy", "dd/MM/yy")
        for clock in (" HH:mm:ss", " HH:mm", " hh:mm:ss a", " hh:mm a", "'T'HH:mm:ss", "")
    ),
)  # fmt: skip


@dataclass
class Column:
    """A column: the type of the attribute that takes it, and what was seen.

    Its numbers are texts such as `1.234,5 €` where there are `signs`, which leave a plain number. `large`: whole numbers that
    doubles do not have, as those of ids are, and all that are too long to be added up. `blanks` are texts that stand for no value.
    `padded`: texts with spaces before or behind them, without which they were counted.
    """

    name: str
    type: Type
    nulls: int
    distinct: int
    examples: list[str]
    remarks: list[str] = field(default_factory=list[str])
    signs: Signs = ()
    large: bool = False
    blanks: tuple[str, ...] = ()
    padded: bool = False


@dataclass
class Time:
    """The column that says when an event was, and how it says so.

    `unit` is that of a number, `parts` whether it has a part of that, `pattern` that of a text which is no ISO time, `clock` the column with the time of a day.
    `instants` are milliseconds of the records that were looked at, in their order. `texts`: they are texts; `offsets`: some of these say their zone, and `zones` are all of them. `odd` are values that are no time.
    """

    column: str
    unit: str | None = None
    parts: bool = False
    pattern: str | None = None
    clock: str | None = None
    texts: bool = False
    offsets: bool = False
    zones: tuple[str, ...] = (GMT,)
    doubtful: str | None = None
    odd: Sequence[Any] = ()
    instants: list[int] = field(default_factory=list[int])

    @property
    def ends(self) -> tuple[datetime, datetime]:
        """The first and the last time, in UTC."""
        first, last = (datetime.fromtimestamp(at(self.instants) / 1000, UTC) for at in (min, max))
        return first, last

    @property
    def disorder(self) -> int:
        """By how many milliseconds an event came behind a newer one, at most."""
        newest = itertools.accumulate(self.instants, max)
        return max((before - at for before, at in zip(newest, self.instants, strict=True)), default=0)


@dataclass
class Seen:
    """Data that was looked at: where it is, how it is written, its columns, and its time if it has one."""

    kind: str
    place: Path | None
    options: dict[str, Any]
    records: int
    columns: list[Column]
    time: Time | None
    remarks: list[str]


def look(data: str, how: Mapping[str, Any] | None = None) -> Seen:
    """What a file, a folder of files, a Delta table or a topic (`kafka://server:9092/topic`) holds; `how` are options of
    the topic's source that say what its values are.

    Raises ConfigError with what can be looked at.
    """
    place, folder, others = Path(data), None, list[str]()
    if data.startswith(_TOPIC):
        servers, _, topic = data.removeprefix(_TOPIC).partition("/")
        kind, options = "kafka", {"servers": servers, "topic": topic, **(how or {})}
        found = _messages(servers, topic, options)
    elif "://" in data:
        raise _elsewhere(data.partition("://")[0])
    elif not place.exists():
        raise ConfigError(
            f"there is no {place}", hint="a file, a folder of files, a Delta table, or kafka://server:9092/topic"
        )
    elif (place / "_delta_log").is_dir():
        kind, options, found = "delta", dict[str, Any](), _delta(place)
        folder = place
    else:
        kind, files, options, folder = _files(place, others)
        with _texts(kind, files, options) as texts:
            found = _READ[kind](texts, options)
    records, remarks = found
    remarks += others
    if not records:
        hint = "; ".join(remarks) or "at least one is needed, to see what its columns are"
        raise ConfigError(f"no record could be read in {data}", hint=hint)
    names = list(dict.fromkeys(name for record in records for name in record))
    semicolons = options.get("separator") == ";"
    columns, values = _columns(names, records, kind, semicolons, remarks)
    time = _time(columns, values)
    if time is not None and time.odd:  # such records are dead letters, and say nothing of what the others hold
        odd = set(map(str, time.odd))
        timed = [record for record in records if str(record.get(time.column)) not in odd]
        others, fewer = _columns(names, timed, kind, semicolons, [])
        columns, values = columns | others, values | fewer
    nulls = {text for column in columns.values() for text in column.blanks}
    if kind == "csv" and nulls:
        options["null"] = sorted({"", *nulls})
        for column in columns.values():
            if texts := sorted(nulls.intersection(values[column.name]).difference(column.blanks)):
                column.remarks.append(f"{', '.join(texts)} stand for no value, as in other columns")
    if time is None:
        remarks += (f"{name}: {_no_time(values[name])}" for name in columns if _TIME_NAME.search(name))
    return Seen(kind, folder, options, len(records), [*columns.values()], time, remarks)


def _elsewhere(scheme: str) -> ConfigError:
    """The refusal of data that is neither here nor in a topic; its address may hold a password, and is not repeated."""
    if scheme.partition("+")[0] in ("postgres", "postgresql", "mysql", "mariadb", "sqlite", "jdbc", "mssql", "oracle"):
        return ConfigError(
            f"a table of a database ({scheme}://…) cannot be looked at",
            hint="a file of it can: psql -c \"\\copy (SELECT …) TO 'data.csv' CSV HEADER\"; its changes come through a topic of Debezium",
        )
    return ConfigError(
        f"{scheme}://… cannot be looked at: only files of this machine and topics are",
        hint="look at a copy of some of its files; the `path` of a source may be in an object store",
    )


# Records

Found = tuple[list[dict[str, Any]], list[str]]


def _files(place: Path, remarks: list[str]) -> tuple[str, list[Path], dict[str, Any], Path]:
    """Of which kind the files are, these, oldest first, what a source must be told to find them, and their folder."""
    if place.is_file():
        kind = _kind_of(place) or ("csv" if place.suffix.lower() in ("", ".txt", ".dat", ".log") else None)
        if kind is None:
            raise ConfigError(f"{place.name} is of no known kind", hint="a name that ends in .csv, .json or .parquet")
        return kind, [place], {"glob": _verbatim(place.name)}, place.parent
    every = [f for f in place.rglob("*") if f.is_file() and not f.name.startswith((".", "_"))]
    kinds = [kind for file in every if (kind := _kind_of(file))]
    if not kinds:
        raise ConfigError(
            f"{place} has no files that end in .csv, .json or .parquet",
            hint="or a Delta table's folder; a file whose name ends in .txt, .dat or .log is looked at where it is named itself",
        )
    kind = max(set(kinds), key=lambda each: (kinds.count(each), each))
    files = sorted((f for f in every if _kind_of(f) == kind), key=lambda f: (int(f.stat().st_mtime), str(f)))
    if others := sorted(file.name for file in every if _kind_of(file) != kind):
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        remarks.append(f"{', '.join(others[:3])}{more} were not looked at: they are no {kind} by their names")
    endings = {"." + file.name.partition(".")[2] if "." in file.name else "" for file in files}
    usual = all(f".{kind}" in ending for ending in endings)
    return kind, files, {} if usual else {"glob": f"*{_common(endings)}"}, place


def _kind_of(file: Path) -> str | None:
    name = file.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return next((kind for kind, endings in _ENDINGS.items() if name.endswith(endings)), None)


def _verbatim(name: str) -> str:
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", name)


def _common(endings: set[str]) -> str:
    return endings.pop() if len(endings) == 1 else "*"


@contextmanager
def _texts(kind: str, files: Sequence[Path], options: dict[str, Any]) -> Generator[Sequence[Path]]:
    """Files of text in UTF-8; of others the beginning is copied, and the options say how they are written."""
    head = b"" if kind == "parquet" else next(blocks(str(files[0]), _HEAD), b"")
    if what := no_text(head):
        raise ConfigError(f"{files[0].name} is no {kind}: {what}")
    if b"\r" in head and b"\n" not in head:
        raise ConfigError(
            f"the lines of {files[0].name} end in CR alone", hint="tr '\\r' '\\n' makes lines that are read"
        )
    encoding = written_in(head)
    if encoding is None:
        yield files
        return
    options["encoding"] = encoding
    with TemporaryDirectory(prefix="rollup-look-") as folder:
        copies = [Path(folder) / f"{number}-{file.name}.txt" for number, file in enumerate(files[:_FILES])]
        for file, copy in zip(files, copies, strict=False):
            in_utf8(str(file), encoding, str(copy), _BYTES)
        yield copies


def _csv(files: Sequence[Path], options: dict[str, Any]) -> Found:
    records, remarks = list[dict[str, Any]](), list[str]()
    for file in files[:_FILES]:
        above = _above(file)
        if "separator" not in options:
            options |= _dialect(file, len(above))
        header, separator = options.get("header", True), options.get("separator", ",")
        delimited = Delimited(str(file), header, separator, ("",), len(above) if header else 0)
        names = delimited.names() if header else []
        width = options.pop("width", len(records[0]) if records else 1)
        names = names or [f"c{n + 1}" for n in range(width)]
        rows, dead = delimited.records(len(names), MOST)
        if said := next(filter(None, above), ""):
            many = "a line" if len(above) == 1 else f"{len(above)} lines"
            if not header:
                raise ConfigError(
                    f"{file.name} has {many} above its records, as {said[:60]!r}, and no header",
                    hint=f"take {'it' if len(above) == 1 else 'them'} away: tail -n +{len(above) + 1}",
                )
            remarks.append(
                f"the header of {file.name} is line {len(above) + 1}: {many} above it, as {said[:60]!r}, are no records"
            )
        if dead.num_rows:
            remarks.append(f"{dead.num_rows} lines of {file.name} are no records: {dead['reason'][0].as_py()}")
        named = {column(place): name for place, name in enumerate(names)}
        first = {place: name for place, name in named.items() if name} if header else {}
        kept = [row for row in rows.slice(0, MOST - len(records)).to_pylist() if {**row, **first} != row or not first]
        if again := min(rows.num_rows, MOST - len(records)) - len(kept):
            remarks.append(f"{again} lines of {file.name} are its first line again, and dead letters")
        records += ({named[place]: value for place, value in row.items()} for row in kept)
        if len(records) >= MOST:
            break
    if options.get("separator") == ",":
        del options["separator"]
    return records, remarks


def _above(file: Path) -> list[str]:
    """The lines above the first that can be a header or a record of as many fields as most lines have."""
    text = next(blocks(str(file), _HEAD), b"").decode(errors="replace").split("\n")[:1000]
    found = list[tuple[bool, int, int]]()
    for separator in ",;\t|":
        lines = [next(csv.reader([line.rstrip("\r")], delimiter=separator), []) for line in text]
        widths = [len(fields) for fields in lines]
        usual = max(filter(None, widths), key=widths.count, default=1)
        above = next((at for at, fields in enumerate(lines) if is_record(fields, usual)), 0)
        found.append((usual > 1, -above, usual))
    return text[: -max(found)[1]]


def _dialect(file: Path, above: int) -> dict[str, Any]:
    try:
        found = duckdb.execute(
            "SELECT delimiter, hasheader, len(columns) FROM sniff_csv(?, sample_size = 2000, skip = ?)",
            [str(file), above],
        ).fetchone()
    except duckdb.Error as problem:
        raise ConfigError(f"{file.name} cannot be read as CSV: {str(problem).splitlines()[0]}") from None
    assert found is not None
    separator, header, width = found
    return {"separator": separator, **({} if header else {"header": False, "width": width})}


def _json(files: Sequence[Path], options: dict[str, Any]) -> Found:
    texts = (line for file in files[:_FILES] for batch in lines(str(file)) for line in batch.column(0).to_pylist())
    return _objects(texts, "a file holds one object a line; jq -c '.[]' makes lines of an array")


def _messages(servers: str, topic: str, options: Mapping[str, Any]) -> Found:
    """What the beginning of a topic holds; nothing is committed there."""
    from uuid import uuid4

    from confluent_kafka import Consumer, KafkaException

    if not servers or not topic:
        raise ConfigError("a topic is named by its servers and its name", hint="kafka://server:9092/topic")
    told = list[str]()
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": f"rollup-look-{uuid4().hex}", "auto.offset.reset": "earliest",
         "enable.auto.commit": False, "error_cb": lambda problem: told.append(problem.str()), "log_level": 0}
    )  # fmt: skip
    try:
        if topic not in consumer.list_topics(timeout=_PATIENCE).topics:
            raise ConfigError(f"there is no topic {topic!r} at {servers}")
        consumer.subscribe([topic])
        found = consumer.consume(1, timeout=_PATIENCE)
        while len(found) < MOST and (more := consumer.consume(MOST - len(found), timeout=1)):
            found += more
    except KafkaException as problem:
        hint = told[0] if told else "are the servers right?"
        raise ConfigError(f"{servers} cannot be read: {problem.args[0].str()}", hint=hint) from None
    finally:
        consumer.close()
    values = [value for each in found if each.error() is None and (value := each.value())]
    return _of_values(values, topic, options)


def _of_values(values: list[bytes], topic: str, options: Mapping[str, Any]) -> Found:
    """What values hold that a source with some options reads."""
    groups, unread = values_of(topic, options).read(pa.chunked_array([values], pa.binary()))
    records, remarks, texts = list[dict[str, Any]](), list[str](), list[str]()
    for group in groups:
        if pa.types.is_struct(group.records.type):
            records += (dict(_members(record)) for record in group.records.to_pylist())
            several = {each.name: each.metadata[b"types"].decode() for each in group.records.type if each.metadata}
            remarks += (
                f"{name} holds {types}, which are read as texts: an attribute of numbers takes those that are numbers, "
                "and the rest are dead letters"
                for name, types in several.items()
            )
        else:
            texts += (value.decode(errors="replace") for value in group.records.to_pylist())
    remarks = list(dict.fromkeys(remarks))
    if unread:
        remarks.append(f"{len(unread)} messages hold no record ({unread[0].reason})")
    if any(text.startswith("\0") for text in texts):
        remarks.append("values begin with byte 0, as those that a schema registry describes (--registry http://…)")
    more, wrong = _objects(
        texts,
        'the value of a message is one object; of lines `values = "csv"` or `"text"` in the source says what they are',
    )
    return records + more, remarks + wrong


def _objects(texts: Iterable[str], cure: str) -> Found:
    """The records of texts of JSON, and a remark where one is no object."""
    records, wrong = list[dict[str, Any]](), 0
    for line in texts:
        try:
            found = json.loads(line, object_pairs_hook=_first)
        except ValueError:
            found = None
        if isinstance(found, dict):
            records.append(dict(_members(found)))
        elif line.strip():
            wrong += 1
        if len(records) >= MOST:
            break
    return records, [f"{wrong} lines are no JSON object ({cure})"] if wrong else []


def _first(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The members of an object; of those of one name the first counts.

    >>> _first([("a", 1), ("a", 2)])
    {'a': 1}
    """
    found = dict[str, Any]()
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def _members(record: Mapping[str, Any], before: str = "", depth: int = 3) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict) and depth and value and "." not in name:
            yield from _members(value, f"{before}{name}.", depth - 1)
        else:
            yield before + name, value


def _parquet(files: Sequence[Path], options: dict[str, Any]) -> Found:
    import pyarrow.parquet as pq

    records = list[dict[str, Any]]()
    for file in files[:_FILES]:
        try:
            with pq.ParquetFile(file) as opened:
                for batch in opened.iter_batches(MOST - len(records)):
                    records += batch.to_pylist()
                    break
        except (OSError, ValueError) as problem:
            raise ConfigError(f"{file.name} cannot be read as Parquet: {problem}") from None
        if len(records) >= MOST:
            break
    return records, []


def _delta(place: Path) -> Found:
    from deltalake import DeltaTable

    try:
        return DeltaTable(place).to_pyarrow_dataset().head(MOST).to_pylist(), []
    except Exception as problem:  # the library has no common class for its refusals
        raise ConfigError(f"{place} cannot be read as a Delta table: {problem}") from None


_READ: Mapping[str, Callable[[Sequence[Path], dict[str, Any]], Found]] = {
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}


# Columns


def _columns(
    names: Sequence[str], records: Sequence[Mapping[str, Any]], kind: str, semicolons: bool, remarks: list[str]
) -> tuple[dict[str, Column], dict[str, Values]]:
    """The columns of records and their values; what no attribute takes is a remark."""
    columns, values = dict[str, Column](), dict[str, Values]()
    for name in names:
        given = [record.get(name) for record in records]
        there = [value for value in given if value is not None]
        if there and all(isinstance(value, (dict, list)) for value in there):
            path = kind in ("json", "kafka") and re.fullmatch(r"[\w.]+", name)
            cure = f'; `columns = {{ x = "$.{name}[0]" }}` reads one of them' if path else ""
            remarks.append(f"{name} holds lists or objects, which no attribute takes{cure}")
            continue
        if there or name:
            columns[name], values[name] = _column(name, given, semicolons)
    return columns, values


def _column(name: str, given: Values, semicolons: bool = False) -> tuple[Column, Values]:
    """A column and its values, with null where a text stands for none."""
    there = [value for value in given if value is not None]
    kind, signs = _type(there, semicolons)
    words = tuple(word for word in _NULLS if word in there)
    bare, bare_signs = _type([v for v in there if v not in words], semicolons) if words else (kind, signs)
    if bare is not kind:
        kind, signs = bare, bare_signs
        words = tuple(word for word in words if signs or not _fits(word, kind))
    else:
        words = ()
    values = [None if value in words else value for value in given]
    distinct = {str(value).strip() for value in values if value is not None}
    column = Column(
        name, kind, sum(value is None for value in values), len(distinct),
        [value for value in dict.fromkeys(map(_example, there)) if value not in words][:3], signs=signs, blanks=words,
    )  # fmt: skip
    numbers = [_plain(value, signs) for value in values if value is not None]
    exact = _exact(name, numbers) if kind is Type.DOUBLE else None
    large = kind is Type.LONG and any(abs(read(value, kind)) > 2**53 for value in values if value is not None)
    column.large = large or (exact is not None and exact.digits[0] > _SUMMED)
    if column.large:
        column.remarks.append("too large to be added up")
    if signs:
        whole = all(_fits(number, Type.LONG) for number in numbers)
        column.type = Type.LONG if whole else Type.DOUBLE if exact in (None, Type.STRING) else exact
        longest = max((value for value in values if value is not None), key=len)
        column.remarks.append(f"numbers in texts: {longest} is read as {_plain(longest, signs).strip()}")
        ways = [_signs([value for value in values if value is not None], way) for way in (True, False)]
        if ways[0] != ways[1]:
            column.remarks.append("CHECK THIS: the comma may stand for thousands or for decimals")
    elif exact is not None:
        column.type = exact
        said = "exact; write double for a number that is measured"
        column.remarks.append("more digits than a number has" if exact is Type.STRING else said)
    elif any(isinstance(value, Decimal) for value in there):
        column.remarks.append("decimals of too many digits to be added up exactly, read as double")
    if kind is Type.STRING and any(isinstance(value, str) and value != value.strip() for value in values):
        column.padded = True
        column.remarks.append("spaces around values make them other values; str:trim takes them away")
    if words:
        stand = "stands" if len(words) == 1 else "stand"
        column.remarks.append(f"{', '.join(map(repr, words))} {stand} for no value")
    if not there:
        column.remarks.append("no value was seen")
    return column, values


def _example(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _type(values: Values, semicolons: bool = False) -> tuple[Type, Signs]:
    """The narrowest type that takes all values, and what to replace in texts of numbers before they are read."""
    if not values:
        return Type.STRING, ()
    if all(isinstance(value, bool) or str(value).lower() in ("true", "false") for value in values):
        return Type.BOOL, ()
    if any(isinstance(value, str) and _LEADING_ZERO.fullmatch(value) for value in values):
        return Type.STRING, ()
    if all(isinstance(value, date) for value in values):
        return Type.TIMESTAMP if any(isinstance(value, datetime) for value in values) else Type.DATE, ()
    for kind in (Type.LONG, Type.DOUBLE):
        if all(_fits(value, kind) for value in values):
            return kind, ()
    signs = _signs(values, semicolons)
    return (Type.STRING, ()) if signs is None else (Type.DOUBLE, signs)


def _signs(values: Values, semicolons: bool = False) -> Signs | None:
    """What to replace in texts so that plain numbers are left; None where they are no numbers.

    In `1,000` the comma may stand for thousands or for decimals, as it does where fields are apart by `semicolons`.

    >>> _signs(["1.234,50 €", "-0,99 €"])
    (('€', ''), (' ', ''), ('.', ''), (',', '.'))
    >>> _signs(["$1,234.50", "($7)"])
    (('$', ''), ('(', '-'), (')', ''), (',', ''))
    >>> _signs(["1,000", "12"]), _signs(["1,000", "12"], semicolons=True)
    (((',', ''),), (('.', ''), (',', '.')))
    """
    written = [_AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None for value in values]
    bodies = [found[1] for found in written if found]
    points, commas = (all(map(form.fullmatch, bodies)) for form in (_GROUPED, _COMMA))
    if not all(written) or not (points or commas):
        return None
    there = {sign for value in values for sign in value if not sign.isdigit()} - set("-.,")
    comma = commas and (not points or ((semicolons or "€" in there) and not there & set("$£¥₹")))
    marks = sorted(there, key=lambda sign: ("$€£¥₹%(".find(sign) < 0, sign))
    return (
        *((sign, "-" if sign == "(" else "") for sign in marks),
        *([(".", ""), (",", ".")] if comma and any("," in body or "." in body for body in bodies) else []),
        *([(",", "")] if not comma and any("," in body for body in bodies) else []),
    )


def _plain(value: Any, signs: Signs) -> Any:
    """A value, or the number that a text has.

    >>> _plain("1.234,50", ((".", ""), (",", ".")))
    '1234.50'
    """
    for sign, by in signs:
        value = value.replace(sign, by)
    return value


def _exact(name: str, there: Values) -> Type | None:
    """The decimal for numbers that are decimals already, or look like money: by their name, or two digits behind each point.

    Whole numbers here are too large for a long: a decimal too, or, of more digits than that has, names of things.
    """
    if all(isinstance(value, int | str) and _WHOLE.fullmatch(str(value).strip()) for value in there):
        digits = max(len(str(value).strip().lstrip("+-")) for value in there)
        return next((Type.decimal(most, 0) for most in (28, 38) if digits + _ROOM <= most), Type.STRING)
    written = [value if isinstance(value, Decimal) else Decimal(str(value).strip().replace("_", "")) for value in there]
    if not all(number.is_finite() for number in written):
        return None
    scales = [max(0, -int(number.as_tuple().exponent)) for number in written]
    scale, whole = max(scales), max(number.adjusted() for number in written) + 1
    stored = all(isinstance(value, Decimal) for value in there)
    texts = all(isinstance(value, str) for value in there) and set(scales) == {2}
    if not stored and not texts and not (scale <= 4 and _MONEY.search(name)):
        return None
    scale = scale if stored else max(scale, 2)
    precision = next((most for most in (18, 28) if max(whole, 1) + _ROOM + scale <= most), None)
    return None if precision is None else Type.decimal(precision, scale)


def _fits(value: Any, kind: Type) -> bool:
    if isinstance(value, (Decimal, float)) and kind is Type.LONG:
        return False
    try:
        return read(value, kind) is not None
    except Unreadable:
        return False


# The time


def _time(columns: Mapping[str, Column], values: Mapping[str, Values]) -> Time | None:
    """The best column for the time: one that is called so before others, a time before a text before a number."""
    found = [time for name in columns if (time := _as_time(name, values[name]))]
    named = [time for time in found if _TIME_NAME.search(time.column) or time.unit != "seconds"]
    best = min(named, key=lambda t: (not _TIME_NAME.search(t.column), t.unit is not None), default=None)
    if best is None:
        return None
    if best.unit is None and all(at % 86_400_000 == 0 for at in best.instants):
        _with_clock(best, columns, values)
    return best


def _with_clock(time: Time, columns: Mapping[str, Column], values: Mapping[str, Values]) -> None:
    """A day whose time of day stands in a column of its own."""
    for name in columns:
        clocks = values[name]
        if name == time.column or not any(isinstance(clock, str) and ":" in clock for clock in clocks):
            continue
        both = [
            None if d is None or c is None else f"{d} {c}" for d, c in zip(values[time.column], clocks, strict=True)
        ]
        for clock in _CLOCKS:
            pattern = (time.pattern or "yyyy-MM-dd") + clock
            instants = _by_pattern(both, pattern)
            if instants is not None:
                time.clock, time.pattern, time.instants = name, pattern, [at for at in instants if at is not None]
                return


def _as_time(name: str, given: Values) -> Time | None:
    there = [value for value in given if value is not None]
    if not there or any(isinstance(value, bool) for value in there):
        return None
    most = len(there) // _ODD if _TIME_NAME.search(name) else 0
    if all(isinstance(value, date) for value in there):
        return Time(name, instants=[read(value, Type.LONG) for value in there])
    if all(isinstance(value, str) for value in there) and (time := _as_text(name, there, most)):
        return time
    units = [_unit(value) for value in there]
    for unit, *_, factor in _EPOCHS:
        if units.count(unit) >= len(there) - most and units.count(unit):
            fitting = [Decimal(str(value)) for value, found in zip(there, units, strict=True) if found == unit]
            parts = not all(_fits(value, Type.LONG) for value, found in zip(there, units, strict=True) if found == unit)
            if parts and unit != "seconds":
                return None
            odd = [value for value, found in zip(there, units, strict=True) if found != unit]
            return Time(name, unit=unit, parts=parts, odd=odd, instants=[int(number * factor) for number in fitting])
    return None


def _unit(value: Any) -> str | None:
    """The unit of a number that may be an instant; None of any other value.

    >>> _unit(1_720_000_000), _unit("1720000000000"), _unit("NaN"), _unit(7)
    ('seconds', 'milliseconds', None, None)
    """
    if not _fits(value, Type.DOUBLE) or not (number := Decimal(str(value).strip().replace("_", ""))).is_finite():
        return None
    return next((unit for unit, low, high, _ in _EPOCHS if low <= number < high), None)


def _as_text(name: str, there: Sequence[str], most: int) -> Time | None:
    """A column of texts as the time, where at most so many of them are none."""
    stamps = _stamps(there, most)
    if stamps is not None:
        zoned = any(re.search(r"(Z|[+-]\d\d:?\d\d| [A-Z]\w+/\w+)$", value) for value in there)
        return Time(name, texts=True, offsets=zoned, zones=_zones(there, stamps), **_split(there, stamps))
    likely = (pattern for pattern in PATTERNS if _by_pattern(there[:200], pattern, most) is not None)
    fitting = {pattern: found for pattern in likely if (found := _by_pattern(there, pattern, most)) is not None}
    if not fitting:
        return None
    best = max(fitting, key=lambda pattern: sum(at is not None for at in fitting[pattern]))
    other = next((p for p in fitting if {p[:2], best[:2]} == {"MM", "dd"} and p[2:3] == best[2:3] and p != best), None)
    doubtful = f"{best!r} and {other!r} both fit" if other else None
    return Time(name, texts=True, pattern=best, offsets="Z" in best, doubtful=doubtful, **_split(there, fitting[best]))


def _zones(there: Sequence[str], stamps: Sequence[int | None]) -> tuple[str, ...]:
    """The zones of ISO texts, in order; one without an offset is of UTC until somebody says another zone.

    >>> _zones(["2026-03-01T10:00:00+01:00", "2026-03-01", "x"], [1772355600000, 1772323200000, None])
    ('+00:00', '+01:00')
    """
    given = (value for value, at in zip(there, stamps, strict=True) if at is not None)
    return tuple(sorted({parse_timestamp(value)[1] for value in given}))


def _split(there: Values, instants: Sequence[int | None]) -> dict[str, Any]:
    return {
        "instants": [at for at in instants if at is not None],
        "odd": [value for value, at in zip(there, instants, strict=True) if at is None],
    }


def _no_time(there: Values) -> str:
    """Why a column that is called a time is none."""
    given = [value for value in there if value is not None]
    units = sorted({unit for value in given if (unit := _unit(value))})
    if len(units) > 1:
        return f"its numbers are of several units, {' and '.join(units)}; write all in milliseconds"
    first = next((value for value in given if not isinstance(value, str) or _stamps([value], 0) is None), None)
    if first is None:
        return "it has no value"
    cure = "; write an offset, or a name such as Europe/Berlin, for its zone" if _ABBREVIATED.search(str(first)) else ""
    return f"{first} is in no form that is known{cure}"


def _stamps(there: Iterable[str], most: int) -> list[int | None] | None:
    """The instants of ISO texts; None where more than so many of them are none."""
    found, odd = list[int | None](), 0
    for value in there:
        try:
            found.append(parse_timestamp(value)[0])
        except RollupError:
            found.append(None)
            odd += 1
            if odd > most:
                return None
    return found if odd < len(found) else None


def _by_pattern(values: Values, pattern: str, most: int = 0) -> list[int | None] | None:
    """The instants of texts in a pattern; None where more than so many of them are not written so."""
    there = [value for value in values if value is not None]
    rows = duckdb.execute(
        f"SELECT epoch_ms({parsed_time('unnest(?::VARCHAR[])', letters(pattern))})", [there]
    ).fetchall()
    odd = sum(at is None for (at,) in rows)
    return None if odd > most or odd == len(rows) else [at for (at,) in rows]
