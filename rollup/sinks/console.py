"""Rows of a stream at the terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rollup.core.json_line import json_line


class ConsoleSink:
    """JSON lines on standard output."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.stream = sys.stdout

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        for row in rows.to_pylist():
            print(json_line(row), file=self.stream, flush=True)

    def forget(self, query: str, batch: int) -> None:
        """What is printed stays printed."""
