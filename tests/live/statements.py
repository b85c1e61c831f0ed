"""Statements that an engine is tried with, from the texts beside this file."""

from __future__ import annotations

from pathlib import Path

from tests.corpora import sections, titled

_HERE = Path(__file__).parent
SCHEMA = (_HERE / "schema.epl").read_text()
"""The streams and contexts that the statements use."""
COVERED = titled([each for entries in sections(_HERE / "covered.txt").values() for each in entries])
"""All statements that an engine runs over columns, by their titles."""
SEVERAL = [names.split(", ") for names in sections(_HERE / "together.txt")[""]]
"""Which of them are deployed together, by their titles."""
