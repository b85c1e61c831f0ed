"""Names of columns with quotes and other signs, and truths as values, on every store: answers are those of Python."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from tests.stores.conftest import Open

KEY, OTHER, VALUE = 'the "best"', "it's; -- %(start)s", 'Größe "{end}"'
APP = f"""
define stream S (`{KEY}` string, `{OTHER}` string, `{VALUE}` long, flag bool, ts long);
@OutOfOrder('correct')
define aggregation `Rise in %s` from S
select `{KEY}`, `{OTHER}`, sum(`{VALUE}`) as `{VALUE}`, min(flag) as low, max(flag) as high, count() as n
group by `{KEY}`, `{OTHER}` aggregate by ts every sec ... day;
"""
HOUR, DAY, START = 3_600_000, 86_400_000, 1_514_764_800_000
FLAGS = (True, False, None)
EVENTS = [
    (key, other, number, FLAGS[number % 3], START + number * HOUR * 5)
    for number in range(40)
    for key, other in (("a'b", 'say "hi"'), (None, "x"))
]


def _expected() -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups = defaultdict[tuple[Any, ...], list[tuple[Any, ...]]](list)
    for event in EVENTS:
        groups[event[4] // DAY * DAY, event[0], event[1]].append(event)
    found = dict[tuple[Any, ...], tuple[Any, ...]]()
    for key, events in groups.items():
        flags = [event[3] for event in events if event[3] is not None]
        total = sum(event[2] for event in events)
        found[key] = (total, min(flags, default=None), max(flags, default=None), len(events))
    return found


def test_no_name_of_a_column_reaches_sql_as_text(opened: Open) -> None:
    job = opened(APP)
    for batch in (EVENTS[::2], EVENTS[1::2], EVENTS[:0]):  # the second one corrects buckets that are stored
        job.send("S", batch)
    text = f"from `Rise in %s` within {START}L, {START + 30 * DAY}L per 'days' select AGG_TIMESTAMP, `{KEY}`, `{OTHER}`, `{VALUE}`, low, high, n"
    for asked in (job, opened(APP)):
        rows = [tuple(row.values()) for row in asked.query(text).to_pylist()]
        assert {row[:3]: row[3:] for row in rows} == _expected()
