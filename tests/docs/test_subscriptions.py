"""The page of subscriptions shows what happens: its events are sent, its commands and its Python run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.conf import load
from tests.docs.markdown import blocks, commands_of
from tests.gateway.trades import host

PAGE = Path(__file__).parents[2] / "docs" / "subscriptions.md"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of the page, and a job that has made a commit of each batch."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(PAGE):
        if block.title:
            Path(block.title).write_text(block.text)
    job = host(load(tmp_path / "trades.toml"))
    for name in ("first.json", "second.json"):
        job.send("Trades", [tuple(json.loads(line).values()) for line in Path(name).read_text().splitlines()])


def test_the_commands_print_what_the_page_says() -> None:
    commands = commands_of(PAGE)
    assert len(commands) == 2
    for command in commands:
        ran = CliRunner().invoke(cli, command.words[1:])
        assert (ran.exit_code, ran.output) == (0, command.output)


def test_the_python_prints_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = (block.text for block in blocks(PAGE) if block.language == "python")
    exec(compile(code, str(PAGE), "exec"), {})
    assert f"It prints `{capsys.readouterr().out.strip()}`." in PAGE.read_text()
