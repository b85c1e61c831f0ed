"""Timing of questions to an engine: many of a shape, from one or several clients, each answer checked for its size."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

from benchmarks.common import Line, Stopwatch, emit, percentile
from benchmarks.questions import Question, questions

BENCH = "retrieval"
WARM_UP = 16  # questions of each shape asked untimed before
OURS = "rollup"
AIM_P99 = 100.0


def aims(engine: str, rows: int, clients: int) -> dict[str, float]:
    """What we want to reach, in milliseconds, with one client: p50 by the size of the answer, and p99.

    >>> aims("rollup", 3_600, 1), aims("clickhouse", 3_600, 1)
    ({'aim': 20.0, 'aim_p99': 100.0}, {})
    """
    if engine != OURS or clients != 1 or rows > 10_000:
        return {}
    return {"aim": 8.0 if rows <= 1_000 else 20.0, "aim_p99": AIM_P99}


class WrongAnswer(Exception):
    """An engine answered with another number of rows than the events must give."""


class Engine(Protocol):
    """One side of the retrieval benchmark."""

    name: str

    def prepare(self, rows: int) -> Path:
        """Load a store of about ``rows`` second-level rows unless it is there; returns its folder."""
        ...

    def open(self, folder: Path) -> Any:
        """Open the store; what comes back is passed to ``ask`` and may be asked by several threads."""
        ...

    def ask(self, store: Any, question: Question) -> int:
        """Answer one question, read the answer in full, and return its number of rows."""
        ...


def ask_all(ask: Callable[[Question], int], asked: Sequence[Question], pool: ThreadPoolExecutor) -> list[float]:
    """Milliseconds of each question, asked by all threads of the pool at once; raises ``WrongAnswer``."""
    return list(pool.map(lambda question: timed(ask, question), asked))


def timed(ask: Callable[[Question], int], question: Question) -> float:
    """Milliseconds of one question; raises ``WrongAnswer``."""
    watch = Stopwatch()
    checked(ask(question), question)
    return watch.total() * 1000


def checked(rows: int, question: Question) -> None:
    """Raise ``WrongAnswer`` unless the answer to the question has as many rows as it must have."""
    if rows != question.rows:
        raise WrongAnswer(f"{question}: {rows} rows instead of {question.rows}")


def cold(engine: Engine, folder: Path, rows: int, name: str) -> Line:
    """Print the time of this process's first answer, loading libraries and opening the store included.

    ``answer_ms`` is the part after opening: an engine embedded here may elsewhere be a server that is already up.
    """
    question, watch = next(questions(rows)[name]), Stopwatch()
    store = engine.open(folder)
    opened = watch.lap()
    checked(engine.ask(store, question), question)
    return emit(
        BENCH, name, watch.total() * 1000, "ms", temperature="cold", peer=engine.name, store_rows=rows,
        answer_rows=question.rows, clients=1, open_ms=opened * 1000, answer_ms=watch.lap() * 1000,
    )  # fmt: skip


def warm(engine: Engine, folder: Path, rows: int, runs: int, clients: int) -> None:
    """Print p50 (the value) and p99 of every question, and questions per second, from so many threads at once."""
    store = engine.open(folder)
    with ThreadPoolExecutor(clients) as pool:
        for name, source in questions(rows).items():
            asked = [next(source) for _ in range(runs)]
            ask_all(lambda question: engine.ask(store, question), asked[:WARM_UP], pool)
            watch = Stopwatch()
            spent = ask_all(lambda question: engine.ask(store, question), asked, pool)
            rate = runs / watch.total()
            emit(
                BENCH, name, percentile(spent, 50), "ms", temperature="hot", peer=engine.name, store_rows=rows,
                answer_rows=asked[0].rows, clients=clients, p99=percentile(spent, 99), runs=runs, per_second=rate,
                **aims(engine.name, asked[0].rows, clients),
            )  # fmt: skip


def main(engine: Engine) -> None:
    """Command line of one engine: ``--rows N [--runs N] [--clients N] [--cold QUESTION]``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--clients", type=int, nargs="+", default=[1])
    parser.add_argument("--cold", metavar="QUESTION", help="ask only this question, once, and end")
    options = parser.parse_args()
    folder = engine.prepare(options.rows)
    if options.cold:
        cold(engine, folder, options.rows, options.cold)
        return
    for clients in options.clients:
        warm(engine, folder, options.rows, options.runs, clients)
