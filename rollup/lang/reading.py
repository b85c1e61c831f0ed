"""Texts of the languages that have a grammar of ours, read into their trees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lark import Lark, Transformer, UnexpectedInput
from lark.exceptions import VisitError

from rollup.core.cache import cache_root
from rollup.core.errors import RollupError, SyntaxProblem


def grammar_of(path: Path, *parts: Path, **options: Any) -> Lark:
    """The parser of a grammar in a file, with what stands in others that it is made of. Its tables take longer to make than most texts to read, and are kept beside the jars.

    Lark makes them anew when a grammar that they are made of, an option or its version is another.
    """
    text, folder = "\n".join(each.read_text() for each in (path, *parts)), cache_root() / "grammars"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables: str | bool = str(folder / f"{path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}")
    except OSError:
        tables = False
    return Lark(text, parser="lalr", cache=tables, **{"propagate_positions": True, **options})


def read(
    text: str,
    grammar: Lark,
    reader: Transformer[Any, Any],
    explained: Callable[[str, UnexpectedInput], SyntaxProblem],
    start: str | None = None,
) -> Any:
    """The tree that `reader` makes of a text that begins as the grammar's rule `start`.

    Raises what `explained` makes of a text that does not follow the grammar, and what the reader itself refuses.
    """
    try:
        return reader.transform(grammar.parse(text, start=start))
    except UnexpectedInput as problem:
        raise explained(text, problem) from None
    except VisitError as problem:
        if isinstance(problem.orig_exc, RollupError | RecursionError):
            raise problem.orig_exc from None
        raise
