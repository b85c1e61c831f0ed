"""Random questions of BI clients, each against an answer worked out of the raw events, before both kinds of store.

The questions are those of `tests.retrieval.test_questions` that are written in SQL.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import Any, cast
from zoneinfo import ZoneInfo

import psycopg
import pytest
from psycopg.abc import Query
from psycopg.rows import dict_row

from rollup.hosts.local import LocalHost
from rollup.plan.app import Selection
from rollup.program import compile_app
from rollup.retrieval.questions import ask_for
from tests.gateway.trades import served
from tests.oracle.questions import Answer, alike
from tests.retrieval.test_questions import APP, drawn, drawn_events, shown

OWN = "America/New_York"
ZONED = APP.replace("@OutOfOrder", f"@zone('{OWN}') @OutOfOrder")
EVENTS = drawn_events(Random(7), OWN)
BATCHES = [EVENTS[at::3] for at in range(3)]
IN_ORDER = [event for batch in BATCHES for event in batch]


def sent(job: LocalHost) -> None:
    for batch in BATCHES:
        job.send("S", batch)


@pytest.fixture(scope="module", params=["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def login(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    exact = ZONED.replace("median(price) as middle, percentile(amount, 0.9) as rank,", "")
    with served(request.param, ZONED if request.param == "delta" else exact, sent) as found:
        yield found


def asked(draw: Random) -> tuple[str, Any]:
    """A question in SQL, with the names as PostgreSQL must have them; without sketches, which only one store has."""
    while True:
        text, question = drawn(draw, OWN, IN_ORDER)
        if text.startswith("select") and not {"middle", "rank"} & set(question.columns):
            return re.sub("AGG_(TIMESTAMP|EVENTS)", r'"\g<0>"', text), question


@pytest.mark.parametrize(
    ("seed", "questions"), [(0, 10), pytest.param(2, 400, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_what_a_client_gets_is_what_the_raw_events_say(login: dict[str, Any], seed: int, questions: int) -> None:
    draw, wrong = Random(seed), list[str]()
    with psycopg.connect(**login, autocommit=True) as connected, connected.cursor(row_factory=dict_row) as client:
        for _ in range(questions):
            text, question = asked(draw)
            expected = shown(Answer(question, IN_ORDER).rows(), question)
            try:
                found = shown(client.execute(cast(Query, text)).fetchall(), question)
            except psycopg.Error as problem:
                wrong.append(f"{text}\n{problem}")
                continue
            same = len(found) == len(expected) and all(
                alike(row[name], other[name]) for row, other in zip(found, expected, strict=True) for name in row
            )
            if not same:
                wrong.append(f"{text}\n{found}\nexpected\n{expected}")
    assert not wrong, "\n\n".join(wrong)


def test_an_aggregation_that_came_from_another_process_is_asked_alike() -> None:
    here = compile_app(ZONED).aggregations["A"]
    texts = [
        ask_for(each, 0, 10**12, "weeks by country", Selection()).constant_sql(dialect="postgres")
        for each in (here, pickle.loads(pickle.dumps(here)))
    ]
    assert texts[0] == texts[1]


def test_sums_of_what_cannot_be_added_are_noticed_once_with_a_cure(login: dict[str, Any]) -> None:
    said = list[str | None]()
    bounds = "1970-01-01 00:00:00', '2100-01-01 00:00:00"
    with psycopg.connect(**login, autocommit=True) as client:
        client.add_notice_handler(lambda notice: said.append(notice.message_primary))
        for _ in range(2):
            client.execute(cast(Query, f"select sum(customers), sum(total) from A within '{bounds}' per 'years'"))
        text = f"select avg(customers) from A within '{bounds}' per 'years' where shop = %s"
        client.execute(text.encode(), (1,))
        assert said == [
            "customers is added up as each row shows it; PER 'days by (key)', with the keys that stay, is that of all events together"
        ]
        merged = client.execute(cast(Query, f"select customers from A within '{bounds}' per 'years by ()'"))
        ours = dict[int, set[str]]()
        for event in IN_ORDER:
            customers = ours.setdefault(datetime.fromtimestamp(event.ts / 1000, ZoneInfo(OWN)).year, set())
            if event.customer is not None:
                customers.add(event.customer)
        assert [row[0] for row in merged] == [len(ours[year]) for year in sorted(ours)]
    assert len(said) == 1
