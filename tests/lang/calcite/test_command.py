"""The command `rollup sql`: events as lines of JSON in, rows as lines of JSON out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.core.errors import QueryError

MODEL = """
[tables.Orders]
columns = { rowtime = "TIMESTAMP", productId = "INTEGER", units = "INTEGER" }
kind = "both"
monotonic = { rowtime = "increasing" }

[tables.Products]
columns = { productId = "INTEGER", name = "VARCHAR" }
"""
EVENTS = [
    {"stream": "Orders", "row": ["2015-02-15 10:17:00", 30, 4]},
    {"stream": "Orders", "row": {"rowtime": "2015-02-15 10:18:00", "productId": 10, "units": 1}},
    {"stream": "Orders", "row": ["2015-02-15 10:01:00", 10, 100]},
    {"punctuation": "Orders", "rowtime": "2015-02-15 11:00:00"},
    {"stream": "Orders", "row": ["2015-02-15 11:02:00", 10, 6]},
]
HOURLY = "SELECT STREAM TUMBLE_END(rowtime, INTERVAL '1' HOUR) AS e, SUM(units) AS u FROM Orders GROUP BY TUMBLE(rowtime, INTERVAL '1' HOUR)"


def _sql(
    folder: Path, query: str, *words: str, events: str | None = None, model: str = MODEL
) -> subprocess.CompletedProcess[str]:
    (folder / "model.toml").write_text(model)
    (folder / "products.json").write_text('[10, "Beer"]\n[30, "Cheese"]\n')
    lines = events if events is not None else "".join(json.dumps(event) + "\n" for event in EVENTS)
    command = [sys.executable, "-m", "rollup.cli.main", "sql", "--schema", "model.toml", *words, query]
    return subprocess.run(command, cwd=folder, input=lines, capture_output=True, text=True, timeout=120, check=False)


def _rows(ran: subprocess.CompletedProcess[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_a_standing_query_gives_its_rows_and_counts_what_goes_back(tmp_path: Path) -> None:
    ran = _sql(tmp_path, HOURLY)
    assert _rows(ran) == [{"e": "2015-02-15 11:00:00", "u": 5}, {"e": "2015-02-15 12:00:00", "u": 6}]
    assert ran.returncode == 1
    assert "event 3 is refused: rowtime 2015-02-15 10:01:00 is below 2015-02-15 10:18:00" in ran.stderr


def test_without_the_end_as_a_bound_open_windows_stay_open(tmp_path: Path) -> None:
    assert [row["u"] for row in _rows(_sql(tmp_path, HOURLY, "--no-bound"))] == [5]


def test_a_stream_is_joined_with_a_table_that_is_loaded(tmp_path: Path) -> None:
    query = "SELECT STREAM units, name FROM Orders AS o JOIN Products AS p ON o.productId = p.productId"
    found = _rows(_sql(tmp_path, query, "--load", "Products=products.json"))
    assert found == [{"units": 4, "name": "Cheese"}, {"units": 1, "name": "Beer"}, {"units": 6, "name": "Beer"}]


def test_a_query_without_stream_answers_from_the_tables_and_ends(tmp_path: Path) -> None:
    found = _rows(_sql(tmp_path, "SELECT name FROM Products ORDER BY name DESC", "--load", "Products=products.json"))
    assert found == [{"name": "Cheese"}, {"name": "Beer"}]


def test_wrong_input_is_refused_in_one_line(tmp_path: Path) -> None:
    for events, message in (
        ("no json\n", "line 1 of the input is no JSON"),
        ("{}\n", "line 1 of the input is no event"),
    ):
        ran = _sql(tmp_path, HOURLY, events=events)
        assert ran.returncode == 2 and message in ran.stderr and "Traceback" not in ran.stderr
    ran = _sql(tmp_path, "SELECT STREAM * FROM Products")
    assert ran.returncode == 2 and "Cannot convert table 'PRODUCTS' to a stream" in ran.stderr


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ('{"stream": "Nope", "row": []}\n', "line 1 of the input: there is no stream Nope (streams are Orders)"),
        ('{"punctuation": "Products", "productId": 1}\n', "there is no stream Products"),
        (
            '{"punctuation": "Orders"}\n',
            "line 1 of the input is no punctuation: of Orders are declared to move: rowtime",
        ),
        ('{"punctuation": "Orders", "units": 3}\n', "of Orders are declared to move: rowtime"),
        ('{"punctuation": "Orders", "rowtime": "soon"}\n', "line 1 of the input is no punctuation: Invalid isoformat"),
        ('{"punctuation": "Orders", "rowtime": 1.5}\n', "1.5 is neither a time nor a whole number"),
    ],
)
def test_what_is_no_event_of_the_model_is_refused_with_its_line(event: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(MODEL)
    ran = CliRunner().invoke(cli, ["sql", "--schema", str(tmp_path / "model.toml"), HOURLY], input=event)
    assert isinstance(ran.exception, QueryError) and message in str(ran.exception)


def test_an_event_whose_value_does_not_fit_is_refused_and_the_others_count(tmp_path: Path) -> None:
    bad: list[dict[str, object]] = [{"stream": "Orders", "row": ["yesterday", 1, 1]}, {"stream": "Orders", "row": [1]}]
    bad += [{"stream": "Orders", "row": {"rowtim": "2015-02-15 10:00:00"}}, {"stream": "Orders", "row": "10:00"}]
    bad += [{"stream": "Orders", "row": [None, 1, 1]}]
    ran = _sql(tmp_path, HOURLY, events="".join(json.dumps(event) + "\n" for event in [*bad, *EVENTS]))
    assert [row["u"] for row in _rows(ran)] == [5, 6]
    assert ran.returncode == 1 and "Traceback" not in ran.stderr
    assert "event 1 is refused: rowtime: 'yesterday' is no TIMESTAMP" in ran.stderr
    assert "event 2 is refused: 1 values, 3 expected" in ran.stderr
    assert "`Orders` declares no `rowtim`, which is not read: did you mean `rowtime`?" in ran.stderr
    assert "event 3 is refused: rowtime is null" in ran.stderr
    assert "event 4 is refused: '10:00' is no row" in ran.stderr
    assert "event 5 is refused: rowtime is null" in ran.stderr
    (tmp_path / "wrong.json").write_text('["ten", "Beer"]\n')
    ran = _sql(tmp_path, "SELECT name FROM Products", "--load", "Products=wrong.json")
    assert ran.returncode == 2 and "row 1 of Products: productId: 'ten' is no INT" in ran.stderr


def test_a_materialized_view_is_filled_by_the_stream_and_asked_after_it(tmp_path: Path) -> None:
    view = f"CREATE MATERIALIZED VIEW Hourly AS {HOURLY}"
    events = "".join(json.dumps(event) + "\n" for event in EVENTS if event != EVENTS[2])
    ran = _sql(tmp_path, f"{view}; SELECT MAX(u) AS most, COUNT(*) AS hours FROM Hourly", events=events)
    assert _rows(ran) == [{"most": 6, "hours": 2}]
    assert ran.returncode == 0
    assert _rows(_sql(tmp_path, view, events=events)) == _rows(_sql(tmp_path, HOURLY, events=events))


def test_a_row_sees_a_table_as_the_events_before_it_have_left_it_however_many_come_at_once(tmp_path: Path) -> None:
    model = MODEL + '[tables.Last]\ncolumns = { productId = "INTEGER", units = "INTEGER" }\nkey = ["productId"]\n'
    text = (
        "UPSERT INTO Last (units, productId) SELECT STREAM units, productId FROM Orders;"
        "CREATE MATERIALIZED VIEW Big AS SELECT STREAM units FROM Orders WHERE units > 2;"
        "SELECT STREAM o.units, l.units AS last, (SELECT COUNT(*) FROM Big) AS big "
        "FROM Orders AS o LEFT JOIN Last AS l ON l.productId IS NOT DISTINCT FROM o.productId"
    )
    rows = [[None, 1], [10, 5], [None, 2], [10, 6], [None, 3]]
    lines = "".join(json.dumps({"stream": "Orders", "row": ["2015-02-15 10:00:00", *row]}) + "\n" for row in rows)
    ran = _sql(tmp_path, text, events=lines, model=model)
    assert [tuple(row.values()) for row in _rows(ran)] == [(1, None, 0), (5, None, 0), (2, 1, 1), (6, 5, 1), (3, 2, 2)]
    wrong = _sql(tmp_path, "INSERT INTO Products (nam) SELECT STREAM units FROM Orders", events="")
    assert "column 23: Products has no column nam (known: productId, name)" in wrong.stderr


def test_records_mean_what_they_mean_to_a_job(tmp_path: Path) -> None:
    """A field that is not declared is not read, a rounded number is said once, and a number beyond its type refuses its event."""
    model = '[tables.Orders]\ncolumns = { rowtime = "TIMESTAMP", price = "DOUBLE" }\nkind = "stream"\nmonotonic = { rowtime = "increasing" }\n'
    prices = ["1.5", "9007199254740993", "9007199254740995", "1e400", '"-Infinity"', '"7.5"']
    row = '{{"stream": "Orders", "row": {{"rowtime": "2015-02-15 10:00:00", "price": {}, "tax": 1}}}}\n'
    ran = _sql(tmp_path, "SELECT STREAM price FROM Orders", events="".join(map(row.format, prices)), model=model)
    assert [each["price"] for each in _rows(ran)] == [1.5, 2.0**53, 2.0**53 + 4, "-Infinity", 7.5]
    assert ran.stderr.count("`Orders` declares no `tax`") == 1
    assert ran.stderr.count("price is a double and has whole numbers beyond 2^53") == 1
    assert "event 4 is refused: price: '1e400' is no DOUBLE" in ran.stderr


def test_standing_inserts_before_the_last_statement_run_too(tmp_path: Path) -> None:
    text = (
        "INSERT INTO Big SELECT STREAM * FROM Orders WHERE units > 3; SELECT STREAM units FROM Orders WHERE units < 3"
    )
    assert [row["units"] for row in _rows(_sql(tmp_path, text))] == [1]
    asked = f"{text.split(';')[0]}; SELECT SUM(units) AS s FROM Big"
    ran = _sql(tmp_path, asked)
    assert _rows(ran) == [{"s": 10}]
    assert ran.returncode == 1
    assert ran.stderr.count("is refused") == 1


def test_a_row_leaves_before_more_input_comes(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text(MODEL)
    command = [
        sys.executable,
        "-m",
        "rollup.cli.main",
        "sql",
        "--schema",
        "model.toml",
        "SELECT STREAM units FROM Orders",
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ran:
        assert ran.stdin and ran.stdout
        for units in (4, 5):
            event = {"stream": "Orders", "row": ["2015-02-15 10:17:00", 30, units]}
            ran.stdin.write(json.dumps(event).encode() + b"\n")
            ran.stdin.flush()
            assert json.loads(ran.stdout.readline()) == {"units": units}
        ran.stdin.close()
    assert ran.returncode == 0


def test_a_stream_whose_order_only_punctuations_tell_takes_rows_as_they_come(tmp_path: Path) -> None:
    events: list[dict[str, object]] = [
        {"stream": "Orders", "row": ["2015-02-15 11:10:00", 10, 1]},
        *EVENTS[:2],
        *EVENTS[3:4],
    ]
    late = {"stream": "Orders", "row": ["2015-02-15 10:59:59", 10, 7]}
    (tmp_path / "any.toml").write_text(MODEL.replace('kind = "both"', 'kind = "stream"\nslack = "punctuation"'))
    ran = _sql(tmp_path, HOURLY, "--schema", "any.toml", events="".join(json.dumps(e) + "\n" for e in [*events, late]))
    assert [row["u"] for row in _rows(ran)] == [5, 1]
    assert "event 5 is refused: rowtime 2015-02-15 10:59:59 is below the bound 2015-02-15 11:00:00" in ran.stderr


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT STREAM * FROM Orders JOIN Products ON Orders.productId = Products.productId",
         ["rowtime", "productId", "units", "productId0", "name"]),
        ("SELECT STREAM productId AS productId0, productId, PRODUCTID FROM Orders",
         ["productId0", "productId", "productId1"]),
        ("SELECT name, name, name FROM Products", ["name", "name0", "name1"]),
        ("SELECT * FROM Products p JOIN Products q ON p.productId = q.productId",
         ["productId", "name", "productId0", "name0"]),
    ],
)  # fmt: skip
def test_every_column_is_there_also_where_several_have_one_name(tmp_path: Path, query: str, names: list[str]) -> None:
    ran = _sql(tmp_path, query, "--load", "Products=products.json")
    assert [list(row) for row in _rows(ran)][:1] == [names]


VERSIONS = """
[tables.Orders]
columns = { rowtime = "TIMESTAMP", id = "INTEGER" }
kind = "stream"
monotonic = { rowtime = "increasing" }

