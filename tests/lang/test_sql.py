"""Retrieval written in SQL: which texts are ours, what replaces them, and that everything else stays as it was.

Cases as text (sql_cases.txt: title, input, expected text or `! line:column message`) show each spelling and refusal;
equality of trees shows that spellings mean the same; pushdown is checked by executing with and without it on DuckDB;
random texts and thousands of broken queries show that nothing foreign changes and nothing but RollupError escapes.
"""

from __future__ import annotations

import random
from pathlib import Path

import duckdb
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from rollup.core.errors import QueryError, RollupError
from rollup.lang.sql.within import Within, Wrapped, columns_used, conditions_on, mentions, parse, rewrite
from tests.profiles import examples

KNOWN = ["TradeAgg", "Other"]
PIECES = ["SELECT", "FROM", "x", "(", ")", "'", '"', "within", "$1", "--", "/*", "*/", ";", ",", ".", "é", "$$"]
ASK = "SELECT * FROM TradeAgg WITHIN '2018' PER 'days'"


def _cases() -> list[tuple[str, str, str]]:
    blocks = (Path(__file__).parent / "sql_cases.txt").read_text(encoding="utf-8").split("\n# ")
    read = []
    for block in blocks:
        title, rest = block.removeprefix("# ").split("\n", 1)
        text, expected = rest.split("\n=>\n")
        read.append((title, text, expected.strip("\n")))
    return read


CASES = _cases()


def _read_call(within: Within) -> exp.Expr:
    """What a source is replaced by in the cases: READ(name, bounds, per, fill)."""
    name = ".".join(part.name for part in within.this.parts)
    given = [within.args[key].copy() for key in ("start", "end", "per") if within.args.get(key)]
    fill = [exp.column(f"fill_{within.fill}")] if within.fill else []
    return exp.Table(this=exp.Anonymous(this="READ", expressions=[exp.Literal.string(name), *given, *fill]))


def _sub_query(_: Within) -> exp.Expr:
    return sqlglot.parse_one("SELECT 1 AS x")


@pytest.mark.parametrize(("title", "text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_each_case_of_the_text_file_is_rewritten_or_refused_as_written(title: str, text: str, expected: str) -> None:
    if not expected.startswith("!"):
        assert rewrite(text, KNOWN, _read_call) == expected
        return
    place, message = expected[2:].split(" ", 1)
    with pytest.raises(RollupError) as refused:
        rewrite(text, KNOWN, _read_call)
    error = refused.value
    assert (f"{error.line}:{error.column}", error.hint is not None) == (place, True)
    assert message in f"{error.message} ({error.hint})"


def test_the_text_file_holds_all_its_cases() -> None:
    assert len(CASES) > 60
    assert len({title for title, _, _ in CASES}) == len(CASES)


def test_the_three_spellings_mean_the_same_node() -> None:
    spellings = [
        "TradeAgg WITHIN '2018-01-** **:**:**', 5 PER 'days' FILL (zero) AS t",
        "tradeagg('2018-01-** **:**:**', 5, 'days', fill => 'zero') t",
        '"TradeAgg within 2018-01-** **:**:**, 5 per days fill zero" t',
    ]
    nodes = [parse(f"SELECT * FROM {text}", KNOWN).find(Within) for text in spellings]
    assert nodes[0] is not None
    assert nodes[0] == nodes[1] == nodes[2]
    assert (nodes[0].aggregation, nodes[0].fill, nodes[0].source_name) == ("TradeAgg", "zero", "t")


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "spark"])
def test_every_base_dialect_reads_the_clause_and_the_call(dialect: str) -> None:
    for source in ("TradeAgg WITHIN '2018', :e PER 'days' t", "TradeAgg('2018', :e, 'days') t"):
        text = f"SELECT t.x FROM {source} WHERE t.x > 1"
        assert rewrite(text, KNOWN, _sub_query, dialect, dialect) == "SELECT t.x FROM (SELECT 1 AS x) t WHERE t.x > 1"


