"""Files that a user names: their text, and what it says as JSON or TOML, or a sentence why not."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from rollup.core.errors import ConfigError


def text_of(path: Path, what: str = "") -> str:
    """The text of a file; `what` is its part ("the app"). Raises ConfigError.

    A mark of the order of bytes at the beginning, which some editors write, is no part of it.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read {_named(path, what)}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        said = f"cannot read {_named(path, what)}: byte {problem.start + 1} is no UTF-8"
        raise ConfigError(said, hint="save it as UTF-8") from None


def query_text(query: str) -> str:
    """A query that is given as such or as the path of a file. Raises ConfigError."""
    path = Path(query)
    try:
        named = path.is_file()
    except (OSError, ValueError):
        return query  # no file can have that name
    return text_of(path, "the query") if named else query


def toml_of(path: Path, what: str = "", hint: str | None = None) -> dict[str, Any]:
    """What a file of TOML says. Raises ConfigError with the place; `hint` is told where it is no TOML."""
    try:
        return tomllib.loads(text_of(path, what))
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"{_named(path, what)} is not TOML: {problem}", hint=hint) from None


def json_of(path: Path, what: str = "") -> Any:
    """What a file of JSON says. Raises ConfigError with the place."""
    return _json(text_of(path, what), _named(path, what))


def json_lines(path: Path, what: str = "") -> list[Any]:
    """What the lines of a file of JSON say, empty ones left out. Raises ConfigError with the line."""
    lines = enumerate(text_of(path, what).split("\n"), 1)
    return [_json(line, f"{_named(path, what)}, line {number}") for number, line in lines if line.strip()]


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as problem:
        raise ConfigError(f"{where} is not JSON: {problem}") from None


def _named(path: Path, what: str) -> str:
    return f"{what} {path}".strip()
