"""Pages and docstrings are for a reader whose English is plain: short sentences, and the words of the field.

A paragraph, a heading, a list item and a table cell each end a sentence. A piece of code counts as one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted(path for folder in ("rollup", "jobs") for path in (ROOT / folder).rglob("*.py"))
LONGEST, AVERAGE = 40, 20
WORDS = {
    "adopt(s|ed|ing)?": "convert the state",
    "be it that": "when",
    "beats?": "output trigger",
    "go(es)? over to": "change to, convert",
    "hangs? on": "depend on",
    "hangs? together": "be one component",
    "hear(s|d)?": "read, listen",
    "lets? go of": "remove, emit",
    "raster": "alignment",
    "remembers?|remembered": "keep, store, state",
    "so often": "at an interval",
    "so many": "a number",
    "told(?! apart)|tells? of": "emit, output, report",
    "verdicts?|sentenced": "decision, decide",
}
"""Words of the authors, each with what the field says instead."""

_READER = MarkdownIt("commonmark").enable("table")
_TEXT = re.compile(r'(?P<alone>^[ \t]*)?[fr]*"""(.*?)"""', re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^ *>>>.*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def sentences(markdown: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, each with the line at which its paragraph begins."""
    for block in _READER.parse(markdown):
        if block.type == "inline" and block.map:
            parts = ("x" if part.type == "code_inline" else part.content or " " for part in block.children or ())
            for sentence in re.split(r"(?<=[.!?])[\"')]*\s+", "".join(parts)):
                yield block.map[0] + 1, sentence


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The sentences of the docstrings of a file, without those of examples."""
    text = path.read_text()
    for found in _TEXT.finditer(text):
        if (indent := found["alone"]) is not None:
            line = text.count("\n", 0, found.start())
            for at, sentence in sentences(_EXAMPLE.sub("", found[2].replace("\n" + indent, "\n"))):
                yield line + at, sentence


@cache
def of(page: Path) -> list[tuple[int, str]]:
    """The sentences of a page."""
    return list(sentences(page.read_text()))


def words(sentence: str) -> int:
    """The number of words of a sentence."""
    return len(re.findall(r"\w[\w.,'’-]*", sentence))


def long(path: Path, found: Iterable[tuple[int, str]]) -> list[str]:
    """Where a sentence is too long, with its first words."""
    return [
        f"{path.relative_to(ROOT)}:{line}: {words(sentence)} words: {sentence[:80]}"
        for line, sentence in found
        if words(sentence) > LONGEST
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    assert long(page, of(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_few_words_a_sentence(page: Path) -> None:
    lengths = [words(sentence) for _, sentence in of(page) if sentence.endswith((".", "!", "?"))]
    assert sum(lengths) <= AVERAGE * len(lengths)


def test_no_sentence_of_a_docstring_is_long() -> None:
    assert [place for path in SOURCES for place in long(path, docstrings(path))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_the_words_of_the_field(page: Path) -> None:
    found = [
        f"line {line}: {word[0]!r}, write {better!r}: {sentence[:80]}"
        for line, sentence in of(page)
        for ours, better in WORDS.items()
        if (word := re.search(rf"\b({ours})\b", sentence, re.IGNORECASE))
    ]
    assert found == []


def test_a_long_sentence_is_found_at_its_line() -> None:
    assert [line for line, _ in sentences("A b.\nC `d e`!\n\n| f | g |\n|---|---|\n| h | i. J |")] == [
        1,
        1,
        4,
        4,
        6,
        6,
        6,
    ]
    assert long(ROOT / "a.md", sentences("Short. \n\n" + "word " * 41)) == [f"a.md:3: 41 words: {('word ' * 16)}"]
