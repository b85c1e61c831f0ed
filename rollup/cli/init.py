"""`rollup describe` and `rollup init`: what data holds, and an app and a configuration for it that run as they are."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.cli.console import console
from rollup.core.errors import ConfigError

if TYPE_CHECKING:
    from rollup.sources.looking import Column, Seen, Time

_DATA = Annotated[
    str,
    typer.Argument(
        help="A CSV, JSON or Parquet file, a folder of them, a Delta table, or a topic, as kafka://server:9092/topic."
    ),
]
_REGISTRY = Annotated[str, typer.Option(help="Of a topic: the address of the schema registry.")]
_SCHEMA = Annotated[str, typer.Option(help="Of a topic in Avro without a registry: the file of its schema.")]
_MOST_KEYS, _MOST_MEASURES = 2, 4
_MINUTE, _DAY = 60_000, 86_400_000
_STORED = "yyyy-MM-dd HH:mm:ss.SSS"
_ZONED = _STORED + "Z"
_TO_MS = {"seconds": "{} * 1000L", "microseconds": "{} / 1000L", "nanoseconds": "{} / 1000000L"}


def describe(data: _DATA, registry: _REGISTRY = "", schema_file: _SCHEMA = "") -> None:
    """Say what data holds: columns, types, the time with its unit and zone, keys, disorder, separators."""
    from rich.table import Table

    from rollup.sources.looking import look

    seen = look(data, _values(registry, schema_file))
    print(f"{data}: {seen.kind}, {seen.records:,} records looked at{_options(seen)}")
    table = Table("column", "type", "no value", "different", "for example", "")
    for each in seen.columns:
        remarks = "; ".join([*_of_time(seen.time, each.name), *each.remarks])
        table.add_row(
            _shown(each.name),
            each.type,
            str(each.nulls),
            str(each.distinct),
            ", ".join(map(_shown, each.examples)),
            remarks,
        )
    console().print(table)
    for line in (*_about_time(seen), *seen.remarks):
        print(_plain(line))


def init(
    data: _DATA,
    into: Annotated[Path, typer.Option(help="The folder for the app and the configuration.")] = Path(),
    name: Annotated[str, typer.Option(help="The name of the stream; that of the data without it.")] = "",
    zone: Annotated[str, typer.Option(help="The zone of your days, as Europe/Berlin.")] = "",
    registry: _REGISTRY = "",
    schema_file: _SCHEMA = "",
    sql: Annotated[bool, typer.Option("--sql", help="Write the app in SQL.")] = False,
) -> None:
    """Write an app and a configuration for data, with a reason for each choice. Nothing that exists is overwritten."""
    from rollup.conf import load
    from rollup.sources.looking import look

    seen = look(data, _values(registry, schema_file))
    if seen.time is None:
        kinds = ", ".join(f"{_shown(each.name)} {each.type}" for each in seen.columns)
        known = f"a time in ISO form, in milliseconds, or as 05.01.2018 13:04; its columns are {kinds}"
        if seen.kind == "csv" and len(seen.columns) == 1:
            known = (
                f"its lines have one field each: write another separator, or JSON lines, as jq and Vector do; {known}"
            )
        raise ConfigError(
            f"no column of {data} says when an event was", hint="; ".join([*map(_plain, seen.remarks), known])
        )
    draft = _Draft(
        seen, seen.time, _word(name or Path(data).name.partition(".")[0]), zone, _Sql() if sql else _SiddhiQl()
    )
    app, conf = into / draft.file, into / f"{draft.name.lower()}.toml"
    for file in (app, conf):
        if file.exists():
            raise ConfigError(f"{file} exists", hint="another --name or --into")
    if seen.place and "glob" not in seen.options and into.resolve().is_relative_to(seen.place.resolve()):
        raise ConfigError(f"the tables would stand among the data in {data}", hint="another folder by --into")
    into.mkdir(parents=True, exist_ok=True)
    app.write_text("\n".join(draft.app()) + "\n")
    conf.write_text("\n".join(draft.conf(into)) + "\n")
    load(conf).program()
    print(f"wrote {app} and {conf}; read them, then")
    print(f"  rollup run {conf} --once")
    print(f'  rollup query {conf} "{draft.question()}"')


def _values(registry: str, schema_file: str) -> dict[str, str]:
    """Options of a source that say what the values of a topic are."""
    said = {"registry": registry, "schema_file": schema_file and str(Path(schema_file).resolve())}
    return {name: value for name, value in said.items() if value}


class _SiddhiQl:
    """How an app is written in SiddhiQL."""

    ending = "siddhi"

    def text(self, text: str) -> str:
        return f'"{text}"'

    def stream(self, name: str, attributes: Mapping[str, str]) -> str:
        return f"define stream {name} ({', '.join(map(' '.join, attributes.items()))});"

    def derived(self, name: str, source: str, shown: Iterable[str]) -> str:
        return f"from {source} select {', '.join(shown)} insert into {name};"

    def aggregation(
        self, name: str, shown: Iterable[str], keys: Sequence[str], time: str, levels: Sequence[str], late: bool
    ) -> Iterator[str]:
        if late:
            yield "@OutOfOrder('correct')"
        yield f"define aggregation {name}Agg from {name}"
        yield f"select {', '.join(shown)}"
        if keys:
            yield f"group by {', '.join(keys)}"
        yield f"aggregate by {time} every {' ... '.join(levels)};"


class _Sql(_SiddhiQl):
    """How an app is written in SQL."""

    ending = "sql"

    def text(self, text: str) -> str:
        return "'{}'".format(text.replace("'", "''"))

    def stream(self, name: str, attributes: Mapping[str, str]) -> str:
        called = {"string": "VARCHAR", "long": "BIGINT", "bool": "BOOLEAN"}
        listed = (f"{attribute} {called.get(kind, kind.upper())}" for attribute, kind in attributes.items())
        return f"CREATE STREAM {name} ({', '.join(listed)});"

    def derived(self, name: str, source: str, shown: Iterable[str]) -> str:
        return f"CREATE STREAM {name} AS SELECT {', '.join(shown)} FROM {source};"

    def aggregation(
        self, name: str, shown: Iterable[str], keys: Sequence[str], time: str, levels: Sequence[str], late: bool
    ) -> Iterator[str]:
        yield f"CREATE AGGREGATION {name}Agg AS"
        yield f"SELECT {', '.join(shown)}"
        yield f"FROM {name}"
        ends = "\nWITH (late = 'correct');" if late else ";"
        yield f"GROUP BY {', '.join((*keys, f'ROLLUP TIME {time} EVERY'))} {' TO '.join(levels).upper()}{ends}"


class _Draft:
    """The texts for data whose time is known: which columns are keys, which are added up, and why."""

    def __init__(self, seen: Seen, time: Time, name: str, zone: str, form: _SiddhiQl) -> None:
        self.seen, self.time, self.name, self.zone, self.form = seen, time, name, zone, form
        self.file = f"{name.lower()}.{form.ending}"
        self.names = _attributes([each.name for each in seen.columns])
        mine = {time.column, time.clock}
        rest = [each for each in seen.columns if each.name not in mine]
        texts = [each for each in rest if each.type in ("string", "bool") and each.distinct > 1]
        known = sorted((each for each in texts if each.distinct <= max(2, seen.records // 2)), key=lambda e: e.distinct)
        self.keys, self.more = known[:_MOST_KEYS], known[_MOST_KEYS:]
        numbers = [each for each in rest if each.type.numeric and not (_is_id(each.name) or each.large)]
        self.measures, self.left = numbers[:_MOST_MEASURES], numbers[_MOST_MEASURES:]
        ids = [each for each in rest if each.type == "long" and each not in numbers]
        self.counted = next((each for each in (*texts, *ids) if each not in known), None)
        self.unused = [each for each in rest if each not in (*known, *numbers, self.counted)]
        self.trimmed = [each for each in (*self.keys, self.counted) if each is not None and each.padded]
        written = bool(self.trimmed) or any(each.signs for each in self.measures)
        self.derived = bool(time.unit in _TO_MS or time.pattern or written)

    @property
    def source(self) -> str:
        """The stream that the source feeds."""
        return f"{self.name}Raw" if self.derived else self.name

    def app(self) -> Iterator[str]:
        yield f"-- {self.seen.records:,} records were looked at; each line below says why it is as it is."
        yield from (f"-- {_plain(remark)}." for remark in self.seen.remarks)
        yield self.form.stream(self.source, {self.names[each.name]: self._type(each) for each in self.seen.columns})
        yield ""
        if self.derived:
            yield from self._derivation()
        yield from (f"-- {line}" for line in _about_time(self.seen))
        if not self.keys:
            yield "-- No column has few enough different values to be a key: all events are one group."
        else:
            yield f"-- Keys: {', '.join(f'{_shown(e.name)} ({e.distinct} different values)' for e in self.keys)}."
        said = (
            ("could be keys, too", self.more),
            ("could be added up, too", self.left),
            ("stand in no aggregate: `max(…)`, `distinctCount(…)` and the like show them", self.unused),
        )
        for word, columns in said:
            if columns:
                yield f"-- {', '.join(_shown(each.name) for each in columns)} {word}."
        if self.time.disorder:
            yield "-- Events come out of order: each counts in its own bucket, also in one that is stored."
        keys, time = [self.names[each.name] for each in self.keys], self.names[self.time.column]
        late = bool(self.time.disorder)
        yield from self.form.aggregation(self.name, self._selected(), keys, time, self._levels(), late)

    def _type(self, column: Column) -> str:
        if column.name == self.time.column:
            exact = "decimal(20, 6)" if self.time.parts else "long"  # a time in the file is read as milliseconds
            return "string" if self.time.texts else exact
        return "string" if column.signs else str(column.type)

    def _derivation(self) -> Iterator[str]:
        shown = list[str]()
        for each in self.seen.columns:
            name = self.names[each.name]
            if each.name == self.time.column and self.time.unit in _TO_MS:
                yield f"-- {_shown(each.name)} is in {self.time.unit}; times are milliseconds."
                ms = f"convert({name} * 1000, 'long')" if self.time.parts else _TO_MS[self.time.unit].format(name)
                shown.append(f"{ms} as {name}")
            elif each.name == self.time.column and self.time.pattern:
                text = f"str:concat({name}, ' ', {self.names[self.time.clock]})" if self.time.clock else name
                yield f"-- {_shown(each.name)} is written as {self.time.pattern}."
                if self.time.doubtful:
                    yield f"-- CHECK THIS: {self.time.doubtful}."
                stored = _ZONED if self.time.offsets else _STORED
                shown.append(f"time:dateFormat({text}, '{stored}', {self.form.text(self.time.pattern)}) as {name}")
            elif each.signs and each in self.measures:
                yield f"-- {_shown(each.name)}: {_plain('; '.join(each.remarks))}."
                number = name
                for sign, by in each.signs:
                    number = f"str:replace({number}, {self.form.text(sign)}, '{by}')"
                shown.append(f"convert({number}, '{each.type}') as {name}")
            elif each in self.trimmed:
                yield f"-- {_shown(each.name)}: the spaces around its values go."
                shown.append(f"str:trim({name}) as {name}")
            elif each.name == self.time.column or each in (*self.keys, *self.measures, self.counted):
                shown.append(name)
        yield self.form.derived(self.name, self.source, shown)
        yield ""

    def _selected(self) -> Iterator[str]:
        yield from (self.names[each.name] for each in self.keys)
        yield "count() as events"
        for each in self.measures:
            name, bare = self.names[each.name], self.names[each.name].strip("`")
            yield from (f"{f}({name}) as {_written(f'{f}_{bare}')}" for f in ("sum", "avg", "min", "max"))
        if self.counted is not None:
            name = self.names[self.counted.name]
            yield f"distinctCount({name}) as {_written('different_' + name.strip('`'))}"

    def _levels(self) -> tuple[str, str]:
        if all(at % _DAY == 0 for at in self.time.instants):
            return "day", "year"
        return "min" if all(at % _MINUTE == 0 for at in self.time.instants) else "sec", "year"

    def conf(self, into: Path) -> Iterator[str]:
        yield f'app = "{self.file}"'
        yield f'checkpoint = "{self.name.lower()}-state"'
        if self.zone:
            yield f"zone = {_toml(self.zone)}"
        elif len(self.time.zones) != 1:
            offsets = ", ".join(self.time.zones[:4])
            yield f'zone = "UTC"   # CHECK THIS: the zone of your days, as Europe/Berlin; times are of {offsets}'
        else:
            yield f"zone = {_toml(self.time.zones[0])}   # the zone of your days, as Europe/Berlin; times without an offset are read in it"
        yield ""
        yield f"[sources.{self.source}]"
        yield f'kind = "{self.seen.kind}"'
        if self.seen.place:
            yield f"path = {_toml(os.path.relpath(self.seen.place.resolve(), into.resolve()))}"
        yield from (f"{key} = {_toml(value)}" for key, value in self.seen.options.items())
        renamed = {
            self.names[each.name].strip("`"): each.name
            for each in self.seen.columns
            if self.names[each.name].strip("`") != each.name and self.seen.options.get("header", True)
        }
        if renamed:
            pairs = ", ".join(
                f"{key if key.isascii() else _toml(key)} = {_toml(value)}" for key, value in renamed.items()
            )
            yield f"columns = {{ {pairs} }}   # the attributes whose columns have other names"
        absent = [
            self.names[each.name].strip("`")
            for each in self.seen.columns
            if self.seen.kind in ("json", "kafka") and each.nulls
        ]
        if absent:
            yield f"optional = {_toml(absent)}   # not every record has them"
        yield ""
        yield "[store]"
        yield 'kind = "delta"'
        yield f'path = "{self.name.lower()}-tables"'
        if max(self.time.instants) > datetime.now(UTC).timestamp() * 1000 + _DAY:
            yield ""
            yield "[late]"
            yield 'ahead = "any"   # some events are more than a day ahead of now'

    def question(self) -> str:
        """A first question over all that was seen."""
        first, last = self.time.ends
        within = f"'{first:%Y}'" if first.year == last.year else f"'{first:%Y}-01-01', '{last.year + 1}-01-01'"
        return f"from {self.name}Agg within {within} per 'months'"


def _of_time(time: Time | None, name: str) -> list[str]:
    if time is None or name not in (time.column, time.clock):
        return []
    if name == time.clock:
        return ["the time of the day"]
    how = (
        f"in {time.unit}" if time.unit else f"as {time.pattern}" if time.pattern else "ISO" if time.texts else "a time"
    )
    return [f"the time, {how}"]


def _about_time(seen: Seen) -> Iterator[str]:
    time = seen.time
    if time is None:
        yield "No column says when an event was."
        return
    first, last = time.ends
    zoned = " UTC with offsets" if time.offsets else " UTC" if time.unit or not time.texts else ", without offsets"
    yield (f"Time: {_shown(time.column)}, {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S}{zoned}.")
    if time.doubtful:
        yield f"{time.doubtful}: the first was taken."
    if time.odd:
        yield f"No time is {', '.join(_shown(str(value)) for value in time.odd[:3])}: {len(time.odd):,} records without one are dead letters."
    yield f"Disorder: at most {time.disorder / 1000:,.3f} seconds." if time.disorder else "Events come in order."


def _options(seen: Seen) -> str:
    said = ", ".join(f"{key} {value!r}" for key, value in seen.options.items())
    return f" ({said})" if said else ""


def _plain(text: str) -> str:
    """A text on one line, without anything a terminal would act on.

    >>> _plain("one\\ntwo")
    'one�two'
    """
    return "".join(c if c.isprintable() else "�" for c in text)


def _shown(text: str) -> str:
    """A name or value of the data on one line, without anything a terminal would act on."""
    plain = _plain(text)
    return plain if len(plain) <= 40 else plain[:39] + "…"


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _word(text: str) -> str:
    word = re.sub(r"\W+", " ", _latin(text), flags=re.ASCII).title().replace(" ", "")
    return word if word and not word[0].isdigit() else f"Data{word}"


def _is_id(name: str) -> bool:
    return (
        re.search(r"(^|[^a-z])(id|nr|no|code|key|zip|plz)$", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())
        is not None
    )


_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss", "æ": "ae", "Æ": "Ae", "ø": "oe", "Ø": "Oe",
     "œ": "oe", "Œ": "Oe", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "þ": "th", "ı": "i"}
)  # fmt: skip


def _latin(text: str) -> str:
    """A text with the letters of ASCII for Latin letters with marks; other scripts stay as they are.

    >>> _latin("Größe"), _latin("année"), _latin("війна"), _latin("ชื่อ")
    ('Groesse', 'annee', 'війна', 'ชื่อ')
    """
    written = unicodedata.normalize("NFKC", text).translate(_LETTERS)
    parts = ((each, unicodedata.normalize("NFKD", each)) for each in written)
    return "".join(bare[0] if bare[0].isascii() else each for each, bare in parts)


def _identifier(text: str) -> str:
    """What a text calls an attribute: all that stands in identifiers, of any script, and `_` for the rest.

    >>> _identifier("цена, руб."), _identifier("列"), _identifier("%"), _identifier("2nd")
    ('цена_руб', '列', 'column', 'c_2nd')
    """
    parts = (each if f"a{each}".isidentifier() else " " for each in _latin(text))
    word = "_".join("".join(parts).replace("_", " ").split()) or "column"
    return f"c_{word}" if not word.isidentifier() or word.startswith("AGG_") else word


def _written(word: str) -> str:
    """An identifier as the languages take it: in backticks what is a keyword, or of another script.

    >>> _written("price"), _written("цена"), _written("select")
    ('price', '`цена`', '`select`')
    """
    from rollup.lang.siddhi.apps import keywords

    return word if word.isascii() and word.lower() not in keywords() else f"`{word}`"


def _attributes(columns: list[str]) -> dict[str, str]:
    """A name of an attribute for each column, different from all others in any case."""
    found, taken = dict[str, str](), set[str]()
    for name in columns:
        base, number = _identifier(name), 2
        word = base
        while word.lower() in taken:
            word, number = f"{base}_{number}", number + 1
        taken.add(word.lower())
        found[name] = _written(word)
    return found
