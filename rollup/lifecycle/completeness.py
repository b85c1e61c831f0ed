"""What a reader of an answer should know beside the answer: columns that were added later and are not complete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rollup.conf import Conf
from rollup.lifecycle.book import Book

if TYPE_CHECKING:
    from rollup.program import Program


def remarks(conf: Conf, program: Program, text: str) -> list[str]:
    """Remarks on the answer to a question that has been answered; empty when every column is complete."""
    pages = {name: Book.of(conf, name).page() for name in program.aggregations}
    if not any(page.valid for page in pages.values()):
        return []
    from rollup.ask import asked_name, is_question
    from rollup.lifecycle.change import notes
    from rollup.lifecycle.replay.compare import readable
    from rollup.retrieval.plan_cache import Planner

    if is_question(text):
        if asked_name(text) not in program.aggregations:
            return []  # a named window or table of statements
        ask = Planner(dict(program.aggregations)).ask(text)
        return notes(pages[ask.aggregation.name], ask)
    return [
        f"{name}: {column} was added later and is complete from {readable(since)} on"
        for name, page in pages.items()
        if re.search(rf"\b{re.escape(name)}", text, re.IGNORECASE)
        for column, since in page.valid.items()
    ]
