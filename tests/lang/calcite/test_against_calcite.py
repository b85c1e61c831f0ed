"""Generated queries without STREAM against the real Calcite, which runs as a process beside: equal rows.

It runs where `CALCITE_CLASSPATH` names the jars of `calcite-server` with all they need (`mvn dependency:copy-dependencies`
copies them into a folder; `DIR/*`). `CALCITE_QUERIES` is how many queries, `CALCITE_SEED` the first seed. As a program,
`python -m tests.lang.calcite.test_against_calcite SEED COUNT`, it prints what differs.

What only Calcite refuses is no difference: there is more here than there. What both refuse is none either.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import RollupError
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from tests.lang.calcite.generated import TABLES, Queries

CLASSPATH = os.environ.get("CALCITE_CLASSPATH")
PEER = Path(__file__).parent / "peer" / "Peer.java"
_PER_DATA = 50
_TYPED = {"DATE": "DATE", "TIMESTAMP": "TIMESTAMP"}

Answer = list[list[Any]] | str
"""Rows, or why there are none."""


class Calcite:
    """The peer's process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, sql: str) -> Answer:
        """Its answer to a statement."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(sql) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer.get("error") or answer["rows"]

    def load(self, table: str, rows: list[list[Any]]) -> None:
        """A table with exactly these rows."""
        columns = TABLES[table]
        self.ask(f"DROP TABLE IF EXISTS {table}")
        declared = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        assert self.ask(f"CREATE TABLE {table} ({declared})") == []
        for row in rows:
            values = [_literal(value, kind) for value, kind in zip(row, columns.values(), strict=True)]
            assert isinstance(self.ask(f"INSERT INTO {table} VALUES ({', '.join(values)})"), list)


def _literal(value: Any, kind: str) -> str:
    if value is None or isinstance(value, bool):
        return f"CAST({'NULL' if value is None else str(value).upper()} AS {kind})"
    quoted = f"'{value}'" if isinstance(value, str) else str(value)
    return f"{_TYPED[kind]} {quoted}" if kind in _TYPED else f"CAST({quoted} AS {kind})"


@contextmanager
def calcite() -> Iterator[Calcite]:
    """Calcite in memory."""
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", str(CLASSPATH), str(PEER)]
    with subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Calcite(process)


class Rollup:
    """Our answers, over the same rows."""

    def __init__(self, tables: dict[str, list[list[Any]]]) -> None:
        self._session = Session(Model.of({"tables": {name: {"columns": TABLES[name]} for name in tables}}))
        for name, rows in tables.items():
            self._session.load(name, rows)

    def ask(self, query: str) -> Answer:
        """Our answer to a query."""
        try:
            found = self._session.ask(self._session.prepare(query))
        except RollupError as refusal:
            return str(refusal)
        return [list(row) for row in zip(*(column.to_pylist() for column in found.columns), strict=True)]


def plain(value: Any) -> Any:
    """A value in the form in which both are compared: numbers as doubles, times and texts as texts."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float, Decimal)):
        return _rounded(float(value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, (date, time)):
        return str(value)
    return _rounded(float(value)) if value in ("NaN", "Infinity", "-Infinity") else str(value).removesuffix(".0")


def _rounded(value: float) -> Any:
    return "NaN" if value != value else 0.0 if abs(value) < 1e-12 else float(f"{value:.9g}")


def same(wanted: Answer, found: Answer, ordered: bool) -> bool:
    """Whether two answers are one. Only where Calcite answers is there something to compare."""
    if isinstance(wanted, str):
        return True
    if isinstance(found, str):
        return False
    left, right = ([tuple(map(plain, row)) for row in rows] for rows in (wanted, found))
    return left == right if ordered else sorted(left, key=repr) == sorted(right, key=repr)


def differences(seed: int, count: int) -> tuple[int, list[str]]:
    """Of so many queries: how many Calcite answered, and where we differ."""
    answered, found = 0, list[str]()
    with calcite() as peer:
        for start in range(0, count, _PER_DATA):
            queries = Queries(seed + start)
            tables = {"Emp": queries.rows("Emp", 14), "Dept": queries.rows("Dept", 5)}
            for name, rows in tables.items():
                peer.load(name, rows)
            ours = Rollup(tables)
            for _ in range(min(_PER_DATA, count - start)):
                query = queries.query()
                wanted, mine = peer.ask(query), ours.ask(query)
                answered += isinstance(wanted, list)
                if not same(wanted, mine, " ORDER BY " in query.rpartition(")")[2]):
                    found.append(f"-- seed {seed + start}\n{query}\n  Calcite {wanted}\n  rollup  {mine}")
    return answered, found


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(CLASSPATH is None, reason="CALCITE_CLASSPATH names no jars of Calcite to compare with")
def test_generated_queries_give_the_rows_that_calcite_gives() -> None:
    count = int(os.environ.get("CALCITE_QUERIES", "2100"))
    answered, found = differences(int(os.environ.get("CALCITE_SEED", "1")), count)
    assert answered > count * 0.8, "most of what is asked must be Calcite's SQL"
    assert not found, f"{len(found)} of {answered} differ:\n" + "\n".join(found[:20])


def test_the_generated_queries_are_queries_here() -> None:
    queries = Queries(random.Random(7).randrange(1000))
    ours = Rollup({"Emp": queries.rows("Emp", 5), "Dept": queries.rows("Dept", 3)})
    answers = [ours.ask(queries.query()) for _ in range(40)]
    assert sum(isinstance(answer, list) for answer in answers) >= 36, answers


if __name__ == "__main__":
    total, differing = differences(int(sys.argv[1]), int(sys.argv[2]))
    print("\n".join(differing))
    print(f"{len(differing)} of {total} differ; {sys.argv[2]} asked")
