"""A DAG for Airflow 3: every ten minutes what has come since, every night a check and the upkeep.

ROLLUP_CONF is the configuration of the job, as the workers see it. A run that is stopped is taken up by the next one.
Exit code 2 means that something of the user's must be put right first, so the task fails without another try.
"""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta

from airflow.sdk import dag, task
from airflow.sdk.exceptions import AirflowFailException

CONF = os.environ.get("ROLLUP_CONF", "/etc/rollup/job.toml")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def rollup(*words: str) -> None:
    """Run a command of rollup; its output is in the task's log."""
    code = subprocess.run(["rollup", *words]).returncode
    if code == 2:
        raise AirflowFailException(f"rollup {words[0]} was refused: the log says what must be put right")
    if code:
        raise RuntimeError(f"rollup {words[0]} ended with exit code {code}")


@dag(schedule="*/10 * * * *", start_date=BEGIN, catchup=False, max_active_runs=1)
def rollup_run() -> None:
    """All that is there, once. The lease refuses a second run, whoever starts it."""

    @task(retries=3, retry_delay=timedelta(minutes=1))
    def run() -> None:
        rollup("run", CONF, "--once")

    run()


@dag(schedule="30 3 * * *", start_date=BEGIN, catchup=False, max_active_runs=1)
def rollup_upkeep() -> None:
    """For jobs that run with --once: a running job does the upkeep itself."""

    @task
    def verify() -> None:
        rollup("verify", CONF)

    @task
    def maintain() -> None:
        rollup("maintain", CONF)

    verify() >> maintain()  # pyright: ignore[reportUnusedExpression]


rollup_run()
rollup_upkeep()
