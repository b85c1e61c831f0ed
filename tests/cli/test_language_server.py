"""The language server: a real client over its pipes, and what it says of each kind of document."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.workspace import TextDocument

from rollup.cli.language_server import described, diagnostics, names

APP = """define stream S (k string, v double, ts long);
define aggregation A from S select k, sum(v) as total group by k aggregate by ts every sec ... hour;
"""


def document(path: Path, text: str) -> TextDocument:
    path.write_text(text)
    return TextDocument(path.as_uri(), text)


@pytest.mark.parametrize(
    ("name", "text", "at", "word", "said"),
    [
        ("a.siddhi", APP.replace("sum(v)", "sum(w)"), (1, 42), "w", "known are k, ts, v"),
        ("a.siddhi", APP.replace("string", "strin"), (0, 19), "strin", "string"),
        ("a.epl", "create schema S(v int);\nselect w from S", (1, 7), "w", "w"),
        ("a.sql", "CREATE STREAM S (k VARCHA)", (0, 19), "VARCHA", ""),
    ],
)
def test_what_is_wrong_is_marked_at_its_word(
    tmp_path: Path, name: str, text: str, at: tuple[int, int], word: str, said: str
) -> None:
    (found,) = diagnostics(document(tmp_path / name, text))
    assert (found.range.start.line, found.range.start.character) == at
    line = text.splitlines()[at[0]]
    assert line[found.range.start.character : found.range.end.character] == word
    assert said in found.message


def test_a_configuration_is_marked_at_the_key_that_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.siddhi").write_text(APP)
    text = 'app = "a.siddhi"\ncheckpoint = "c"\n[sources.S]\nkind = "jsn"\npath = "in"\n[store]\nkind = "delta"\npath = "t"\n'
    (found,) = diagnostics(document(tmp_path / "conf.toml", text))
    assert "json" in found.message and found.range.start.line in (2, 3)
    assert diagnostics(document(tmp_path / "conf.toml", text.replace("jsn", "json"))) == []
    assert diagnostics(document(tmp_path / "hourly.sql", "SELECT STREAM * FROM S")) == [], "its streams are elsewhere"
    assert diagnostics(document(tmp_path / "pyproject.toml", "[project]\nname = 1\n")) == [], "it is no configuration"


def test_names_are_explained_and_completed(tmp_path: Path) -> None:
    app = document(tmp_path / "a.siddhi", APP)
    assert described(app, "S") == "stream S (k string, v double, ts long)"
    assert "total double" in str(described(app, "A")) and "seconds, minutes, hours" in str(described(app, "A"))
    assert described(app, "nobody") is None
    assert {"distinctcount", "time:dateFormat", "total"} <= {item.label for item in names(app)}


def test_a_client_is_told_what_is_wrong_while_it_types(tmp_path: Path) -> None:
    async def talk() -> list[list[str]]:
        client, said, came = LanguageClient("test", "1"), list[list[str]](), asyncio.Event()

        def published(given: types.PublishDiagnosticsParams) -> None:
            said.append([each.message for each in given.diagnostics])
            came.set()

        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)

        async def next_one() -> None:
            await asyncio.wait_for(came.wait(), 60)
            came.clear()

        await client.start_io(sys.executable, "-m", "rollup.cli.main", "lsp")
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
        client.initialized(types.InitializedParams())
        uri = (tmp_path / "a.siddhi").as_uri()
        client.text_document_did_open(
            types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "siddhi", 1, APP.replace("sum", "smu")))
        )
        await next_one()
        client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(2, uri), [types.TextDocumentContentChangeWholeDocument(APP)]
            )
        )
        await next_one()
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return said

    first, second = asyncio.run(talk())
    assert len(first) == 1 and "smu" in first[0] and "sum" in first[0]
    assert second == []


def test_the_extension_of_vs_code_is_of_this_version_and_has_the_files_that_it_names() -> None:
    folder = Path(__file__).parents[2] / "editors" / "vscode"
    package = json.loads((folder / "package.json").read_text())
    contributes = package["contributes"]
    assert package["version"] == version("rollup")
    for each in contributes["languages"]:
        json.loads((folder / each["configuration"]).read_text())
    for each in contributes["grammars"]:
        assert json.loads((folder / each["path"]).read_text())["scopeName"] == each["scopeName"]
    assert (folder / package["main"]).is_file()
