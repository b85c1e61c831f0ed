"""`rollup lsp`: a language server for editors."""

from __future__ import annotations

from rollup.core.packages import needed_by


def lsp() -> None:
    """Tell an editor what is wrong with apps, statements and configurations, by the Language Server Protocol.

    It reads standard input and writes standard output. Editors start it; see editors/vscode.
    """
    with needed_by("the language server", "lsp"):
        from rollup.cli.language_server import serve
    serve()
