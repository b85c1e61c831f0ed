"""What the PostgreSQL store promises beyond the recorded cases, against a real server: the same answers as the store in
memory on awkward values and late events, rows merged in place, and refusals that say what is wrong."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import psycopg2
import pyarrow as pa
import pytest

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError
from rollup.hosts.local import LocalHost
from rollup.stores.base import Commit, Rewrite
from rollup.stores.databases import store_of
from rollup.stores.memory import MemoryStore
from rollup.stores.postgres.prepare import reader_sql
from rollup.stores.sql.store import SqlStore
from tests.stores.conftest import NewUrl, execute
from tests.stores.samples import FIRST, NUL_EVENTS, added, aggregation, answers, app, batches, host, rows

pytestmark = pytest.mark.postgres
POLICIES = {
    "merge": "@BufferSize('2')",
    "drop": "@BufferSize('2') @IgnoreEventsOlderThanBuffer('true')",
    "correct": "@OutOfOrder('correct')",
}


def on(url: str) -> Callable[[Any, ColumnEngine], SqlStore]:
    """A factory of stores at one URL."""
    return lambda aggregation, engine: store_of(aggregation, engine, url, patience=20)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.few(1)
def test_answers_are_those_of_the_store_in_memory_also_after_every_restart(policy: str, new_url: NewUrl) -> None:
    text, url = app(POLICIES[policy]), new_url()
    memory, stored = host(text, MemoryStore), host(text, on(url))
    for number, batch in enumerate(batches(3)):
        memory.send("S", batch)
        stored.send("S", batch)
        restarted = number % 3 == 1  # the last batch, too
        if restarted:
            stored = host(text, on(url))
        if restarted or policy == "correct":  # the others have the same answers between restarts, from the same code
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
    rows = execute(
        url, f'select k, "AGG_SUM_i", "AGG_COUNT_d", "AGG_SET_s" from "Agg_SECONDS" where "AGG_TIMESTAMP" = {FIRST}'
    )
    assert sorted(rows, key=repr) == [("y", 7, 1, ["c"]), (None, 6, 2, ["a", "b"])]
    late = execute(url, 'select "AGG_KIND", "AGG_EVENTS", "AGG_COMMIT" from "Agg_LATE"')
    assert late == [("corrected", 1, 2), ("corrected", 1, 2)]


def test_a_correction_fetches_the_rows_that_it_changes_and_not_all_of_their_bucket(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app("@OutOfOrder('correct')"), on(url))
    keys = [None, "\x00", "'", *(f"k{number}" for number in range(500))]
    stored.send("S", [(key, 1, 1.0, "a", True, FIRST) for key in keys])
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 10**8)])
    store = stored.pipelines["Agg"].store
    assert isinstance(store, SqlStore)
    schema = store.aggregation.table_schema
    with store.database.reading() as session:
        there = session.read("Agg_SECONDS", schema)
        assert there.num_rows == len(keys)
        for chosen in ([None], ["\x00", "k7"], ["'", None, "k499"], ["nobody"]):
            some = there.filter(pa.array([key in chosen for key in there["k"].to_pylist()]))
            if not some.num_rows:
                some = there.slice(0, 1).set_column(there.schema.get_field_index("k"), "k", pa.array(chosen))
                assert session.like("Agg_SECONDS", schema, some).num_rows == 0
                continue
            found = session.like("Agg_SECONDS", schema, some)["k"].to_pylist()
            assert sorted(found, key=repr) == sorted(chosen, key=repr)
    stored.send("S", [(None, 5, 1.0, "b", True, FIRST + 1), ("\x00", 5, 1.0, "b", True, FIRST + 2)])
    sums = execute(url, f'select "AGG_SUM_i", count(*) from "Agg_SECONDS" where "AGG_TIMESTAMP" = {FIRST} group by 1')
    assert sorted(sums) == [(1, 501), (6, 2)]


def test_one_key_has_one_row_even_when_it_is_null(new_url: NewUrl) -> None:
    url = new_url()
    host(app(), on(url)).send("S", [(None, 1, 1.0, "a", True, FIRST), (None, 1, 1.0, "a", True, FIRST + 10**8)])
    with pytest.raises(psycopg2.errors.UniqueViolation):
        execute(url, 'insert into "Agg_SECONDS" select * from "Agg_SECONDS"')


def test_levels_whose_open_rows_did_not_change_are_not_written(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app(), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 65_000)])
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 66_000)])
    written = 'select xmin::text from "Agg_OPEN" where "AGG_LEVEL" = 2'
    before = execute(url, written)
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 67_000)])
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
            seen.append([sum(found["n"].to_pylist()), sum(more["n"].to_pylist())])

    writer.send("S", [("x", 1, 1.0, "a", True, FIRST + i) for i in range(10)])
    thread = threading.Thread(target=read)
    thread.start()
    for second in range(1, 9):
        writer.send("S", [("x", 1, 1.0, "a", True, FIRST + second * 1_000 + i) for i in range(10)])
        while thread.is_alive() and len(seen) < second // 2:
            stop.wait(0.01)
    stop.set()
    thread.join(30)
    assert all(first % 10 == 0 and second % 10 == 0 and first <= second for first, second in seen)
    assert len(seen) > 3


def test_sketches_are_answered_from_their_rows_in_duckdb(new_url: NewUrl) -> None:
    select = "select k, hll(s) as about, quantiles(d) as spread, topK(s, 2) as top, count() as n"
    text, url = app(select=select), new_url()
    memory, stored = host(text, MemoryStore), host(text, on(url))
    for batch in batches(7, 4):
        memory.send("S", batch)
        stored.send("S", batch)
    assert answers(stored) == answers(memory)
    assert answers(stored, "k, n") == answers(memory, "k, n")
    names = execute(url, """select * from "Agg"('2018-**-** **:**:**', 'years') limit 1""")
    assert len(names[0]) == 4  # AGG_TIMESTAMP, k, n, AGG_TIME: what PostgreSQL can merge by itself


@pytest.mark.parametrize(
    ("asked", "answer"),
    [("latest + latest", None), ("latest / 0", None), ("latest % 0", None), ("latest * 1.0e308 * 1.0e308", math.inf)],
)
def test_a_result_beyond_its_type_is_null_or_infinite_as_in_memory_and_no_error_of_the_server(
    new_url: NewUrl, asked: str, answer: float | None
) -> None:
    question = f"from Agg within '2017-**-** **:**:**' per 'years' select {asked} as x"
    for store in (MemoryStore, on(new_url())):
        stored = host(app(), store)
        stored.send("S", [("x", 2**31 - 1, 1.0, "a", True, FIRST)])
        assert stored.query(question).to_pylist() == [{"x": answer}]


def test_text_with_a_nul_which_postgresql_cannot_hold_comes_back_as_it_went_in(new_url: NewUrl) -> None:
    text, url = app("@OutOfOrder('correct')"), new_url()
    memory, stored = host(text, MemoryStore), host(text, on(url))
    for batch in NUL_EVENTS:
        memory.send("S", batch)
        stored.send("S", batch)
        assert answers(stored) == answers(memory)
        stored = host(text, on(url))
    low = execute(url, """select k, "AGG_MIN_s" from "Agg_SECONDS" where k like 'x_%' order by k""")
    assert low == [("x\x01\x01", "a\x01\x01"), ("x\x01\x02", "\x01\x01")], "what other clients see"
    question = "from Agg on k == 'x\x00' within '2017-**-** **:**:**' per 'years' select k, low, kinds"
    assert stored.query(question).to_pylist() == memory.query(question).to_pylist() != []


def test_a_request_with_a_nul_is_answered(new_url: NewUrl) -> None:
    text = (
        app() + "define stream Q (k string); from Q join Agg on Agg.k == Q.k within '2017-**-** **:**:**' per 'years'"
        " select Q.k as k, Agg.n as n insert into Out;"
    )
    stored = host(text, on(new_url()))
    stored.send("S", NUL_EVENTS[0])
    stored.send("Q", [("x\x00",)])
    assert stored.emitted[-1][1].to_pylist() == [{"k": "x\x00", "n": 1}]


@pytest.mark.parametrize(
    "question",
    [
        "within '2017-12-31 23:59:55', '2018-02-03 00:00:00' per 'auto' select AGG_TIMESTAMP, AGG_PER, k, total, n",
        "within '2017-12-31 23:59:55', '2018-02-03 00:00:00' per 'auto' select sum(total) as t, sum(n) as n",
        "within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, k, AGG_LATE_CORRECTED, AGG_REVISION, AGG_FINAL",
        "within '2018-01-** **:**:**' per 'days' fill zero select AGG_TIMESTAMP, k, n",
    ],
)
@pytest.mark.few(2)
def test_what_goes_beyond_the_page_is_answered_as_from_memory(question: str, new_url: NewUrl) -> None:
    text = app("@OutOfOrder('correct')")
    memory, stored = host(text, MemoryStore), host(text, on(new_url()))
    for batch in batches(3, 6):
        memory.send("S", batch)
        stored.send("S", batch)
    found, wanted = stored.query(f"from Agg {question}"), memory.query(f"from Agg {question}")
    assert found.schema.names == wanted.schema.names
    assert sorted(rows(found), key=repr) == sorted(rows(wanted), key=repr) != []


def test_names_beyond_what_postgresql_keeps_are_the_users_own_in_answers(new_url: NewUrl) -> None:
    """Two columns of a state whose names differ behind the 63rd byte, and an answer's column that is longer."""
    long, values = "v" * 60, [(1, 0), (2, 1000), (5, 61_000)]
    text = (
        f"define stream S ({long} int, ts long); @OutOfOrder('correct') define aggregation Agg from S"
        f" select sum({long} * 2 + 1) as s, sum({long} * 2 + 7) as t, max({long}) as m aggregate by ts every sec ... min;"
    )
    question = f"from Agg within 0L, 100000L per 'minutes' select AGG_TIMESTAMP, s, t as {'t' * 70}, m as {'t' * 69}"
    url = new_url()
    memory = host(text, MemoryStore)
    for value in values:
        memory.send("S", [value])
        host(text, on(url)).send("S", [value])
    stored = host(text, on(url)).query(question)
    assert memory.query(question).to_pylist() == stored.to_pylist() != []


