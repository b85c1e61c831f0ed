"""What the cases of Calcite's streaming SQL run on: event by event, all at once, and in random pieces with restarts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import RollupError
from rollup.engine.flows.flow import AT, END
from rollup.engine.flows.source import Arrivals, Punctuation
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.reader import parse
from rollup.lang.calcite.session import Session, Standing, States
from tests.conformance.compare import Case, Mismatch
from tests.conformance.language import Language, Target
from tests.conformance.uql.targets import Cuts, pieces, reopened, single, whole

BOTH, STREAMS = ("Orders",), ("Shipments", "Launch")
"""In the cases Orders is a stream and a table, these are streams, and everything else is a table."""


def model_of(case: Case) -> Model:
    """The model that the words of a case's schema describe, with what its note declares besides."""
    tables: dict[str, dict[str, Any]] = {name: _table(name, text) for name, text in case["schema"].items()}
    if "SYSTEM_TIME" in case["query"]:
        tables["Products"]["temporal"] = True
    if "OrdersSummary" in case["query"]:
        tables["OrdersSummary"] = {"columns": {"productId": "INTEGER", "c": "BIGINT"}, "key": ["productId"]}
    return Model.of({"tables": tables})


def _table(name: str, text: str) -> dict[str, Any]:
    body, _, history = text.partition(";")
    kind = "both" if name in BOTH else "stream" if name in STREAMS else "table"
    table: dict[str, Any] = {"columns": {}, "monotonic": {}, "kind": kind}
    for part in re.split(r",\s*(?![^(]*\))", body.strip()):
        found = re.fullmatch(r"(\w+) (\w+)(?: \((.*)\))?", part)
        assert found, part
        column, words = found[1], found[3] or ""
        table["columns"][column] = "DOUBLE" if found[2] == "DECIMAL" else found[2]
        if words.startswith("quasi-monotonic"):
            table["monotonic"][column] = "increasing"
            amount = words.partition("within ")[2]
            table["slack"] = amount if "t-sorted" in words else f"{amount} rows" if amount else "punctuation"
        elif words.startswith("monotonic"):
            table["monotonic"][column] = words.removeprefix("monotonic ")
    if "kept: " in history:
        table["history"] = history.split("kept: ")[1]
    return table


@dataclass
class _Run:
    """A case in the middle of its events."""

    session: Session
    standing: Standing
    restart: bool
    states: States = field(init=False)
    rows: list[list[Any]] = field(default_factory=list[list[Any]])
    when: list[str] = field(default_factory=list[str])
    refused: list[int] = field(default_factory=list[int])

    def __post_init__(self) -> None:
        self.states = self.standing.start()

    def take(self, events: list[tuple[int, dict[str, Any]]]) -> None:
        """One batch of rows and punctuations."""
        arrivals: dict[str, Arrivals] = {}
        for name in {event.get("stream") or event["punctuation"] for _, event in events}:
            rows = [(at, event["row"]) for at, event in events if event.get("stream") == name]
            said = [
                Punctuation(at, datetime.fromisoformat(e["rowtime"]))
                for at, e in events
                if e.get("punctuation") == name
            ]
            arrivals[name.lower()] = self.session.arrivals(name, [row for _, row in rows], [at for at, _ in rows], said)
        self.push(arrivals)

    def end(self) -> None:
        """The input has ended."""
        name = min(self.standing.streams)
        self.push({name: self.session.arrivals(name, [], [], ended=True)})

    def push(self, arrivals: Mapping[str, Arrivals]) -> None:
        """A step, and what it gives."""
        self.states, output, refused = self.standing.step(self.states, arrivals, self.session.engine)
        self.session.deliver(self.standing, output)
        self.refused += [refusal.at for refusal in refused]
        for row in output.to_pylist():
            at = row.pop(AT)
            self.when.append("end of input" if at == END else f"event[{at}]")
            self.rows.append([_plain(value) for value in row.values()])
        if self.restart:
            self.states = dict(zip(self.states, reopened(tuple(self.states.values())), strict=True))


def run_case(case: Case, cuts: Cuts, restart: bool = False) -> int:
    """Run a case with its events cut in a way. Returns how many answers were compared."""
    session = Session(model_of(case), _now(case))
    for name, rows in case["tables"].items():
        session.load(name, rows)
    try:
        answer = session.prepare(case["query"])
    except RollupError as refusal:
        if not case.get("expected_error"):
            raise Mismatch(f"refused: {refusal}") from None
        if refusal.line is None or not refusal.hint:
            raise Mismatch(f"refused without a place or without a cure: {refusal}") from None
        return 1
    if case.get("expected_error"):
        raise Mismatch(f"accepted, though it must be refused: {case['message_like']}")
    if answer.standing is None:
        return _compare(case, _asked(case, session, answer), None, [])
    run = _Run(session, answer.standing, restart)
    for batch in _batches(case["input_events"], cuts):
        if "table" in batch[0][1]:
            _change(session, batch[0][1])
        else:
            run.take(batch)
    run.end()
    return _compare(case, _content(session, run), run.when if answer.standing.target is None else None, run.refused)


