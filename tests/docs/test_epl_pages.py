"""The pages of EPL show what happens: every example is run in this process, and its output compared."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from rollup.cli.languages.try_ import try_
from tests.docs.markdown import Command, blocks, commands_of

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "epl.md", DOCS / "cookbook.md"]
COMMANDS = [(page, command) for page in PAGES for command in commands_of(page)]
APP = typer.Typer()
APP.command()(try_)


def test_the_pages_show_the_recipes_and_an_example_for_each_part_of_the_language() -> None:
    assert [sum(page == each for each, _ in COMMANDS) for page in PAGES] == [9, 11]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[" ".join(each.words[2:3]) for _, each in COMMANDS])
def test_an_example_gives_what_its_page_shows(page: Path, command: Command, tmp_path: Path) -> None:
    files = {block.title: block.text for block in blocks(page) if block.title}
    place = command.words.index("<")
    (tmp_path / command.words[2]).write_text(files[command.words[2]])
    arguments = [str(tmp_path / command.words[2]), *command.words[3:place]]
    ran = CliRunner().invoke(APP, arguments, input=files[command.words[place + 1]])
    assert ran.output == command.output
    assert ran.exit_code == 0
