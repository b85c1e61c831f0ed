"""What expressions mean, as Calcite 1.40 answers them: kinds are kept, numbers are cut, nulls are the greatest.

The values were asked of the reference over the same row; where it differs from the standard the test says so.
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

import pytest

from rollup.core.errors import PlanError, QueryError
from rollup.engine.flows.beyond import beyond
from rollup.engine.flows.flow import AT, END
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session

COLUMNS = {
    "id": "INTEGER", "name": "VARCHAR", "sal": "DECIMAL(10,2)", "rate": "DOUBLE", "hired": "DATE", "since": "TIMESTAMP",
    "ok": "BOOLEAN", "tod": "TIME",
}  # fmt: skip
ROW = [2, "Bob", "-7.25", -1.5, "2020-02-29", "2020-02-29 23:59:59", False, "10:20:30"]

MEANINGS: dict[str, Any] = {
    "CAST(sal AS INTEGER)": -7,
    "CAST(rate AS BIGINT)": -1,
    "CAST(2.5 AS INTEGER)": 2,
    "CAST(1.999e0 AS INTEGER)": 1,
    "CAST(sal AS DECIMAL(5,1))": -7.2,
    "CAST(sal / 2 AS INTEGER)": -3,
    "CAST(ok AS VARCHAR)": "FALSE",
    "CAST(id > 1 AS VARCHAR)": "TRUE",
    "CAST(name AS VARCHAR(2))": "Bo",
    "CAST(id AS CHAR(3)) || '|'": "2  |",
    "CAST(name AS CHAR)": "B",
    "id / 4": 0,
    "-7 / 2": -3,
    "MOD(-7, 3)": -1,
    "FLOOR(id)": 2,
    "EXTRACT(DOW FROM hired)": 7,
    "DAYOFWEEK(hired)": 7,
    "EXTRACT(EPOCH FROM hired)": 1582934400,
    "FLOOR(hired TO MONTH)": date(2020, 2, 1),
    "CEIL(hired TO YEAR)": date(2021, 1, 1),
    "FLOOR(hired TO WEEK)": date(2020, 2, 23),
    "FLOOR(since TO MONTH)": datetime(2020, 2, 1),
    "FLOOR(tod TO HOUR)": time(10),
    "CEIL(tod TO MINUTE)": time(10, 21),
    "hired + INTERVAL '1' MONTH": date(2020, 3, 29),
    "hired - INTERVAL '1' YEAR": date(2019, 2, 28),
    "since + INTERVAL '1-2' YEAR TO MONTH": datetime(2021, 4, 29, 23, 59, 59),
    "(hired - DATE '2020-02-28') DAY > INTERVAL '23' HOUR": True,
    "TIMESTAMPADD(MONTH, 1, hired)": date(2020, 3, 29),
    "TIMESTAMPADD(HOUR, 25, hired)": datetime(2020, 3, 1, 1),
    "TIMESTAMPADD(SQL_TSI_SECOND, id, since)": datetime(2020, 3, 1, 0, 0, 1),
    "TIMESTAMPDIFF(MONTH, hired, DATE '2021-02-28')": 11,
    "TIMESTAMPDIFF(MONTH, DATE '2020-01-31', hired)": 0,
    "TIMESTAMPDIFF(YEAR, DATE '2030-01-01', hired)": -9,
    "TIMESTAMPDIFF(HOUR, TIMESTAMP '2020-03-01 01:30:00', since)": -1,
    "CAST(ATAN(rate) AS INTEGER)": 0,
    "CAST(DEGREES(rate) AS INTEGER)": -85,
    "SIGN(sal - 7) / 2": -0.5,
    "SIGN(id) / 2": 0,
    "YEAR(hired) / 3": 673,
    "name SIMILAR TO 'B%'": True,
    "name SIMILAR TO '[A-C]_?b'": True,
    "name SIMILAR TO 'B'": False,
    "'50%' SIMILAR TO '50!%' ESCAPE '!'": True,
    "CURRENT_DATE": date(2020, 5, 1),
    "LOCALTIMESTAMP": datetime(2020, 5, 1, 12),
}


def _session(rows: list[list[Any]] | None = None) -> Session:
    emp = {"columns": COLUMNS, "kind": "both", "monotonic": {"id": "increasing"}}
    old = {"columns": {"id": "INTEGER", "price": "INTEGER"}, "temporal": True}
    session = Session(Model.of({"tables": {"Emp": emp, "Prices": old}}), datetime(2020, 5, 1, 12))
    session.load("Emp", [ROW] if rows is None else rows)
    return session


def _asked(session: Session, query: str) -> list[list[Any]]:
    return [list(row.values()) for row in session.ask(session.prepare(query)).to_pylist()]


def _streamed(session: Session, query: str, rows: list[list[Any]]) -> list[list[Any]]:
    standing = session.prepare(query).standing
    assert standing is not None
    arrivals = {"emp": session.arrivals("Emp", rows, range(len(rows)), ended=True)}
    output = standing.step(standing.start(), arrivals, session.engine)[1]
    return [list(row.values()) for row in output.drop_columns([AT]).to_pylist()]


@pytest.mark.parametrize("text", MEANINGS)
def test_an_expression_has_the_value_and_the_kind_that_the_reference_gives(text: str) -> None:
    expected = MEANINGS[text]
    for found in (
        _asked(_session(), f"SELECT {text} FROM Emp"),
        _streamed(_session(), f"SELECT STREAM {text} FROM Emp", [ROW]),
    ):
        value = found[0][0]
        if isinstance(expected, float):
            assert float(value) == expected
        else:
            assert (value, type(value)) == (expected, type(expected))


def _three() -> list[list[Any]]:
    return [[1, "b", *ROW[2:]], [1, None, *ROW[2:]], [1, "a", *ROW[2:]]]


@pytest.mark.parametrize(
    ("order", "names"),
    [("name", ["a", "b", None]), ("name DESC", [None, "b", "a"]), ("name NULLS FIRST", [None, "a", "b"]), ("name DESC NULLS LAST", ["b", "a", None])],
)  # fmt: skip
def test_a_null_is_greater_than_every_value_unless_the_order_says_so(order: str, names: list[str | None]) -> None:
    rows = _three()
    assert [row[0] for row in _asked(_session(rows), f"SELECT name FROM Emp ORDER BY id, {order}")] == names
    streamed = _streamed(_session(rows), f"SELECT STREAM name FROM Emp ORDER BY id, {order}", rows)
    assert [row[0] for row in streamed] == names
    ranked = _asked(_session(rows), f"SELECT name, ROW_NUMBER() OVER (ORDER BY {order}) AS r FROM Emp ORDER BY r")
    assert [row[0] for row in ranked] == names
    ranked = _streamed(_session(rows), f"SELECT STREAM name, RANK() OVER (PARTITION BY id ORDER BY {order}) FROM Emp", rows)  # fmt: skip
    assert [name for name, _ in sorted(ranked, key=lambda row: row[1])] == names


def test_aggregates_of_truth_are_those_of_the_standard() -> None:
    rows = [[1, *ROW[1:6], truth, ROW[7]] for truth in (True, None, False)]
    query = "SELECT {} EVERY(ok), SOME(ok), COUNT(ok), BIT_OR(id) FROM Emp GROUP BY id"
    assert _asked(_session(rows), query.format("")) == [[False, True, 2, 1]]
    assert _streamed(_session(rows), query.format("STREAM"), rows) == [[False, True, 2, 1]]


@pytest.mark.parametrize("division", ["1 / (id - 2)", "sal / (id - 2)", "MOD(1, id - 2)"])
def test_a_division_by_zero_is_an_error_of_a_table_and_a_null_in_a_stream_which_goes_on(division: str) -> None:
    with pytest.raises(QueryError, match="division by zero"):
        _asked(_session(), f"SELECT {division} FROM Emp")
    later = [3, *ROW[1:]]
    streamed = _streamed(_session(), f"SELECT STREAM {division} FROM Emp", [ROW, later])
    assert streamed[0] == [None]
    assert streamed[1][0] is not None


def test_a_division_of_doubles_by_zero_is_infinite() -> None:
    assert _asked(_session(), "SELECT rate / 0 FROM Emp") == [[float("-inf")]]


def test_a_temporal_table_is_asked_as_of_a_time_and_no_other_table_is() -> None:
    session = _session()
    session.load("Prices", [[1, 10]])
    session.now = datetime(2020, 1, 1)
    session.prepare("UPDATE Prices SET price = 20 WHERE id = 1")
    for moment, price in (("2019-12-31", 10), ("2020-01-01", 20)):
        query = f"SELECT price FROM Prices FOR SYSTEM_TIME AS OF TIMESTAMP '{moment} 00:00:00'"
        assert _asked(session, query) == [[price]]
    assert _asked(session, "SELECT price FROM Prices") == [[20]]
    with pytest.raises(PlanError, match="Emp is not a temporal table"):
        session.prepare("SELECT id FROM Emp FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00'")


@pytest.mark.parametrize(
    ("item", "message"),
    [("NO_SUCH(id)", "(?i)no_such"), ("TO_CHAR(since, 'YYYY')", "ToChar"), ("SOUNDEX(name)", "SOUNDEX"), ("name + hired", "(?i)cast|type"), ("TIMESTAMPADD(FORTNIGHT, 1, since)", "one of SECOND"), ("FLOOR(since TO FORTNIGHT)", "FORTNIGHT is no unit")],
)  # fmt: skip
def test_what_cannot_be_computed_is_refused_when_the_query_is_prepared(item: str, message: str) -> None:
    from rollup.core.errors import RollupError

    for stream in ("", "STREAM"):
        with pytest.raises(RollupError, match=message):
            _session().prepare(f"SELECT {stream} {item} FROM Emp")


def test_lag_looks_back_at_once_and_lead_waits_for_the_rows_that_follow() -> None:
    columns = {"t": "TIMESTAMP", "n": "INTEGER"}
    table = {"columns": columns, "kind": "stream", "monotonic": {"t": "increasing", "n": "strictly increasing"}}
    session = Session(Model.of({"tables": {"S": table}}))
    rows = [[f"2020-01-01 00:00:0{second}", number] for number, second in enumerate([0, 0, 1, 2])]
    for call, values, at in (
        ("LAG(n) OVER (ORDER BY t)", [None, 0, 1, 2], [0, 1, 2, 3]),
        ("LEAD(n) OVER (ORDER BY t)", [1, 2, 3, None], [1, 2, 3, END]),
        ("LEAD(n, 2) OVER (ORDER BY n)", [2, 3, None, None], [2, 3, END, END]),
        ("LAG(n, 2, -1) OVER (ORDER BY n)", [-1, -1, 0, 1], [0, 1, 2, 3]),
    ):
        standing = session.prepare(f"SELECT STREAM {call} AS v FROM S").standing
        assert standing is not None
        states, found = standing.start(), list[tuple[Any, int]]()
        for place in range(len(rows) + 1):
            some = {
                "s": session.arrivals("S", rows[place : place + 1], range(place, min(place + 1, 4)), ended=place == 4)
            }
            states, output, _ = standing.step(states, some, session.engine)
            found += [(row["v"], row["at"]) for row in output.rename_columns(["v", "at"]).to_pylist()]
        assert found == list(zip(values, at, strict=True)), call


def test_group_id_tells_a_grouping_set_from_the_same_one_before_it() -> None:
    query = "SELECT STREAM id, GROUP_ID() AS g, COUNT(*) AS c FROM Emp GROUP BY GROUPING SETS ((id), (id, name), (id))"
    streamed = _streamed(_session(), query, [ROW, ROW])
    assert sorted(streamed) == [[2, 0, 2], [2, 0, 2], [2, 1, 2]]


def test_group_id_over_tables_counts_the_like_sets_before() -> None:
    session = Session(Model.of({"tables": {"E": {"columns": {"a": "INTEGER", "b": "VARCHAR"}, "kind": "table"}}}))
    session.load("E", [[1, "x"], [1, "y"], [2, "x"]])
    sets = "GROUPING SETS ((a), (a, b), (a), (a))"
    query = f"SELECT a, b, GROUP_ID() AS g, COUNT(*) AS c FROM E GROUP BY {sets} HAVING GROUP_ID() < 2 ORDER BY g, a, b"
    assert [tuple(row.values()) for row in session.ask(session.prepare(query)).to_pylist()] == [
        (1, "x", 0, 1), (1, "y", 0, 1), (1, None, 0, 2), (2, "x", 0, 1), (2, None, 0, 1), (1, None, 1, 2), (2, None, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "sums", "lost"),
    [
        ("SELECT STREAM SUM(u) AS s FROM O GROUP BY FLOOR(rowtime TO HOUR), k", [None, 2**62 + 5], 1),
        ("SELECT STREAM SUM(u) AS s FROM O GROUP BY HOP(rowtime, INTERVAL '30' MINUTE, INTERVAL '60' MINUTE)",
         [None, None, None], 3),
        ("SELECT STREAM SUM(u) OVER (PARTITION BY k ORDER BY rowtime RANGE INTERVAL '5' MINUTE PRECEDING) AS s FROM O",
         [2**62, None, 5, None, 2**62, 2**62], 2),
        ("SELECT STREAM SUM(u) FILTER (WHERE k = 1) OVER (ORDER BY rowtime ROWS 1 PRECEDING) AS s FROM O",
         [2**62, None, 2**62, None, 2**62, 2**62], 1),
    ],
)  # fmt: skip
def test_sums_beyond_64_bits_are_null_and_counted_once(query: str, sums: list[int | None], lost: int) -> None:
    columns = {"rowtime": "TIMESTAMP", "k": "INTEGER", "u": "BIGINT"}
    table = {"columns": columns, "kind": "stream", "monotonic": {"rowtime": "increasing"}}
    session = Session(Model.of({"tables": {"O": table}}))
    standing = session.prepare(query).standing
    assert standing is not None
    big = 2**62
    rows = [(0, 1, big), (1, 1, big), (2, 2, 5), (3, 1, None), (30, 1, big), (59, 2, big)]
    states, found = standing.start(), list[int | None]()
    for at in range(len(rows) + 1):  # row by row: what is kept is asked about again and again
        sent = [[f"2015-02-15 10:{minute:02}:00", k, u] for minute, k, u in rows[at : at + 1]]
        came = session.arrivals("O", sent, [at] * len(sent), ended=at == len(rows))
        states, output, _ = standing.step(states, {"o": came}, session.engine)
        found += output.column(0).to_pylist()
    assert (found, beyond(states.values())) == (sums, lost)


@pytest.mark.parametrize("cut", [1, 3])
@pytest.mark.parametrize(
    ("query", "sums"),
    [
        ("SELECT STREAM (SELECT SUM(u) FROM W) AS s FROM O", [None, None, None]),
        ("SELECT STREAM (SELECT SUM(u) FROM W WHERE W.k = O.k) AS s FROM O", [None, 2, None]),
        ("SELECT STREAM w.s FROM O JOIN (SELECT k, SUM(u) AS s FROM W GROUP BY k) AS w ON w.k = O.k", [None, 2, None]),
        ("SELECT STREAM k FROM O WHERE k < (SELECT SUM(u) FROM W)", []),
    ],
)
def test_sums_beyond_64_bits_in_sub_queries_over_tables_are_null_and_counted_once(
    query: str, sums: list[int | None], cut: int
) -> None:
    stream = {
        "columns": {"rowtime": "TIMESTAMP", "k": "INTEGER"},
        "kind": "stream",
        "monotonic": {"rowtime": "increasing"},
    }
    session = Session(Model.of({"tables": {"O": stream, "W": {"columns": {"k": "INTEGER", "u": "BIGINT"}}}}))
    session.load("W", [[1, 2**63 - 1], [1, 1], [2, 2]])
    standing = session.prepare(query).standing
    assert standing is not None
    states, found = standing.start(), list[int | None]()
    for at in range(0, 3, cut):
        sent = [[f"2015-02-15 10:0{minute}:00", 1 + minute % 2] for minute in range(at, at + cut)]
        came = session.arrivals("O", sent, range(at, at + cut))
        states, output, _ = standing.step(states, {"o": came}, session.engine)
        found += output.column(0).to_pylist()
    assert (found, beyond(states.values())) == (sums, 1)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT STREAM YEAR(rowtime) AS y, COUNT(*) AS c FROM O GROUP BY YEAR(rowtime)", [(2015, 3)]),
        ("SELECT STREAM (SELECT MAX(u) FROM W) FROM O LIMIT 1", [(7,)]),
        ("CREATE VIEW v (a, b) AS SELECT * FROM O; SELECT STREAM b FROM v WHERE b > 1", [(2,)]),
        ("CREATE VIEW v (a, b) AS SELECT * FROM W; SELECT b, SUM(a) AS s FROM v GROUP BY b", [(7, 1)]),
    ],
)
def test_siblings_of_what_the_documents_show_mean_the_same(query: str, rows: list[tuple[int, ...]]) -> None:
    stream = {
        "columns": {"rowtime": "TIMESTAMP", "k": "INTEGER"},
        "kind": "stream",
        "monotonic": {"rowtime": "increasing"},
    }
    session = Session(Model.of({"tables": {"O": stream, "W": {"columns": {"k": "INTEGER", "u": "BIGINT"}}}}))
    session.load("W", [[1, 7]])
    answer = session.prepare(query)
    if answer.standing is None:
        assert [tuple(row.values()) for row in session.ask(answer).to_pylist()] == rows
        return
    came = session.arrivals("O", [[f"2015-02-15 10:0{k}:00", k] for k in range(3)], range(3), ended=True)
    _, output, _ = answer.standing.step(answer.standing.start(), {"o": came}, session.engine)
    assert [tuple(row.values())[:-1] for row in output.to_pylist()] == rows


def test_a_sub_query_with_two_rows_for_a_value_is_said_when_a_row_asks() -> None:
    stream = {"columns": {"rowtime": "TIMESTAMP"}, "kind": "stream", "monotonic": {"rowtime": "increasing"}}
    session = Session(Model.of({"tables": {"O": stream, "W": {"columns": {"u": "BIGINT"}}}}))
    standing = session.prepare("SELECT STREAM (SELECT u FROM W) AS u FROM O").standing
    assert standing is not None
    session.load("W", [[1], [2]])
    came = session.arrivals("O", [["2015-02-15 10:00:00"]], [0])
    with pytest.raises(QueryError, match=r"More than one row .*\(an aggregate as MAX"):
        standing.step(standing.start(), {"o": came}, session.engine)


def test_initcap_is_that_of_letters_from_a_to_z_however_deep() -> None:
    session = Session(Model.of({"tables": {"T": {"columns": {"v": "VARCHAR"}}}}))
    session.load("T", [("hello wORLD-foo 1ab",), ("éa ß",), ("x'y \\ z",), (None,), ("",)])
    found = session.ask(session.prepare("SELECT INITCAP(INITCAP(v)) AS v FROM T")).to_pylist()
    # `éa` as Calcite has it: what is no letter from A to Z, and no digit, stays and begins a word
    assert [row["v"] for row in found] == ["Hello World-Foo 1ab", "éA ß", "X'Y \\ Z", None, ""]
