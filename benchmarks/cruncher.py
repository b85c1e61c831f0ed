"""StreamCruncher's queries over many events: `python -m benchmarks.cruncher [events]`. Prints events a CPU second.

* attack: the denial-of-attack query of its document: requests of 1,000 addresses, counted over the last five seconds
  with a pinned and an entrance-only count.
* keys: a window of five seconds by country, state and city, with a count and a mean.
* alert: the three-stage alert, three patterns over three streams with a case and a filter behind them.

One event a millisecond, so nearly every event is a cycle of its own. Over columns they come as Arrow tables of their
streams, on rows each submitted by itself (of the first 20,000); both tell a listener of every cycle that has rows.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

import pyarrow as pa

from rollup.engine.rows.cycles.running import Batch
from rollup.lang.streamcruncher.kernel import Cruncher

ATTACK = """select ip, recent, total from visits (partition by ip store last 5 seconds
with pinned count(id) as recent, count(id) entrance only as total) as v
where v.$row_status is new and v.recent > 8;"""
KEYS = """select country, state, city, n, mean from orders (partition by country, state, city store last 5 seconds
with count(id) as n, avg(quantity) as mean) as o where o.$row_status is new;"""
ALERT = """select stg1_id, stg2_id, stg3_id, priority,
case when stg2_id is null and stg3_id is null then 'Both missing' when stg3_id is null then 'Third missing'
else 'Second missing' end as comment
from alert one.id as stg1_id, one.priority as priority, two.id as stg2_id, three.id as stg3_id
using stage1 (partition store last 1 seconds) as one correlate on id,
      stage2 (partition store last 1 seconds) as two correlate on id,
      stage3 (partition store last 1 seconds) as three correlate on id
when present(one and not two and not three) or present(one and two and not three) or present(one and not two and three)
where priority < 7.5;"""
Event = tuple[str, tuple[object, ...]]


def attack(count: int, pick: random.Random) -> list[Event]:
    """Requests: number, time, address."""
    return [("visits", (n, n, f"10.0.{pick.randrange(4)}.{pick.randrange(250)}")) for n in range(count)]


def keys(count: int, pick: random.Random) -> list[Event]:
    """Orders: number, time, country, state, city, quantity."""
    places = [("US", f"S{n % 50}", f"C{n}") for n in range(500)]
    return [("orders", (n, n, *pick.choice(places), pick.randrange(100))) for n in range(count)]


def alert(count: int, pick: random.Random) -> list[Event]:
    """Identities that pass three stages, some of which are left out."""
    events = list[Event]()
    identity = 0
    while len(events) < count:
        identity += 1
        for stage in (1, 2, 3):
            if stage == 1 or pick.random() < 0.9:
                events.append((f"stage{stage}", (identity, len(events), pick.random() * 10)))
    return events[:count]


STREAMS = {
    "visits": {"id": "long", "at": "ts", "ip": "str"},
    "orders": {"id": "long", "at": "ts", "country": "str", "state": "str", "city": "str", "quantity": "int"},
    **{f"stage{stage}": {"id": "long", "at": "ts", "priority": "double"} for stage in (1, 2, 3)},
}
SHAPES: dict[str, tuple[str, Callable[[int, random.Random], list[Event]]]] = {
    "attack": (ATTACK, attack),
    "keys": (KEYS, keys),
    "alert": (ALERT, alert),
}


BY_ROWS = 20_000


def begun(query: str) -> tuple[Cruncher, list[int]]:
    """A kernel with a query, and how many rows it has given."""
    cruncher, rows = Cruncher(), [0]
    for name, columns in STREAMS.items():
        cruncher.define(name, columns, "at")

    def listen(batch: Batch) -> None:
        rows[0] += len(batch.rows)

    cruncher.register(query, listen)
    return cruncher, rows


def by_rows(query: str, events: list[Event]) -> tuple[float, int]:
    """Events a CPU second, each submitted by itself, and how many rows they gave."""
    cruncher, rows = begun(query)
    start = time.process_time()
    for stream, values in events:
        cruncher.submit(stream, [values], int(str(values[1])))
    cruncher.finish()
    return len(events) / (time.process_time() - start), rows[0]


def by_columns(query: str, events: list[Event]) -> tuple[float, int]:
    """The same from Arrow tables; what is measured is all but the making of the tables and loading the loops."""
    streams = dict[str, list[tuple[object, ...]]]()
    for stream, values in events:
        streams.setdefault(stream, []).append(values)
    tables = {
        stream: pa.table([list(each) for each in zip(*rows, strict=True)], names=list(STREAMS[stream]))
        for stream, rows in streams.items()
    }
    warm, _ = begun(query)
    warm.send({stream: table.slice(0, 1000) for stream, table in tables.items()})
    cruncher, rows = begun(query)
    start = time.process_time()
    cruncher.send(tables)
    cruncher.finish()
    return len(events) / (time.process_time() - start), rows[0]


def main() -> None:
    """All shapes."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for shape in SHAPES:
        query, make = SHAPES[shape]
        events = make(count, random.Random(7))
        rate, rows = by_columns(query, events)
        print(f"{shape}: {rate:,.0f} events/CPU s over columns, {rows:,} rows from {count:,} events", flush=True)
        rate, rows = by_rows(query, events[:BY_ROWS])
        print(f"{shape}: {rate:,.0f} events/CPU s on rows, {rows:,} rows from {BY_ROWS:,} events", flush=True)


if __name__ == "__main__":
    main()
