"""What the README shows is what happens: its files are written, its commands run, its output compared.

A page that is read first and is wrong costs more than any bug, so nothing in it is shown that is not executed here;
`make` lines are checked against the Makefile, since they are what runs this test.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.markdown import Command, blocks, commands

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
Ran = tuple[int, Command, "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the files that the README gives."""
    made = tmp_path_factory.mktemp("readme")
    for block in blocks(ROOT / "README.md"):
        if block.title:
            (made / block.title).parent.mkdir(parents=True, exist_ok=True)
            (made / block.title).write_text(block.text)
    return made


@pytest.fixture(scope="module")
def ran(folder: Path) -> list[Ran]:
    """Every `rollup` command of the README, run in order: its line, as it is shown, and what it did."""
    return [
        (line, command, _rollup(folder, command.words[1:]))
        for line, command in _shown()
        if command.words[0] == "rollup"
    ]


def test_the_readme_has_files_commands_and_python_to_run() -> None:
    found = blocks(ROOT / "README.md")
    assert {block.title for block in found if block.title} == {"trades.siddhi", "trades.toml", "incoming/trades.json"}
    assert sum(len(commands(block)) for block in found if block.language == "console") >= 6
    assert any(block.language == "python" for block in found)


def test_every_make_target_of_the_readme_is_there() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for line, command in _shown():
        assert command.words[0] in ("make", "rollup"), f"line {line}: {command.words}"
        assert command.words[0] == "rollup" or command.words[1] in targets, f"line {line}: no such target"


def test_every_command_of_the_readme_does_what_the_readme_says(ran: list[Ran]) -> None:
    assert ran
    for line, command, done in ran:
        said = done.stdout if command.output and not command.output.startswith("rollup: ") else done.stderr
        assert done.returncode == (2 if command.output.startswith("rollup: ") else 0), done.stderr
        if command.output:
            assert said.replace("\r\n", "\n") == command.output, f"line {line}: {command.words}"


@pytest.mark.spark
def test_the_demo_prints_what_the_readme_shows_of_it(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from rollup.cli.demo import demo

    (shown,) = (b.text.splitlines() for b in blocks(ROOT / "README.md") if b.text.startswith("2. February 2013"))
    assert len(shown) > 6
    demo(tmp_path)  # on the session of the tests
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in shown if line not in printed] == []


def test_the_python_of_the_readme_runs(folder: Path, ran: list[Ran]) -> None:
    assert all(done.returncode in (0, 2) for _, _, done in ran)  # it asks the tables that the commands made
    code = "\n".join(block.text for block in blocks(ROOT / "README.md") if block.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]), ids=lambda page: page.name
)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target} is not there"


def _shown() -> list[tuple[int, Command]]:
    """The commands of the README with the line of their block."""
    return [
        (block.line, command)
        for block in blocks(ROOT / "README.md")
        if block.language == "console"
        for command in commands(block)
    ]


def _rollup(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """A command's end is waited for as long as the test may take: how fast Spark begins is not what is tested."""
    command = [sys.executable, "-m", "rollup.cli.main", *words]
    return subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
