"""The configuration of a job, read from TOML: where streams come from and where tables go.

An example:

    app = "trades.siddhi"              # the app, a path relative to this file
    checkpoint = "state/checkpoint"
    trigger = "1 second"               # how often a batch may start; "0 seconds": as soon as the last has ended
    zone = "+00:00"                    # it cuts the buckets of all rows; times without a zone are read in it

    [sources.TradeStream]              # one table for each stream that nothing else feeds
    kind = "parquet"                   # parquet, csv, json, delta, iceberg, kafka, rate
    path = "incoming"
    lateness = "10 seconds"            # how late its events may come: the buffer where the app declares none

    [store]
    kind = "delta"                     # delta or sql
    path = "tables"
    iceberg = { namespace = "trades", uri = "sqlite:///iceberg.db" }   # a catalog that lists the tables, too

    [late]
    policy = "correct"                 # of aggregations that declare none: merge (default), drop, correct
    ahead = "1 day"                    # an event further ahead of the clock is a dead letter; "any" takes all

    [dead_letters]
    fail_above = "1 %"                 # a run with a larger share of dead records ends with exit code 1

    [storage]                          # how object stores are reached, see docs/object-stores.md
    endpoint = "https://s3.example.org"
    secret_access_key_env = "MY_SECRET"

    [metrics]
    port = 9400
    host = "127.0.0.1"                 # whose address it listens on

    [telemetry]                        # where batches are emitted to, see docs/telemetry.md
    lineage = "http://marquez:5000"    # OpenLineage
    traces = "http://collector:4318"   # OpenTelemetry

    [tables.planes]                    # a table that questions join with aggregations, and statements with streams
    path = "planes.csv"
    types.year = "int"                 # where what the first records show is not right

    [questions]                        # those that the console offers by their names
    "flights a day" = "from FlightAgg within '2013' per 'days' select AGG_TIME, merge(flights) as n group by AGG_TIME"

    [serve]                            # the endpoint for BI tools, see docs/bi.md
    port = 5433
    users.ann.password_env = "ANN_PASSWORD"

    [spark]                            # settings of the session, as they are
    "spark.driver.memory" = "4g"
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rollup.core.calendar import GMT, normal_zone
from rollup.core.errors import ConfigError, RollupError, TimeError
from rollup.core.objects import ObjectPath, at, is_object
from rollup.core.options import (
    Known,
    Provider,
    address,
    any_text,
    beside,
    delta_place,
    elsewhere,
    encoding,
    flag,
    folder,
    kind_of,
    one_of,
    place,
    refuse_unknown,
    table,
    text,
    text_or_texts,
    texts,
    url,
    variable,
    whole,
)
from rollup.core.storage import checked, use
from rollup.core.texts import text_of, toml_of
from rollup.lang.languages import by_ending
from rollup.sinks.kinds import KINDS as SINKS
from rollup.sources.kinds import FORMAT
from rollup.sources.kinds import KINDS as SOURCES
from rollup.stores.kinds import KINDS as STORES

if TYPE_CHECKING:
    from rollup.core.periods import Calendar
    from rollup.plan.filled import Filled
    from rollup.program import Declaration, Program

Options = Mapping[str, Any]
_FILES = f'a list of files beside the app, e.g. ["alerts.epl", "hourly.sql"]: {", ".join(by_ending())}'
_TRIGGERS = 'a length of time, e.g. "1 second", "500 milliseconds", "0 seconds"'
_TRIGGER = re.compile(r"\s*\d+\s+(millisecond|second|minute|hour|day)s?\s*", re.IGNORECASE)


def _named_zone(value: Any) -> str | None:
    try:
        return None if isinstance(value, str) and normal_zone(value) else _ZONES
    except TimeError:
        return _ZONES


_ZONES = 'a zone: "Europe/Berlin", "+05:30"'
_TOP: Known = {
    "app": folder,
    "statements": lambda value: None if _are_files(value) else _FILES,
    "checkpoint": place,
    "trigger": lambda value: None if isinstance(value, str) and _TRIGGER.fullmatch(value) else _TRIGGERS,
    "zone": _named_zone,
    "statement_shards": whole(1, 4096),
    "on_error": one_of("set aside", "stop"),
    **dict.fromkeys(
        (
            "sources",
            "sinks",
            "store",
            "late",
            "dead_letters",
            "metrics",
            "telemetry",
            "spark",
            "cascade",
            "serve",
            "storage",
            "tables",
        ),
        elsewhere,
    ),
    "questions": texts,
}
_LATE: Known = {"policy": one_of("merge", "drop", "correct"), "ahead": text}
_SHARE = re.compile(r"\s*(\d{1,2}(?:\.\d+)?|100)\s*%\s*")
_SHARES = 'a share, e.g. "1 %"'
_DEAD: Known = {"fail_above": lambda value: None if isinstance(value, str) and _SHARE.fullmatch(value) else _SHARES}
_TABLE: Known = {
    "path": folder,
    "table": text,
    "types": texts,
    "glob": text,
    "header": flag,
    "separator": any_text,
    "null": text_or_texts,
    "encoding": encoding,
}
_METRICS: Known = {"port": whole(0, 65535), "host": text}
_TELEMETRY: Known = {"lineage": address, "lineage_key_env": variable, "namespace": text, "traces": address}


def _are_files(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    names: list[Any] = value
    return all(isinstance(name, str) and Path(name).suffix in by_ending() for name in names)


@dataclass(frozen=True)
class Conf:
    """A configuration whose paths are absolute."""

    path: Path
    app: Path
    checkpoint: Path
    sources: Mapping[str, Options]
    store: Options
    sinks: Mapping[str, Options] = field(default_factory=dict[str, Options])
    trigger: str = "1 second"
    zone: str = GMT
    zoned: bool = False
    """Whether the zone is declared: without one, each row whose time is a text is cut in the zone of that text."""
    late: str | None = None
    ahead: str = "1 day"
    """How far ahead of the clock an event may be, or "any"."""
    fail_above: float | None = None
    """The share of a run's records that may be dead; None: any."""
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    telemetry: Options = field(default_factory=dict[str, Any])
    """Where commands and batches are emitted to: addresses, and the variable with a key."""
    spark: Mapping[str, str] = field(default_factory=dict[str, str])
    cascade: Options = field(default_factory=dict[str, Any])
    serve: Options = field(default_factory=dict[str, Any])
    questions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Questions that people ask again, by their names."""
    statement_shards: int | None = None
    """Into how many shards the statements of a Spark job are divided where their keys allow it; None: not at all."""
    on_error: str = "set aside"
    """What becomes of an event whose values a statement cannot compute with: a dead letter, or the end of the job."""
    dimensions: Mapping[str, Options] = field(default_factory=dict[str, Options])
    """The tables that questions join with aggregations, see `rollup.dimensions`."""
    statements: tuple[Path, ...] = ()
    """Files of statements beside the app, each in the language that its ending names."""

    def program(self) -> Program:
        """The app, compiled. Raises SyntaxProblem or PlanError, with the file."""
        declared = self.declaration()
        try:
            return declared.program()
        except RollupError as problem:
            if not any(problem.message.startswith(f"{file.name}: ") for file in self.statements):
                problem.of(str(self.app))  # what a file of statements says names that already
            raise

    def zone_of(self, program: Program) -> str:
        """The zone in which the times of answers are shown: the declared one, else that which cuts all aggregations."""
        zones = {aggregation.zone for aggregation in program.aggregations.values()}
        return self.zone if self.zoned or len(zones) != 1 else zones.pop()

    def declaration(self) -> Declaration:
        """The app, with what the configuration says of late events. Raises ConfigError when it cannot be read."""
        from rollup.plan.lateness import Lateness, ahead_of
        from rollup.program import Declaration

        ahead_of(self.ahead)
        changes = tuple(name for name, options in self.sources.items() if FORMAT in options)
        zone = self.zone if self.zoned else None
        text, late = self._text(), Lateness.of(self.sources, self.late)
        return Declaration(text, zone, late, (), changes, self._tables(text), self._calendars())

    def _tables(self, text: str) -> tuple[Filled, ...]:
        if not self.dimensions:
            return ()
        from rollup.dimensions import filled

        return filled(self, text)

    def _calendars(self) -> tuple[Calendar, ...]:
        if not self.dimensions:
            return ()
        from rollup.dimensions import calendars

        return calendars(self)

    def _text(self) -> str:
        text = text_of(self.app, "the app")
        for path in self.statements:
            text = _with_file(text, path)
        return text

    @property
    def local(self) -> Path:
        """The folder of this machine for what commands have under way: the tables', where that is one, or the checkpoint's, or
        the one that ROLLUP_LOCAL names, or the configuration's."""
        places = (
            self.tables,
            self.checkpoint.parent,
            Path(os.environ.get("ROLLUP_LOCAL", self.path.parent)).absolute(),
        )
        return next(place for place in places if not isinstance(place, ObjectPath))

    @property
    def tables(self) -> Path:
        """The folder of a store that has one, or its place in an object store; next to the checkpoint for others (dead letters live there)."""
        return at(self.store["path"]) if "path" in self.store else self.checkpoint.parent


