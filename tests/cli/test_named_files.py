"""Every file that a command is given: one that is not there, is a folder, or holds anything else is refused in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.core.errors import RollupError

MODEL = '[tables.T]\ncolumns = { a = "INTEGER" }\nkind = "both"\nmonotonic = { a = "increasing" }\n'
CATALOG = '{"schemas": [{"name": "t", "fields": [{"name": "a", "type": "integer16"}]}]}'
COMMANDS: dict[str, list[str]] = {
    "a configuration": ["plan", "FILE"],
    "a model": ["sql", "--schema", "FILE", "SELECT STREAM a FROM T"],
    "a model of JSON": ["sql", "--schema", "FILE.json", "SELECT STREAM a FROM T"],
    "a model of TOML": ["sql", "--schema", "FILE.toml", "SELECT STREAM a FROM T"],
    "rows": ["sql", "--schema", "model.toml", "--load", "T=FILE", "SELECT a FROM T"],
    "a query of SQL": ["sql", "--schema", "model.toml", "FILE"],
    "a catalog": ["uql", "--catalog", "FILE", "from t to u"],
    "a query of UQL": ["uql", "--catalog", "catalog.json", "FILE"],
    "EPL": ["try", "FILE", "--lang", "epl"],
    "SiddhiQL": ["try", "FILE", "--lang", "siddhi"],
    "StreamCruncher": ["try", "FILE", "--lang", "streamcruncher"],
}
CONTENTS: dict[str, bytes | None] = {
    "not there": None,
    "a folder": b"folder",
    "bytes": b"\xa5\x00\xff" * 50,
    "another encoding": "select é from S".encode("utf-16"),
    "no text of its kind": b"{[<'\n",
    "a list": b"[1, 2]",
    "empty": b"",
}


@pytest.mark.parametrize("what", list(COMMANDS))
@pytest.mark.parametrize("content", list(CONTENTS))
def test_a_file_that_cannot_be_what_it_should_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, content: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.toml").write_text(MODEL)
    Path("catalog.json").write_text(CATALOG)
    file = Path(next(word for word in COMMANDS[what] if "FILE" in word).removeprefix("T="))
    given = CONTENTS[content]
    if content == "a folder":
        file.mkdir()
    elif given is not None:
        file.write_bytes(given)
    found = CliRunner().invoke(cli, COMMANDS[what], input="")
    if isinstance(found.exception, RollupError):
        sentence = str(found.exception)
        assert len(sentence) > 20 and not re.search(r"Errno|codec|\b\w+Error\b", sentence), sentence
    elif found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    else:
        assert content == "empty" or found.exit_code == 2, found.output


def test_a_mark_of_the_order_of_bytes_is_no_part_of_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.toml").write_text(MODEL, encoding="utf-8-sig")
    Path("rows.jsonl").write_text('{"a": 7}\n', encoding="utf-8-sig")
    Path("q.sql").write_text("SELECT a FROM T", encoding="utf-8-sig")
    words = ["sql", "--schema", "model.toml", "--load", "T=rows.jsonl", "q.sql"]
    found = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert '{"a": 7}' in found.output
