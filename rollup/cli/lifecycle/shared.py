"""What the lifecycle commands share: their arguments, and the aggregations they are about."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rollup.conf import Conf, load
from rollup.core.calendar import parse_timestamp
from rollup.core.errors import ConfigError, RollupError, StoreError
from rollup.hosts.listeners.kinds import wanted

if TYPE_CHECKING:
    from rollup.core.columns import ColumnEngine
    from rollup.lifecycle.book import Book
    from rollup.lifecycle.replay.compare import Difference
    from rollup.lifecycle.verify import Verifier
    from rollup.plan.aggregation import Aggregation
    from rollup.program import Program
    from rollup.stores.base import Snapshot, Store

ConfArgument = Annotated[Path, typer.Argument(help="The configuration, a TOML file.")]
NameOption = Annotated[str | None, typer.Option("--aggregation", help="Only this one.")]
FromOption = Annotated[
    str | None, typer.Option("--from", help="Start of the range: '2018-01-01' or '2018-01-01 12:00:00 +05:30'.")
]
ToOption = Annotated[str | None, typer.Option("--to", help="End of the range, exclusive.")]
SourceOption = Annotated[
    Path | None,
    typer.Option(
        help="Read this in place of the stream's own: a folder of files, a Delta table, or for a topic an archive of "
        "it as JSON lines."
    ),
]
SlackOption = Annotated[
    str | None,
    typer.Option(
        help="For a topic: how far the broker's timestamps may be from those of the events, e.g. '2 hours'; "
        "'all' reads all that the job has taken. Default: the source's `slack`, or 1 day."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@dataclass(frozen=True)
class Chosen:
    """One aggregation of a configuration with its store opened for reading."""

    conf: Conf
    program: Program
    aggregation: Aggregation
    engine: ColumnEngine
    store: Store

    @property
    def book(self) -> Book:
        """Its book."""
        from rollup.lifecycle.book import Book

        return Book.of(self.conf, self.aggregation.name)

    def newest(self) -> Snapshot | None:
        """Its newest commit, None before the first. Raises StoreError where a job has run and what it wrote is not there."""
        from rollup.lifecycle.status import newest
        from rollup.stores.delta.missing import require

        conf = self.conf
        if conf.store["kind"] == "delta" and conf.checkpoint.exists() and not conf.tables.exists():
            raise StoreError(
                f"there is no folder {conf.tables}, though a job has run with the checkpoint {conf.checkpoint}",
                hint="is `path` of [store] another one? A lost folder comes back from a backup, or by a replay",
            )
        found = newest(self.store)
        if found is not None and found.in_files is not None:
            require(found.in_files.all_files())
        return found

    def verifier(self) -> Verifier:
        """A check of its newest commit."""
        from rollup.aggregation.cascade import Cascade
        from rollup.lifecycle.verify import Verifier

        return Verifier(self.engine, Cascade(self.aggregation), self.store.snapshot(), self.book.page())


def chosen(path: Path, name: str | None) -> Iterator[Chosen]:
    """The aggregations of a configuration, or the one of a name. Raises ConfigError for an unknown name."""
    conf = load(path)
    from rollup.core.columns import ColumnEngine
    from rollup.stores.registry import open_store

    program = conf.program()
    if name is not None and name not in program.aggregations:
        raise ConfigError(f"aggregation {name!r} is not defined", hint=f"known are {', '.join(program.aggregations)}")
    for aggregation in program.aggregations.values():
        if name in (None, aggregation.name):
            engine = ColumnEngine()
            yield Chosen(conf, program, aggregation, engine, open_store(conf, aggregation, engine))


def emitted(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which the listeners of the configuration follow."""

    @wraps(command)
    def run(conf: Path, *given: Any, **options: Any) -> None:
        found = load(conf)
        if not wanted(found) or options.get("dry_run"):
            command(conf, *given, **options)
            return
        from rollup.hosts.listeners.listening import Listeners

        with Listeners(found, found.program(), command.__name__):
            command(conf, *given, **options)

    return run


def examined(path: Path) -> Iterator[str | RollupError]:
    """A line for each state beside those of aggregations, or why no job could go on from it."""
    from rollup.lifecycle.states import states

    conf = load(path)
    for state in states(conf, conf.program()):
        try:
            if (line := state.examine()) is not None:
                yield line
        except RollupError as problem:
            yield problem


def raise_all(problems: Sequence[RollupError]) -> None:
    """Say all problems; the last is raised, so that the command ends as with one."""
    for problem in problems[:-1]:
        print(f"rollup: {problem}", file=sys.stderr)
    if problems:
        raise problems[-1]


def span(conf: Conf, start: str | None, end: str | None) -> tuple[int, int] | None:
    """The range of --from and --to, None when neither is given. Raises ConfigError or TimeError."""
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise ConfigError("--from and --to come together")
    low, high = (parse_timestamp(text, conf.zone)[0] for text in (start, end))
    if low >= high:
        raise ConfigError(f"--from {start} is not before --to {end}")
    return low, high


def show(
    differences: list[Difference], as_json: bool, most: int = 50, columns: tuple[str, str] = ("stored", "expected")
) -> None:
    """Print differences as a table or as JSON lines."""
    if as_json:
        for difference in differences:
            print(difference.json())
        return
    from rich.table import Table

    from rollup.cli.console import console

    if not differences:
        return
    table = Table("table", "bucket", "keys", "column", *columns)
    for d in differences[:most]:
        keys = ", ".join("null" if key is None else str(key) for key in d.keys)
        table.add_row(
            f"{d.aggregation}_{d.level.table_suffix}", d.bucket, keys, d.column, str(d.stored), str(d.expected)
        )
    console().print(table)
    print(f"{len(differences)} difference{'' if len(differences) == 1 else 's'}")