[tables.Changes]
columns = { rowtime = "TIMESTAMP", id = "INTEGER", price = "DOUBLE" }
kind = "stream"
monotonic = { rowtime = "increasing" }

[tables.Prices]
columns = { since = "TIMESTAMP", id = "INTEGER", price = "DOUBLE" }
kind = "table"
key = ["id"]
temporal = true
monotonic = { since = "increasing" }
"""
ASKED = (
    "SELECT STREAM o.id, p.price FROM Orders AS o LEFT JOIN Prices FOR SYSTEM_TIME AS OF o.rowtime AS p ON o.id = p.id"
)
CHANGES = [["2026-01-01 09:00:00", 1, 0.25], ["2026-01-01 11:00:00", 1, 0.35], ["2026-01-01 10:00:00", 2, 7.0]]
ORDERS = [
    ["2026-01-01 08:59:59", 1],
    ["2026-01-01 10:59:59", 1],
    ["2026-01-01 11:00:00", 1],
    ["2026-01-01 12:00:00", 2],
]


def test_a_row_asks_for_the_version_of_its_time_whenever_that_was_filled(tmp_path: Path) -> None:
    """Loaded, or by an UPSERT that reads all changes, in any order of keys, before the first order comes."""
    orders = "".join(json.dumps({"stream": "Orders", "row": row}) + "\n" for row in ORDERS)
    (tmp_path / "prices.json").write_text("".join(json.dumps(row) + "\n" for row in CHANGES))
    loaded = _sql(tmp_path, ASKED, "--load", "Prices=prices.json", events=orders, model=VERSIONS)
    wanted = [{"id": 1, "price": None}, {"id": 1, "price": 0.25}, {"id": 1, "price": 0.35}, {"id": 2, "price": 7.0}]
    assert (_rows(loaded), loaded.stderr) == (wanted, "")
    changes = "".join(json.dumps({"stream": "Changes", "row": row}) + "\n" for row in sorted(CHANGES))
    text = f"UPSERT INTO Prices SELECT STREAM rowtime, id, price FROM Changes; {ASKED}"
    filled = _sql(tmp_path, text, events=changes + orders, model=VERSIONS)
    assert (_rows(filled), filled.stderr) == (wanted, "")


def test_versions_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    model = VERSIONS.replace('temporal = true\nmonotonic = { since = "increasing" }', "temporal = true")
    (tmp_path / "prices.json").write_text("".join(json.dumps(row) + "\n" for row in CHANGES))
    loaded = _sql(tmp_path, ASKED, "--load", "Prices=prices.json", events="", model=model)
    assert loaded.returncode == 2 and "Prices has two rows of id 1 that hold at once" in loaded.stderr
    text = f"UPSERT INTO Prices SELECT STREAM rowtime, id, price FROM Changes; {ASKED}"
    filled = _sql(tmp_path, text, events="", model=model)
    assert (
        filled.returncode == 2 and "nothing says since when a row of Prices holds, which is temporal" in filled.stderr
    )


def test_a_materialized_view_that_nothing_keeps_current_is_refused(tmp_path: Path) -> None:
    text = "CREATE MATERIALIZED VIEW Many AS SELECT productId, COUNT(*) AS c FROM Orders GROUP BY productId;"
    ran = _sql(tmp_path, f"{text} SELECT * FROM Many")
    assert ran.returncode == 2 and "Many is a materialized view of a query that does not stream" in ran.stderr


def test_a_value_of_an_event_is_not_another_one(tmp_path: Path) -> None:
    """A number with a fraction is no whole number, and an offset counts: a time is shown as that of UTC."""
    rows: list[list[object]] = [
        ["2015-02-15T11:02:00+01:00", 30, "12"],
        ["2015-02-15 05:17:30.5-05", 30, 1e3],
        ["2015-02-15 10:18:00Z", 30, 7.5],
        ["2015-02-15 10:18:00", 30, "7.5"],
        ["2015-02-15 10:19:00", 30, 2147483648],
    ]
    (tmp_path / "model.toml").write_text(MODEL)
    lines = "".join(json.dumps({"stream": "Orders", "row": row}) + "\n" for row in rows)
    asked = ["sql", "--schema", str(tmp_path / "model.toml"), "SELECT STREAM rowtime, units FROM Orders"]
    found = CliRunner().invoke(cli, asked, input=lines)
    assert [json.loads(line) for line in found.stdout.splitlines()] == [
        {"rowtime": "2015-02-15 10:02:00", "units": 12},
        {"rowtime": "2015-02-15 10:17:30.500000", "units": 1000},
    ]
    assert found.exit_code == 1
    assert [f"event {n} is refused: units: '{given}' is no INT" in found.stderr for n, given in ((3, "7.5"), (4, "7.5"), (5, "2147483648"))] == [True] * 3  # fmt: skip