def load(path: Path | str) -> Conf:
    """Read a configuration file. Raises ConfigError naming the key that is wrong and what is allowed."""
    path = Path(path).resolve()
    raw = toml_of(path, hint="a configuration is; it names the app as `app = …`")
    refuse_unknown(f"{path}:", raw, _TOP)
    for key in ("app", "checkpoint", "store"):
        if key not in raw:
            raise ConfigError(f"{path} lacks `{key}`")
    base = path.parent
    late, metrics = _table(path, raw, "late", _LATE), _table(path, raw, "metrics", _METRICS)
    dead = _table(path, raw, "dead_letters", _DEAD)
    conf = Conf(
        path=path,
        app=base / raw["app"],
        checkpoint=at(raw["checkpoint"], base),
        statement_shards=raw.get("statement_shards"),
        on_error=raw.get("on_error", "set aside"),
        statements=tuple(base / name for name in raw.get("statements", ())),
        sources=_kinds(path, raw, "sources", SOURCES),
        sinks=_kinds(path, raw, "sinks", SINKS),
        dimensions=_dimensions(path, raw),
        store=_kind(f"{path}: [store]", base, raw["store"], STORES),
        trigger=raw.get("trigger", "1 second"),
        zone=raw.get("zone", GMT),
        zoned="zone" in raw,
        late=late.get("policy"),
        ahead=late.get("ahead", "1 day"),
        fail_above=float(dead["fail_above"].strip(" %")) / 100 if dead else None,
        metrics_port=metrics.get("port"),
        metrics_host=metrics.get("host", "127.0.0.1"),
        telemetry=_table(path, raw, "telemetry", _TELEMETRY),
        spark=dict(_settings(path, raw.get("spark", {}))),
        cascade=table(f"{path}: [cascade]", raw.get("cascade", {})),
        serve=table(f"{path}: [serve]", raw.get("serve", {})),
        questions=raw.get("questions", {}),
    )
    if (wanted := delta_place(str(conf.tables))) is not None:
        raise ConfigError(f"{path}: dead letters are a Delta table in {str(conf.tables)!r}", hint=wanted)
    variables = checked(f"{path}: [storage]", table(f"{path}: [storage]", raw.get("storage", {})))
    paths = (each.get("path", "") for each in (conf.store, *conf.sinks.values(), *conf.sources.values()))
    if names := [str(path) for path in (conf.checkpoint, *paths) if is_object(str(path))]:
        use(variables, names)
    return conf


