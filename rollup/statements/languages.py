"""The entries of the languages that statements may be written in; which there are, says `rollup.lang.languages`."""

from __future__ import annotations

from rollup.core.entries import loaded
from rollup.lang.languages import LANGUAGES
from rollup.statements.component import Language


def language(name: str) -> Language:
    """The entry of a language."""
    return loaded(LANGUAGES[name].entry)()
