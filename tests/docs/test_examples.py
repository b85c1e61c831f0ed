"""Each example does what its README says: its folder is copied, its commands run, the output is compared."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.conf import load
from tests.docs.markdown import Command, commands_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path.parent.name for path in ROOT.glob("*/README.md"))


def printed(command: Command, request: pytest.FixtureRequest) -> str:
    """What a command prints on standard output; a job runs on the session's Spark."""
    program, *words = command.words
    if program == "python":
        return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout
    if words[0] == "run":
        from rollup.hosts.spark.driver import SparkHost

        spark: SparkSession = request.getfixturevalue("spark")
        SparkHost(load(words[1]), spark).run(once=True)
        return ""
    end = words.index("<") if "<" in words else len(words)
    given = Path(words[end + 1]).read_text() if end < len(words) else None
    ran = CliRunner().invoke(cli, words[:end], input=given)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_each_folder_is_listed() -> None:
    listed = (ROOT / "README.md").read_text()
    assert len(EXAMPLES) == 6 and all(f"({name}/README.md)" in listed for name in EXAMPLES)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.spark) for name in EXAMPLES])
def test_an_example_does_what_its_readme_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path / name)
    found = commands_of(Path("README.md"))
    assert found
    for command in found:
        assert printed(command, request) == command.output, command.words
