"""A server of tests that is a process of its own, with all that it keeps in a folder that goes with it."""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from contextlib import ExitStack
from itertools import count
from typing import Self


class Served(ABC):
    """It is there within `with`, or between start() and stop()."""

    def __init__(self) -> None:
        self.port = 0
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        self._held = ExitStack()

    @abstractmethod
    def start(self) -> Self:
        """Start it and wait until it answers."""

    def stop(self) -> None:
        """End it; nothing of it stays."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None
        self._held.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
