"""The DAG and the assets of jobs/schedulers, run by Airflow and Dagster themselves, in environments of their own.

Each is installed once into the user's cache, pinned: a minute or two. Both run a real job over files of trades.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from rollup.core.objects import names_in
from rollup.jars import cache_root
from tests.job.jobs import Job, trades_in

ROOT = Path(__file__).parents[1]
SCHEDULERS = ROOT / "jobs" / "schedulers"
AIRFLOW = ("apache-airflow-core==3.3.2", "apache-airflow-providers-standard~=1.9")
DAGSTER = ("dagster==1.13.29",)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def environment(name: str, requirements: tuple[str, ...]) -> Path:
    """The folder of commands of an environment that has a scheduler; `rollup` is that of the tests."""
    folder = cache_root() / "schedulers" / f"{name}-{requirements[0].partition('==')[2]}"
    if not (folder / "whole").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", *requirements], check=True, timeout=900)
        (folder / "whole").touch()
    return folder / "bin"


def variables(job: Job, folder: Path) -> dict[str, str]:
    """What a worker's environment says: the configuration, and `rollup` on the path."""
    commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "ROLLUP_CONF": str(job.path), "PATH": commands, "HOME": str(folder)}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job over a folder with one file."""
    return Job(tmp_path, trades_in(tmp_path))


def commits(job: Job) -> int:
    """How many commits the tables have."""
    return sum(name.startswith("commit-") for name in names_in(job.conf.tables / "_rollup" / "TradeAgg"))


def test_airflow_runs_the_dags(job: Job, tmp_path: Path) -> None:
    """Airflow's own `dags test`: 60 s once it is installed."""
    home = tmp_path / "airflow"
    settings = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(SCHEDULERS),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    said = {**variables(job, tmp_path), **settings}
    airflow = environment("airflow", AIRFLOW) / "airflow"

    def ask(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([airflow, *words], env=said, capture_output=True, text=True, timeout=300)

    made = ask("db", "migrate")
    assert made.returncode == 0, made.stderr
    assert "No data found" in ask("dags", "list-import-errors").stdout
    for name in ("rollup_run", "rollup_upkeep"):
        ran = ask("dags", "test", name)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "state=success" in ran.stdout + ran.stderr
    assert commits(job) >= 1
    job.path.write_text(job.path.read_text().replace('kind = "json"', 'kind = "jsn"'))
    refused = ask("dags", "test", "rollup_run")
    assert "AirflowFailException" in refused.stdout + refused.stderr


def test_dagster_materializes_every_level(job: Job, tmp_path: Path) -> None:
    """Dagster's own `asset materialize`: 40 s once it is installed."""
    folder = environment("dagster", DAGSTER)
    (
        folder.parent / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages" / "rollup.pth"
    ).write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    (tmp_path / "home").mkdir()
    said = {**variables(job, tmp_path), "DAGSTER_HOME": str(tmp_path / "home")}
    ran = subprocess.run(
        [folder / "dagster", "asset", "materialize", "-f", SCHEDULERS / "dagster_assets.py", "--select", "*"],
        env=said, cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    log = ran.stdout + ran.stderr
    assert ran.returncode == 0, log
    levels = job.conf.program().aggregations["TradeAgg"].levels
    assert all(f"TradeAgg_{level.table_suffix}" in log for level in levels)
    assert log.count("ASSET_MATERIALIZATION -") == len(levels)
    assert "ASSET_CHECK_EVALUATION" in log
    assert commits(job) >= 1
