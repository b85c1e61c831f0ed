"""The files of jobs/ under a real `spark-submit`: their exit codes, which schedulers act on, and what they do to tables.

Each is a process with a Java of its own, so this is thin: what the commands do is tested where they are called in this
process. One job is in the normal run; the others are a life of an aggregation, one process a step, in the slow one.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollup.archive import QUICK, java_options
from rollup.jars import spark_jars
from rollup.java import java_home
from tests.job.jobs import ROOT
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import MIDNIGHT, Place
from tests.lifecycle.opened import Opened, commands, everything, spoil


def submit(job: str, *arguments: object, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """`spark-submit jobs/<job>.py …` to its end: exit code, and standard output and error."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    environment["SPARK_LAUNCHER_OPTS"] = QUICK
    local = ("--master", "local[1]", "--driver-memory", "1g", "--conf", "spark.ui.enabled=false")
    java = ("--driver-java-options", f"{QUICK} {java_options()}")
    command = [
        str(home / "bin" / "spark-submit"),
        *local,
        *java,
        *options,
        str(ROOT / "jobs" / f"{job}.py"),
    ]
    ended = subprocess.run(
        [*command, *map(str, arguments)], cwd="/", env=environment, capture_output=True, text=True, timeout=240
    )
    return ended.returncode, ended.stdout + ended.stderr


def files(place: Place) -> Path:
    """Four files of trades for a place; its configuration."""
    events = trades(400)
    for at in range(0, 400, 100):
        place.add(*events[at : at + 100])
    return place.conf.path


@pytest.mark.spark
def test_aggregate_under_spark_submit_takes_all_files_and_ends_with_zero(tmp_path: Path) -> None:
    conf = files(Place(tmp_path, "@OutOfOrder('correct') ").write())
    code, said = submit("aggregate", "--conf", conf, "--once")
    assert code == 0, said
    assert "Traceback" not in said
    assert Opened.of(conf).pipeline.source["Trades"]["arrivals"] == 400
    assert len(everything(conf)["seconds"]) > 300


_ASKED = """
from rollup.hosts.spark.session import session
asked = session({"spark.sql.session.timeZone": "Asia/Tokyo"}, kafka=False).sparkContext.getConf()
names = "master driver.memory sql.shuffle.partitions sql.session.timeZone jars"
print("ASKED", *(asked.get(f"spark.{name}") for name in names.split()))
"""


@pytest.mark.spark
@pytest.mark.slow
def test_what_spark_submit_is_told_stands_above_our_settings_and_below_those_of_the_configuration(
    tmp_path: Path,
) -> None:
    (tmp_path / "asked.py").write_text(_ASKED)
    jar = spark_jars(kafka=True)[0]
    told = ("--conf", "spark.sql.shuffle.partitions=9", "--conf", "spark.sql.session.timeZone=UTC", "--jars", str(jar))
    code, said = submit(str(tmp_path / "asked"), options=told)
    assert code == 0, said
    (line,) = (line for line in said.splitlines() if line.startswith("ASKED"))
    _, master, memory, partitions, zone, jars = line.split()
    assert (master, memory, partitions, zone) == ("local[1]", "1g", "9", "Asia/Tokyo")
    assert jar.name in jars and "delta" in jars


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_the_life_of_an_aggregation_by_the_jobs_of_the_runbook(tmp_path: Path) -> None:
    conf = files(Place(tmp_path, "@OutOfOrder('correct') ").write())
    before, said = dict[str, list[tuple[object, ...]]](), dict[str, str]()
    for (program, job, *arguments), expected in commands("README.md", "submit"):
        assert program == "spark-submit"
        if expected:
            before = everything(conf)
            spoil(conf, MIDNIGHT, MIDNIGHT + 86_400_000)
        code, output = submit(Path(job).stem, *(conf if a.endswith(".toml") else a for a in arguments))
        assert code == expected and "Traceback" not in output, output
        said[Path(job).stem] = said.get(Path(job).stem, "") + output
        if job.endswith("replay.py"):
            assert before and everything(conf) == before
    assert set(said) == {path.stem for path in (ROOT / "jobs").glob("*.py")}, "every job is run"
    assert " differences" in said["verify"] and "every level is right" in said["verify"]
    assert "nothing to recover" in said["recover"] and "nothing to remove" in said["maintain"]
    code, output = submit("verify", tmp_path / "absent.toml")
    assert code == 2 and "absent.toml" in output and "Traceback" not in output
