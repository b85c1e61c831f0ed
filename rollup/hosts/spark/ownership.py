"""Whose checkpoint it is: a job must not go on from the place that another app reached, or that other tables hold."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import structlog

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.marks import lost, other_zones
from rollup.conf import Conf
from rollup.core import zones
from rollup.core.calendar import offset_ms
from rollup.core.errors import ConfigError
from rollup.core.objects import replace_durably
from rollup.core.untyped import pc
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.spark.log_sums import LogSums
from rollup.hosts.spark.query_log import entries, query_of
from rollup.hosts.spark.recovery_points import RecoveryPoints
from rollup.hosts.spark.rewind import Marked
from rollup.hosts.statements.running import Running
from rollup.plan.aggregation import EVENTS, KIND
from rollup.program import Program
from rollup.sources.file_log import Listed, listed, move
from rollup.sources.registry import source
from rollup.sources.topics.ranges import TOPIC, topics_of

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


@dataclass(frozen=True)
class Owner:
    """What a checkpoint says of itself: where streams come from and tables go, for people to read; the id of each stream's
    query, which must be that of Spark's log; and the queries `before` it, whose checkpoint was lost."""

    streams: Mapping[str, Mapping[str, Any]]
    store: Mapping[str, Any]
    queries: Mapping[str, str] = field(default_factory=dict[str, str])
    before: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])

    def write(self, checkpoint: Path) -> None:
        """Put it in the place of the one before. Raises ConfigError."""
        try:
            checkpoint.mkdir(parents=True, exist_ok=True)
            replace_durably(checkpoint / _OWNER, sealed(asdict(self), indent=1))
        except OSError as problem:
            raise ConfigError(f"cannot write the checkpoint {checkpoint}: {problem.strerror}") from None


def owner_of(checkpoint: Path) -> Owner | None:
    """What a checkpoint says of itself; None when it says nothing yet. Raises ConfigError."""
    file = checkpoint / _OWNER
    try:
        return Owner(**unsealed(file.read_bytes(), [each.name for each in fields(Owner)]))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise ConfigError(f"cannot read {file}: {problem.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ConfigError(f"{file} is damaged: {problem}", hint="remove it if the checkpoint is this job's") from None


def _own(conf: Conf, program: Program) -> None:
    was, now = owner_of(conf.checkpoint), _identity(conf, program)
    if was is not None:
        _compare(conf, was, now)
        now = replace(now, store=was.store, queries=was.queries, before=was.before)
    now.write(conf.checkpoint)


def _identity(conf: Conf, program: Program) -> Owner:
    """Where streams come from and tables go now."""
    streams = {name: _place(conf.sources[name]) for name in program.inputs}
    store = {key: conf.store.get(key) for key in ("kind", "path")}
    return Owner(streams, store | {"url": _without_password(conf.store.get("url"))})


def _place(options: Mapping[str, Any]) -> dict[str, Any]:
    """Where a stream comes from; of several topics the first, since more may follow it, and none of a pattern: topics are
    also noted beside the log of the stream's query."""
    named = {**options, TOPIC: next(iter(topics_of(options)), None)}
    return {key: named.get(key) for key in ("kind", "path", TOPIC)}


def _without_password(url: str | None) -> str | None:
    """A password may change, and has no place in a folder that more people read."""
    if url is None:
        return None
    from rollup.stores.sql.options import StoreOptions

    return StoreOptions.of(url).shown


def _compare(conf: Conf, was: Owner, now: Owner) -> None:
    """Whether the streams are those of the checkpoint. Where folders are is not: a source that has moved is taken up there.

    Whether its tables are those is known by their marks, see `agreed`.
    """
    hint = "give this app a `checkpoint` of its own"
    for stream, place in was.streams.items():
        here = now.streams.get(stream)
        if here is None:
            raise ConfigError(
                f"the checkpoint {conf.checkpoint} belongs to another app: it has a stream {stream}", hint=hint
            )
        if place["kind"] != here["kind"] or len({place["topic"], here["topic"]} - {None}) > 1:
            raise ConfigError(
                f"the checkpoint {conf.checkpoint} belongs to another app: its stream {stream} comes from {_said(place)}",
                hint=hint,
            )
        if place["path"] != here["path"] and here["kind"] != "delta" and _begun(conf, stream):
            _moved(conf, stream, Path(place["path"]), Path(here["path"]))


def _moved(conf: Conf, stream: str, old: Path, new: Path) -> None:
    """Take a log up whose files have moved. Raises ConfigError where they are not known to be the same."""
    checkpoint = conf.checkpoint / stream
    read = [(file, new / os.path.relpath(file.path, old)) for file in listed(checkpoint, None)]
    other = [(file, now) for file, now in read if not _same(file, now)]
    unknown = len(other) == len(read) > 0 or any(now.exists() for _, now in other)
    if unknown and conf.sources[stream].get("moved_from") != str(old):
        raise ConfigError(
            f"the stream {stream} was read from {old}, and {len(other)} of the {len(read)} files that were read are not in "
            f"{new} as they were, the first {other[0][1].name}",
            hint="move files with their times (`mv`, `cp -p`, `rsync -a`): by name, time and size they are known; or say "
            f'`moved_from = "{old}"` in [sources.{stream}], if they are the same',
        )
    sums = LogSums(checkpoint)
    sums.forget(list(checkpoint.glob("sources/0/*")))
    move(checkpoint, str(old), str(new))
    sums.add()
    structlog.get_logger("rollup").info("the files of a stream have moved", stream=stream, was=str(old), now=str(new))


def _same(file: Listed, now: Path) -> bool:
    """Whether a file that was read is one that is there now: by its time, or where the old one still is by its size."""
    try:
        there = now.stat()
        return there.st_mtime_ns // 1_000_000 == file.modified or there.st_size == Path(file.path).stat().st_size
    except OSError:
        return False


def agreed(conf: Conf, program: Program, marked: Mapping[str, Marked]) -> Owner:
    """The checkpoint and the tables are of each other: the id of each stream's query is in both, as is what was lost before.

    Raises ConfigError that names both where they say different things, StoreError where an entry of a log is damaged.
    """
    now = _identity(conf, program)
    owner = owner_of(conf.checkpoint) or now
    queries, before = dict(owner.queries), dict(owner.before)
    for stream in program.inputs:
        checkpoint = conf.checkpoint / stream
        LogSums(checkpoint).verify()
        query, noted, log = query_of(checkpoint), queries.pop(stream, None), any(entries(checkpoint / "offsets"))
        marks = {
            name: str(one.source[stream]["query"])
            for name, one in marked.items()
            if stream in one.source and one.source[stream]["batch"] >= 0
        }
        if not marks and owner.store != now.store and _begun(conf, stream):
            raise ConfigError(
                f"the checkpoint {conf.checkpoint} belongs to tables in {_said(owner.store)}",
                hint="give this app a `checkpoint` of its own",
            )
        anew = (
            f"or remove {checkpoint}: the stream is read from its start, and tables and sinks pass over what they have"
        )
        if query is None and log:
            raise ConfigError(
                f"{checkpoint / 'metadata'} is gone, and {checkpoint / 'offsets'} goes on behind it",
                hint=f"bring it back, {anew}",
            )
        if query is None:
            before[stream] = sorted(set(marks.values()))
            continue
        if noted is not None and noted != query:
            raise ConfigError(
                f"{checkpoint / 'metadata'} says that the query of {stream} is {query}, and {conf.checkpoint / _OWNER} that "
                f"it is {noted}",
                hint=f"bring back the one that is damaged, {anew}",
            )
        for name, other in marks.items():
            if other != query and other not in before.get(stream, ()) and _begun(conf, stream):
                raise ConfigError(
                    f"{checkpoint} is the log of query {query}, and {name} holds events of query {other}: they are not of "
                    "each other, or one of them is damaged",
                    hint=f"bring back tables and checkpoint that belong together, {anew}",
                )
        queries[stream] = query
    owner = replace(now, queries=queries, before=before)
    owner.write(conf.checkpoint)
    return owner


def note_queries(conf: Conf, owner: Owner, queries: Mapping[str, str]) -> None:
    """Note the ids of the streams' queries, before the first batch of a new one."""
    if owner.queries != queries:
        replace(owner, queries=dict(queries)).write(conf.checkpoint)


def _said(place: Mapping[str, Any]) -> str:
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
                    hint=_going_back_too(conf, pipelines[name], stream, ours),
                )


