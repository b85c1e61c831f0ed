"""EPL text, read into `rollup.lang.epl.tree`."""

from __future__ import annotations

from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from lark import Lark

from rollup.lang.epl.reading.mistakes import explained
from rollup.lang.epl.reading.statements import ReadStatements
from rollup.lang.epl.tree.statements import Ask, Module
from rollup.lang.reading import grammar_of, read


def read_module(text: str) -> Module:
    """The statements of a module, with names still unresolved.

    Raises SyntaxProblem with the place and what may stand there.

    >>> module = read_module("@name('big') select * from Withdrawal(amount >= 200)")
    >>> module.statements[0].name
    'big'
    """
    return _read(text, "module")


def read_request(text: str) -> Ask:
    """A fire-and-forget request: select, insert, update or delete over named windows and tables.

    Raises SyntaxProblem with the place and what may stand there.

    >>> read_request("delete from Accounts where account = ?").request.store.name
    'Accounts'
    """
    return _read(text, "ask")


@cache
def grammar() -> Lark:
    """The parser; made once."""
    return grammar_of(Path(__file__).parent / "grammar.lark", start=["module", "ask"], maybe_placeholders=True)


@lru_cache(256)
def _read(text: str, start: str) -> Any:
    """A tree, which nothing changes: the same text is read again wherever a state of its statements is, as in each shard."""
    return read(text, grammar(), ReadStatements(text), partial(explained, grammar=grammar()), start)
