"""The job into PostgreSQL beside the same job into Delta: events/s over the same files (aim: 0.6 at 100 keys).

``python -m benchmarks.stores`` (``--smoke`` for a tiny run). The server is a private one with its usual, durable
settings: every commit waits for the disk.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import emit, four_batches, scratch
from benchmarks.ours import run_cascade
from rollup.stores.pgserver import PgServer

BENCH = "stores"
AIM = 0.6


def main() -> None:
    """Print the two rates and their ratio."""
    events, batch = four_batches(BENCH, __doc__)
    found: dict[str, dict[str, Any]] = {}
    with scratch("delta") as folder:
        found["delta"] = run_cascade(events.files, events.keys, folder, batch)
    with tempfile.TemporaryDirectory(prefix="rollup-bench-") as place, scratch("postgresql") as folder:
        Path(place).chmod(0o755)
        with PgServer(Path(place)) as server:
            found["postgresql"] = run_cascade(events.files, events.keys, folder, batch, server.url)
    for store, run in found.items():
        for temperature, rate in (("hot", run["hot_rate"]), ("cold", run["total_rate"])):
            emit(BENCH, f"sec…year into {store}", rate, "events/s", temperature=temperature, keys=events.keys)
    for temperature, name in (("hot", "hot_rate"), ("cold", "total_rate")):
        if found["delta"][name]:
            ratio = found["postgresql"][name] / found["delta"][name]
            emit(
                BENCH, "postgresql / delta", ratio, "ratio", ratio=ratio, aim=AIM, peer="delta", temperature=temperature
            )


if __name__ == "__main__":
    main()
