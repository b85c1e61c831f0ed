"""What is refused, when the query or the catalog is read, and which rows are set aside: with the place and the cure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import ConfigError, RollupError
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.ingress import Ingress
from rollup.lang.uql.plan import plan

FIELDS = [("x", "integer64"), ("t", "timestamp"), ("c", "text"), ("b", "boolean")]
CATALOG = Catalog.of({"schemas": [{"name": "foo", "fields": [{"name": n, "type": t} for n, t in FIELDS]}]})
CASES = [
    case.split("\n=> ")
    for case in (Path(__file__).parent / "mistakes.txt").read_text().strip().split("\n\n")
    if not case.startswith("#")
]


@pytest.mark.parametrize(("query", "message"), CASES, ids=lambda text: text[:60])
def test_a_mistake_is_refused_with_its_place_and_what_is_allowed(query: str, message: str) -> None:
    with pytest.raises(RollupError) as refusal:
        plan(query, CATALOG)
    assert message in str(refusal.value)
    assert refusal.value.line is not None
    assert refusal.value.hint or ", expected " in str(refusal.value), "what would make it valid"


def test_there_are_mistakes_to_try() -> None:
    assert len(CASES) >= 30


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "no JSON object"),
        ({"schemas": []}, "the catalog has no table"),
        ({"schemas": {}}, "`schemas` of the catalog is no list"),
        ({"schemas": [{"fields": []}]}, "a table of the catalog has no name"),
        ({"schemas": [{"name": "a", "fields": []}]}, "a has no fields"),
        ({"schemas": [{"name": "a", "format": "xml", "fields": [{"name": "x", "type": "text"}]}]}, "the format 'xml'"),
        (
            {"schemas": [{"name": "a", "fields": [{"name": "x", "type": "varchar"}]}]},
            "a.x: unknown field type: varchar",
        ),
        ({"schemas": [{"name": "a", "fields": [{"name": "x", "type": "text", "usage": "k"}]}]}, "unknown usage: k"),
        ({"schemas": [{"name": "a", "fields": [{"name": "x", "type": "text"}] * 2}]}, "the field x stands twice"),
    ],
)
def test_a_bad_catalog_is_refused_with_what_is_wrong(document: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        Catalog.of(document)


def test_an_ambiguous_table_is_refused_with_those_that_it_may_be() -> None:
    table = {"name": "foo", "fields": [{"name": "x", "type": "text"}]}
    schemas = [{"name": schema, "tables": [table]} for schema in ("one", "two")]
    catalog = Catalog.of({"name": "i", "databases": [{"name": "d", "schemas": schemas}]})
    query = "from {} window slice 1 rows aggregate count() as n append n to bar"
    with pytest.raises(RollupError, match=r"several tables .*i\.d\.one\.foo, i\.d\.two\.foo"):
        plan(query.format("foo"), catalog)
    assert plan(query.format("two.foo"), catalog)[0].table.name == "i.d.two.foo"


TYPES = ["integer8", "integer16", "integer32", "integer64", "float32", "float64", "boolean", "timestamp", "text"]
VALUES = [
    "1", "-1", "+1", "0", "01", "127", "128", "-128", "-129", "32768", "2147483648", "9223372036854775807",
    "9223372036854775808", "0x1F", "1.5", ".5", "5.", "1e3", "1e39", "1e400", "nan", "inf", "Infinity", " 1", "1 ", "1_0",
    "true", "True", "t", "F", "yes", "abc", "", "#", "2030-01-01T17:00:01-07:00", "2030-01-01T17:00:01−07:00",
    "2030-01-01 17:00:01Z", "2030-01-01t17:00:01z", "2030-01-01T17:00:01.123456789Z", "2030-01-01T17:00:01",
    "2030-01-01", "2030-02-30T00:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T00:00:60Z", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2030-01-01T17:00:01+07", "2030-01-01T17:00:01+0730", "2030-01-01T17:00:01+24:00", "-",
]  # fmt: skip


@pytest.mark.parametrize("kind", TYPES)
def test_a_value_is_read_alike_alone_and_in_a_large_piece_however_the_piece_is_read(kind: str) -> None:
    table = Catalog.of(
        {"schemas": [{"name": "a", "fields": [{"name": "k", "type": "text"}, {"name": "v", "type": kind}]}]}
    )
    for value in VALUES:
        alone, bad = Ingress(table.tables[0]).read(f"a|{value}\n".encode())
        # A bad width forces the line-by-line way, a blank in a text the one by texts.
        for other in ("a\n", '"a ""b"\n'):
            extra = f"a|{value}\n{other if kind != 'text' else ''}"
            rows, worse = Ingress(table.tables[0]).read(extra.encode())
            assert (
                rows.slice(0, alone.num_rows).column("v").to_pylist().__repr__()
                == alone.column("v").to_pylist().__repr__()
            )
            assert [row.reason for row in worse][: len(bad)] == [row.reason for row in bad]


def test_one_bad_row_among_many_is_set_aside_alone_with_its_line() -> None:
    table = CATALOG.tables[0]
    good = "7|2030-01-01T17:00:01Z|text|true\n"
    text = good * 5000 + "# a comment\n\n" + "x|2030-01-01T17:00:01Z|t|true\n" + good * 5000 + "1|2|3\n" + good
    rows, bad = Ingress(table).read(text.encode())
    assert rows.num_rows == 10_001
    assert [(row.line, row.reason) for row in bad] == [
        (5003, "x: 'x' is not integer64"),
        (10_004, "3 fields, 4 expected"),
    ]


def test_quotes_may_hold_separators_ends_of_lines_and_signs_of_comments() -> None:
    table = Catalog.of(
        {"schemas": [{"name": "a", "fields": [{"name": "c", "type": "text"}, {"name": "n", "type": "integer8"}]}]}
    )
    rows, bad = Ingress(table.tables[0]).read(b'"a|b"|1\n"say ""hi"""|2\n"two\n#lines"|3\n|4\n')
    assert rows.column("c").to_pylist() == ["a|b", 'say "hi"', "two\n#lines", ""]
    assert rows.column("n").to_pylist() == [1, 2, 3, 4] and not bad