def test_spark_quotes_the_long_name_with_backticks_and_double_quotes_are_strings() -> None:
    text = 'SELECT "TradeAgg within a per b" FROM `TradeAgg within 2018 per days`'
    expected = 'SELECT "TradeAgg within a per b" FROM (SELECT 1 AS x) AS `TradeAgg within 2018 per days`'
    assert rewrite(text, KNOWN, _sub_query, "spark", "spark") == expected


def test_a_wrapped_query_is_parsed_with_the_text_around_it() -> None:
    tree = parse(f"EXPLAIN (COSTS off) {ASK}", KNOWN)
    assert isinstance(tree, Wrapped)
    assert (tree.args["prefix"], tree.args["suffix"]) == ("EXPLAIN (COSTS off) ", "")
    assert tree.find(Within) is not None


def test_a_lateral_sub_query_keeps_its_keyword_and_a_plain_table_loses_it() -> None:
    text = "SELECT * FROM b, LATERAL TradeAgg(b.s, b.p) a"
    assert rewrite(text, KNOWN, _sub_query) == "SELECT * FROM b, LATERAL (SELECT 1 AS x) a"
    assert rewrite(text, KNOWN, lambda _: exp.to_table("slice_1")) == "SELECT * FROM b, slice_1 a"


def test_an_error_of_the_resolver_gets_the_position_of_its_source() -> None:
    def refuse(within: Within) -> exp.Expr:
        raise QueryError("weeks are not kept")

    with pytest.raises(QueryError, match="line 2, column 3: weeks are not kept"):
        rewrite("SELECT * FROM\n  TradeAgg WITHIN '2018' PER 'weeks'", KNOWN, refuse)


def test_a_text_without_our_names_comes_back_as_the_same_object() -> None:
    for text in ("SELECT * FROM foo bar baz ((", "", ";", "SELECT 'TradeAgg within'", "FETCH 10 FROM TradeAgg"):
        assert rewrite(text, KNOWN, _sub_query) is text


def test_two_names_that_differ_by_case_need_the_exact_one() -> None:
    both = ["Trades", "trades"]
    found = parse("SELECT * FROM trades WITHIN 1 PER 'days'", both).find(Within)
    assert found is not None and found.aggregation == "trades"
    with pytest.raises(RollupError, match="unknown aggregation 'TRADES'"):
        parse("SELECT * FROM TRADES WITHIN 1 PER 'days'", both)


def test_the_prefilter_sees_names_in_any_case() -> None:
    assert mentions("select tradeAGG", KNOWN)
    assert not mentions("select trade_agg", KNOWN)


def test_parse_wants_exactly_one_statement() -> None:
    for text in ("", "SELECT 1; SELECT 2", "SELECT 'open"):
        with pytest.raises(RollupError):
            parse(text, KNOWN)
    assert isinstance(parse("CREATE TABLE x (a int)", KNOWN), exp.Command)


_LEFT = ["x IS NULL", "z = 2"]  # the first from the ON that brings the source, the second because no null satisfies it


