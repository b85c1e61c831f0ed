"""What a job says, and where: nothing on standard error unless something is wrong, the address of a broker that is not
there, JSON where it is asked for. And in what order it reads files that were made together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from rollup.core.errors import SourceError
from rollup.hosts.reporting.progress import Reporter, as_json
from rollup.hosts.spark.launch import _tell
from rollup.lifecycle.readiness import reach
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

APP = "define stream S (k string, v long, ts long);\ndefine aggregation A from S select first(k) as f, last(k) as l, count() as n aggregate by ts every sec, min;\n"


@pytest.fixture
def _json() -> Iterator[None]:
    as_json()
    yield
    structlog.reset_defaults()


def test_of_what_java_says_only_the_usual_line_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    said = "import sys; sys.stderr.write('WARNING: Using incubator modules: jdk.incubator.vector\\nno room\\nWARNING: else\\n')"
    process = subprocess.Popen([sys.executable, "-c", said], stderr=subprocess.PIPE)
    _tell(process)
    process.wait()
    assert capfd.readouterr().err == "no room\nWARNING: else\n"


@pytest.mark.parametrize(
    "servers", ["127.0.0.1:9", "127.0.0.1:9, PLAINTEXT://localhost:10", "no such host:9092", "nowhere"]
)
def test_a_broker_that_is_not_there_is_named_at_once(servers: str, tmp_path: Path) -> None:
    job = Job(tmp_path, {"kind": "kafka", "servers": servers, "topic": "t"}, app=APP, streams=("S",))
    with pytest.raises(SourceError) as refused:
        reach(job.conf, job.conf.program(), 0.1)
    assert all(one.strip() in str(refused.value) for one in servers.split(","))
    assert "[sources.S]: no broker can be reached" in str(refused.value)


@pytest.mark.usefixtures("_json")
def test_logs_and_warnings_are_json_by_one_switch(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(json_logs=True, terminal=True)
    structlog.get_logger("rollup").info("batch", late={"moved": 5}, lag=float("inf"))
    reporter.warn(["warning: stream S: much is wrong"])
    reporter.close()
    out, err = capsys.readouterr()
    first, second = map(json.loads, out.splitlines())
    assert (first["event"], first["level"], first["late"], first["lag"]) == ("batch", "info", {"moved": 5}, "Infinity")
    assert (second["event"], second["level"]) == ("stream S: much is wrong", "warning")
    assert {"time"} <= first.keys() & second.keys() and err == ""


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("size", [1, 70_000], ids=["together", "one by one"])
def test_files_of_one_second_are_read_in_the_order_of_their_names(kind: str, size: int, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    job = Job(tmp_path, {"kind": kind, "path": "in"}, app=APP, streams=("S",))
    now = int(time.time())
    for place, name in enumerate(
        "dabc"
    ):  # d is a second older than the others, which are younger the sooner their name
        text = json.dumps({"k": name, "v": 1, "ts": 1000}) if kind == "json" else f"k,v,ts\n{name},1,1000"
        file = tmp_path / "in" / f"{name}.{kind}"
        file.write_text(text + "\n" * size)
        at = now - 1 if name == "d" else now + 0.9 - place / 10
        os.utime(file, (at, at))
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert answers(job.conf, "f, l, n", "seconds", "A") == [("d", "c", 4)]


def test_an_aggregation_that_begins_behind_the_others_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=APP, streams=("S",))
    for name in "ab":
        (tmp_path / "in" / f"{name}.json").write_text(json.dumps({"k": name, "v": 1, "ts": 1_600_000_000_000}) + "\n")
        job.run(ModelSpark())  # type: ignore[arg-type]
        if name == "a":
            assert "begins empty" not in capsys.readouterr().err
            app = tmp_path / "app.siddhi"
            app.write_text(app.read_text() + APP.splitlines()[1].replace("aggregation A", "aggregation B"))
    said = capsys.readouterr().err
    assert said.count("begins empty") == 1 and "warning: B is new and begins empty: the events of S" in said
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert "begins empty" not in capsys.readouterr().err
