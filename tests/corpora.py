"""Corpora of statements as text: sections behind `== title`, an entry a line; an indented line goes on with the one before."""

from __future__ import annotations

from pathlib import Path


def sections(path: Path) -> dict[str, list[str]]:
    """The entries of a corpus by the title of their section; those before the first title have none."""
    found: dict[str, list[str]] = {}
    entries = found.setdefault("", [])
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            assert line[3:] not in found, f"{path.name} has two sections {line[3:]}"
            entries = found.setdefault(line[3:], [])
        elif line.startswith(" "):
            entries[-1] += f" {line.strip()}"
        elif line and not line.startswith("# "):
            entries.append(line)
    return found


def titled(entries: list[str]) -> dict[str, str]:
    """Entries written `title: statement`, by their titles."""
    found = {title: text for title, _, text in (each.partition(": ") for each in entries)}
    assert len(found) == len(entries), "two entries have one title"
    return found
