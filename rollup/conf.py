"""The configuration of a job, read from TOML: where streams come from and where tables go.

app = "trades.siddhi"              # the app, a path relative to this file
checkpoint = "state/checkpoint"
trigger = "1 second"               # how often a batch may start; "0 seconds": as soon as the last has ended
zone = "+00:00"                    # of times that come without one

[sources.TradeStream]              # one table a stream that nothing else feeds
kind = "parquet"                   # parquet, csv, json, delta, kafka, rate
path = "incoming"
lateness = "10 seconds"            # how late its events may come: the buffer where the app says none

[store]
kind = "delta"                     # delta or sql
path = "tables"

[metrics]
port = 9400

[serve]                            # the endpoint for BI tools, see docs/bi.md
port = 5433
users.ann.password_env = "ANN_PASSWORD"

[spark]                            # settings of the session, as they are
"spark.driver.memory" = "4g"
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rollup.calendar import GMT
from rollup.errors import ConfigError
from rollup.program import Program, compile_app
from rollup.sources.lateness import buffered

Options = Mapping[str, Any]
_TRIGGER = re.compile(r"\s*\d+\s+(millisecond|second|minute|hour|day)s?\s*", re.IGNORECASE)
_TOP = (
    "app",
    "checkpoint",
    "trigger",
    "zone",
    "sources",
    "sinks",
    "store",
    "metrics",
    "spark",
    "cascade",
    "serve",
)


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
    metrics_port: int | None = None
    spark: Mapping[str, str] = field(default_factory=dict[str, str])
    cascade: Options = field(default_factory=dict[str, Any])
    serve: Options = field(default_factory=dict[str, Any])

    def program(self) -> Program:
        """The app, compiled. Raises SyntaxProblem or PlanError."""
        return compile_app(self.text(), self.zone)

    def text(self) -> str:
        """The text of the app, with the buffers that the lateness of sources asks for.

        Raises ConfigError when the file cannot be read.
        """
        try:
            text = self.app.read_text()
        except OSError as problem:
            raise ConfigError(f"cannot read the app {self.app}: {problem.strerror}") from None
        return buffered(text, self.zone, self.sources)

    @property
    def tables(self) -> Path:
        """The folder of a Delta store; next to the checkpoint for others (dead letters live there)."""
        return Path(self.store["path"]) if self.store["kind"] == "delta" else self.checkpoint.parent


def load(path: Path | str) -> Conf:
    """Read a configuration file. Raises ConfigError naming the key that is wrong and what is allowed."""
    path = Path(path).resolve()
    try:
        raw = tomllib.loads(path.read_text())
    except OSError as problem:
        raise ConfigError(f"cannot read {path}: {problem.strerror}") from None
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{path} is not TOML: {problem}") from None
    _known(path, raw, _TOP)
    for key in ("app", "checkpoint", "store"):
        if key not in raw:
            raise ConfigError(f"{path} lacks `{key}`")
    base = path.parent
    return Conf(
        path=path,
        app=base / raw["app"],
        checkpoint=base / raw["checkpoint"],
        sources={name: _paths(base, options) for name, options in raw.get("sources", {}).items()},
        sinks={name: _paths(base, options) for name, options in raw.get("sinks", {}).items()},
        store=_store(path, _paths(base, raw["store"])),
        trigger=raw.get("trigger", "1 second"),
        zone=raw.get("zone", GMT),
        metrics_port=raw.get("metrics", {}).get("port"),
        spark={name: str(value) for name, value in raw.get("spark", {}).items()},
        cascade=raw.get("cascade", {}),
        serve=raw.get("serve", {}),
    )


def _known(path: Path, given: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            close = difflib.get_close_matches(key, allowed, 1)
            raise ConfigError(
                f"{path}: unknown key `{key}`",
                hint=f"did you mean `{close[0]}`?" if close else f"known: {', '.join(allowed)}",
            )


def _paths(base: Path, options: Options) -> Options:
    if not isinstance(options, Mapping):
        raise ConfigError(f"{options!r} should be a table of options")
    return {name: str(base / value) if name == "path" else value for name, value in options.items()}


def _store(path: Path, options: Options) -> Options:
    kind = options.get("kind")
    needs = {"delta": "path", "sql": "url"}
    if kind not in needs:
        raise ConfigError(f"{path}: the store's kind is {kind!r}", hint="delta or sql")
    if needs[kind] not in options:
        raise ConfigError(f"{path}: a {kind} store needs `{needs[kind]}`")
    return options


def check(conf: Conf, program: Program) -> None:
    """Raise ConfigError unless every stream that needs a source has one, and no source is for nothing."""
    if not _TRIGGER.fullmatch(conf.trigger):
        raise ConfigError(
            f"{conf.path}: the trigger {conf.trigger!r} is no length of time",
            hint='e.g. "1 second", "500 milliseconds", "0 seconds"',
        )
    for name in program.inputs:
        if name not in conf.sources:
            raise ConfigError(f"{conf.path}: stream {name} has no source", hint=f"add [sources.{name}]")
    for name in conf.sources:
        if name not in program.inputs:
            raise ConfigError(
                f"{conf.path}: [sources.{name}] feeds no stream",
                hint=f"streams that need one: {', '.join(program.inputs)}",
            )
    for name in conf.sinks:
        if name not in program.streams and name not in {join.target for join in program.joins}:
            raise ConfigError(f"{conf.path}: [sinks.{name}] names no stream of the app")