# The past is changed, the declaration is changed


def test_a_rewrite_replaces_a_range_in_the_same_transaction(new_url: NewUrl) -> None:
    url = new_url()
    stored = host(app(select="select k, count() as n"), on(url))
    stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 1_000 * second) for second in range(6)])
    store = stored.stores["Agg"]
    before = store.snapshot().rows(Duration.SECONDS, FIRST + 1_000, FIRST + 3_000)
    assert before.num_rows == 2
    other = before.set_column(2, "k", pa.array(["y", "y"]))
    rewrite = Rewrite(FIRST + 1_000, FIRST + 4_000, pa.concat_tables([other, other]))
    pipeline = stored.pipelines["Agg"]
    store.commit(Commit(pipeline.number + 1, pipeline.state, {}, rewrites={Duration.SECONDS: rewrite}))
    found = execute(url, f'select "AGG_TIMESTAMP" - {FIRST}, k, "AGG_COUNT" from "Agg_SECONDS" order by 1')
    assert found == [(0, "x", 1), (1_000, "y", 2), (2_000, "y", 2), (4_000, "x", 1)]


def test_a_snapshot_says_what_is_there(new_url: NewUrl) -> None:
    text = app("@OutOfOrder('correct')")
    memory, stored = host(text, MemoryStore), host(text, on(new_url()))
    with pytest.raises(StoreError, match="has no commit yet"):
        stored.stores["Agg"].snapshot().loaded()
    for batch in batches(3, 4):
        memory.send("S", batch)
        stored.send("S", batch)
    ours, theirs = stored.stores["Agg"].snapshot(), memory.stores["Agg"].snapshot()
    assert ours.number == theirs.number == 4
    assert ours.loaded().state.clocks == theirs.loaded().state.clocks
    assert ours.ledger().schema == theirs.ledger().schema
    assert sorted(rows(ours.ledger()), key=repr) == sorted(rows(theirs.ledger()), key=repr) != []
    assert abs(ours.committed() - theirs.committed()) < 30
    for level in Duration:
        assert ours.extent(level) == theirs.extent(level)
        assert ours.sizes()[level].rows == ours.rows(level).num_rows
        assert ours.sizes()[level].bytes > 0


