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
    named = f"{what} {path}".strip()
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"cannot read {named}: {problem.strerror}") from None
    except UnicodeDecodeError as problem:
        raise ConfigError(
            f"cannot read {named}: byte {problem.start + 1} is no UTF-8", hint="save it as UTF-8"
        ) from None


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
        raise ConfigError(f"{f'{what} {path}'.strip()} is not TOML: {problem}", hint=hint) from None


def json_of(path: Path, what: str = "") -> Any:
    """What a file of JSON says. Raises ConfigError with the place."""
    try:
        return json.loads(text_of(path, what))
    except (json.JSONDecodeError, RecursionError) as problem:
        raise ConfigError(f"{f'{what} {path}'.strip()} is not JSON: {problem}") from None


def json_lines(path: Path, what: str = "") -> list[Any]:
    """What the lines of a file of JSON say, empty ones left out. Raises ConfigError with the line."""
    found: list[Any] = []
    for number, line in enumerate(text_of(path, what).split("\n"), 1):
        try:
            found += [json.loads(line)] if line.strip() else []
        except (json.JSONDecodeError, RecursionError) as problem:
            raise ConfigError(f"{f'{what} {path}'.strip()}, line {number} is not JSON: {problem}") from None
    return found
