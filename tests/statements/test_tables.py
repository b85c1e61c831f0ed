"""Tables that blocks of SQL share in an app: UPSERT, materialized views, a keyed stream from a source or another language.

What a row sees is worked out by hand, and for random events, cuts and restarts by a dict that takes them one by one.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import ConfigError, PlanError
from rollup.hosts.local import LocalHost
from rollup.program import Program, compile_app
from rollup.statements.committed.commits import Commits
from rollup.stores.memory import MemoryStore
from tests.profiles import examples

STREAMS = """@time('ts') define stream S (k string, v double, ts long);
@PrimaryKey('k') define stream T (k string, total double);
"""
TOTALS = """@lang('sql') {
  UPSERT INTO T SELECT STREAM k, SUM(v) OVER (PARTITION BY k ORDER BY rowtime ROWS UNBOUNDED PRECEDING) FROM S
}
"""
JOINED = "@lang('sql', into='Rows') { SELECT STREAM s.k, s.v, t.total FROM S AS s LEFT JOIN T AS t ON s.k = t.k }"
FOUR = [("a", 1.0, 1), ("b", 2.0, 2), ("a", 2.0, 3), ("a", 3.0, 4)]


def rows(host: LocalHost, stream: str = "Rows") -> list[tuple[Any, ...]]:
    """What a stream was given, in order."""
    return [tuple(row.values()) for name, table in host.emitted if name == stream for row in table.to_pylist()]


def test_a_row_sees_what_the_events_before_it_have_put_into_the_table() -> None:
    host = LocalHost.of(STREAMS + TOTALS + JOINED)
    host.send("S", FOUR)
    assert rows(host) == [("a", 1.0, None), ("b", 2.0, None), ("a", 2.0, 1.0), ("a", 3.0, 3.0)]
    assert rows(host, "T") == [("a", 1.0), ("b", 2.0), ("a", 3.0), ("a", 6.0)]  # the changes, for sinks and others


def test_sub_queries_see_it_too_and_a_materialized_view_has_every_row() -> None:
    host = LocalHost.of(
        STREAMS
        + TOTALS
        + """@lang('sql') { CREATE MATERIALIZED VIEW Big (name, size) AS SELECT STREAM k, v FROM S WHERE v > 1 }
        @lang('sql', into='Rows') {
          SELECT STREAM s.k, (SELECT COUNT(*) FROM Big) AS n, (SELECT MAX(size) FROM Big WHERE name = s.k) AS most
          FROM S AS s WHERE s.k IN (SELECT k FROM T WHERE total > 0)
        }
        @lang('sql', into='Sums') {
          SELECT STREAM s.v, m.most, b.size FROM S AS s JOIN Big AS b ON b.name = s.k
          JOIN (SELECT MAX(total) AS most FROM T) AS m ON TRUE
        }"""
    )
    host.send("S", FOUR)
    assert rows(host) == [("a", 1, None), ("a", 2, 2.0)]
    assert rows(host, "Sums") == [(3.0, 3.0, 2.0)]


def test_a_stream_with_a_primary_key_is_a_table_whoever_fills_it() -> None:
    host = LocalHost.of(
        """@time('ts') define stream S (k string, v double, ts long);
        @PrimaryKey('shop', 'item') define stream Prices (shop string, item string, price double);
        @PrimaryKey('item') define stream Known (item string, n long);
        @lang('epl') { insert into Known select item, count(*) as n from Prices group by item; }
        @lang('sql', into='Rows') {
          SELECT STREAM s.v * p.price AS cost, k.n FROM S AS s
          JOIN Prices AS p ON p.item = s.k AND p.shop = 'x' JOIN Known AS k ON k.item = s.k
        }"""
    )
    host.send("Prices", [("x", "a", 2.0), ("y", "a", 9.0), (None, "a", 7.0), ("x", "a", 3.0)])
    host.send("S", [("a", 2.0, 1), ("b", 1.0, 2)])
    assert rows(host) == [(6.0, 4)]


def test_an_insert_may_list_its_columns() -> None:
    host = LocalHost.of(
        "@time('ts') define stream S (k string, v double, ts long);\ndefine stream Out (a double, b string, c int);\n"
        "@lang('sql') { INSERT INTO Out (b, a) SELECT STREAM k, v FROM S; INSERT INTO New (x, y) SELECT STREAM k, v FROM S }"
    )
    host.send("S", FOUR[:1])
    assert rows(host, "Out") == [(1.0, "a", None)]
    assert [table.to_pylist() for name, table in host.emitted if name == "New"] == [[{"x": "a", "y": 1.0}]]


# whatever the cuts

EVENTS = st.lists(
    st.tuples(
        st.sampled_from("SSP"),
        st.sampled_from(["a", "b", None]),
        st.integers(0, 3),
        st.sampled_from(["on", "cut", "restart"]),
    ),
    min_size=1,
    max_size=24,
)
DRAWN = """@time('ts') define stream S (k string, v double, ts long);
@time('ts') @PrimaryKey('k') define stream P (k string, w double, ts long);
@PrimaryKey('k') define stream T (k string, total double);
@lang('sql') { UPSERT INTO T (total, k) SELECT STREAM s.v + COALESCE(p.w, 0), s.k FROM S AS s LEFT JOIN P AS p ON p.k = s.k }
@lang('sql') { CREATE MATERIALIZED VIEW Seen AS SELECT STREAM k, v FROM S WHERE v > 0 }
@lang('sql', into='Rows') {
  SELECT STREAM s.k, s.v, t.total, (SELECT COUNT(*) FROM Seen WHERE Seen.v = s.v) AS n
  FROM S AS s LEFT JOIN T AS t ON t.k IS NOT DISTINCT FROM s.k
}
"""


@cache
def drawn() -> Program:
    """The app of the random events."""
    return compile_app(DRAWN)


@examples(7)
@given(EVENTS)
def test_it_is_what_a_dict_says_that_takes_the_events_one_by_one(steps: list[tuple[str, str, int, str]]) -> None:
    prices, totals, seen, wanted = dict[Any, float](), dict[Any, float](), list[float](), list[Any]()
    stores, found = dict[str, MemoryStore](), list[Any]()

    def kept(aggregation: Any, engine: Any) -> MemoryStore:
        return stores.setdefault(aggregation.name, MemoryStore(aggregation, engine))

    with TemporaryDirectory() as folder:
        host, batch = LocalHost(drawn(), kept, Commits(Path(folder))), list[Any]()
        for place, (stream, key, value, cut) in enumerate(steps):
            if stream == "P":
                prices[key] = float(value)
            else:
                wanted.append((key, float(value), totals.get(key), seen.count(float(value))))
                totals[key] = value + (0.0 if key is None else prices.get(key, 0.0))
                seen += [float(value)] if value else []
            batch.append((key, float(value), place))
            if cut != "on" or place + 1 == len(steps) or steps[place + 1][0] != stream:
                host.send(stream, batch)
                found, batch, arrivals = found + rows(host), [], host.arrivals
                host.emitted.clear()
                if cut == "restart":
                    host = LocalHost(drawn(), kept, Commits(Path(folder)))
                    host.arrivals = arrivals
    assert found == wanted


# what cannot be

REFUSED = {
    "UPSERT INTO New SELECT STREAM k, v FROM S": ("New", r"UPSERT needs a primary key; New has none \(@PrimaryKey"),
    "UPSERT INTO Out SELECT STREAM k, v FROM S": ("Out", r"UPSERT needs a primary key; Out has none \(@PrimaryKey"),
    "INSERT INTO T SELECT STREAM k, v FROM S": ("T SELECT", r"T has a primary key: .*\(UPSERT INTO T\)"),
    "UPSERT INTO T (total) SELECT STREAM v FROM S": ("total", "the list lacks k, of the primary key of T"),
    "UPSERT INTO T (k, totl) SELECT STREAM k, v FROM S": ("totl", r"T has no column totl \(known: k, total\)"),
    "UPSERT INTO T (k, k) SELECT STREAM k, v FROM S": ("k) S", "k is listed twice"),
    "UPSERT INTO T (k) SELECT STREAM k, v FROM S": ("k) S", "T lists 1 columns, the query gives 2"),
    "UPSERT INTO T SELECT STREAM k, k AS l FROM S": (None, r"insert \(k string, l string\) into T, which is defined as"),
    "SELECT STREAM k FROM T": ("T", r"T is a table, whose changes are no stream to SQL \(join it to a stream"),
    "SELECT k FROM T": (None, "a query in an app reads streams"),
    "CREATE MATERIALIZED VIEW Out AS SELECT STREAM k FROM S": ("Out", "Out is a stream of the app already"),
    "UPDATE T SET total = 0": ("T S", r"UPDATE runs once, and T changes as events come \(UPSERT INTO T"),
    "DELETE FROM T": ("T", "DELETE runs once, and T changes"),
    "UPSERT INTO T SELECT STREAM s.k, t.total FROM S AS s JOIN T AS t ON s.k = t.k": (None, "read and inserted into by one block"),
    "SELECT STREAM s.k FROM S AS s JOIN T AS t ON s.k = t.kk": ("kk", "Unknown column: kk"),
    "SELECT STREAM s.k FROM S AS s RIGHT JOIN T AS t ON s.k = t.k": (None, "RIGHT JOIN of a stream with a table is never final"),
}  # fmt: skip


@pytest.mark.parametrize("query", REFUSED)
def test_what_cannot_be_is_refused_at_its_place(query: str) -> None:
    word, message = REFUSED[query]
    into = ", into='R'" if query.startswith("SELECT") else ""
    block = f"@lang('sql'{into}) {{ "
    column = "[0-9]+" if word is None else len(block) + query.rindex(word) + 1
    with pytest.raises(PlanError, match=rf"line 4, column {column}: .*{message}"):
        compile_app(f"{STREAMS}define stream Out (k string, v double);\n{block}{query} }}")


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        ("@PrimaryKey('x')", r"line 1, column 1: @PrimaryKey names 'x', which S has not \(as @PrimaryKey\('k'\); S has k, v\)"),
        ("@PrimaryKey", r"line 1, column 1: @PrimaryKey lists attributes"),
        ("@PrimaryKey(key='k')", r"line 1, column 1: @PrimaryKey lists attributes"),
        ("@PrimaryKey('k') @PrimaryKey('v')", r"line 1, column 18: S has two @PrimaryKey"),
    ],
)  # fmt: skip
def test_a_key_that_is_none_is_refused(annotation: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        compile_app(f"{annotation} define stream S (k string, v double);")


def test_a_new_block_is_refused_a_table_whose_rows_only_others_have(tmp_path: Path) -> None:
    """Each block keeps a table that blocks share for itself: one that is new would join rows of before with nothing."""
    more = JOINED.replace("Rows", "More")

    def begun(*blocks: str) -> LocalHost:
        return LocalHost(compile_app(STREAMS + "".join(blocks)), commits=Commits(tmp_path))

    begun(TOTALS, JOINED).send("S", FOUR)
    for blocks in ((more, TOTALS, JOINED), (TOTALS, JOINED, more)):
        with pytest.raises(ConfigError, match=r"sql block.* is new and reads the table T, .*begin all anew"):
            begun(*blocks)
    host = begun(TOTALS, JOINED)
    host.send("S", [("b", 1.0, 5)])
    assert rows(host) == [("b", 1.0, 2.0)]


def test_a_block_that_has_heard_nothing_yet_is_not_new_at_the_next_start(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    app = STREAMS + "define stream R (k string);" + TOTALS + "@lang('sql', into='Some') { SELECT STREAM k FROM R }"
    LocalHost(compile_app(app), commits=Commits(tmp_path)).send("S", FOUR)
    host = LocalHost(compile_app(app), commits=Commits(tmp_path))
    host.send("R", [("a",)])
    assert rows(host, "Some") == [("a",)]
    said = capfd.readouterr().out
    assert "statements" not in said, said
