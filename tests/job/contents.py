"""Everything a job has left in a folder, in a form that two runs can be compared by, to the last bit of a number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from rollup.checkpoint.records import RecordFolder
from rollup.program import Program
from rollup.sources.base import DEAD
from rollup.stores.dead_letters import DeadLetters


def contents(folder: Path, program: Program) -> dict[str, Any]:
    """Rows of each table at its pinned version, open rows, clocks, dead letters: read past our own readers."""
    found: dict[str, Any] = {}
    for name in program.aggregations:
        records = RecordFolder(folder / "_rollup" / name)
        record = records.newest()
        assert record is not None, f"{name} has no commit"
        for table, version in record.versions.items():
            found[f"{name}_{table}"] = rows(
                DeltaTable(str(folder / f"{name}_{table}"), version=version).to_pyarrow_table()
            )
        for level, file in record.open.items():
            found[f"{name} open {level}"] = rows(records.read_rows(file))
        found[f"{name} clocks"] = dict(record.clocks)
        found[f"{name} commits"] = record.number
    found["letters"] = rows(DeadLetters(folder).read().select(DEAD.names))
    return found


def rows(table: pa.Table) -> list[str]:
    """Rows in an order of their own; numbers are written exactly."""
    return sorted(repr([row[name] for name in sorted(row)]) for row in table.to_pylist())
