"""`merge(x)` over any keys and widths, against what the raw events say of them."""

from __future__ import annotations

import statistics
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rollup
from rollup.cli.main import cli
from rollup.core.calendar import Duration, bucket_start
from rollup.core.errors import PlanError, RollupError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.profiles import examples
from tests.retrieval.trades import DAY, HOUR, SECOND, START, STORES, delta_host, stored_in

APP = """define stream S (country string, shop string, customer string, amount long, ts long);
@OutOfOrder('correct')
define aggregation A from S
select country, shop, distinctCount(customer) as customers, avg(amount) as mean, stdDev(amount) as spread,
  sum(amount) as total, count() as n, min(amount) as least, max(amount) as most, amount as latest
group by country, shop aggregate by ts every sec ... year;"""
PROGRAM = compile_app(APP)
Event = tuple[str, str, str, int, int]
times = st.builds(
    lambda step, n: START + n * step, st.sampled_from((SECOND, 60 * SECOND, HOUR, DAY)), st.integers(0, 50)
)
events = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from("12"), st.sampled_from("abcd"), st.integers(-9, 9), times),
    min_size=1,
    max_size=20,
)
STATES = ["customers", "mean", "spread", "total", "n", "least", "most", "latest"]
MERGED = ", ".join(f"merge({name}) as {name}" for name in STATES)


def told(rows: list[Event]) -> dict[str, Any]:
    """What a group of events says."""
    amounts = [amount for *_, amount, _ in rows]
    return {
        "customers": len({customer for _, _, customer, _, _ in rows}),
        "mean": pytest.approx(statistics.fmean(amounts)),
        "spread": pytest.approx(statistics.pstdev(amounts), abs=1e-9),
        "total": sum(amounts),
        "n": len(rows),
        "least": min(amounts),
        "most": max(amounts),
        "latest": max(enumerate(rows), key=lambda each: (each[1][4], each[0]))[1][3],
    }


