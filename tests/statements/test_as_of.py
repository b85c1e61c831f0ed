"""A stream joined with an aggregation as of the time of its rows, in an app: worked out by hand, and against an oracle
that looks at all events at once, however they are cut and wherever the host is made anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import PlanError
from rollup.hosts.local import LocalHost
from rollup.program import Program, compile_app
from rollup.statements.committed.commits import Commits
from rollup.stores.base import Store
from rollup.stores.memory import MemoryStore
from tests.profiles import examples

STREAMS = "define stream S (k string, v double, ts long);\n@time('ts') define stream Q (k string, ts long);\n"
AGGREGATION = "define aggregation A from S select k, sum(v) as total group by k aggregate by ts every sec ... hour;\n"
QUERY = "SELECT STREAM q.k, q.ts, m.total FROM Q AS q {} A_MINUTES FOR SYSTEM_TIME AS OF q.rowtime AS m ON q.k = m.k"
MINUTE = 60_000
NOON = 1_700_000_040_000  # a full minute


def app(query: str, annotations: str = "") -> str:
    """An app whose `Out` is what a query gives."""
    return STREAMS + annotations + AGGREGATION + "@lang('sql', into='Out') { " + query + " }"


def taken(host: LocalHost) -> list[tuple[Any, ...]]:
    """What came since the last call."""
    found = [tuple(row.values()) for name, table in host.emitted if name == "Out" for row in table.to_pylist()]
    host.emitted.clear()
    return found


def test_a_row_has_the_bucket_that_had_ended_by_its_time_once_that_is_certain() -> None:
    host = LocalHost.of(app(QUERY.format("LEFT JOIN")))
    host.send("S", [("a", 1.0, NOON), ("b", 2.0, NOON + 1000), ("a", 3.0, NOON + MINUTE)])
    host.send("Q", [("a", NOON + MINUTE - 1), ("a", NOON + MINUTE)])
    # No minute had ended by the time of the first row; the second one waits for the total of the first minute.
    assert taken(host) == [("a", NOON + MINUTE - 1, None)]
    host.send("S", [("a", 4.0, NOON + MINUTE + 2000)])
    assert taken(host) == [("a", NOON + MINUTE, 1.0)]
    host.send("Q", [("b", NOON + MINUTE + 7000), ("c", NOON + MINUTE + 7000), ("a", NOON + 2 * MINUTE)])
    assert taken(host) == [("b", NOON + MINUTE + 7000, 2.0), ("c", NOON + MINUTE + 7000, None)]
    host.send("S", [("a", 5.0, NOON + 4 * MINUTE), ("a", 5.0, NOON + 4 * MINUTE + 1000)])
    assert taken(host) == [("a", NOON + 2 * MINUTE, 7.0)]
    assert host.dead == []


def test_an_inner_join_leaves_out_rows_without_a_bucket_and_a_condition_asks_the_bucket_that_held() -> None:
    host = LocalHost.of(app(QUERY.format("JOIN") + " AND m.total > 1"))
    host.send("S", [("a", 5.0, NOON), ("a", 1.0, NOON + MINUTE), ("a", 1.0, NOON + 9 * MINUTE)])
    host.send("S", [("a", 1.0, NOON + 9 * MINUTE + 1000)])
    host.send("Q", [("a", NOON), ("a", NOON + MINUTE), ("a", NOON + 2 * MINUTE), ("b", NOON + 3 * MINUTE)])
    assert taken(host) == [("a", NOON + MINUTE, 5.0)]  # not the older bucket, where the newer one is not above 1


def test_without_a_condition_on_keys_there_is_a_row_for_every_key() -> None:
    query = "SELECT STREAM q.k, m.k AS other, m.total FROM A_MINUTES FOR SYSTEM_TIME AS OF q.rowtime AS m, Q AS q"
    host = LocalHost.of(app(query))
    host.send("S", [("a", 1.0, NOON), ("b", 2.0, NOON), ("a", 3.0, NOON + 2 * MINUTE), ("a", 3.0, NOON + 3 * MINUTE)])
    host.send("Q", [("x", NOON + MINUTE + 1)])
    assert taken(host) == [("x", "a", 1.0), ("x", "b", 2.0)]


def test_rows_that_come_after_a_correction_have_the_corrected_bucket() -> None:
    host = LocalHost.of(app(QUERY.format("JOIN"), "@OutOfOrder('correct') "))
    host.send("S", [("a", 1.0, NOON), ("a", 2.0, NOON + MINUTE), ("a", 1.0, NOON + 2 * MINUTE)])
    host.send("Q", [("a", NOON + MINUTE)])
    host.send("S", [("a", 4.0, NOON + 1000)])
    host.send("Q", [("a", NOON + MINUTE)])
    assert taken(host) == [("a", NOON + MINUTE, 1.0), ("a", NOON + MINUTE, 5.0)]
    assert host.dead == []


def test_what_comes_out_may_be_grouped_by_time() -> None:
    query = (
        "SELECT STREAM FLOOR(q.rowtime TO MINUTE) AS m, SUM(a.total) AS t FROM Q AS q "
        "JOIN A_SECONDS FOR SYSTEM_TIME AS OF q.rowtime AS a ON a.k = q.k GROUP BY FLOOR(q.rowtime TO MINUTE)"
    )
    host = LocalHost.of(app(query))
    host.send("S", [("a", 1.0, NOON), ("a", 2.0, NOON + 1000), ("a", 3.0, NOON + MINUTE)])
    host.send("Q", [("a", NOON + 1000), ("a", NOON + 5000)])
    host.send("Q", [("a", NOON + MINUTE)])
    assert taken(host) == [(NOON, 3.0)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (QUERY.format("RIGHT JOIN"), "RIGHT JOIN of a stream with an aggregation is never final"),
        (QUERY.format("JOIN").replace("q.rowtime", "q.ts"), r"needs the time of the stream's rows.*\(as rowtime\)"),
        (
            QUERY.format("JOIN").replace("A_MINUTES", "S").replace("total", "v"),
            "S is a stream, of which there are no versions",
        ),
        (QUERY.format("JOIN").replace(" FOR SYSTEM_TIME AS OF q.rowtime", ""), "without a lock step"),
    ],
)
def test_what_could_never_be_answered_is_refused(query: str, message: str) -> None:
    with pytest.raises(PlanError, match=f"line 4, column .*{message}"):
        compile_app(app(query))


EVENTS = st.lists(
    st.tuples(
        st.sampled_from("SSQ"),
        st.sampled_from("ab"),
        st.sampled_from([0, 500, 20_000, MINUTE, 3 * MINUTE]),
        st.sampled_from(["on", "cut", "restart"]),
    ),
    min_size=1,
    max_size=20,
)


@cache
def program(buffer: int) -> Program:
    """With seconds that stay open for so many more."""
    return compile_app(app(QUERY.format("LEFT JOIN"), f"@BufferSize('{buffer}') " if buffer else ""))


@examples(6)
@given(EVENTS, st.sampled_from([0, 2]))
def test_it_is_what_all_events_at_once_say(steps: list[tuple[str, str, int, str]], buffer: int) -> None:
    at, events = NOON, list[tuple[str, tuple[Any, ...], str]]()
    for place, (stream, key, step, cut) in enumerate(steps):
        at += step
        events.append((stream, (key, float(place), at) if stream == "S" else (key, at), cut))
    end = [at + 2 * MINUTE, at + 2 * MINUTE + 9000, at + 2 * MINUTE + 18_000]
    events += [("S", ("c", 0.0, time), "cut") for time in end]  # so that no row waits any more
    stores = dict[str, MemoryStore]()

    def kept(aggregation: Any, engine: Any) -> Store:
        return stores.setdefault(aggregation.name, MemoryStore(aggregation, engine))

    found = list[tuple[Any, ...]]()
    with TemporaryDirectory() as folder:
        host, batch = LocalHost(program(buffer), kept, Commits(Path(folder))), list[Any]()
        for (stream, row, cut), (following, *_) in zip(events, [*events[1:], ("", None, None)], strict=True):
            batch.append(row)
            if cut != "on" or following != stream:
                host.send(stream, batch)
                found, batch, arrivals = found + taken(host), [], host.arrivals
                if cut == "restart":
                    host = LocalHost(program(buffer), kept, Commits(Path(folder)))
                    host.arrivals = arrivals
    sent = [row for stream, row, _ in events if stream == "S"]
    assert found == [(key, at, held(sent, key, at)) for stream, (key, *_, at), _ in events if stream == "Q"]


def held(sent: list[Any], key: str, at: int) -> float | None:
    """The total of a key's last minute that had ended by a time."""
    minutes = [time // MINUTE for name, _, time in sent if name == key and (time // MINUTE + 1) * MINUTE <= at]
    return sum(v for name, v, time in sent if name == key and time // MINUTE == max(minutes)) if minutes else None
