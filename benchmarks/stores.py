"""The job into PostgreSQL beside the same job into Delta: events/s over the same files (aim: 0.6 at 100 keys).

``python -m benchmarks.stores`` (``--smoke`` for a tiny run): 32 batches of 5 M events. The server is a private one with
its usual, durable settings: every commit waits for the disk. Commits trail there; a rate goes to the end of the last.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import Events, batches, emit, scratch
from benchmarks.ours import run_cascade
from rollup.stores.postgres.server import PgServer

BENCH = "stores"
AIM = 0.6
TEMPERATURES = (("hot", "hot_rate"), ("cold", "total_rate"))


def main() -> None:
    """Print the rates and their ratios."""
    events, batch = batches(BENCH, __doc__, number=32)
    with scratch("delta") as folder:
        delta = run_cascade(events.files, events.keys, folder, batch)
    _emit("delta", delta, events.keys)
    for name, more in (("postgresql", {}), ("postgresql, partitions of an hour", {"partition": "hour"})):
        run = _into_postgresql(events, batch, more)
        _emit(name, run, events.keys)
        for temperature, rate in TEMPERATURES:
            if delta[rate]:
                found, said = run[rate] / delta[rate], {"aim": AIM, "peer": "delta", "temperature": temperature}
                emit(BENCH, f"{name} / delta", found, "ratio", ratio=found, **said)


def _into_postgresql(events: Events, batch: int, options: Mapping[str, str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="rollup-bench-") as place, scratch("postgresql") as folder:
        Path(place).chmod(0o755)
        with PgServer(Path(place)) as server:
            return run_cascade(events.files, events.keys, folder, batch, {"kind": "sql", "url": server.url, **options})


def _emit(store: str, run: Mapping[str, Any], keys: int) -> None:
    for temperature, rate in TEMPERATURES:
        emit(BENCH, f"sec…year into {store}", run[rate], "events/s", temperature=temperature, keys=keys)


if __name__ == "__main__":
    main()