def test_a_column_that_is_added_is_null_before_and_answered_after(new_url: NewUrl) -> None:
    url = new_url()
    old = host(app(select="select k, count() as n"), on(url))
    old.send("S", [("x", 5, 1.0, "a", True, FIRST + 1_000 * second) for second in range(3)])
    text = app(select="select k, count() as n, sum(i) as total")
    new = host(text, MemoryStore).program.aggregations["Agg"]
    with pytest.raises(StoreError, match="has no column 'AGG_SUM_i'"):
        store_of(new, ColumnEngine(), url).load()
    store = store_of(new, ColumnEngine(), url)
    assert store.snapshot().loaded().state.open[Duration.SECONDS]["AGG_SUM_i"].to_pylist() == [None]
    for _ in range(2):  # once more, as after a crash half way
        store.evolve(added(old, new), ["AGG_GONE"])
    job = host(text, on(url))
    job.send("S", [("x", 5, 1.0, "a", True, FIRST + 9_000)])
    assert [row[1:] for row in answers(job)["seconds"]] == [("x", 1, None)] * 3 + [("x", 1, 5)]
    assert execute(url, 'select n, total from "Agg_per_years"') == [(4, 5)]


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
    store_of(aggregation(), ColumnEngine(), url).load()
    views = ", ".join(f'"Agg_per_{level.plural}"' for level in Duration)
    execute(url, f'drop view {views}; drop function "Agg"(bigint, bigint, text) cascade; {change}')
    with pytest.raises(StoreError, match=says):
        store_of(aggregation(), ColumnEngine(), url).load()


