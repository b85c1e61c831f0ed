"""`python -m tests.job.late_kill CONF POINT`: a job, over a model of Spark, that is killed at a point of a commit whose
batch Spark has behind it already."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from rollup.conf import load
from rollup.hosts.spark.query_log import newest_done
from rollup.stores.base import Commit, Filed
from rollup.stores.delta.store import DeltaStore
from tests.job.kills import once

BATCH = 3


def main() -> None:
    """The command line."""
    path, fault = Path(sys.argv[1]), sys.argv[2]
    log, made = load(path).checkpoint / "S", DeltaStore.commit

    def late(store: DeltaStore, commit: Commit | Filed) -> None:
        if commit.source["S"]["batch"] == BATCH:
            deadline = time.monotonic() + 60
            while newest_done(log) < BATCH:
                assert time.monotonic() < deadline, "Spark does not wait for a commit"
                time.sleep(0.01)
            os.environ["ROLLUP_FAULT"] = fault
        made(store, commit)

    DeltaStore.commit = late
    once(path)


if __name__ == "__main__":
    main()