def grouped(rows: list[Event], key: Any) -> dict[Any, list[Event]]:
    found: dict[Any, list[Event]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


@examples(12)
@given(
    events, st.sampled_from([*Duration]), st.sets(st.sampled_from(("country", "shop"))), st.booleans(), st.booleans()
)
def test_states_over_fewer_keys_are_those_of_all_their_events(
    rows: list[Event], level: Duration, keys: set[str], buckets: bool, auto: bool
) -> None:
    host = LocalHost(PROGRAM)
    for row in rows:
        host.send("S", [row])
    auto = auto and not buckets  # there every level has buckets of its own
    by = [*(["AGG_TIMESTAMP"] if buckets else []), *sorted(keys)]
    group = f"group by {', '.join(by)}" if by else ""
    start = START + 90 * SECOND if auto else bucket_start(START, Duration.YEARS)
    per = "auto" if auto else level.plural
    text = f"from A within {start}L, {START + 60 * DAY}L per '{per}' select {', '.join([*by, MERGED])} {group}"
    found = {
        tuple(row[name] for name in by): {name: row[name] for name in STATES} for row in host.query(text).to_pylist()
    }

    def key(row: Event) -> tuple[Any, ...]:
        parts = {"AGG_TIMESTAMP": bucket_start(row[4], level), "country": row[0], "shop": row[1]}
        return tuple(parts[name] for name in by)

    within = [row for row in rows if row[4] >= start]
    assert found == {group: told(each) for group, each in grouped(within, key).items()}


ROWS: list[Event] = [
    ("de", "1", "ann", 10, START),
    ("de", "2", "bob", 20, START + DAY),
    ("fr", "1", "ann", 30, START + 2 * DAY),
    ("fr", "2", "cec", 40, START + 8 * DAY),
    ("fr", "2", "cec", 60, START + 8 * DAY + HOUR),
]


@pytest.fixture(params=STORES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The configuration of a store that holds the events."""
    return stored_in(request, tmp_path, APP, ROWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("per 'months' select merge(customers) as c", [{"c": 3}]),
        ("per 'auto' select merge(customers) as c, merge(mean) as m", [{"c": 3, "m": 32.0}]),
        ("per 'weeks' select AGG_TIMESTAMP, merge(customers) as c group by AGG_TIMESTAMP order by AGG_TIMESTAMP",
         [{"AGG_TIMESTAMP": START, "c": 2}, {"AGG_TIMESTAMP": START + 7 * DAY, "c": 1}]),
        ("per 'years' select country, merge(total) * 2 as t group by country having merge(n) > 2", [{"country": "fr", "t": 260}]),
        ("per 'years' select shop, merge(n) as n group by shop order by merge(total) desc limit 1", [{"shop": "2", "n": 3}]),
        ("per 'days' select AGG_TIMESTAMP, merge(total) as t group by AGG_TIMESTAMP order by AGG_TIMESTAMP limit 1",
         [{"AGG_TIMESTAMP": START, "t": 10}]),
    ],
)  # fmt: skip
@pytest.mark.few(6)
def test_every_store_merges_alike(stored: Path, text: str, expected: list[dict[str, Any]]) -> None:
    assert rollup.query(stored, f"from A within '2018-01-** **:**:**' {text}").to_pylist() == expected


def test_a_condition_chooses_the_keys_whose_states_are_merged(stored: Path) -> None:
    for country, expected in (("fr", 2), ("de", 2), ("it", None)):
        found = rollup.query(
            stored,
            f"from A on country == '{country}' within '2018-**-** **:**:**' per 'days' select merge(customers) as c",
        ).to_pylist()
        assert found == ([] if expected is None else [{"c": expected}])


def test_gaps_of_merged_buckets_are_filled() -> None:
    host = LocalHost(PROGRAM)
    host.send("S", ROWS)
    ask = (
        "from A within '2018-01-01', '2018-01-05' per 'days' fill(zero, range)"
        " select AGG_TIMESTAMP, merge(customers) as c group by AGG_TIMESTAMP order by AGG_TIMESTAMP"
    )
    assert [row["c"] for row in host.query(ask).to_pylist()] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("select", "message", "hint"),
    [
        ("merge(customers) as c, sum(total) as t", "sum(…) is over rows", "merge(x) of a sum"),
        ("merge(customers) as c, total", "total is neither merged nor grouped by", "merge(total)"),
        ("country, merge(customers) as c", "country is neither merged nor grouped by", "group by country"),
        ("merge(country) as c", "country is a group key, which has no state", "group by it"),
        ("merge(nobody) as c", "merge takes a column of the aggregation", "customers"),
        ("merge(total + 1) as c", "merge takes a column of the aggregation", "total"),
        ("merge(customers) as c group by total", "grouped by its start and keys", "country, shop"),
        (
            "AGG_TIMESTAMP, merge(customers) as c",
            "AGG_TIMESTAMP is neither merged nor grouped by",
            "group by AGG_TIMESTAMP",
        ),
        ("AGG_TIME, merge(customers) as c", "AGG_TIME is neither merged nor grouped by", "group by AGG_TIMESTAMP"),
        ("merge(customers) as c, AGG_LATE_MOVED", "AGG_LATE_MOVED is neither merged", ""),
    ],
)
def test_what_is_neither_merged_nor_grouped_is_refused(select: str, message: str, hint: str) -> None:
    with pytest.raises(PlanError) as caught:
        LocalHost(PROGRAM).query(f"from A within '2018-**-** **:**:**' per 'days' select {select}")
    assert message in str(caught.value) and hint in (caught.value.hint or "") and caught.value.line == 1


def test_a_condition_on_what_is_merged_belongs_behind_it() -> None:
    with pytest.raises(RollupError, match="`on` chooses what is merged, before there is a total"):
        LocalHost(PROGRAM).query("from A on total > 3 within '2018-**-** **:**:**' per 'days' select merge(n) as n")


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("select sum(customers) as c", "customers is added up as each row shows it; merge(customers)"),
        ("select AGG_TIMESTAMP, mean group by AGG_TIMESTAMP", "mean is that of one row of each group"),
        ("select AGG_TIMESTAMP, sum(total) as t, max(customers) as c group by AGG_TIMESTAMP", None),
        ("select AGG_TIMESTAMP, merge(customers) as c group by AGG_TIMESTAMP", None),
        (
            "select AGG_TIME, sum(total) as t",
            "AGG_TIME is that of one row of each group, of the newest bucket; group by AGG_TIMESTAMP",
        ),
        ("select country, sum(total) as t group by AGG_TIMESTAMP", "country is that of one row of each group"),
        ("select AGG_TIME, country, sum(total) as t group by AGG_TIMESTAMP, country", None),
        ("select country, shop, customers", None),
    ],
)
def test_sums_of_what_cannot_be_added_are_remarked_on(tmp_path: Path, text: str, remark: str | None) -> None:
    delta_host(tmp_path, APP).send("S", ROWS)
    asked = CliRunner().invoke(
        cli, ["query", str(tmp_path / "conf.toml"), f"from A within '2018-**-** **:**:**' per 'days' {text}"]
    )
    assert asked.exit_code == 0
    assert asked.stderr == "" if remark is None else remark in asked.stderr


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("", ["total", "mean"]),
        ("select AGG_TIMESTAMP, total as x, n", ["x"]),
        ("select AGG_TIMESTAMP, total / 2 as half", ["half"]),
        ("select AGG_TIMESTAMP, n, most", []),
    ],
)
def test_a_sum_that_left_64_bits_is_remarked_on(tmp_path: Path, select: str, said: list[str]) -> None:
    app = """define stream S (x long, t long);
        define aggregation A from S select sum(x) as total, avg(x) as mean, max(x) as most, count() as n
        aggregate by t every sec ... year;"""
    delta_host(tmp_path, app).send("S", [(2**63 - 1, START), (1, START), (5, START + DAY)])
    asked = CliRunner().invoke(cli, ["query", str(tmp_path / "conf.toml"), f"from A within '2018' per 'days' {select}"])
    assert asked.exit_code == 0
    known = [line.split()[1] for line in asked.stderr.splitlines() if "is null in 1 of 2 rows" in line]
    assert known == said and all("decimal(19, 0)" in line for line in asked.stderr.splitlines())


def test_the_largest_of_each_bucket_by_a_sum_are_asked_in_sql(stored: Path) -> None:
    text = (
        "select AGG_TIMESTAMP as start, country, shop, total from A within '2018' per 'days' qualify row_number() "
        "over (partition by AGG_TIMESTAMP // 691200000 order by total desc) <= 2 order by start, total desc"
    )
    sums = Counter[tuple[int, str, str]]()
    for country, shop, _, amount, at in ROWS:
        sums[at // DAY * DAY, country, shop] += amount
    weeks = dict[int, list[tuple[int, str, str, int]]]()
    for (day, country, shop), total in sums.items():
        weeks.setdefault(day // 691_200_000, []).append((day, country, shop, total))
    largest = [sorted(rows, key=lambda row: -row[3])[:2] for rows in weeks.values()]
    found = [(*row.values(),) for row in rollup.query(stored, text).to_pylist()]
    assert found == sorted((row for rows in largest for row in rows), key=lambda row: (row[0], -row[3]))


def test_a_sum_in_sql_is_remarked_on_too(tmp_path: Path) -> None:
    delta_host(tmp_path, APP).send("S", ROWS)
    asked = CliRunner().invoke(
        cli,
        [
            "query",
            str(tmp_path / "conf.toml"),
            "select sum(customers), sum(total) from A within '2018-**-** **:**:**' per 'days'",
        ],
    )
    assert asked.exit_code == 0 and asked.stderr.count("rollup:") == 1 and "customers is added up" in asked.stderr
    assert "PER 'days by (key)'" in asked.stderr and "merge(" not in asked.stderr, "which SQL does not have"


@pytest.mark.parametrize(
    ("per", "within", "said"),
    [
        ("days", "'2017'", "A has days from {low} to {high}, none in this range"),
        ("auto", "'2019'", "A has years from 2018-01-01 00:00:00 to 2018-01-01 00:00:00, none in this range"),
        ("days", "'2018' per 'days' select total having total < 0", None),
    ],
)
def test_an_answer_without_rows_says_where_rows_are(tmp_path: Path, per: str, within: str, said: str | None) -> None:
    delta_host(tmp_path, APP).send("S", ROWS)
    days = sorted({f"{datetime.fromtimestamp(row[-1] / 1000, UTC):%Y-%m-%d} 00:00:00" for row in ROWS})
    text = f"from A within {within}" + ("" if " per " in within else f" per '{per}'")
    asked = CliRunner().invoke(cli, ["query", str(tmp_path / "conf.toml"), text])
    assert asked.exit_code == 0 and "0 rows" in asked.stdout
    assert asked.stderr == ("" if said is None else f"rollup: {said.format(low=days[0], high=days[-1])}\n")
