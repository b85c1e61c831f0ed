"""The questions of the retrieval benchmark, spoken to every engine, and the events they are asked of.

The events are one per key and second: one second of every hour of 2018, so that each hour, day and month of the year
has a row, and all the others in one dense run of whole hours. So the answers are of the same size at every scale.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from benchmarks.common import FILE_ROWS, FIRST_MS, SEED, Events, cache_dir, write_parquet

KEYS = 100
YEAR_HOURS = 8_760
HOURS = YEAR_HOURS + 48
"""Two days more than the year: after them all its hours and days are closed, and who reads only our tables has every
answer too."""
DENSE_HOUR = 63 * 24  # 2018-03-05 00:00 UTC, where the dense run begins
FIRST = datetime(2018, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Question:
    """Rows of one level (``seconds`` … ``years``) with start <= bucket < end, of some keys or (none named) of all."""

    name: str
    level: str
    start: datetime
    end: datetime
    keys: tuple[str, ...]
    rows: int


def dense_hours(rows: int) -> int:
    """Whole hours that have a row for every key and second, in a store of about ``rows`` second-level rows."""
    return max(1, round((rows / KEYS - HOURS) / 3600))


def second_rows(rows: int) -> int:
    """Second-level rows a store of about ``rows`` really gets.

    >>> second_rows(10_000_000)
    9878300
    """
    return KEYS * (HOURS + dense_hours(rows) * 3599)


def store_events(rows: int) -> Events:
    """The events, in order of time, that make a store of about ``rows`` second-level rows; generated once and kept."""
    folder, total = cache_dir(f"year-{rows}"), second_rows(rows)
    files = tuple(folder / f"part-{index:04d}.parquet" for index in range(-(-total // FILE_ROWS)))
    for index, file in enumerate(files):
        write_parquet(file, _store_rows(rows, index * FILE_ROWS, min(total, (index + 1) * FILE_ROWS)))
    return Events(files, KEYS, total)


def _store_rows(rows: int, first: int, last: int) -> str:
    """Rows number first … last - 1; every dense hour has 3,600 seconds and every other hour its first one only."""
    dense = dense_hours(rows)
    before, inside = DENSE_HOUR, dense * 3600
    return f"""
        WITH numbered AS (SELECT i, i // {KEYS} AS n, i % {KEYS} AS k FROM range({first}, {last}) AS numbers(i)),
        placed AS (SELECT *, CASE WHEN n < {before} THEN n * 3600
                                  WHEN n < {before + inside} THEN {DENSE_HOUR * 3600} + n - {before}
                                  ELSE ({DENSE_HOUR + dense} + n - {before + inside}) * 3600 END AS second
                   FROM numbered)
        SELECT 'k' || k AS symbol, 10 + (hash(i, {SEED + 1}) % 1024) / 8.0 AS price,
               (hash(i, {SEED + 2}) % 128)::BIGINT AS quantity, ({FIRST_MS} + second * 1000)::BIGINT AS ts
        FROM placed ORDER BY i"""


def questions(rows: int, seed: int = SEED) -> dict[str, Iterator[Question]]:
    """Endless questions of each shape, always the same ones for a seed; range and keys differ from one to the next."""
    draw = random.Random(seed)
    return {
        "month per days, 1 key": _months(draw, 1),
        "month per days, 100 keys": _months(draw, KEYS),
        "hour per seconds, 1 key": _hours(draw, dense_hours(rows), 1),
        "hour per seconds, 2 keys": _hours(draw, dense_hours(rows), 2),
        "year per hours, 1 key": _year(draw),
    }


def _months(draw: random.Random, count: int) -> Iterator[Question]:
    while True:
        month = draw.randint(1, 12)
        start = FIRST.replace(month=month)
        end = (start + timedelta(days=31)).replace(day=1)
        keys = () if count == KEYS else (f"k{draw.randrange(KEYS)}",)
        yield Question(f"month per days, {_keys(count)}", "days", start, end, keys, (end - start).days * count)


def _hours(draw: random.Random, dense: int, count: int) -> Iterator[Question]:
    while True:
        start = FIRST + timedelta(hours=DENSE_HOUR + draw.randrange(dense))
        keys = tuple(f"k{key}" for key in sorted(draw.sample(range(KEYS), count)))
        yield Question(
            f"hour per seconds, {_keys(count)}", "seconds", start, start + timedelta(hours=1), keys, 3600 * count
        )


def _year(draw: random.Random) -> Iterator[Question]:
    while True:
        key = f"k{draw.randrange(KEYS)}"
        yield Question("year per hours, 1 key", "hours", FIRST, FIRST.replace(year=2019), (key,), YEAR_HOURS)


def _keys(count: int) -> str:
    return "1 key" if count == 1 else f"{count} keys"


def _quoted(question: Question) -> str:
    return ", ".join(f"'{key}'" for key in question.keys)


def siddhi_text(question: Question, aggregation: str = "TradeAgg") -> str:
    """The question in SiddhiQL, as our side takes it: an on-condition, and the range as a start and end in long."""
    condition = " or ".join(f"symbol == '{key}'" for key in question.keys)
    start, end = (int(time.timestamp() * 1000) for time in (question.start, question.end))
    return (
        f"from {aggregation} {f'on {condition} ' if condition else ''}within {start}L, {end}L per '{question.level}' "
        "select AGG_TIMESTAMP, symbol, avgPrice, total, low, high, events order by AGG_TIMESTAMP, symbol"
    )


def clickhouse_sql(question: Question) -> str:
    """The question to ClickHouse: the partial states merged to final values."""
    condition = f" AND symbol IN ({_quoted(question)})" if question.keys else ""
    return (
        "SELECT bucket, symbol, avgMerge(price_avg), sumMerge(quantity_sum), minMerge(price_min), maxMerge(price_max),"
        f" countMerge(event_count) FROM agg_{question.level}"
        f" WHERE bucket >= toDateTime('{question.start:%Y-%m-%d %H:%M:%S}', 'UTC')"
        f" AND bucket < toDateTime('{question.end:%Y-%m-%d %H:%M:%S}', 'UTC'){condition}"
        " GROUP BY bucket, symbol ORDER BY bucket, symbol"
    )


def spark_sql(question: Question, view: str, columns: dict[str, str]) -> str:
    """The question as a Spark SQL group-by over the Delta table of its level.

    ``columns`` names the table's columns for ``time`` (epoch milliseconds), ``sum``, ``count``, ``total``, ``low``,
    ``high`` and ``events``.
    """
    condition = f" AND symbol IN ({_quoted(question)})" if question.keys else ""
    start, end = (int(time.timestamp() * 1000) for time in (question.start, question.end))
    time = columns["time"]
    return (
        f"SELECT {time}, symbol, sum({columns['sum']}) / sum({columns['count']}) AS avgPrice,"
        f" sum({columns['total']}) AS total, min({columns['low']}) AS low, max({columns['high']}) AS high,"
        f" sum({columns['events']}) AS events FROM {view} WHERE {time} >= {start} AND {time} < {end}{condition}"
        f" GROUP BY {time}, symbol ORDER BY {time}, symbol"
    )
