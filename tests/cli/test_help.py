"""What `--help` prints is what was written: a printer that reads `[serve]` as markup would leave it out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from rollup.cli.main import cli

_PRINTED = {"COLUMNS": "240", "TERM": "dumb"}


def _commands(command: object, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _commands(inner, (*words, name))


def _written(command: object) -> list[str]:
    """Everything in brackets in the texts of a command and its options."""
    texts = [getattr(command, "help", None), *(getattr(each, "help", None) for each in getattr(command, "params", ()))]
    return re.findall(r"\[[a-z][\w. ]*\]", " ".join(filter(None, texts)))


COMMANDS = {" ".join(words): (words, found) for words, found in _commands(get_command(cli))}


def test_some_texts_have_brackets() -> None:
    assert "[serve]" in _written(COMMANDS["serve"][1])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_prints_what_stands_in_brackets(name: str) -> None:
    words, command = COMMANDS[name]
    printed = CliRunner().invoke(cli, [*words, "--help"], env=_PRINTED)
    assert printed.exit_code == 0
    assert [text for text in _written(command) if text not in printed.output] == []
