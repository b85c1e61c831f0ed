"""Whose checkpoint it is: a job must not go on from the place that another app reached, or that other tables hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.marks import lost
from rollup.checkpoint.records import replace_durably
from rollup.conf import Conf
from rollup.core.errors import ConfigError
from rollup.core.untyped import pc
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.spark.query_log import entries, query_of
from rollup.hosts.spark.rewind import Marked
from rollup.hosts.statements.running import Running
from rollup.plan.aggregation import EVENTS, KIND
from rollup.program import Program
from rollup.sources.registry import source
from rollup.stores.sql.options import StoreOptions

_OWNER = "rollup.json"


def claim(conf: Conf, program: Program) -> None:
    """Take the checkpoint of a configuration for its app, and let sources look before their first batch.

    Raises ConfigError when it belongs to another app, when it cannot be written, or when there is nothing to read.
    """
    _own(conf, program)
    for stream in program.inputs:
        origin = source(program.streams[stream], conf.sources[stream])
        origin.check()
        begin = getattr(origin, "begin", None)
        if begin is not None and not _begun(conf, stream):
            begin()


def _own(conf: Conf, program: Program) -> None:
    owner = _identity(conf, program)
    file = conf.checkpoint / _OWNER
    try:
        conf.checkpoint.mkdir(parents=True, exist_ok=True)
        if file.exists():
            _compare(conf.checkpoint, unsealed(file.read_bytes(), owner), owner)
        replace_durably(file, sealed(owner, indent=1))
    except OSError as problem:
        raise ConfigError(f"cannot write the checkpoint {conf.checkpoint}: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ConfigError(f"{file} is damaged: {problem}", hint="remove it if the checkpoint is this job's") from None


def _identity(conf: Conf, program: Program) -> dict[str, Any]:
    """What must stay for a checkpoint to stay: the streams, where each comes from, where tables go."""
    streams = {name: {key: conf.sources[name].get(key) for key in ("kind", "path", "topic")} for name in program.inputs}
    store = {key: conf.store.get(key) for key in ("kind", "path")}
    url = conf.store.get("url")
    # A password may change, and has no place in a folder that more people read.
    return {"streams": streams, "store": store | {"url": None if url is None else StoreOptions.of(url).shown}}


def _compare(folder: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    hint = "give this app a `checkpoint` of its own"
    for stream, place in was["streams"].items():
        if stream not in now["streams"]:
            raise ConfigError(f"the checkpoint {folder} belongs to another app: it has a stream {stream}", hint=hint)
        if place != now["streams"][stream]:
            raise ConfigError(
                f"the checkpoint {folder} belongs to another app: its stream {stream} comes from {_said(place)}",
                hint=hint,
            )
    if was["store"] != now["store"]:
        raise ConfigError(f"the checkpoint {folder} belongs to tables in {_said(was['store'])}", hint=hint)


def _said(place: dict[str, Any]) -> str:
    return " ".join(str(value) for value in place.values() if value is not None)


def _begun(conf: Conf, stream: str) -> bool:
    """Whether Spark has finished a batch of a stream."""
    return any(entries(conf.checkpoint / stream / "commits"))


def refuse_without_tables(conf: Conf, program: Program, commits: Mapping[str, int]) -> None:
    """Sources do not send again what the checkpoint has behind it, so without tables it would be lost silently.

    `commits` has the number of the last commit of each aggregation. Raises ConfigError.
    """
    begun = [stream for stream in program.inputs if _begun(conf, stream)]
    reached = {name for stream in begun for name in (stream, *(each.target for each in program.fed_by(stream)))}
    fed = [name for name in commits if program.aggregations[name].stream in reached]
    if fed and not any(commits.values()):
        raise ConfigError(
            f"the checkpoint {conf.checkpoint} has batches behind it, but the store has no rows of {', '.join(fed)}",
            hint="bring the tables back, or remove the checkpoint to read the sources from the start",
        )


def refuse_half_lost(conf: Conf, program: Program, marked: Mapping[str, Marked]) -> None:
    """What holds events of several streams cannot begin anew with one of them: the others would not come again.

    Raises ConfigError.
    """
    queries = {stream: query_of(conf.checkpoint / stream) for stream in program.inputs}
    for name, one in marked.items():
        marks = {stream: mark for stream, mark in one.source.items() if stream in queries and mark["batch"] >= 0}
        gone = [stream for stream, mark in marks.items() if lost(mark, queries[stream])]
        left = [stream for stream in marks if stream not in gone]
        if gone and left:
            others = ", ".join(str(conf.checkpoint / stream) for stream in left)
            raise ConfigError(
                f"the checkpoint {conf.checkpoint / gone[0]} is lost, and {name} would have to begin anew with stream "
                f"{gone[0]}, but without the events of {', '.join(left)} so far, which would not come again",
                hint=f"bring it back, or remove {others} as well: then all of them come again from their start",
            )


def refuse_without_closings(
    conf: Conf, program: Program, pipelines: Mapping[str, Pipeline], statements: Running
) -> None:
    """What an aggregation has closed does not close again, so statements that read it cannot go back without it.

    Raises ConfigError.
    """
    for name in sorted(set(statements.told.values())):
        for stream, mark in pipelines[name].source.items():
            ours = statements.source.get(stream)
            if stream not in program.inputs or ours is None or mark["batch"] < 0:
                continue
            if lost(mark, query_of(conf.checkpoint / stream)):
                raise ConfigError(
                    f"the checkpoint {conf.checkpoint / stream} is lost, and statements that read what {name} closes would "
                    "have to begin anew without what it has closed so far",
                    hint=f"bring it back, or remove the tables of {name} as well: then all of it comes again, and sinks "
                    "pass over the rows that they have",
                )
            if ours["query"] == mark["query"] and ours["batch"] < mark["batch"]:
                raise ConfigError(
                    f"the statements end with batch {ours['batch']} of {stream}, and {name}, whose closed rows they read, "
                    f"with batch {mark['batch']}: those rows would not come again",
                    hint=_going_back_too(pipelines[name], stream, ours),
                )


def _going_back_too(pipeline: Pipeline, stream: str, ours: Mapping[str, Any]) -> str:
    """What takes an aggregation back to where statements are."""
    name, filed = pipeline.aggregation.name, pipeline.store.filed
    for number in reversed([] if filed is None else filed.records.numbers()):
        mark = filed.records.read(number).source.get(stream) if filed is not None else None
        if mark is not None and mark["query"] == ours["query"] and mark["batch"] <= ours["batch"]:
            return f"`rollup recover CONF --aggregation {name} --to-commit {number}` takes it back too, and nothing is lost"
    return f"bring the statements back, or {name} to a backup of that time"


def say_lost(pipeline: Pipeline, stream: str) -> None:
    """Say that a checkpoint is lost, and how many events at most may count twice because of it.

    What comes again is passed over up to what the tables have. A late event that comes after that point is late once
    more, and nothing tells it from a new one: the ledger knows how many late events have been taken in.
    """
    ledger = pipeline.store.snapshot().ledger()
    taken = ledger.filter(pc.is_in(ledger[KIND], value_set=pa.array(["moved", "corrected"])))
    structlog.get_logger("rollup").warning(
        "the checkpoint is lost, the stream comes again from its start: what the tables have is passed over, but late "
        "events may count twice (`rollup verify --raw` tells, `rollup replay` puts it right)",
        aggregation=pipeline.aggregation.name,
        stream=stream,
        events_at_most=int(pc.sum(taken[EVENTS]).as_py() or 0),
    )
