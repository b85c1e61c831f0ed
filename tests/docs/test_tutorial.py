"""The tutorials show what happens: their files are written, their commands run in this process, the output compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.conf import load
from tests.docs.markdown import Command, blocks, commands_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGES = [Path(__file__).parents[2] / "docs" / name for name in ("tutorial.md", "tutorial-kafka.md")]
COMMANDS, OF_KAFKA = map(commands_of, PAGES)
RUN = next(place for place, command in enumerate(COMMANDS) if command.words[1] == "run")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of the tutorials, in which their commands run."""
    for block in (block for page in PAGES for block in blocks(page) if block.title):
        (tmp_path / str(block.title)).write_text(block.text)
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


@pytest.mark.usefixtures("folder")
def test_a_topic_is_planned_without_servers() -> None:
    assert [shows(command) for command in OF_KAFKA] == [True]


@pytest.mark.slow
@pytest.mark.spark
def test_the_job_makes_tables_that_answer(folder: Path, spark: SparkSession) -> None:
    from rollup.hosts.spark.driver import SparkHost

    assert shows(COMMANDS[RUN - 1])
    SparkHost(load(folder / COMMANDS[RUN].words[2]), spark).run(once=True)
    assert all(shows(command) for command in COMMANDS[RUN + 1 :])
