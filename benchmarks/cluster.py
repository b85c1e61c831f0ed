"""The job on a standalone cluster, a master and two workers as processes of their own, beside the job in one process.

``python -m benchmarks.cluster`` (``--smoke`` for a tiny run). On one machine the cluster can only cost: executors are
processes of their own, and partial rows reach the driver through Spark instead of through memory that both see.
"""

from __future__ import annotations

from typing import Any

from benchmarks.common import batches, emit, scratch
from benchmarks.ours import run_cascade
from tests.servers.cluster import Cluster

BENCH = "cluster"


def main() -> None:
    """Print the two rates and their ratio."""
    events, batch = batches(BENCH, __doc__)
    found: dict[str, dict[str, Any]] = {}
    with scratch("local") as folder:
        found["local"] = run_cascade(events.files, events.keys, folder, batch)
    with scratch("cluster") as folder, Cluster(folder / "daemons", memory="1g") as cluster:
        found["cluster"] = run_cascade(events.files, events.keys, folder, batch, settings=cluster.settings("800m"))
    for place, run in found.items():
        emit(BENCH, f"sec…year into Delta, {place}", run["hot_rate"], "events/s", temperature="hot", keys=events.keys)
    ratio = found["cluster"]["hot_rate"] / found["local"]["hot_rate"]
    emit(BENCH, "cluster / local", ratio, "ratio", ratio=ratio, peer="local", temperature="hot")


if __name__ == "__main__":
    main()
