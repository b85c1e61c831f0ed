"""Commands that messages tell a user to give are followed word for word: each is one that the command line takes."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from rollup.cli.main import cli
from tests.job.jobs import ROOT

QUOTED = re.compile(r"`rollup ((?:[^`])+)`")
FILLED = "1"
PLACES = ("CONF", "FILE", "DIR", "…")
COMMANDS: Any = typer.main.get_command(cli)
REFUSED: Any = typer.BadParameter.__base__
"""What every refusal of the command line is; typer brings its own copy of click, which says the same."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module as a user may see them, docstrings left out; what is filled in is a number."""
    tree = ast.parse(path.read_text())
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else FILLED for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def described(path: Path) -> set[str]:
    """The docstrings of a module."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    return {text for node in found if (text := ast.get_docstring(node, clean=False)) is not None}


def named() -> list[tuple[str, str]]:
    """Each command that a text names, with where it stands."""
    found = list[tuple[str, str]]()
    for path in sorted((ROOT / "rollup").rglob("*.py")):
        if "`rollup " not in path.read_text():
            continue
        left_out = described(path)
        for line, text in texts(path):
            if text not in left_out:
                found += [(f"{path.relative_to(ROOT)}:{line}", words) for words in QUOTED.findall(text)]
    return found


def refused(words: str) -> str | None:
    """Why the command line would not take a command; None where it does. A name alone speaks of the command."""
    name, *rest = shlex.split(words)
    if name == FILLED:
        return None
    command = COMMANDS.commands.get(name)
    if command is None:
        return f"there is no command {name}"
    if not rest:
        return None
    try:
        command.make_context(name, [FILLED if word in PLACES else word for word in rest])
    except REFUSED as problem:
        return str(problem.format_message())
    return None


def test_what_a_message_tells_to_give_is_taken_by_the_command_line() -> None:
    found = named()
    assert len(found) > 30, "they are found"
    wrong = [f"{where}: rollup {words}: {why}" for where, words in found if (why := refused(words)) is not None]
    assert wrong == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("verify --repair", "Missing"),
        ("recover CONF A --rebuild", "unexpected"),
        ("mend CONF", "no command"),
        ("change CONF --accpet", "No such option"),
    ],
)
def test_others_are_told_apart(words: str, why: str) -> None:
    assert why in (refused(words) or "")
