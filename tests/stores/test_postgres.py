"""What the PostgreSQL store promises beyond the recorded cases, against a real server: the same answers as the store in
memory on awkward values and late events, rows merged in place, and refusals that say what is wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg2
import pytest

from rollup.aggregation.engine import Engine
from rollup.calendar import Duration
from rollup.errors import FencedError, QueryError, StoreError
from rollup.hosts.local import LocalHost
from rollup.stores.memory import MemoryStore
from rollup.stores.sql import SqlStore, store_of
from rollup.stores.sql_prepare import reader_sql
from tests.stores.conftest import NewUrl, execute
from tests.stores.samples import FIRST, aggregation, answers, app, batches, host

pytestmark = pytest.mark.postgres
POLICIES = {
    "merge": "@BufferSize('2')",
    "drop": "@BufferSize('2') @IgnoreEventsOlderThanBuffer('true')",
    "correct": "@OutOfOrder('correct')",
}


def on(url: str) -> Callable[[Any, Engine], SqlStore]:
    """A factory of stores at one URL."""
    return lambda aggregation, engine: store_of(aggregation, engine, url, patience=20)


@pytest.mark.parametrize("policy", POLICIES)
def test_answers_are_those_of_the_store_in_memory_also_after_every_restart(policy: str, new_url: NewUrl) -> None:
    text, url = app(POLICIES[policy]), new_url()
    memory, stored = host(text, MemoryStore), host(text, on(url))
    for number, batch in enumerate(batches(3)):
        memory.send("S", batch)
        stored.send("S", batch)
        if number % 3 == 1:
            stored = host(text, on(url))
        assert answers(stored) == answers(memory)
    assert stored.pipelines["Agg"].state.clocks == memory.pipelines["Agg"].state.clocks


def test_what_is_loaded_is_what_was_committed(new_url: NewUrl) -> None:
    url = new_url()
    first = host(app(), on(url))
    for batch in batches(5, 4):
        first.send("S", batch)
    kept = first.pipelines["Agg"]
    loaded = host(app(), on(url)).pipelines["Agg"]
    assert loaded.number == kept.number == 4
    assert loaded.state.clocks == kept.state.clocks
    for level, table in kept.state.open.items():
        assert sorted(map(repr, loaded.state.open[level].to_pylist())) == sorted(map(repr, table.to_pylist()))


def test_corrections_are_merged_into_the_stored_row_and_not_put_beside_it(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app("@OutOfOrder('correct')"), on(url))
    stored.send("S", [(None, 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 10**8)])
    stored.send("S", [(None, 5, 3.0, "b", True, FIRST + 1), ("y", 7, 2.0, "c", True, FIRST + 2)])
    rows = execute(url, f'select k, "AGG_SUM_i", "AGG_COUNT_d", "AGG_SET_s" from "Agg_SECONDS" where "AGG_TIMESTAMP" = {FIRST}')
    assert sorted(rows, key=repr) == [("y", 7, 1, ["c"]), (None, 6, 2, ["a", "b"])]
    late = execute(url, 'select "AGG_KIND", "AGG_EVENTS", "AGG_COMMIT" from "Agg_LATE"')
    assert late == [("corrected", 1, 2), ("corrected", 1, 2)]


def test_one_key_has_one_row_even_when_it_is_null(new_url: NewUrl) -> None:
    url = new_url()
    host(app(), on(url)).send("S", [(None, 1, 1.0, "a", True, FIRST), (None, 1, 1.0, "a", True, FIRST + 10**8)])
    with pytest.raises(psycopg2.errors.UniqueViolation):
        execute(url, 'insert into "Agg_SECONDS" select * from "Agg_SECONDS"')


def test_levels_whose_open_rows_did_not_change_are_not_written(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app(), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 65_000)])
    written = 'select xmin::text from "Agg_OPEN" where "AGG_LEVEL" = 2'
    before = execute(url, written)
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 66_000)])
    assert before == execute(url, written) != []


def test_rows_somebody_else_wrote_are_merged_with(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app(), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 2, 1.0, "a", True, FIRST + 1_000)])
    execute(url, f'insert into "Agg_SECONDS" select {FIRST + 1_000}, "AGG_TIMEZONE", k, newest from "Agg_SECONDS"')
    execute(url, f'update "Agg_SECONDS" set "AGG_SUM_i" = 40, "AGG_EVENTS" = 1 where "AGG_TIMESTAMP" = {FIRST + 1_000}')
    stored.send("S", [("x", 3, 1.0, "a", True, FIRST + 2_000)])
    found = execute(url, f'select "AGG_SUM_i", "AGG_EVENTS" from "Agg_SECONDS" where "AGG_TIMESTAMP" = {FIRST + 1_000}')
    assert found == [(42, 2)]


def test_of_two_jobs_one_commits_and_the_other_is_fenced(new_url: NewUrl) -> None:
    url, outcome = new_url(), list[str]()
    hosts = [host(app(), on(url)) for _ in range(2)]
    gate = threading.Barrier(2)

    def send(job: LocalHost, value: int) -> None:
        gate.wait()
        try:
            job.send("S", [("x", value, 1.0, "a", True, FIRST)])
            outcome.append(str(value))
        except FencedError as problem:
            outcome.append("fenced")
            assert "commit 1 of Agg is taken" in str(problem)

    threads = [threading.Thread(target=send, args=(job, value)) for value, job in enumerate(hosts, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    winner = next(entry for entry in outcome if entry != "fenced")
    assert sorted(outcome) == sorted([winner, "fenced"])
    assert execute(url, 'select "AGG_SUM_i"::text from "Agg_OPEN"') == [(winner,)]


def test_readers_see_every_commit_whole_while_it_is_written(new_url: NewUrl) -> None:
    url, seen, stop = new_url(), list[list[int]](), threading.Event()
    text = app(select="select k, count() as n")
    writer, reader = host(text, on(url)), host(text, on(url))

    def read() -> None:
        while not stop.is_set():
            found = reader.query("from Agg within '2017-**-** **:**:**' per 'years' select sum(n) as n")
            more = reader.query("from Agg within '2017-12-** **:**:**' per 'seconds' select sum(n) as n")
            seen.append([found["n"].to_pylist()[0] or 0, more["n"].to_pylist()[0] or 0])

    thread = threading.Thread(target=read)
    thread.start()
    for second in range(9):
        writer.send("S", [("x", 1, 1.0, "a", True, FIRST + second * 1_000 + i) for i in range(10)])
    stop.set()
    thread.join(30)
    assert all(first % 10 == 0 and second % 10 == 0 and first <= second for first, second in seen)
    assert len(seen) > 3


def test_sketches_are_answered_from_their_rows_in_duckdb(new_url: NewUrl) -> None:
    select = "select k, hll(s) as about, quantiles(d, 0.5) as median, topK(s, 2) as top, count() as n"
    text, url = app(select=select), new_url()
    memory, stored = host(text, MemoryStore), host(text, on(url))
    for batch in batches(7, 4):
        memory.send("S", batch)
        stored.send("S", batch)
    assert answers(stored) == answers(memory)
    assert answers(stored, "k, n") == answers(memory, "k, n")
    names = execute(url, """select * from "Agg"('2018-**-** **:**:**', 'years') limit 1""")
    assert len(names[0]) == 3  # AGG_TIMESTAMP, k, n: what PostgreSQL can merge by itself


def test_a_question_the_server_cannot_compute_is_refused_with_its_reason(new_url: NewUrl) -> None:
    stored = host(app(), on(new_url()))
    stored.send("S", [("x", 2**31 - 1, 1.0, "a", True, FIRST)])
    with pytest.raises(QueryError, match="(?i)overflow"):
        stored.query("from Agg within '2017-**-** **:**:**' per 'years' select latest + latest as x")


def test_text_with_a_nul_is_refused_by_the_name_of_its_column(new_url: NewUrl) -> None:
    stored = host(app(), on(new_url()))
    with pytest.raises(StoreError, match="'newest' holds the character NUL"):
        stored.send("S", [("x", 1, 1.0, "a\x00b", True, FIRST)])
    stored.send("S", [("x", 1, 1.0, "ab", True, FIRST)])
    assert len(answers(stored)["years"]) == 1


# Tables that are not as they should be


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ('alter table "Agg_DAYS" drop column "AGG_SUM_i"', "table 'Agg_DAYS' has no column 'AGG_SUM_i'"),
        ('alter table "Agg_OPEN" alter "AGG_SUM_i" type bigint', "is bigint, not numeric"),
        ('alter table "Agg_COMMIT" drop column token', "has no column 'token'"),
    ],
)
def test_tables_that_do_not_fit_are_refused_before_anything_is_written(change: str, says: str, new_url: NewUrl) -> None:
    url = new_url()
    store_of(aggregation(), Engine(), url)
    execute(url, 'drop view if exists "Agg_days" cascade; drop function if exists "Agg"(bigint, bigint, text) cascade')
    execute(url, change.replace("alter", "alter", 1) if "OPEN" not in change else f'drop view if exists "Agg_years" cascade; {change}')
    with pytest.raises(StoreError, match=says):
        store_of(aggregation(), Engine(), url)


def test_a_column_of_somebody_else_is_left_alone(new_url: NewUrl) -> None:
    url = new_url()
    store_of(aggregation(), Engine(), url)
    execute(url, 'alter table "Agg_SECONDS" add column note text')
    stored = host(app("@OutOfOrder('correct')"), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 10**8)])
    execute(url, """update "Agg_SECONDS" set note = 'kept'""")
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    assert execute(url, 'select note, "AGG_SUM_i" from "Agg_SECONDS" order by "AGG_TIMESTAMP"') == [("kept", 2)]


def test_a_missing_table_is_named(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app(), on(url))
    execute(url, 'drop table "Agg_SECONDS" cascade')
    with pytest.raises(StoreError, match='"Agg_SECONDS" does not exist.*start the job again'):
        stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 10**8)])


def test_a_job_without_the_right_to_create_runs_on_tables_that_are_there(new_url: NewUrl, database: str) -> None:
    url = new_url()
    schema = url.rpartition("search_path%3D")[2]
    store_of(aggregation(), Engine(), url)
    execute(database, f"create role writer_{schema} login password 'w'; grant usage on schema {schema} to writer_{schema}")
    execute(database, f"grant select, insert, update, delete on all tables in schema {schema} to writer_{schema}")
    place = url.partition("@")[2]
    stored = host(app(), on(f"postgresql://writer_{schema}:w@{place}"))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    assert len(answers(stored)["years"]) == 1


def test_a_reader_may_ask_the_functions_and_write_nothing(new_url: NewUrl, database: str) -> None:
    url = new_url()
    schema = url.rpartition("search_path%3D")[2]
    stored = host(app(), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST)])
    owner = str(execute(database, "select current_user")[0][0])
    execute(database, reader_sql(schema, f"reader_{schema}", "it's", owner))
    place = url.partition("@")[2].partition("?")[0]
    reader = f"postgresql://reader_{schema}:it%27s@{place}"
    assert execute(reader, """select total from "Agg"('2017-**-** **:**:**', 'years')""") == [(1,)]
    assert execute(reader, 'select k, total from "Agg_hours"') == [("x", 1)]
    for attempt in ('delete from "Agg_OPEN"', "create table mine (x int)", 'drop view "Agg_hours"'):
        with pytest.raises(psycopg2.Error):
            execute(reader, f"set default_transaction_read_only = off; {attempt}")


# Partitions


def test_fine_levels_are_cut_into_partitions_that_appear_when_they_are_needed(new_url: NewUrl) -> None:
    url = new_url()
    text = app("@OutOfOrder('correct')")
    stored = LocalHost(
        host(text, MemoryStore).program,
        lambda a, e: store_of(a, e, {"type": "rdbms", "url": url, "partition": "month"}),
    )
    memory = host(text, MemoryStore)
    for batch in batches(11, 5):
        stored.send("S", batch)
        memory.send("S", batch)
    assert answers(stored) == answers(memory)
    parts = execute(url, "select inhrelid::regclass::text from pg_inherits where inhparent = '\"Agg_SECONDS\"'::regclass order by 1")
    assert [part for (part,) in parts][:2] == ['"Agg_SECONDS_20171201"', '"Agg_SECONDS_20180101"']
    assert Duration.SECONDS in stored.program.aggregations["Agg"].levels
