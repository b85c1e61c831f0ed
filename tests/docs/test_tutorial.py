"""The tutorial shows what happens: its file is written, its commands run in this process, their output compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.conf import load
from tests.docs.markdown import Command, blocks, commands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
COMMANDS = [command for block in blocks(PAGE) if block.language == "console" for command in commands(block)]
RUN = next(place for place, command in enumerate(COMMANDS) if command.words[1] == "run")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the file of the tutorial, in which its commands run."""
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


def shows(command: Command) -> bool:
    """Whether a command prints what the page says."""
    ran = CliRunner().invoke(cli, command.words[1:])
    assert (ran.exit_code, ran.output) == (0, command.output), command.words
    return True


@pytest.mark.usefixtures("folder")
def test_the_data_is_described_and_gets_an_app() -> None:
    assert [shows(command) for command in COMMANDS[:RUN]] == [True, True]


@pytest.mark.slow
@pytest.mark.spark
def test_the_job_makes_tables_that_answer(folder: Path, spark: SparkSession) -> None:
    from rollup.hosts.spark.driver import SparkHost

    assert shows(COMMANDS[RUN - 1])
    SparkHost(load(folder / COMMANDS[RUN].words[2]), spark).run(once=True)
    assert all(shows(command) for command in COMMANDS[RUN + 1 :])
