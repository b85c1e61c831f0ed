"""`rollup doctor` on a whole machine, and on each thing that may be wrong with one."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli import doctor
from rollup.cli.main import cli
from tests.gateway.trades import APP, configuration


def said(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["doctor", *words])
    return found.exit_code, found.output


def test_the_machine_of_the_tests_is_whole() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", "doctor"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split(":")[0].split(maxsplit=1)[1] for line in done.stdout.splitlines()]
    assert names == ["Python", "packages", "Java", "jars", "time zones"]


def test_a_configuration_is_looked_at_as_a_run_would(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    conf = configuration(tmp_path, APP)
    text = conf.path.read_text()
    conf.path.write_text(text.replace("[store]", '[sources.Trades]\nkind = "json"\npath = "in"\n[store]'))
    code, output = said(str(conf.path))
    assert code == 0, output
    assert "Trades from json" in output
    conf.app.write_text(APP.replace("sum(price)", "sum(nosuch)"))
    code, output = said(str(conf.path))
    assert code == 1
    assert "WRONG  app and configuration" in output
    assert "nosuch" in output


def test_each_fault_is_named_with_its_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        conf = configuration(tmp_path, APP, serve=f"port = {port}")
        assert f"WRONG  [serve] port: {port} is taken" in said(str(conf.path))[1]
    assert "WRONG  configuration" in said(str(tmp_path / "nosuch.toml"))[1]
    monkeypatch.setattr(doctor, "_SKEW", -1.0)
    assert "keep clocks with NTP" in said(str(conf.path))[1]
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    assert "duckdb is 0.0.1, ~=2.0.0 is wanted" in said()[1]
    monkeypatch.setattr("rollup.jars.jars_dir", lambda: tmp_path / "none")
    assert "python -m rollup.jars" in said()[1]
