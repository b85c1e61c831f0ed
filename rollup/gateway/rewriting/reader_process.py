"""One process that reads texts: told the aggregations once, it then answers questions until its input ends.

A question and an answer are a length in eight bytes and a pickle; both ends are ours.
"""

from __future__ import annotations

import logging
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, BinaryIO, NoReturn

from rollup.core.errors import QueryError, RollupError
from rollup.gateway.protocol.forbidden import forbidden
from rollup.gateway.rewriting.in_server import inside
from rollup.gateway.rewriting.mentions import Reader, Template
from rollup.plan.aggregation import Aggregation

MEMORY = 4 << 30
"""Bytes of address space: what a text of 4 MB needs at most; more would be taken from everybody else."""

_HEAD = 8


class _TooLong(BaseException):
    """The processor's time for a text is over. No Exception: a parser that tries and falls back must not catch it."""


def takes_too_long() -> QueryError:
    """The refusal of a text that takes too long to read."""
    return QueryError("reading this text takes too long", hint="a shorter or simpler one")


def main(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there are no more questions."""
    told = _next(questions)
    if told is None:
        return
    read = reading(*pickle.loads(told))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _say(answers, b"ready")
    while (question := _next(questions)) is not None:
        _say(answers, pickle.dumps(_answer(read, *pickle.loads(question))))


Names = tuple[str, ...] | None
"""The aggregations that a session knows; None: all of them."""
Read = Callable[[str, bool, Names], Any]
WHOLE, PARTS, GUARD = "whole hours", "parts of hours", "guard"
"""What is asked about a text: what becomes of it, by the session's clocks, and whether it is forbidden."""


def reading(aggregations: Mapping[str, Aggregation], schema: str | None) -> Read:
    """What becomes of a text in a session whose clocks are whole hours from UTC, or not: a Template, which with a schema is the text for the PostgreSQL server of the store."""

    @cache
    def reader(names: Names) -> Reader:
        return Reader(dict(aggregations) if names is None else {name: aggregations[name] for name in names})

    def template(sql: str, whole: bool, names: Names) -> Template:
        return reader(names).template(sql, whole)

    def text(sql: str, whole: bool, names: Names) -> Template:
        found = reader(names).template(sql, whole)
        places = [inside(aggregations[source.aggregation], str(schema), source) for source in found.sources]
        return Template(found.filled(places) if places else sql, (), found.remarks)

    return template if schema is None else text


def _answer(read: Read, what: str, text: Any, seconds: float, names: Names) -> tuple[bool, Any]:
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            return False, forbidden(text) if what == GUARD else read(text, what == WHOLE, names)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _TooLong:
        return True, takes_too_long()
    except RollupError as problem:
        return True, problem
    except Exception as problem:
        logging.getLogger(__name__).exception("a text could not be read")
        return True, f"{type(problem).__name__}: {problem}"


def _interrupt(*_: object) -> NoReturn:
    raise _TooLong


def _next(questions: BinaryIO) -> bytes | None:
    head = questions.read(_HEAD)
    return questions.read(int.from_bytes(head, "big")) if len(head) == _HEAD else None


def _say(answers: BinaryIO, what: bytes) -> None:
    answers.write(len(what).to_bytes(_HEAD, "big") + what)
    answers.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that started us ends us
    signal.signal(signal.SIGPROF, _interrupt)
    main(sys.stdin.buffer, sys.stdout.buffer)