def _going_back_too(conf: Conf, pipeline: Pipeline, stream: str, ours: Mapping[str, Any]) -> str:
    """What takes an aggregation back to where statements are."""
    name, filed = pipeline.aggregation.name, pipeline.store.filed
    commits = None if filed is None else RecoveryPoints(name, filed.root, filed.records, conf.checkpoint)
    for number in () if commits is None else commits.possible():
        mark = commits.records.read(number).source.get(stream) if commits is not None else None
        if mark is not None and mark["query"] == ours["query"] and mark["batch"] <= ours["batch"]:
            return f"`rollup recover CONF --aggregation {name} --to-commit {number}` takes it back too, and nothing is lost"
    return f"bring the statements back, or {name} to a backup of that time"


def say_zones(pipeline: Pipeline, stream: str) -> None:
    """Say that from a batch on buckets are cut by another database of zones than those before it, where there is a zone."""
    version, aggregation = other_zones(pipeline.source.get(stream)), pipeline.aggregation
    if version is None or (not aggregation.own_zones and offset_ms(aggregation.zone) is not None):
        return
    structlog.get_logger("rollup").warning(
        "buckets are cut by another version of the time zone database than before; those stored stay as they are "
        "(where the rules of the zone changed, `rollup replay` cuts them anew)",
        aggregation=aggregation.name,
        zone="of each text" if aggregation.own_zones else aggregation.zone,
        before=version,
        now=zones.VERSION,
    )


def say_lost(pipeline: Pipeline, stream: str) -> None:
    """Say that a checkpoint is lost, and how many events at most may count twice because of it.

    What comes again is passed over up to what the tables have. A late event that comes after that point is late once
    more, and nothing tells it from a new one: the ledger knows how many late events have been taken in.
    """
    ledger = pipeline.store.snapshot().ledger()
    taken = ledger.filter(pc.is_in(ledger[KIND], value_set=pa.array(["moved", "corrected"])))
    structlog.get_logger("rollup").warning(
        "the checkpoint is lost, the stream comes again from its start: what the tables have is passed over, but late "
        "events may count twice (`rollup verify CONF --raw` tells, `rollup replay` puts it right)",
        aggregation=pipeline.aggregation.name,
        stream=stream,
        events_at_most=int(pc.sum(taken[EVENTS]).as_py() or 0),
    )
