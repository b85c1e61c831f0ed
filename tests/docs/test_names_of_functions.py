"""A function that a page names in its prose is one that a language, or the package, has.

The code in blocks runs in other tests; this one is about `name(…)` in a sentence, which nothing runs.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import duckdb
import pytest

from rollup.plan.aggregates import AGGREGATES
from rollup.plan.composed import COMPOSED

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@cache
def known() -> set[str]:
    """Names in the tables and grammars of the languages, functions and classes of the package, and functions of SQL."""
    found = {str(name) for (name,) in duckdb.sql("select function_name from duckdb_functions()").fetchall()}
    for path in (ROOT / "rollup").rglob("*"):
        if path.suffix not in (".py", ".lark") or path.name == "likeness.py":  # which has the names that there are not
            continue
        text = path.read_text()
        found |= set(re.findall(r"(?:def|class) (\w+)", text))
        if path.parts[len(ROOT.parts) + 1] in ("lang", "plan"):
            for words in re.findall(r"[\"']([\w: .]+)[\"']", text):
                found |= set(words.split())
    return {name.lower() for name in found}


def named(text: str) -> set[str]:
    """The functions in the prose of a page; a name that begins with a capital and goes on small is a stream's."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    codes = re.findall(r"`([^`]+)`", prose)
    found = {name for code in codes for name in re.findall(r"(?<![@.\w])(?:timer:)?([A-Za-z_][\w:]*)\(", code)}
    return {name for name in found if name[0].islower() or (name.isupper() and len(name) > 1)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_function_in_the_prose_of_a_page_is_one_that_there_is(page: Path) -> None:
    assert {name for name in named(page.read_text()) if name.lower() not in known()} == set()


def test_a_name_that_there_is_not_is_found() -> None:
    assert named("of `a, permille(v, 9)` and `Trades(k)`") - known() == {"permille"}


def test_the_aggregates_of_the_readme_are_those_of_an_aggregation() -> None:
    text = (ROOT / "README.md").read_text()
    section = text[text.index("## Aggregates") : text.index("Whole-number sums")].split(".")[0]
    names = {name.lower() for name in re.findall(r"`(\w+)", section)}
    assert names <= {name.lower() for name in (*AGGREGATES, *COMPOSED)} and len(names) >= 13
