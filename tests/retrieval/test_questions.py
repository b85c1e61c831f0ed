"""Random questions on every store, each against an answer worked out of the raw events by `tests.oracle.questions`.

A question is drawn of everything that may stand in one: width, origin, zone, range, keys, `merge`, `fill`, `over`,
`previous`, conditions, SiddhiQL and SQL. The few of the suite are the first ones of the many that `slow` asks.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from rollup.ask import opened
from rollup.ask_sql import SqlAsker
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.oracle.buckets import Calendar, Clock, of_days, of_months
from tests.oracle.local_time import NAMES, instant_of, local, zone
from tests.oracle.local_time import start as start_of
from tests.oracle.questions import KEYS, TIME, Answer, Event, Fill, Look, Question, Window, alike
from tests.retrieval.trades import DAY, HOUR, STORES, stored_in

APP = """define stream S (country string, shop int, customer string, amount long, price double, cost decimal(10, 2), ts long);
@OutOfOrder('correct')
define aggregation A from S
select country, shop, count() as n, count(customer) as known, distinctCount(customer) as customers, sum(amount) as total,
  avg(amount) as mean, sum(price) as revenue, stdDev(price) as spread, sum(cost) as costs, min(amount) as least,
  max(price) as most, first(amount) as opening, amount as latest, count() filter (where amount > 3) as large,
  count(distinct customer) filter (where shop == 1) as early, median(price) as middle, percentile(amount, 0.9) as rank,
  weightedAvg(price, shop) as weighted, histogram(amount, -5, 0, 5) as spans, any(customer) as somebody,
  covariance(amount, price) as together, corr(price, shop) as bound, mode(amount) as usual
group by country, shop aggregate by ts every sec ... year;"""
SKIPPING = """CREATE STREAM S (country VARCHAR, shop INT, customer VARCHAR, amount BIGINT, price DOUBLE, cost DECIMAL(10, 2), ts BIGINT);
CREATE AGGREGATION A AS
SELECT country, shop, count(*) AS n, count(customer) AS known, distinctCount(customer) AS customers, sum(amount) AS total,
  avg(amount) AS mean, sum(price) AS revenue, stdDev(price) AS spread, sum(cost) AS costs, min(amount) AS least,
  max(price) AS most, first(amount) AS opening, amount AS latest, count(*) FILTER (WHERE amount > 3) AS large,
  count(DISTINCT customer) FILTER (WHERE shop = 1) AS early, median(price) AS middle, percentile(amount, 0.9) AS "rank",
  weightedAvg(price, shop) AS weighted, histogram(amount, -5, 0, 5) AS spans, any(customer) AS somebody,
  covariance(amount, price) AS together, corr(price, shop) AS bound, mode(amount) AS usual
