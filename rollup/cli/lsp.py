"""`rollup lsp`: a language server for editors."""

from __future__ import annotations

from rollup.core.errors import ConfigError


def lsp() -> None:
    """Tell an editor what is wrong with apps, statements and configurations, by the Language Server Protocol.

    It reads standard input and writes standard output. Editors start it; see editors/vscode.
    """
    try:
        from rollup.cli.language_server import serve
    except ImportError as problem:
        raise ConfigError(
            f"the language server needs the package {problem.name}", hint="pip install 'rollup[lsp]'"
        ) from None
    serve()