def _now(case: Case) -> datetime | None:
    found = re.search(r"current_timestamp = (.+)", case.get("query_at") or "")
    return datetime.fromisoformat(found[1]) if found else None


def _asked(case: Case, session: Session, answer: Any) -> list[list[Any]]:
    """A query over tables, after the events that its case says have been kept."""
    found = re.search(r"after event\[(\d+)\]", case.get("query_at") or "")
    for event in case["input_events"][: int(found[1]) + 1 if found else 0]:
        session.load(event["stream"], [event["row"]])
    return _lists(session.ask(answer))


def _batches(events: list[dict[str, Any]], cuts: Cuts) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """The events with their positions, in pieces; a change of a table stands alone."""
    numbered, at = list(enumerate(events)), 0
    for size in cuts(len(events)):
        batch: list[tuple[int, dict[str, Any]]] = []
        for event in numbered[at : at + size]:
            if "table" in event[1]:
                yield from [batch] if batch else []
                yield [event]
                batch = []
            else:
                batch.append(event)
        at += size
        yield from [batch] if batch else []


def _change(session: Session, event: dict[str, Any]) -> None:
    for statement in parse(event["sql"]):
        session.change(statement, datetime.fromisoformat(event["at"]) if "at" in event else None)


def _content(session: Session, run: _Run) -> list[list[Any]]:
    """What was given; of an INSERT what its table holds in the end."""
    if run.standing.target is None:
        return run.rows
    return _lists(
        session.engine.connection.sql(f"FROM {session.catalog.stored(run.standing.target.name)}").to_arrow_table()
    )


def _lists(table: pa.Table) -> list[list[Any]]:
    return [[_plain(value) for value in row] for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return str(value) if isinstance(value, (date, time)) else float(value) if isinstance(value, Decimal) else value


def _compare(case: Case, rows: list[list[Any]], when: list[str] | None, refused: list[int]) -> int:
    wanted, times = case["expected"], case.get("expected_emitted_when")
    compared = 1
    if case.get("expected_subset"):
        good = all(any(_same(row, found) for found in rows) for row in wanted)
    else:
        given = list(zip(rows, when or [""] * len(rows), strict=True))
        asked = list(zip(wanted, times if times and when is not None else [""] * len(wanted), strict=True))
        given = given if times and when is not None else [(row, "") for row, _ in given]
        good = _ordered(asked, given) if case["order"] == "listed" else _free(asked, given)
        compared += len(asked)
    if not good:
        raise Mismatch(f"wanted {wanted} {times}\nfound  {rows} {when}")
    if [event["event"] for event in case.get("refused_events", ())] != refused:
        raise Mismatch(f"refused: wanted {case.get('refused_events')}, found {refused}")
    return compared


def _ordered(wanted: list[tuple[Any, str]], found: list[tuple[Any, str]]) -> bool:
    pairs = zip(wanted, found, strict=False)
    return len(wanted) == len(found) and all(_same(w, f) and at == when for (w, at), (f, when) in pairs)


def _free(wanted: list[tuple[Any, str]], found: list[tuple[Any, str]]) -> bool:
    left = list(found)
    for row, at in wanted:
        match = next((pair for pair in left if _same(row, pair[0]) and pair[1] == at), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _same(wanted: list[Any], found: list[Any]) -> bool:
    return len(wanted) == len(found) and all(map(_near, wanted, found))


def _near(wanted: Any, found: Any) -> bool:
    numbers = isinstance(wanted, (int, float)) and isinstance(found, (int, float)) and not isinstance(found, bool)
    return abs(wanted - found) <= 1e-9 * max(1.0, abs(wanted)) if numbers else wanted == found


def topic(case: Case) -> str:
    """The part of the language that a case is about, by the words of its name."""
    words = {
        "err": "what is refused", "tumble": "TUMBLE and HOP", "hop": "TUMBLE and HOP", "ceil": "FLOOR and CEIL", "floor": "FLOOR and CEIL",
        "window": "OVER", "sliding": "OVER", "cascading": "OVER", "join": "joins", "union": "UNION ALL", "dml": "INSERT, UPSERT, UPDATE",
        "order": "ORDER BY", "group": "GROUP BY", "grouping": "GROUP BY", "distinct": "GROUP BY", "view": "views and sub-queries",
        "subquery": "views and sub-queries", "with": "views and sub-queries", "late": "order of the input", "sorted": "order of the input",
    }  # fmt: skip
    return next((words[word] for word in case["name"].split("_") if word in words), "select, history, aggregates")


def _target(cuts: Cuts, restart: bool = False) -> Target:
    def run(case: Case, request: pytest.FixtureRequest) -> int:
        return run_case(case, cuts, restart)

    return Target(run)


CALCITE = Language(
    "calcite",
    "Calcite's streaming SQL",
    {
        "one batch": _target(whole),
        "event by event": _target(single),
        "random batches": _target(pieces(3)),
        "restarts": _target(pieces(4), restart=True),
    },
    topic=topic,
)