def _source(text: str) -> tuple[exp.Expr, Within]:
    tree = parse(text, KNOWN)
    within = tree.find(Within)
    assert within is not None
    return tree, within


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a.x, count(*) FROM TradeAgg(1,'days') a WHERE a.y = 1 GROUP BY a.x ORDER BY a.z", {"x", "y", "z"}),
        ("SELECT x + 1 FROM TradeAgg(1,'days') HAVING sum(y) > 1", {"x", "y"}),
        ("SELECT TradeAgg.x FROM TradeAgg WITHIN 1 PER 'days'", {"x"}),
        ("SELECT a.x, b.* FROM TradeAgg(1,'days') a JOIN b ON a.k = b.k", {"x", "k"}),
        ("SELECT a.x FROM TradeAgg(1,'days') a JOIN b USING (k)", {"x", "k"}),
        ("SELECT a.x FROM TradeAgg(1,'days') a WHERE EXISTS (SELECT 1 FROM b WHERE a.k = v)", {"x", "k", "v"}),
        ('SELECT "A".x FROM TradeAgg(1,\'days\') AS a', {"x"}),
        ("SELECT * FROM TradeAgg(1,'days') a", None),
        ("SELECT a.* FROM TradeAgg(1,'days') a, b", None),
        ("SELECT a FROM TradeAgg(1,'days') a", None),
        ("SELECT row_to_json(a) FROM TradeAgg(1,'days') a", None),
        ("SELECT (a).x FROM TradeAgg(1,'days') a", None),
        ("SELECT q FROM TradeAgg(1,'days') a(q)", None),
        ("SELECT x FROM TradeAgg(1,'days') a NATURAL JOIN b", None),
        ("UPDATE t SET x = a.x FROM TradeAgg(1,'days') a", None),
    ],
)  # fmt: skip
def test_the_columns_used_are_never_too_few(text: str, expected: set[str] | None) -> None:
    used = columns_used(*_source(text))
    assert used == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1 FROM TradeAgg(1,'days') a WHERE a.x = 1 AND (a.y IN (1) AND z > 3)", ["x = 1", "y IN (1)", "z > 3"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a WHERE a.x = 1 OR a.y = 2", ["x = 1 OR y = 2"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a, b WHERE a.x = $1 AND y = 2 AND b.z = 3 AND a.k = b.k", ["x = $1"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a WHERE a.x = ? AND a.y = %s AND a.z = :z", ["z = %(z)s"]),
        ("SELECT 1 FROM b JOIN TradeAgg(1,'days') a ON a.k = b.k AND a.x IS NULL WHERE y = 1", ["x IS NULL"]),
        ("SELECT 1 FROM b LEFT JOIN TradeAgg(1,'days') a ON a.x IS NULL WHERE a.y IS NULL AND a.z = 2", _LEFT),
        ("SELECT 1 FROM b RIGHT JOIN TradeAgg(1,'days') a ON a.x = 1 WHERE a.y IS NULL", ["y IS NULL"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a LEFT JOIN b ON a.x = 1 WHERE a.y IS NULL", ["y IS NULL"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a RIGHT JOIN b ON a.x = 1 WHERE a.y IS NULL AND a.z > 0", ["z > 0"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a FULL JOIN b ON a.x = 1 WHERE coalesce(a.y, 1) = 1 AND a.z > 0", ["z > 0"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a FULL JOIN c ON true JOIN b ON a.x = 1 AND a.y IS NULL", ["x = 1"]),
        ("SELECT 1 FROM c JOIN b ON true JOIN TradeAgg(1,'days') a ON a.x = 1 FULL JOIN d ON a.y = 1", ["x = 1"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a JOIN b ON true WHERE a.x = 1 AND (SELECT max(k) FROM b) = a.y", ["x = 1"]),
        ("SELECT 1 FROM TradeAgg(1,'days') a WHERE a.x > random() AND f(a.y) AND sum(a.z) > 1", []),
        ("SELECT 1 FROM TradeAgg(1,'days') a JOIN b NATURAL JOIN c WHERE a.x = 1", []),
        ("SELECT 1 FROM TradeAgg(1,'days') a(x) WHERE a.x = 1", []),
        ("SELECT 1 FROM TradeAgg(1,'days') a, (SELECT 1) A WHERE a.x = 1", []),
    ],
)  # fmt: skip
def test_only_conditions_that_change_nothing_are_pushed_down(text: str, expected: list[str]) -> None:
    assert [part.sql("postgres") for part in conditions_on(*_source(text))] == expected


_CONDITIONS = st.lists(
    st.sampled_from(["a.x = 1", "a.y IS NULL", "a.x = b.x", "b.y > 0", "a.y <> 1", "NOT a.x = 1", "a.x IN (1, 2)",
                     "(a.x = 1 OR b.y = 1)", "coalesce(a.y, 0) = 0", "a.x IS NOT NULL", "(a.x = 1) IS NULL"]),
    min_size=1, max_size=3,
).map(" AND ".join)  # fmt: skip


@examples(100)
@given(
    first=st.booleans(),
    sides=st.tuples(*[st.sampled_from(["", "LEFT", "RIGHT", "FULL"])] * 2),
    conditions=st.tuples(_CONDITIONS, _CONDITIONS, _CONDITIONS),
)
def test_the_answer_is_the_same_with_conditions_pushed_down(
    first: bool, sides: tuple[str, str], conditions: tuple[str, str, str]
) -> None:
    ours, theirs = ("TradeAgg(1, 'days') a", "b") if first else ("b", "TradeAgg(1, 'days') a")
    joins = f"{ours} {sides[0]} JOIN {theirs} ON {conditions[0]} {sides[1]} JOIN c ON {conditions[1]} AND c.x = a.x"
    text = f"SELECT a.x, a.y, b.x, b.y, c.x FROM {joins} WHERE {conditions[2]}"

    def pushed(within: Within) -> exp.Expr:
        return exp.select("*").from_("t").where(*conditions_on(within.root(), within))

    rows = "(VALUES (1, 1), (1, NULL), (2, 0), (NULL, 3), (NULL, NULL)) v(x, y)"
    with duckdb.connect() as db:
        for name in "tbc":
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM {rows}")
        answers = [
            sorted(map(repr, db.execute(rewrite(text, KNOWN, how, "duckdb", "duckdb")).fetchall()))
            for how in (pushed, lambda _: exp.to_table("t"))
        ]
    assert answers[0] == answers[1]


@examples(300)
@given(st.text() | st.lists(st.sampled_from(PIECES)).map(" ".join))
def test_any_text_without_our_names_and_clause_comes_back_unchanged(text: str) -> None:
    if not mentions(text, KNOWN):
        try:
            assert rewrite(text, KNOWN, _sub_query) is text
        except RollupError as error:
            assert "within" in text.casefold() and "unknown aggregation" in error.message


@examples(200)
@given(before=st.text(max_size=20), after=st.text(max_size=20), tail=st.sampled_from(["", " AS t", "\nWHERE 1=1", ";"]))
def test_splices_sit_right_between_any_characters(before: str, after: str, tail: str) -> None:
    left = "SELECT '" + before.replace("'", "''") + "' FROM "
    right = tail + " -- " + " ".join(after.split())
    alias = "" if tail == " AS t" else " AS TradeAgg"
    text = f"{left}TradeAgg WITHIN '2018' PER 'days'{right}"
    assert rewrite(text, KNOWN, _sub_query) == f"{left}(SELECT 1 AS x){alias}{right}"


def _mutant(rng: random.Random, texts: list[str]) -> str:
    words = rng.choice(texts).replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(words))
        other = rng.choice(rng.choice(texts).split())
        match rng.randrange(4):
            case 0:
                del words[at : at + rng.randint(1, 2)]
            case 1:
                words.insert(at, other)
            case 2:
                words[at] = other
            case _:
                words[at] = words[at][: rng.randint(0, len(words[at]))]
        words = words or ["("]
    return " ".join(words)


def test_thousands_of_broken_queries_raise_nothing_but_rollup_errors() -> None:
    rng, texts = random.Random(7), [text for _, text, _ in CASES]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(5000):
        text = _mutant(rng, texts)
        try:
            rewrite(text, KNOWN, _read_call)
            outcomes["read"] += 1
        except RollupError as error:
            assert error.line is not None, text
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 500


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    with pytest.raises(RollupError, match="cannot be read"):
        rewrite(ASK + " WHERE x = " + "(" * 3000 + "1" + ")" * 3000, KNOWN, _sub_query)


def test_parameters_keep_their_spelling_when_the_written_dialect_spells_them_otherwise() -> None:
    text = "SELECT * FROM TradeAgg WITHIN $1, :e PER ? t WHERE t.x = %s"
    expected = "SELECT * FROM READ('TradeAgg', $1, :e, ?) t WHERE t.x = %s"
    assert rewrite(text, KNOWN, _read_call, "postgres", "duckdb") == expected
    assert rewrite(text, KNOWN, _read_call, "postgres", "spark") == expected
