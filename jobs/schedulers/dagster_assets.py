"""The levels' tables as assets of Dagster, which one run of the job materializes, and a check of them.

ROLLUP_CONF is the configuration of the job. The assets are named as the tables are, below the name of the app's file.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetCheckSpec,
    AssetKey,
    AssetSpec,
    Definitions,
    Failure,
    MaterializeResult,
    ScheduleDefinition,
    define_asset_job,
    multi_asset,
)

from rollup.conf import load

CONF = os.environ.get("ROLLUP_CONF", "/etc/rollup/job.toml")
FOUND = load(CONF)
TABLES = {
    AssetKey([Path(FOUND.app).stem, aggregation.table(level)]): (aggregation.name, level.unit)
    for aggregation in FOUND.program().aggregations.values()
    for level in aggregation.levels
}
CHECKED = next(iter(TABLES))


def rollup(*words: str) -> subprocess.CompletedProcess[str]:
    """A command of rollup, to its end; its messages are in the log of the run."""
    return subprocess.run(["rollup", *words], stdout=subprocess.PIPE, text=True)


@multi_asset(
    specs=[AssetSpec(key, kinds={"rollup"}) for key in TABLES], check_specs=[AssetCheckSpec("verify", asset=CHECKED)]
)
def levels() -> Iterator[Any]:
    """All that is there, once; then the newest commit of each aggregation, and whether its levels agree."""
    ended = rollup("run", CONF, "--once")
    if ended.returncode:
        raise Failure(f"rollup run ended with exit code {ended.returncode}", allow_retries=ended.returncode != 2)
    status = {row["aggregation"]: row for row in map(json.loads, rollup("status", CONF, "--json").stdout.splitlines())}
    for key, (aggregation, _) in TABLES.items():
        yield MaterializeResult(asset_key=key, metadata={"status": status.get(aggregation, {})})
    yield AssetCheckResult(passed=rollup("verify", CONF).returncode == 0, asset_key=CHECKED, check_name="verify")


defs = Definitions(
    assets=[levels],
    schedules=[ScheduleDefinition(job=define_asset_job("rollup_run", "*"), cron_schedule="*/10 * * * *")],
)
