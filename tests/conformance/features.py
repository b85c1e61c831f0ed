"""The features of a language's document, and what shows each: `features.txt`, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from tests.conformance.language import HERE, load

ROOT = HERE.parents[1]
_HAND, _TEST = "hand:", "test:"


@dataclass(frozen=True)
class Feature:
    """A feature: its number in the document's list, what it is, and the words that name what shows it."""

    number: int
    text: str
    words: tuple[str, ...]

    def shown(self, recorded: Mapping[str, object], by_hand: frozenset[str]) -> Iterator[tuple[str, list[str]]]:
        """Each word with the cases or tests that it names."""
        for word in self.words:
            if word.startswith(_TEST):
                path, _, name = word.removeprefix(_TEST).partition("::")
                there = f"def {name}(" in (ROOT / path).read_text()
                yield word, [f"{Path(path).name}::{name}"] if there else []
            elif word.startswith(_HAND):
                yield word, [word.removeprefix(_HAND)] if word.removeprefix(_HAND) in by_hand else []
            else:
                yield word, sorted(name for name in recorded if fnmatch(name, word))


def features() -> dict[str, list[Feature]]:
    """The features of each language that has a list."""
    found, language = dict[str, list[Feature]](), ""
    for line in (HERE / "features.txt").read_text().splitlines():
        if line.startswith("["):
            language = line.strip("[]")
            found[language] = []
        elif line and not line.startswith("#"):
            text, _, words = line.rpartition(" | ")
            found[language].append(Feature(len(found[language]) + 1, text, tuple(words.split())))
    return found


def cases(language: str) -> tuple[Mapping[str, object], frozenset[str]]:
    """The names of the recorded cases of a language, and of those that were worked out by hand."""
    lines = (ROOT / "tests" / "lang" / "by_hand" / f"{language}.jsonl").read_text().splitlines()
    return load(HERE / language), frozenset(json.loads(line)["name"] for line in lines)


def table(language: str) -> list[str]:
    """The features of a language for the support page; nothing where there is no list."""
    listed = features().get(language)
    if listed is None:
        return []
    known = cases(language)
    rows = [f"| {each.number} | {each.text} | {', '.join(_few(each, *known))} |" for each in listed]
    return ["", "| | Feature of the document | shown by |", "|---|---|---|", *rows]


def _few(feature: Feature, recorded: Mapping[str, object], by_hand: frozenset[str]) -> list[str]:
    """The first of what each word names, with their number where there are more."""
    found = [(names[0], len(names)) for _, names in feature.shown(recorded, by_hand) if names]
    return list(dict.fromkeys(f"`{name}`" + (f" and {count - 1} more" if count > 1 else "") for name, count in found))
