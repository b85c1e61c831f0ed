"""Whether a job could start: everything that can be looked at without Spark and without a server.

`rollup plan` and `rollup run` both ask here, so that what one accepts the other does not refuse a minute later.
"""

from __future__ import annotations

from rollup.conf import Conf, check
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.listeners.kinds import classes
from rollup.hosts.spark.placement import Placing
from rollup.hosts.statements.outlets import sinks_of
from rollup.hosts.statements.running import told
from rollup.lifecycle.dry_run import dry_run
from rollup.plan.aggregation import Aggregation, Clock
from rollup.program import Program
from rollup.sources.base import Remote
from rollup.sources.registry import source
from rollup.stores.registry import database, open_store

_LONGEST = 255
"""Bytes of a name in the usual file systems."""


def ready(conf: Conf, program: Program) -> None:
    """Raise ConfigError, PlanError or StoreError that names what would keep the job from starting."""
    check(conf, program)
    Placing.of(conf)
    classes(conf)
    if program.statements is not None:
        _statements(conf, program)
    for name in program.inputs:
        source(program.streams[name], conf.sources[name]).check()
    dry_run(program)
    for aggregation in program.aggregations.values():
        open_store(conf, aggregation, ColumnEngine())  # reads names, options and drivers; connects at its first use
        if database(conf, aggregation) is None:
            _fits_folder(aggregation)
    _apart(program)


def reach(conf: Conf, program: Program, seconds: float = 5.0) -> None:
    """Wait at most so long for the servers that sources read from. Raises SourceError with the address of one that is not
    there: Spark would try for minutes without a word."""
    for name in program.inputs:
        found = source(program.streams[name], conf.sources[name])
        if isinstance(found, Remote):
            found.reach(seconds)


def _statements(conf: Conf, program: Program) -> None:
    """What statements need of sinks, and of the aggregations whose closed rows they read."""
    sinks_of(conf, program)
    for stream, name in told(program).items():
        if program.aggregations[name].clock is Clock.ARRIVAL:
            raise ConfigError(
                f"statements read {stream}, and {name} goes by the time of arrival: it closes without events",
                hint=f"give {name} a time: aggregate by <attribute> every …",
            )
        if Placing.of(conf).host == "shards":
            raise ConfigError(
                f"{conf.path}: [cascade] host is 'shards', but statements read {stream}", hint="auto or driver"
            )


def _fits_folder(aggregation: Aggregation) -> None:
    name = max((aggregation.table(level) for level in aggregation.levels), key=len)
    if len(name.encode()) > _LONGEST:
        raise ConfigError(
            f"the table {name} has a name of {len(name.encode())} bytes, a folder takes {_LONGEST}",
            hint="give the aggregation a shorter name",
        )


def _apart(program: Program) -> None:
    """Names that differ only in case are one table to Spark, to databases and to some file systems."""
    seen: dict[str, str] = {}
    for name in program.aggregations:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise ConfigError(f"the aggregations {other} and {name} differ only in case", hint="rename one of them")
    for aggregation in program.aggregations.values():
        columns: dict[str, str] = {}
        for column in aggregation.kinds:
            other = columns.setdefault(column.casefold(), column)
            if other != column:
                raise ConfigError(
                    f"{aggregation.name}: the columns {other} and {column} differ only in case",
                    hint="rename one of them with `as`",
                )