def test_a_column_of_somebody_else_is_left_alone(new_url: NewUrl) -> None:
    url = new_url()
    store_of(aggregation(), ColumnEngine(), url).load()
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
    with pytest.raises(StoreError, match=r'"Agg_SECONDS" does not exist.*start the job again'):
        stored.send("S", [("x", 1, 1.0, "a", True, FIRST), ("x", 1, 1.0, "a", True, FIRST + 10**8)])


def test_a_job_without_the_right_to_create_runs_on_tables_that_are_there(new_url: NewUrl, database: str) -> None:
    url = new_url()
    schema = url.rpartition("search_path%3D")[2]
    store_of(aggregation(), ColumnEngine(), url).load()
    execute(
        database, f"create role writer_{schema} login password 'w'; grant usage on schema {schema} to writer_{schema}"
    )
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
    assert execute(reader, 'select k, total from "Agg_per_hours"') == [("x", 1)]
    for attempt in ('delete from "Agg_OPEN"', "create table mine (x int)", 'drop view "Agg_per_hours"'):
        with pytest.raises(psycopg2.Error):
            execute(reader, f"set default_transaction_read_only = off; {attempt}")


# Partitions


DAY = 24 * 3600 * 1000


def parts(url: str, level: str) -> list[str]:
    """The partitions of a level that are attached and have a whole, unique index."""
    query = f"""select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
        join pg_index x on x.indrelid = c.oid and x.indisunique and x.indnullsnotdistinct and x.indisvalid
        where i.inhparent = '"Agg_{level}"'::regclass order by 1"""
    return [str(part) for (part,) in execute(url, query)]


def partitioned(url: str, width: str, text: str) -> LocalHost:
    options = {"type": "rdbms", "url": url, "partition": width}
    return LocalHost(host(text, MemoryStore).program, lambda a, e: store_of(a, e, options))


@pytest.mark.parametrize(
    ("width", "seconds", "minutes"),
    [
        ("hour", ["2017123123", "2018010100", "2018010101"], ["20171231", "20180101", "20180102"]),
        ("day", ["20171231", "20180101", "20180102"], ["20171231", "20180101", "20180102"]),
        ("month", ["20171201", "20180101"], ["20171201", "20180101"]),
    ],
)
@pytest.mark.parametrize("annotations", ["", "@OutOfOrder('correct')"])
@pytest.mark.few(2)
def test_fine_levels_are_cut_into_partitions_that_appear_when_they_are_needed(
    annotations: str, width: str, seconds: list[str], minutes: list[str], new_url: NewUrl
) -> None:
    url, text = new_url(), app(annotations)
    stored, memory = partitioned(url, width, text), host(text, MemoryStore)
    for number, batch in enumerate(batches(11, 5)):
        stored.send("S", batch)
        memory.send("S", batch)
        if number == 2:
            stored = partitioned(url, width, text)
    assert answers(stored) == answers(memory)
    assert parts(url, "SECONDS")[: len(seconds)] == [f"Agg_SECONDS_{day}" for day in seconds]
    assert parts(url, "MINUTES")[: len(minutes)] == [f"Agg_MINUTES_{day}" for day in minutes]