def _table(path: Path, raw: Options, name: str, known: Known) -> Options:
    given = table(f"{path}: [{name}]", raw.get(name, {}))
    refuse_unknown(f"{path}: [{name}]", given, known)
    return given


def _dimensions(path: Path, raw: Options) -> Mapping[str, Options]:
    """The tables of `[tables.…]`, their paths made absolute."""
    tables = dict[str, Options]()
    for name, given in table(f"{path}: [tables]", raw.get("tables", {})).items():
        where = f"{path}: [tables.{name}]"
        refuse_unknown(where, table(where, given), _TABLE)
        tables[name] = {**given, **({"path": os.path.normpath(path.parent / given["path"])} if "path" in given else {})}
    return tables


def _kinds(path: Path, raw: Options, name: str, kinds: Mapping[str, Provider]) -> Mapping[str, Options]:
    given = table(f"{path}: [{name}]", raw.get(name, {}))
    return {
        stream: _kind(f"{path}: [{name}.{stream}]", path.parent, options, kinds) for stream, options in given.items()
    }


def _kind(where: str, base: Path, given: Any, kinds: Mapping[str, Provider]) -> Options:
    """A table of options whose kind, keys and values are right, with its paths made absolute."""
    kind_of(where, table(where, given), kinds)
    known = kinds[given["kind"]].options
    found = {name: _absolute(value, known.get(name), base) for name, value in given.items()}
    kind_of(where, found, kinds)  # its paths have the folder of the configuration in them now
    return found


