"""A language server for editors: what is wrong with an app, with statements or with a configuration, while it is written.

It speaks the Language Server Protocol on standard input and output. What it finds is what `rollup plan` and `rollup try`
refuse: the same parsers read the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from rollup.cli.languages.trials import EXTENSIONS, LANGUAGES
from rollup.conf import load
from rollup.core.errors import RollupError
from rollup.lang.sql.declarations import in_sql
from rollup.plan.aggregates import AGGREGATES
from rollup.plan.composed import COMPOSED
from rollup.plan.functions import FUNCTIONS
from rollup.program import Program, compile_app

_SERVER = LanguageServer("rollup", "v1")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CONFIGURATION = re.compile(r"^\s*app\s*=", re.MULTILINE)
_KEY = re.compile(r"`(\w+)`|\[([\w.]+)\]|'(\w+)'")


def problem(document: TextDocument) -> RollupError | None:
    """What is wrong with a document; None for one that is right, or of a kind that is not known.

    A configuration is read from its file, with the app that it names: so it is what was saved last.
    """
    path = Path(document.path)
    try:
        if _is_app(document):
            compile_app(document.source)
        elif path.suffix == ".toml" and _CONFIGURATION.search(document.source):
            load(path).program()
        elif path.suffix in EXTENSIONS:
            LANGUAGES[EXTENSIONS[path.suffix]](document.source, path.stem, 0)
    except RollupError as found:
        return found
    return None


def diagnostics(document: TextDocument) -> list[types.Diagnostic]:
    """The problem of a document at the word that it is about."""
    found = problem(document)
    if found is None:
        return []
    line, column = (found.line, found.column or 1) if found.line is not None else _place(document, found.message)
    start = types.Position(line - 1, column - 1)
    text = document.lines[line - 1] if line <= len(document.lines) else ""
    word = _NAME.match(text, column - 1)
    end = types.Position(line - 1, word.end() if word else column)
    said = found.message + (f"\n{found.hint}" if found.hint else "")
    return [types.Diagnostic(types.Range(start, end), said, types.DiagnosticSeverity.Error, source="rollup")]


def _place(document: TextDocument, message: str) -> tuple[int, int]:
    """The line of a configuration that has a key or a section which a message names; the first one for any other."""
    for match in _KEY.finditer(message):
        name = next(filter(None, match.groups()))
        for number, line in enumerate(document.lines, 1):
            if re.match(rf"\s*(\[+{re.escape(name)}\]|{re.escape(name)}\s*=)", line):
                return number, len(line) - len(line.lstrip()) + 1
    return 1, 1


def described(document: TextDocument, name: str) -> str | None:
    """What a stream or an aggregation of an app has, for a reader who points at its name."""
    program = _program(document)
    if program is None:
        return None
    if (stream := program.streams.get(name)) is not None:
        return f"stream {name} (" + ", ".join(f"{each} {kind}" for each, kind in stream.attributes.items()) + ")"
    if (aggregation := program.aggregations.get(name)) is not None:
        columns = ", ".join(f"{output.name} {output.type}" for output in aggregation.outputs)
        levels = ", ".join(level.plural for level in aggregation.levels)
        return f"aggregation {name}: {columns}\n\nlevels: {levels}\n\nzone: {aggregation.zone}"
    return None


def names(document: TextDocument) -> Iterator[types.CompletionItem]:
    """The functions and aggregates of an app, and the words of the document."""
    kinds = types.CompletionItemKind
    for name in sorted({*FUNCTIONS, *AGGREGATES, *COMPOSED}, key=str.lower):
        yield types.CompletionItem(name, kind=kinds.Function)
    for name in sorted(set(_NAME.findall(document.source))):
        yield types.CompletionItem(name, kind=kinds.Text)


def _program(document: TextDocument) -> Program | None:
    try:
        return compile_app(document.source) if _is_app(document) else None
    except RollupError:
        return None


def _is_app(document: TextDocument) -> bool:
    """Whether a document is an app; a file of SQL may also hold standing queries, which need the streams of theirs."""
    suffix = Path(document.path).suffix
    return suffix == ".siddhi" or (suffix == ".sql" and in_sql(document.source))


def _publish(uri: str) -> None:
    document = _SERVER.workspace.get_text_document(uri)
    _SERVER.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics(document)))


@_SERVER.feature(types.TEXT_DOCUMENT_DID_OPEN)
def _opened(given: types.DidOpenTextDocumentParams) -> None:
    _publish(given.text_document.uri)


@_SERVER.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def _changed(given: types.DidChangeTextDocumentParams) -> None:
    if not given.text_document.uri.endswith(".toml"):
        _publish(given.text_document.uri)


@_SERVER.feature(types.TEXT_DOCUMENT_DID_SAVE)
def _saved(given: types.DidSaveTextDocumentParams) -> None:
    _publish(given.text_document.uri)


@_SERVER.feature(types.TEXT_DOCUMENT_HOVER)
def _hover(given: types.HoverParams) -> types.Hover | None:
    document = _SERVER.workspace.get_text_document(given.text_document.uri)
    said = described(document, document.word_at_position(given.position))
    return None if said is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, said))


@_SERVER.feature(types.TEXT_DOCUMENT_COMPLETION)
def _completion(given: types.CompletionParams) -> list[types.CompletionItem]:
    return list(names(_SERVER.workspace.get_text_document(given.text_document.uri)))


def serve() -> None:
    """Serve an editor on standard input and output until it ends."""
    _SERVER.start_io()