FROM S GROUP BY country, shop, ROLLUP TIME ts EVERY SECOND, HOUR, YEAR WITH (late = 'correct')"""
"""The same without three of the levels, which are then put together from finer ones."""
COLUMNS = (
    "n", "known", "customers", "total", "mean", "revenue", "spread", "costs", "least", "most", "opening", "latest",
    "large", "early", "middle", "rank", "weighted", "spans", "somebody", "together", "bound", "usual",
)  # fmt: skip
Asked = Callable[[str], pa.Table]

OWN = ("UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu")
ANY = (*OWN, "Australia/Lord_Howe", "America/Havana", "Pacific/Auckland", "+05:30")
MINUTE, THURSDAY, MONDAY = 60_000, date(1970, 1, 1), date(1970, 1, 5)


class Level:
    """The buckets of a stored level: those of hours, minutes and seconds are cut by the offset of the instant."""

    def __init__(self, level: int) -> None:
        self.level = level

    def start(self, instant: int, name: str) -> int:
        return start_of(instant, self.level, name)

    def following(self, start: int, name: str) -> int:
        at = start + (1000, MINUTE, HOUR, 20 * HOUR, 27 * DAY, 360 * DAY)[self.level]
        while self.start(at, name) <= start:
            at += 1000 if self.level < 2 else HOUR // 2
        return self.start(at, name)


LEVELS = {name.lower(): Level(index) for index, name in enumerate(NAMES)}
OF_LEVELS: dict[str, Calendar] = {
    "seconds": Clock(1000), "minutes": Clock(MINUTE), "hours": Clock(HOUR),
    "days": of_days(1, THURSDAY), "months": of_months(1), "years": of_months(12),
}  # fmt: skip
"""The same as periods, which follow the clock on the wall."""
PERIODS: dict[str, tuple[Calendar, int]] = {
    "10 seconds": (Clock(10_000), HOUR),
    "15 minutes": (Clock(15 * MINUTE), 5 * DAY),
    "15 minutes from 00:05": (Clock(15 * MINUTE, 5 * MINUTE), 5 * DAY),
    "2 hours": (Clock(2 * HOUR), 30 * DAY),
    "6 hours": (Clock(6 * HOUR), 60 * DAY),
    "12 hours from 05:30": (Clock(12 * HOUR, 11 * HOUR // 2), 60 * DAY),
    "2 days": (of_days(2, THURSDAY), 200 * DAY),
    "days from 06:00": (of_days(1, THURSDAY, 6 * HOUR), 120 * DAY),
    "weeks": (of_days(7, MONDAY), 400 * DAY),
    "weeks from Sunday": (of_days(7, MONDAY - timedelta(days=1)), 400 * DAY),
    "2 weeks from 2018-01-03": (of_days(14, date(2018, 1, 3)), 400 * DAY),
    "quarters": (of_months(3), 700 * DAY),
    "months from the 7th": (of_months(1, 1, 7), 500 * DAY),
    "5 months": (of_months(5), 700 * DAY),
    "years from April 6": (of_months(12, 4, 6), 900 * DAY),
}
"""What `per` says, its calendar, and how long a range is that has not too many of them."""
LONGEST = {"seconds": HOUR // 4, "minutes": 2 * DAY, "hours": 30 * DAY, "days": 200 * DAY, "months": 700 * DAY, "years": 900 * DAY}  # fmt: skip
WINDOWS = {
    "7 days": Window("day", 7), "36 hours": Window("hour", 36), "3 weeks": Window("week", 3), "1 month": Window("month", 1),
    "2 quarters": Window("quarter", 2), "90 minutes": Window("minute", 90),
    "day to date": Window("day", since=of_days(1, THURSDAY)), "week to date": Window("week", since=of_days(7, MONDAY)),
    "month to date": Window("month", since=of_months(1)), "year to date": Window("year", since=of_months(12)),
}  # fmt: skip


GROUPS: list[tuple[str, Callable[[Any], bool]]] = [
    ("shop == 1", lambda event: event.shop == 1),
    ("shop in (1, 3)", lambda event: event.shop == 1),
    ("country like '_' and country not in ('x', 'w')", lambda event: event.country in ("y", "z")),
    ("case when country is not null then shop else 2 end between 2 and 3", lambda e: e.country is None or e.shop == 2),
]
ROWS: list[tuple[str, Callable[[Any], bool]]] = [
    ("n > 1", lambda row: row["n"] > 1),
    ("shop == 1", lambda row: row["shop"] == 1),
    (
        "country in ('x', 'y') and total >= 0",
        lambda row: row["country"] in ("x", "y") and (-1 if row["total"] is None else row["total"]) >= 0,
    ),
    ("country is null or mean > 1.5", lambda row: row["country"] is None or (row["mean"] or 0) > 1.5),
    ("n not between 2 and 3", lambda row: row["n"] not in (2, 3)),
    ("least in (-9, 0, 2) or somebody like 'a%'", lambda row: row["least"] in (-9, 0, 2) or row["somebody"] == "ann"),
]
"""What `on` says of group keys and of rows, and what it means."""


def drawn_events(draw: Random, own: str) -> list[Event]:
    """Events of two years, many of them about the edges of buckets and the changes of clocks."""
    edges = [instant_of(datetime(2018, 1, 1, tzinfo=zone(own)))]
    edges += [
        instant_of(datetime(2018, *day, tzinfo=zone("UTC")))
        for day in ((3, 11, 7), (3, 25, 1), (10, 28, 1), (11, 4, 4))
    ]
    found = list[Event]()
    for _ in range(draw.randint(1, 70)):
        step = draw.choice((1, 1000, MINUTE, HOUR, DAY, 30 * DAY))
        ts = draw.choice(edges) + draw.randint(-12, 12) * step + draw.choice((0, 0, 1, -1, 999, 59_999))
        found.append(
            Event(
                draw.choice(("x", "y", "z", None)), draw.randint(1, 2), draw.choice(("ann", "bob", "cec", "dan", None)),
                draw.choice((None, *range(-9, 10), 2**40)), draw.choice((None, *(n / 4 for n in range(-20, 20)))),
                draw.choice((None, *(Decimal(n) / 100 for n in range(-300, 300, 7)))), ts,
            )
        )  # fmt: skip
    return found


def drawn_range(draw: Random, at: int, longest: int, place: str) -> tuple[str, int, int]:
    """What `within` says, and what it means; it begins near an instant."""
    low = at - draw.randint(0, longest) // draw.choice((1, 2, 50))
    high = low + max(1, draw.randint(1, longest))
    wall = local(at, place).replace(tzinfo=None)
    form = draw.choice(("numbers", "numbers", "texts", "mixed", "month", "stars", "day"))
    if form == "month" and longest >= 30 * DAY:
        behind = (wall.replace(day=1) + timedelta(days=31)).replace(day=1)
        return (
            f"'{wall:%Y-%m}'",
            start_of(at, 4, place),
            start_of(instant_of(behind.replace(hour=12, tzinfo=zone(place))), 4, place),
        )
    if form == "stars" and longest >= 365 * DAY:
        return (
            f"'{wall:%Y}-**-** **:**:**'",
            start_of(at, 5, place),
            start_of(start_of(at, 5, place) + 370 * DAY, 5, place),
        )
    if form == "day" and longest >= DAY:
        return f"'{wall:%Y-%m-%d}'", start_of(at, 3, place), start_of(start_of(at, 3, place) + 36 * HOUR, 3, place)
    if form in ("texts", "mixed"):
        low, high = low // 1000 * 1000, high // 1000 * 1000 + 1000
        first, last = (f"{local(each, '+05:30'):%Y-%m-%d %H:%M:%S} +05:30" for each in (low, high))
        return f"'{first}', {high}L" if form == "mixed" else f"'{first}', '{last}'", low, high
    return f"{low}L, {high}L", low, high


def drawn(draw: Random, own: str, events: list[Event]) -> tuple[str, Question]:
    """A question, as a text and as what it means."""
    form = draw.choice(("plain", "plain", "by", "merge", "merge", "total", "fill", "over", "previous", "auto"))
    word, foreign = draw.choice([*LEVELS, *PERIODS, *PERIODS]), draw.choice((None, None, *ANY))
    if form in ("over", "previous") and word in ("seconds", "10 seconds", "minutes"):
        word = "days"
    place = own if foreign is None or form == "auto" else foreign
    levels = LEVELS if foreign is None else OF_LEVELS
    calendar, longest = PERIODS.get(word) or (levels[word], LONGEST[word])
    per, window = word, None
    if form == "over" or (form in ("by", "merge") and draw.random() < 0.2 and longest >= 5 * DAY):
        over = draw.choice([*WINDOWS])
        per, window, calendar = f"{word} over {over}", WINDOWS[over], OF_LEVELS.get(word, calendar)
    keys, looks, fill, columns = None, (), None, tuple(draw.sample(COLUMNS, draw.randint(1, 6)))
    if form in ("by", "merge", "total", "auto") or (form in ("over", "previous") and draw.random() < 0.5):
        keys = tuple(sorted(draw.sample(KEYS, draw.randint(0, 2))))
    merging = form in ("merge", "total", "auto")
    if keys is not None and not merging:
        per += f" by ({', '.join(keys)})"
    if form == "auto":
        per, calendar, longest = "auto", LEVELS["seconds"], 300 * DAY
    elif foreign is not None:
        per += f" in {foreign}"
    apart = form not in ("total", "auto")
    said, low, high = drawn_range(draw, draw.choice(events).ts, longest, place)
    keyed, passes, condition = None, None, ""
    if draw.random() < 0.3:
        said_on, holds = draw.choice(ROWS if keys is None else GROUPS)
        condition, keyed, passes = f" on {said_on}", None if keys is None else holds, holds if keys is None else None
    if form == "previous":
        names = draw.sample([*COLUMNS], 2)
        looks = (Look(names[0]), Look(names[1], draw.randint(1, 2), draw.choice(("week", "month", "quarter", "year"))))
    elif form == "fill" or (form in ("by", "merge") and window is None and draw.random() < 0.3):
        fill = Fill(draw.choice(("null", "zero", "previous", "linear")), draw.random() < 0.5)
        columns = tuple(name for name in columns if name != "costs") or ("n",)
    if fill is None and draw.random() < 0.2:
        columns += ("AGG_EVENTS",)
    question = Question(calendar, place, low, high, columns, keys, apart, window, fill, looks, keyed, passes)
    gaps = f" fill({fill.word}{', range' if fill.whole else ''})" if fill else ""
    if not merging:
        shown = [TIME, *KEYS, *columns, *(f"{look.text} as look_{i}" for i, look in enumerate(looks))]
        if not (looks or keyed or (fill and passes)) and draw.random() < 0.4:
            where = condition.replace(" on ", "where ", 1).replace("==", "=")
            order = f"order by {TIME}, country nulls first, shop nulls first"
            source = f"A within {said.replace('L', '')} per '{per}'{gaps}"
            return f"select {', '.join(shown)} from {source} {where} {order}", question
        return f"from A{condition} within {said} per '{per}'{gaps} select {', '.join(shown)}", question
    by = [*([TIME] if apart else []), *(keys or ())]
    shown = [*by, *(name if name == "AGG_EVENTS" else f"merge({name}) as {name}" for name in columns)]
    group = f" group by {', '.join(by)}" if by else ""
    return f"from A{condition} within {said} per '{per}'{gaps} select {', '.join(shown)}{group}", question


def shown(rows: list[dict[str, Any]], question: Question) -> list[dict[str, Any]]:
    """The rows with the columns that the question shows, whatever their order."""
    names = [
        *([TIME] if question.apart else []),
        *(KEYS if question.apart and question.keys is None else question.keys or ()),
    ]
    names += [*question.columns, *(f"look_{i}" for i in range(len(question.looks)))]
    return [{name: row[name] for name in names} for row in rows]


@pytest.fixture(params=["memory", *STORES])
def asked(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str, str, list[Event]], Asked]:
    """Makes a store that holds events, which come in four batches, and gives what answers a text from it."""
    folders = count()

    def made(app: str, own: str, events: list[Event]) -> Asked:
        batches = [events[at * len(events) // 4 : (at + 1) * len(events) // 4] for at in range(4)]
        if request.param != "memory":
            folder = tmp_path / str(next(folders))
            folder.mkdir()
            return opened(stored_in(request, folder, app, *batches, zone=own)).query
        host = LocalHost(compile_app(app, own))
        for batch in batches:
            host.send("S", batch)
        sql = SqlAsker(host.engine, host.program.aggregations, lambda name: host.stores[name].snapshot())
        return lambda text: (host if text.startswith("from") else sql).query(text)

    return made


@pytest.mark.parametrize(
    ("seeds", "questions"), [(range(2), 5), pytest.param(range(2, 52), 10, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_an_answer_is_what_the_raw_events_say(
    asked: Callable[[str, str, list[Event]], Asked], seeds: range, questions: int
) -> None:
    for seed in seeds:
        draw = Random(seed)
        own = draw.choice(OWN)
        events = drawn_events(draw, own)
        ask = asked(SKIPPING if seed % 2 else APP, own, events)
        for number in range(questions):
            text, question = drawn(draw, own, events)
            expected = shown(Answer(question, events).rows(), question)
            found = shown(ask(text).to_pylist(), question)
            same = len(found) == len(expected) and all(
                alike(row[name], other[name]) for row, other in zip(found, expected, strict=True) for name in row
            )
            assert same, f"seed {seed}, question {number}, own zone {own}: {text}\n{found}\nexpected\n{expected}"
