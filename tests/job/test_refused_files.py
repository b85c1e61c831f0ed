"""A file that the system refuses is named, whoever writes it: what Python and Arrow say of a full disk has no name."""

from __future__ import annotations

import errno
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from rollup.core.errors import StoreError, SystemFault
from rollup.core.objects import write_durably
from rollup.hosts.exchange import batches_file
from rollup.hosts.spark.watching.failures import cause, of_query

FULL = Path("/dev/full")
ROWS = pa.record_batch({"n": list(range(100_000))})


def durable() -> None:
    write_durably(FULL, b"x")


def exchanged() -> None:
    with batches_file(FULL, ROWS.schema) as writer:
        writer.write_batch(ROWS)


@pytest.mark.parametrize("write", [durable, exchanged])
def test_a_full_disk_is_said_with_the_name_of_the_file(write: object) -> None:
    with pytest.raises(OSError) as caught:
        write()  # type: ignore[operator]
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(FULL))
    said = cause(Exception(f"Traceback (most recent call last):\nOSError: {caught.value}\n\n=== Streaming Query ==="))
    assert isinstance(said, SystemFault)
    assert str(said).startswith("cannot write or read /dev/full: No space left on device (")


def moved() -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "/t/.x", None, "/t/it's x")


def handled() -> None:
    try:
        durable()
    except OSError:
        raise ValueError("no such zone")  # noqa: B904  # as it is in code that nobody thought through


def wrapped() -> None:
    try:
        durable()
    except OSError as problem:
        raise LookupError("no such key") from problem


def ours() -> None:
    try:
        raise StoreError("nothing to read yet")
    except StoreError:
        handled()


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (durable, "cannot write or read /dev/full: No space left on device"),
        (moved, "cannot move /t/.x to /t/it's x: No space left on device"),
        (handled, "the job stopped: no such zone (ValueError)"),
        (wrapped, "the job stopped: no such key (LookupError)"),
        (ours, "the job stopped: no such zone (ValueError)"),
    ],
)
def test_of_several_errors_the_last_is_what_stopped_the_job(work: Callable[[], None], said: str) -> None:
    with pytest.raises((OSError, ValueError, LookupError)) as caught:
        work()
    text = "".join(traceback.format_exception(caught.value))
    assert cause(Exception(f"terminated with exception: {text}\n SQLSTATE: 39000")).message.startswith(said), text


def test_what_a_batch_met_is_not_said_of_the_checkpoint() -> None:
    inside = Exception("Traceback (most recent call last):\n…\nCaused by: java.io.IOException: No space left on device")
    assert of_query(inside, Path("c")) is inside


def test_the_command_line_names_it_too() -> None:
    program = (
        "from pathlib import Path; from rollup.cli import main; from rollup.core.objects import write_durably\n"
        "main.cli = lambda **_: write_durably(Path('/dev/full'), b'x')\nmain.app()"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    cure = "(make room there, then start again: what is committed is whole)"
    assert ran.returncode == 2
    assert ran.stderr == f"rollup: cannot write or read /dev/full: No space left on device {cure}\n"
