"""Texts of the languages that have a grammar of ours, read into their trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lark import Lark, Transformer, UnexpectedInput
from lark.exceptions import VisitError

from rollup.core.errors import RollupError, SyntaxProblem


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
        if isinstance(problem.orig_exc, RollupError):
            raise problem.orig_exc from None
        raise
