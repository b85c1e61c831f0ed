"""The page of queries shows what happens: its files are written, its commands run, their output compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import blocks, commands

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "queries.md"
COMMANDS = [command for block in blocks(PAGE) if block.language == "console" for command in commands(block)]


def test_the_page_has_commands_to_run() -> None:
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.words)[:50])
def test_a_command_of_the_page_does_what_the_page_says(command: object, tmp_path: Path) -> None:
    words, shown = command.words, command.output  # type: ignore[attr-defined]
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
    redirected = words.index("<") if "<" in words else len(words)
    data = (tmp_path / words[redirected + 1]).read_bytes() if redirected < len(words) else b""
    ran = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", *words[1:redirected]],
        cwd=tmp_path, input=data, capture_output=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = ran.stderr if shown.startswith("rollup: ") else ran.stdout
    assert said.decode() == shown
    assert ran.returncode == (2 if shown.startswith("rollup: ") else 1 if b"set aside" in ran.stderr else 0)
