"""Whose checkpoint it is: a job must not go on from the place that another app reached, or that other tables hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rollup.conf import Conf
from rollup.errors import ConfigError
from rollup.plan.program import Program
from rollup.sources.registry import source

_OWNER = "rollup.json"


def claim(conf: Conf, program: Program) -> None:
    """Take the checkpoint of a configuration for its app, and let sources look before their first batch.

    Raises ConfigError when it belongs to another app, when its tables are gone, or when it cannot be written.
    """
    _own(conf, program)
    _tables_are_there(conf, program)
    for stream in program.inputs:
        begin = getattr(source(program.streams[stream], conf.sources[stream]), "begin", None)
        if begin is not None and not _begun(conf, stream):
            begin()


def _own(conf: Conf, program: Program) -> None:
    owner = _identity(conf, program)
    file = conf.checkpoint / _OWNER
    try:
        conf.checkpoint.mkdir(parents=True, exist_ok=True)
        if file.exists():
            _compare(conf.checkpoint, json.loads(file.read_text()), owner)
        file.write_text(json.dumps(owner, indent=1))
    except OSError as problem:
        raise ConfigError(f"cannot write the checkpoint {conf.checkpoint}: {problem.strerror}") from None
    except ValueError as problem:
        raise ConfigError(f"{file} is damaged: {problem}", hint="remove it if the checkpoint is this job's") from None


def _identity(conf: Conf, program: Program) -> dict[str, Any]:
    """What must stay for a checkpoint to stay: the streams, where each comes from, where tables go."""
    streams = {name: {key: conf.sources[name].get(key) for key in ("kind", "path", "topic")} for name in program.inputs}
    return {"streams": streams, "store": {key: conf.store.get(key) for key in ("kind", "path", "url")}}


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
    commits = conf.checkpoint / stream / "commits"
    return commits.is_dir() and any(file.name.isdigit() for file in commits.iterdir())


def _tables_are_there(conf: Conf, program: Program) -> None:
    """Sources do not send again what the checkpoint has behind it, so without tables it would be lost silently."""
    if conf.store["kind"] != "delta" or not any(_begun(conf, stream) for stream in program.inputs):
        return
    roots = [conf.tables / aggregation.table(aggregation.root) for aggregation in program.aggregations.values()]
    if roots and not any(root.exists() for root in roots):
        raise ConfigError(
            f"the checkpoint {conf.checkpoint} has batches behind it, but {roots[0]} is gone",
            hint="remove the checkpoint to read the sources from the start",
        )