@pytest.mark.parametrize(("was", "then"), [("day", "hour"), ("hour", "day"), ("month", "hour"), ("hour", "year")])
@pytest.mark.few(1)
def test_partitions_of_another_width_go_on_beside_those_that_are_there(was: str, then: str, new_url: NewUrl) -> None:
    url, text = new_url(), app("@OutOfOrder('correct')")
    memory, events = host(text, MemoryStore), batches(11, 5)
    for batch in events:
        memory.send("S", batch)
    stored = partitioned(url, was, text)
    for batch in events[:2]:
        stored.send("S", batch)
    before = parts(url, "SECONDS")
    stored = partitioned(url, then, text)
    for batch in events[2:]:
        stored.send("S", batch)
    assert answers(stored) == answers(memory)
    assert set(before) <= set(parts(url, "SECONDS"))


def test_a_table_made_without_partitions_stays_so_and_one_made_with_them_asks_for_their_width(new_url: NewUrl) -> None:
    plain, cut, text = new_url(), new_url(), app()
    first, second = [("x", 1, 1.0, "a", True, FIRST)], [("x", 2, 1.0, "a", True, FIRST + 3 * DAY)]
    host(text, lambda a, e: store_of(a, e, plain)).send("S", first)
    later = partitioned(plain, "day", text)
    later.send("S", second)
    assert parts(plain, "SECONDS") == [] and execute(plain, 'select count(*) from "Agg_SECONDS"') == [(1,)]
    partitioned(cut, "day", text).send("S", first)
    with pytest.raises(StoreError, match=r'no partition of relation "Agg_SECONDS".*`partition` in its \[store\]'):
        host(text, lambda a, e: store_of(a, e, cut)).send("S", second)


def test_a_commit_that_fails_leaves_no_partition(new_url: NewUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_url()
    stored, memory = partitioned(url, "day", app()), host(app(), MemoryStore)
    first, second = [("x", 1, 1.0, "a", True, FIRST)], [("x", 2, 1.0, "a", True, FIRST + 3 * DAY)]

    def fail(name: str) -> None:
        if name == "commit.open":
            raise OSError("no more")

    stored.send("S", first)
    with monkeypatch.context() as patch:
        patch.setattr("rollup.stores.sql.store.point", fail)
        with pytest.raises(OSError, match="no more"):
            stored.send("S", second)
    assert parts(url, "SECONDS") == []
    again = partitioned(url, "day", app())
    again.send("S", second)
    for batch in (first, second):
        memory.send("S", batch)
    assert parts(url, "SECONDS") == ["Agg_SECONDS_20171231"]
    assert answers(again) == answers(memory)


def test_a_new_partition_waits_for_no_reader_and_is_not_seen_by_those_who_read_an_earlier_moment(
    new_url: NewUrl,
) -> None:
    url = new_url()
    stored = partitioned(url, "day", app())
    for day in (0, 1):
        stored.send("S", [("x", 1, 1.0, "a", True, FIRST + day * DAY)])
    reader = psycopg2.connect(url)
    try:
        reader.set_session(isolation_level="REPEATABLE READ", readonly=True)
        with reader.cursor() as cursor:
            cursor.execute('select count(*) from "Agg_SECONDS"')
            assert cursor.fetchone() == (1,)
            stored.send("S", [("x", 1, 1.0, "a", True, FIRST + 2 * DAY)])
            assert parts(url, "SECONDS") == ["Agg_SECONDS_20171231", "Agg_SECONDS_20180101"]
            cursor.execute('select count(*) from "Agg_SECONDS"')
            assert cursor.fetchone() == (1,)
    finally:
        reader.close()
    assert execute(url, 'select count(*) from "Agg_SECONDS"') == [(2,)]
