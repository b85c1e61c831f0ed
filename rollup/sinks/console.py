"""Rows of a stream at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, TextIO

import pyarrow as pa

from rollup.core.errors import StoreError
from rollup.core.json_line import json_line
from rollup.sinks.base import AGAIN, Held


class ConsoleSink:
    """JSON lines on standard output."""

    tells = False
    filled = False
    place = "standard output"

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.stream: TextIO = sys.stdout
        self._name: str = options["name"]

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Raises StoreError when standard output does not take them."""
        try:
            for row in rows.to_pylist():
                print(json_line(row), file=self.stream, flush=True)
        except OSError as problem:
            raise StoreError(
                f"cannot print the rows of {self._name} on standard output: {problem.strerror}", hint=AGAIN
            ) from None

    def held(self, line: str) -> None:
        """What is printed is printed."""

    def forget(self, line: str, rows: int) -> bool:
        """What is there stays there."""
        return False
