"""The languages that statements may be written in: a new one is a module beside these and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from rollup.lang.sections import SIDDHIQL
from rollup.statements.component import Language

LANGUAGES: Mapping[str, tuple[str, str]] = {
    SIDDHIQL: ("rollup.statements.siddhiql", "SiddhiQl"),
    "epl": ("rollup.statements.epl", "Epl"),
    "sql": ("rollup.statements.sql", "Sql"),
    "uql": ("rollup.statements.uql", "Uql"),
    "streamcruncher": ("rollup.statements.streamcruncher", "StreamCruncher"),
}
"""By name, the module and the class of its entry; it is imported when an app has a text in it."""


def language(name: str) -> Language:
    """The entry of a language."""
    module, entry = LANGUAGES[name]
    return getattr(import_module(module), entry)()