def _absolute(value: Any, kind: Any, base: Path) -> Any:
    """An option with the path in it made absolute."""
    if kind in (folder, place, delta_place):
        return str(at(value, base))
    return beside(value, base) if kind is url else value


def _with_file(text: str, path: Path) -> str:
    """The text of an app with that of a file as one more block, which keeps its own lines."""
    from rollup.lang.sections import block_of_file

    return text + block_of_file(path.name, path.stem, by_ending()[path.suffix], text_of(path, "the statements"))


def sink_options(where: str, base: Path, given: Options) -> Options:
    """The options of a sink, checked, its path made absolute. Raises ConfigError."""
    return _kind(where, base, given, SINKS)


def _settings(path: Path, given: Any, under: str = "") -> Iterator[tuple[str, str]]:
    """Settings of Spark by their full names: TOML reads a dotted name without quotes as tables in tables."""
    for name, value in table(f"{path}: [spark]", given).items():
        if isinstance(value, Mapping):
            yield from _settings(path, value, f"{under}{name}.")
        elif isinstance(value, str | int | float):
            yield f"{under}{name}", str(value).lower() if isinstance(value, bool) else str(value)
        else:
            raise ConfigError(f"{path}: [spark] {under}{name} is {value!r}", hint="a text, a number, true or false")


def check(conf: Conf, program: Program) -> None:
    """Raise ConfigError unless every stream that needs a source has one, and no source is for nothing."""
    from rollup.plan.app import SIGN
    from rollup.plan.lateness import idle_of

    for name in program.inputs:
        if name not in conf.sources:
            raise ConfigError(f"{conf.path}: stream {name} has no source", hint=f"add [sources.{name}]")
    for name in conf.sources:
        if name not in program.inputs:
            raise ConfigError(
                f"{conf.path}: [sources.{name}] feeds no stream",
                hint=f"streams that need one: {', '.join(program.inputs)}",
            )
        idle_of(name, conf.sources[name])
    if conf.statement_shards is not None and program.statements is None:
        raise ConfigError(
            f"{conf.path}: statement_shards divides statements, and the app has none", hint="leave it out"
        )
    for name in conf.sinks:
        if name not in program.streams and name not in {join.target for join in program.joins}:
            raise ConfigError(f"{conf.path}: [sinks.{name}] names no stream of the app")
        if name in program.streams and SIGN in program.streams[name].attributes:
            raise ConfigError(
                f"{conf.path}: [sinks.{name}]: {name} is a stream of changes, and a sink takes no row back",
                hint="aggregations read it, and queries that feed them",
            )
