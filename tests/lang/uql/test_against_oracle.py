"""Steps over columns against one row at a time: random rows with ties, gaps, late ones and nulls, cut at random, the
state read back by another process after every piece. Doubles are equal bit for bit."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest

from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.chain import Chain
from rollup.lang.uql.plan import plan
from tests.conformance.uql.targets import pieces, reopened, single, whole
from tests.lang.uql import oracle
from tests.lang.uql.oracle import Result, Row

CATALOG = Catalog.of(
    {
        "schemas": [
            {
                "name": "rows",
                "fields": [
                    {"name": "key", "type": "text", "usage": "group"},
                    {"name": "x", "type": "float64"},
                    {"name": "t", "type": "timestamp", "usage": "time"},
                    {"name": "n", "type": "integer64"},
                    {"name": "opens", "type": "boolean"},
                    {"name": "closes", "type": "boolean"},
                ],
            }
        ]
    }
)
VALUES = (
    "aggregate count() as n, sum(x) as s, first(x) as f, last(x) as l, min(x) as m append {key}n, s, f, l, m to out"
)
GROUPED, ALONE = VALUES.format(key="key, "), VALUES.format(key="")
Expected = Callable[[list[Row]], list[Result]]
FORMS: dict[str, tuple[str, Expected]] = {
    "slice": (f"group by key window slice 7 seconds based on t {GROUPED}", lambda r: oracle.slices(r, 7, 7)),
    "slice of all": (f"window slice 7 seconds based on t {ALONE}", lambda r: oracle.slices(r, 7, 7, grouped=False)),
    "slice by value": (f"group by key window slice 5 rows based on n {GROUPED}", lambda r: oracle.slices(r, 5, 5)),
    "slide": (f"group by key window slide 9 seconds advance every 4 seconds based on t {GROUPED}", lambda r: oracle.slices(r, 9, 4)),
    "slide with gaps": (f"group by key window slide 3 seconds advance every 5 seconds based on t {GROUPED}", lambda r: oracle.slices(r, 3, 5)),
    "slice of rows": (f"group by key window slice 6 rows {GROUPED}", lambda r: oracle.slices(_numbered(r), 6, 6, lowest=0)),
    "slide of rows": (f"window slide 5 rows advance every 2 rows {ALONE}", lambda r: oracle.slices(_numbered(r), 5, 2, False, 0)),
    "growing": (f"group by key window slide 8 seconds advance every 0 based on t {GROUPED}", lambda r: oracle.growing(r, 8)),
    "session": (
        f"group by key window session begin when opens end when closes expire after 6 seconds based on t {GROUPED}",
        lambda r: oracle.sessions(r, True, 6, True),
    ),
    "session without its end": (
        f"window session begin when opens end when closes exclusive expire after 9 seconds {ALONE}",
        lambda r: oracle.sessions(r, False, 9, False),
    ),
    "session that does not expire": (
        f"group by key window session begin when opens end when closes {GROUPED}",
        lambda r: oracle.sessions(r, True, None, True),
    ),
    "session that only expires": (
        f"group by key window session begin when opens expire after 4 seconds {GROUPED}",
        lambda r: oracle.sessions([row._replace(end=False) for row in r], True, 4, True),
    ),
    "session by its start": (
        f'group by key window session begin when opens end t >= t.start + "5 seconds" exclusive expire after 8 seconds {GROUPED}',
        lambda r: oracle.sessions(r, False, 8, True, after=5),
    ),
}  # fmt: skip


def _numbered(rows: list[Row]) -> list[Row]:
    return [row._replace(t=number) for number, row in enumerate(rows)]


def _rows(seed: int) -> list[Row]:
    chance = random.Random(seed)
    rows, t = list[Row](), chance.choice([0, -40, 1_000_000])
    for _ in range(chance.choice([3, 30, 90])):
        t += chance.choice([0, 0, 1, 1, 2, 3, 12])
        late = chance.choice([0, 0, 0, 2, 15])
        x = None if chance.random() < 0.15 else chance.choice([0.1, 0.2, -3.7, 1e9, 5.0])
        rows.append(Row(chance.choice("abc"), x, t - late, chance.random() < 0.35, chance.random() < 0.3))
    return rows


def _table(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "key": pa.array([row.key for row in rows], pa.string()).dictionary_encode(),
            "x": pa.array([row.x for row in rows], pa.float64()),
            "t": pa.array([row.t * 1_000_000 for row in rows], pa.int64()),
            "n": pa.array([row.t for row in rows], pa.int64()),
            "opens": pa.array([row.begin for row in rows], pa.bool_()),
            "closes": pa.array([row.end for row in rows], pa.bool_()),
        }
    )


def _answers(text: str, rows: list[Row], cuts: Callable[[int], object], restart: bool) -> list[Result]:
    chain = Chain(plan(f"from rows {text}", CATALOG))
    states, at, out = chain.start(), 0, list[Result]()
    for size in cuts(len(rows)):  # type: ignore[attr-defined]
        states, output = chain.step(states, _table(rows[at : at + size]), 0)
        out += list(zip(*(column.to_pylist() for column in output.columns), strict=True)) if output.num_rows else []
        at += size
        states = reopened(states) if restart else states
    output = chain.finish(states, 0)[1]
    return out + list(zip(*(column.to_pylist() for column in output.columns), strict=True))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(12))
def test_windows_over_columns_are_those_of_one_row_at_a_time(form: str, seed: int) -> None:
    text, expected = FORMS[form]
    rows = _rows(seed)
    wanted = expected(rows)
    keyless = " append n" in text
    wanted = [row[1:] for row in wanted] if keyless else wanted
    assert wanted or len(rows) < 10, "the oracle gives rows"
    for cuts, restart in ((whole, False), (single, True), (pieces(seed), True)):
        assert _answers(text, rows, cuts, restart) == wanted
