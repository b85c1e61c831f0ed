"""One process takes another's place: the daemon that Java starts, and one that was begun beside Java and has loaded.

Java asks for a daemon when there is a first task, and the first batch would wait for all that it loads. So another is
begun together with Java, loads while that boots, and waits here. What Java starts then hands over its standard input and
output, and stays for as long as the other serves in its place. Where that cannot be, it serves itself.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

PLACE = "ROLLUP_DAEMON"
"""The environment variable, of Java's too, that names the socket of the one that is begun early."""
_JAVAS = ("SPARK_", "PYSPARK_", "_PYSPARK_", "PYTHON_", "PYTHONPATH=", "PYTHONUNBUFFERED=", "OMP_NUM_THREADS=")
_SHELLS = ("_=", "SHLVL=", "PWD=", "OLDPWD=")
"""How variables begin that Java and its script set for a daemon, and that change nothing of what it loads."""
_STANDARD = (0, 1, 2)


class Early:
    """The process that is begun early; to be made before it loads anything, as who asks then waits instead of loading."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._asked = socket.socket(socket.AF_UNIX)
        self._asked.bind(os.environ[PLACE])
        self._asked.listen()

    def take_over(self) -> socket.socket | None:
        """Wait for the daemon of Java, and become it; what is to be kept open as long as it serves.

        None when Java's own input is closed first, so that there is nobody to serve, or when that daemon would load
        something else: of another Python, from other folders, told otherwise.
        """
        with self._asked:
            if not self._somebody():
                return None
            other, _ = self._asked.accept()
        with suppress(OSError, ValueError):
            _, files, _, _ = socket.recv_fds(other, 1, len(_STANDARD))
            with other.makefile("rb") as said:
                told = json.loads(said.read())
            if len(files) == len(_STANDARD) and self._alike(told):
                _become(told, files)
                other.sendall(b"!")
                return other
        other.close()
        return None

    def _somebody(self) -> bool:
        poll = select.poll()
        poll.register(0, 0)  # it has no content, only an end, which is Java's as well
        poll.register(self._asked, select.POLLIN)
        return all(file != 0 for file, _ in poll.poll())

    def _alike(self, told: Mapping[str, Any]) -> bool:
        own, others = self._environment, told["environment"]
        differ = [name for name in own.keys() | others.keys() if own.get(name) != others.get(name)]
        same = told["python"] == sys.executable and _imports(told["path"]) == _imports(sys.path)
        return same and all(f"{name}=".startswith(_JAVAS + _SHELLS) for name in differ)


def handed_over() -> bool:
    """Let the process that was begun early serve in the place of this one, until it ends; False when it does not."""
    place = os.environ.get(PLACE)
    if place is None:
        return False
    with suppress(OSError), socket.socket(socket.AF_UNIX) as early:
        early.connect(place)
        socket.send_fds(early, [b"."], _STANDARD)
        told = {"environment": dict(os.environ), "path": sys.path, "words": sys.argv, "python": sys.executable}
        early.sendall(json.dumps(told).encode())
        early.shutdown(socket.SHUT_WR)
        if early.recv(1):
            with suppress(OSError):
                early.recv(1)  # nothing comes but the end
            return True
    return False


def _become(told: Mapping[str, Any], files: Sequence[int]) -> None:
    for number, file in zip(_STANDARD, files, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.path[:], sys.argv = told["path"], told["words"]


def _imports(path: Sequence[str]) -> list[str]:
    """The folders that modules may be of; Spark adds a jar."""
    return [entry for entry in path if not entry.endswith(".jar")]
