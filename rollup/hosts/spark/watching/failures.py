"""What stopped a streaming query, as the one line a user can act on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from rollup.core import errors
from rollup.core.errors import FencedError, RollupError, StoreError, SystemFault, refused_by_system

_PYTHON = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Problem)): (.+)$", re.MULTILINE)
_JAVA = re.compile(r"(?:^|Caused by: |: )(?:[a-z]\w*\.)+(\w+(?:Exception|Error)): (.+?)$", re.MULTILINE)

_NAMED = re.compile(r"\[Errno (\d+)\] .+?: (['\"])(.+?)\2(?: -> (['\"])(.+)\4)?$")
"""What Python says of a file that the system refuses, and of one that could not be moved to another."""
_HANDLED = re.compile(
    r"During handling of the above exception, another exception occurred:"
    r"|The above exception was the direct cause of the following exception:"
)
"""What it says behind an error that was handled, before the one that was raised then."""
_WRITTEN_BY_ANOTHER = "CONCURRENT_STREAM_LOG_UPDATE"
"""What Spark says when a batch of its log is there already: a job that was paused meets it before it meets its lease."""

_IN_BATCH = "Traceback (most recent call last)"
"""In what Spark says when `foreachBatch` raised; without it, it is about the query itself."""
_NO_ROOM = re.compile(
    r"\bIOException: (No space left on device|Disk quota exceeded|File too large|Read-only file system)"
)
"""What it says, without a name, when it cannot write the log of a query."""
_NO_NAME = re.compile(r"(?:^|\] )(No space left on device|Disk quota exceeded) \(")
"""The last line of what it says of a file of its own that cannot be written, or of one of Python's."""
_MAKE_ROOM = "make room on the disk of Spark's temporary files, then start again: what is committed is whole"
_LITTLE = 1 << 20
_NO_TOPIC = "UnknownTopicOrPartitionException"
"""What it says, without a name, when the topic of a source has been deleted."""
_GONE = re.compile(
    r"Some data may have been lost because they are not available in Kafka.*?Reason: *(.+?)\.? *$", re.S | re.M
)
"""What Spark's Kafka source says, with advice to go on without what is lost."""


def cause(problem: BaseException) -> RollupError:
    """The error at the bottom of an exception of Spark: ours when a batch raised it, otherwise its own first line.

    >>> cause(Exception("Traceback (most recent call last):\\nrollup.core.errors.FencedError: another job is here"))
    FencedError('another job is here')
    >>> said = "Some data may have been lost because they are not available in Kafka any more;\\neither …\\nReason: {}.\\n1) …"
    >>> print(cause(Exception(said.format("Partition t-0 offset was changed from 9 to 3"))).message)
    a Kafka topic no longer has what is to be read of it: Partition t-0 offset was changed from 9 to 3
    >>> print(cause(Exception("Traceback …\\nOSError: [Errno 28] No space left on device: '/t/x.arrow'\\n")).message)
    cannot write or read /t/x.arrow: No space left on device
    >>> print(cause(Exception("OSError: [Errno 28] No space left on device: '/t/.x' -> '/t/x'")).message)
    cannot move /t/.x to /t/x: No space left on device
    """
    if isinstance(problem, RollupError):
        return problem
    text = str(problem)
    raised = _PYTHON.findall(_HANDLED.split(text)[-1])
    for name, message in reversed(raised):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, RollupError):
            return kind(message)
    if _WRITTEN_BY_ANOTHER in text:
        return FencedError("another job goes on with this checkpoint", hint="this one has been replaced, and ends")
    if gone := _GONE.search(text):
        return RollupError(
            f"a Kafka topic no longer has what is to be read of it: {gone[1]}",
            hint="retention removed it, or the topic was made anew; to read a topic from its start, remove the folder of "
            "its stream in the checkpoint, or `failOnDataLoss = false` in the source's options goes on with what is left",
        )
    if raised and (refused := _refused(raised[-1][1])):
        return refused
    if nameless := _NO_NAME.search(last := _last_line(text)):
        return Nameless(f"the job stopped: {nameless[1]}", hint=_MAKE_ROOM)
    return RollupError(f"the job stopped: {last}")


class Nameless(SystemFault):
    """A disk that has no room, and nobody said which: a task's or Spark's own temporary file."""


def of_query(
    problem: Exception, checkpoint: Path, topic: str | None = None, disks: Mapping[str, Path] | None = None
) -> Exception:
    """What stopped a query, with the name that Spark leaves out.

    That is its log's folder, where that could not be written, or the topic that it reads, where that is not there. Of a file
    without a name it is said which of the `disks` that a job writes on have no room.

    >>> print(of_query(Exception("java.io.IOException: No space left on device"), Path("c/S")))
    cannot write the checkpoint c/S: No space left on device (make room there and start again: what is committed is whole)
    >>> print(of_query(Exception("…UnknownTopicOrPartitionException: This server…"), Path("c/S"), "t").message)
    topic t of stream S is not there
    """
    text = str(problem)
    if _IN_BATCH in text:
        found = cause(problem)
        full = [f"{name} ({path})" for name, path in (disks or {}).items() if _full(path)]
        if not full or not isinstance(found, Nameless):
            return problem
        return Nameless(found.message, hint=f"{_MAKE_ROOM}; full is that of {', '.join(full)}")
    if refused := _NO_ROOM.search(text):
        return SystemFault(
            f"cannot write the checkpoint {checkpoint}: {refused[1]}",
            hint="make room there and start again: what is committed is whole",
        )
    if topic is not None and _NO_TOPIC in text:
        return StoreError(
            f"topic {topic} of stream {checkpoint.name} is not there",
            hint=f"make it, or mend its name; one that is made anew is read from its start once {checkpoint} is removed",
        )
    return problem


def _full(path: Path) -> bool:
    """Whether a disk has less than a page or two for a file of ours."""
    try:
        return shutil.disk_usage(path).free < _LITTLE
    except OSError:
        return False


def _refused(said: str) -> SystemFault | None:
    """The fault that Python's words for an error tell of, when the system refused a file that they name."""
    if not (named := _NAMED.match(said)):
        return None
    number, _, path, _, other = named.groups()
    what = f"cannot move {path} to {other}" if other else f"cannot write or read {path}"
    return refused_by_system(what, OSError(int(number), ""))


def _last_line(text: str) -> str:
    """The innermost message of a stack of them."""
    found = [*_JAVA.findall(text), *_PYTHON.findall(text)]
    if found:
        name, message = found[-1]
        return f"{message} ({name})"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "without saying why"
