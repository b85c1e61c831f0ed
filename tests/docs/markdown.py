"""Fenced blocks of a Markdown page: files it gives, commands it shows with their output, Python it runs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it is the content of, its text and its line in the page."""

    language: str
    title: str | None
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """A shown command and the output shown below it."""

    words: list[str]
    output: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [Block(m[1], m[2], m[3], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]


def commands_of(page: Path) -> list[Command]:
    """The commands of a page, in order."""
    return [command for block in blocks(page) if block.language == "console" for command in commands(block)]


def commands(block: Block) -> list[Command]:
    """The commands of a `console` block."""
    found: list[Command] = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        found.append(Command(shlex.split(line), output))
    return found
