"""What stopped a streaming query, as the one line a user can act on."""

from __future__ import annotations

import re

from rollup.core import errors
from rollup.core.errors import FencedError, RollupError

_PYTHON = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Problem)): (.+)$", re.MULTILINE)
_JAVA = re.compile(r"(?:^|Caused by: |: )(?:[a-z]\w*\.)+(\w+(?:Exception|Error)): (.+?)$", re.MULTILINE)

_WRITTEN_BY_ANOTHER = "CONCURRENT_STREAM_LOG_UPDATE"
"""What Spark says when a batch of its log is there already: a job that was paused meets it before it meets its lease."""


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
    """
    if isinstance(problem, RollupError):
        return problem
    text = str(problem)
    for name, message in reversed(_PYTHON.findall(text)):
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
    return RollupError(f"the job stopped: {_last_line(text)}")


def _last_line(text: str) -> str:
    """The innermost message of a stack of them."""
    found = [*_JAVA.findall(text), *_PYTHON.findall(text)]
    if found:
        name, message = found[-1]
        return f"{message} ({name})"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "without saying why"
