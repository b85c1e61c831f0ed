"""StreamCruncher beyond the recorded cases: what its document says and no case shows, by hand from the rules.

A select that is evaluated row by row must answer as the database does; that is a property over random rows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import duckdb
import pytest

from rollup.core.errors import QueryError, RollupError
from rollup.engine.room import Counter
from rollup.engine.row import Row
from rollup.engine.rows.cycles.partitions import Seen
from rollup.engine.rows.cycles.relating import Projected, Relation
from rollup.engine.rows.cycles.running import Batch, Policy
from rollup.engine.types import DOUBLE, INT, LONG, STRING, RowType
from rollup.lang.streamcruncher.direct import direct
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.streamcruncher.reader import read_query

ROWS = RowType("p0", {"id": LONG, "n": INT, "x": DOUBLE, "k": STRING})
SELECTS = (
    "id from",
    "k, id as number, x from",
    "id, case when k is null then 'none' when n > 2 and not (x < 1.5) then 'many' else k end as what from",
    "id, case when n is null or n <> 3 then n else 0 end as m from",
)
CONDITIONS = (
    "s.$row_status is new",
    "s.$row_status is dead and n > 2",
    "s.$row_status is not dead and (k = 'a' or x <= 2.5)",
    "n >= 2 and s.$row_status is new and not (k <> 'b')",
    "x is not null and x > n",
)


def cruncher(query: str, found: list[Batch], **columns: str) -> Cruncher:
    made = Cruncher()
    made.define("test", {"id": "long", "at": "ts", **columns}, "at")
    made.register(query, found.append)
    return made


def submitted(made: Cruncher, rows: Sequence[Sequence[Any]]) -> None:
    for row in rows:
        made.submit("test", [row], row[1])
    made.finish()


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("select", SELECTS)
def test_a_select_that_needs_no_database_answers_as_the_database_does(select: str, condition: str) -> None:
    query = read_query(f"select {select} test (partition store last 9) as s where {condition};")
    projection = direct(query.select, {"p0": ROWS})
    assert projection is not None
    database = duckdb.connect(":memory:")
    relation = Relation(query.select, {"p0": ROWS}, database, Counter(database))
    assert projection.names == tuple(relation.schema.names)
    pick = random.Random(5)
    for _ in range(10):
        rows = [
            Row(n, (n, pick.choice([1, 2, 3, None]), pick.choice([0.5, 2.5, 3.0, None]), pick.choice(["a", "b", None])))
            for n in range(12)
        ]
        seen = {"p0": Seen(rows[8:], rows[3:8], rows[:3])}
        assert Projected(projection).rows(seen) == relation.rows(seen)


@pytest.mark.parametrize(
    "select",
    [
        "id from test (partition store last 9) as s where s.$row_status is new order by n;",
        "count(*) as c from test (partition store last 9) as s where s.$row_status is new;",
        "distinct k from test (partition store last 9) as s where s.$row_status is new;",
        "upper(k) as k from test (partition store last 9) as s where s.$row_status is new;",
        "id from test (partition store last 9) as s where s.$row_status is new and n = '2';",
        "id from test (partition store last 9) as s where s.$row_status is new or n > 2;",
        "id from test (partition store last 9) as s where s.$row_status is new limit 2;",
        "s.id from test (partition store last 9) as s, self#s as t where s.id = t.id;",
        "id from test (partition store last 9) as s where s.$row_status is new union select 1;",
        "id from test (partition store last 9) as s where id in (select 1);",
    ],
)
def test_what_is_more_than_that_is_left_to_the_database(select: str) -> None:
    assert direct(read_query(f"select {select}").select, {"p0": ROWS}) is None


def test_a_star_is_the_columns_of_the_partition_and_nothing_that_a_cycle_knows() -> None:
    found: list[Batch] = []
    made = cruncher("select * from test (partition store last 1) as s where s.$row_status is new;", found)
    submitted(made, [(1, 5)])
    assert found == [Batch(5, [(1, 5)])]
    other: list[Batch] = []
    made = cruncher("select s.*, t.id as other from test (partition store last 1) as s, self#s as t;", other)
    submitted(made, [(1, 5)])
    assert other == [Batch(5, [(1, 5, 1)])]


def test_an_event_that_does_not_fit_is_refused_and_the_others_of_its_submit_are_not_taken() -> None:
    found: list[Batch] = []
    made = cruncher("select id from test (partition store last 3) as s where s.$row_status is new;", found)
    for wrong in ([("a", 1)], [(1, None)], [(2**63, 1)], [(1, 1), (2, True)], [(1,)]):
        with pytest.raises(QueryError):
            made.submit("test", wrong, 1)
    submitted(made, [(7, 2)])
    assert found == [Batch(2, [(7,)])]


def test_an_aggregate_of_the_users_own_enters_leaves_and_has_a_value() -> None:
    found: list[Batch] = []
    made = Cruncher()
    made.define("test", {"id": "long", "at": "ts", "v": "double"}, "at")
    span = {
        "start": lambda: [],
        "enter": lambda state, value: [*state, value],
        "leave": lambda state, value: state[1:],
        "value": lambda state: max(state) - min(state) if state else None,
    }
    made.aggregate("span", span)
    made.register(
        "select s from test (partition store last 2 with custom(span, v) as s) as t where t.$row_status is new;",
        found.append,
    )
    submitted(made, [(1, 1, 5.0), (2, 2, 9.0), (3, 3, 2.0)])
    assert [batch.rows for batch in found] == [[(0.0,)], [(4.0,)], [(7.0,)]]


def test_a_sum_beyond_64_bits_is_null() -> None:
    found: list[Batch] = []
    query = "select t from test (partition store last 2 with sum(id) as t) as s where s.$row_status is new;"
    submitted(cruncher(query, found), [(2**62, 1), (2**62, 2), (1, 3)])
    assert [batch.rows for batch in found] == [[(2**62,)], [(None,)], [(2**62 + 1,)]]


def test_rows_of_many_keys_leave_at_their_own_times() -> None:
    found: list[Batch] = []
    query = "select id from test (partition by k store last 1 seconds) as s where s.$row_status is dead;"
    made = cruncher(query, found, k="str")
    submitted(made, [(1, 0, "a"), (2, 10, "b"), (3, 500, "a"), (4, 1005, "c")])
    made.advance(3000)
    assert found == [Batch(1000, [(1,)]), Batch(1010, [(2,)]), Batch(1500, [(3,)]), Batch(2005, [(4,)])]


def test_an_unknown_aggregate_is_refused_with_the_known_ones() -> None:
    with pytest.raises(RollupError, match="unknown aggregate 'mode'"):
        cruncher("select m from test (partition store last 2 with mode(id) as m) as t where t.$row_status is new;", [])


def test_a_key_that_is_said_twice_is_one_key() -> None:
    found: list[Batch] = []
    query = "select * from test (partition by k, k store last 2 with count(id) as n) as s where s.$row_status is new;"
    submitted(cruncher(query, found, k="str"), [(1, 0, "a"), (2, 1, "b"), (3, 2, "a")])
    assert [batch.rows for batch in found] == [[("a", 1)], [("b", 1)], [("a", 2)]]


KEYWORDS = (
    "select|from|where|partition|by|store|last|latest|highest|random|seconds|max|using|with|update|group|pinned|count|avg|"
    "entrance|only|as|is|new|dead|not|and|or|in|null|to|alert|correlate|on|when|present|first|order|self"
)


@pytest.mark.parametrize(
    "query",
    [
        "select Id, n from test (partition by k store last 5 seconds max 3 with pinned count(Id) as n, avg(v) entrance only "
        "as m where v > 1 and not (k in ('last', 'a') or k is null)) as Last where Last.$row_status is not dead;",
        "select first 3 id from test (partition store latest 2) to (partition store highest 2 using v with update group k "
        "where $row_status is new and v is not null) as x where x.$row_status is dead order by id;",
        "select a, b from alert p.k as a, q.k as b using test (partition store random 3) as p correlate on k, test "
        "(partition store last 2) as q correlate on k when present(p and not q) or present(p and q);",
        "select x.id from test (partition store last 3) as x, self#x as y where x.$row_status is new and x.id = y.id;",
    ],
)
def test_words_of_the_language_may_be_written_in_capitals_and_names_stay_as_they_are(query: str) -> None:
    pieces = re.split(r"('[^']*'|Last\b|\bas \w+)", query)
    capitals = "".join(
        piece if n % 2 else re.sub(rf"\b({KEYWORDS})\b", lambda found: found[0].upper(), piece)
        for n, piece in enumerate(pieces)
    )
    assert capitals != query and "PARTITION" in capitals
    small, large = read_query(query), read_query(capitals)
    assert (small.chains, small.alert) == (large.chains, large.alert)
    assert small.select.sql("duckdb") == large.select.sql("duckdb")


@pytest.mark.parametrize(
    ("partition", "column", "message"),
    [
        ("last 2 seconds max 0", 56, "a window holds at least one row (a number above 0)"),
        ("last 0", 42, "a window holds at least one row (a number above 0)"),
        ("latest 0", 44, "a window holds at least one row (a number above 0)"),
        ("last 2 where a in (select a, b from t)", 50, "the sub-query gives 2 columns (one column, as in (select k from t))"),
        ("last 2 where a in (select a from t where b < c)", 50, "a sub-query of a partition reads tables alone"),
        ("last 2 where a > 'x'", 50, "cannot be compared with a string (values of one type: 5 is a number, '5' a text)"),
    ],
)  # fmt: skip
def test_what_would_never_end_or_is_taken_in_part_is_refused_at_its_place(
    partition: str, column: int, message: str
) -> None:
    made = Cruncher()
    made.define("test", {"a": "long", "c": "long", "at": "ts"}, "at")
    made.sql("create table t (a bigint, b bigint)")
    with pytest.raises(RollupError, match=rf"^line 1, column {column}: .*{re.escape(message)}"):
        made.register(f"select a from test (partition store {partition}) as s where s.$row_status is new;", print)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("select s.a from test (partition store last 3) as s, range(1000000000000) as r", "reads RANGE(0, 1000000000000)"),
        ("select (select content from read_text('/etc/passwd')) from test (partition store last 3) as s", "READ_TEXT"),
        ("select (select 1 from '/etc/passwd') from test (partition store last 3) as s", "/etc/passwd does not exist"),
        (
            "select (with recursive t(n) as (select 1 union all select n + 1 from t) select count(*) from t) as v"
            " from test (partition store last 3) as s",
            "the select is recursive",
        ),
    ],
)  # fmt: skip
def test_a_select_reads_partitions_and_tables_and_nothing_else(select: str, message: str) -> None:
    made = Cruncher()
    made.define("test", {"a": "long", "at": "ts"}, "at")
    with pytest.raises(RollupError, match=re.escape(message)):
        made.register(f"{select};", print)


def test_a_schedule_without_a_length_is_refused() -> None:
    for kind in ("fixed", "sooner"):
        with pytest.raises(RollupError, match="a period of at least 1 ms"):
            Policy(kind, 0)
