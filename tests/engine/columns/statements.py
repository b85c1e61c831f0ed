"""Statements that cores are tried with, from the texts beside this file."""

from __future__ import annotations

from pathlib import Path

from tests.corpora import sections

_HERE = Path(__file__).parent
SECTIONS = sections(_HERE / "covered.txt") | sections(_HERE / "other.txt")
"""By what they are about, all statements that cores run."""
COVERED = [each for entries in sections(_HERE / "covered.txt").values() for each in entries]
REFUSED = {
    text: reason for text, _, reason in (each.rpartition(" => ") for each in sections(_HERE / "refused.txt")[""])
}
"""Statements that no core covers, and the first reason against each."""
FILTERS, WINDOWS = SECTIONS["rows, filtered and computed"], SECTIONS["windows"]
PATTERNS, KEYED = SECTIONS["patterns"], SECTIONS["keyed contexts, told in turn"]
