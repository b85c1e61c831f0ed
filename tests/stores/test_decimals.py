"""`decimal(p, s)` on every store: sums, averages, extremes, keys and filters are those of Python's decimals over the events."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import PlanError
from rollup.gateway.rewriting.catalog import aggregation_ddl
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.stores.conftest import Open

APP = """
define stream S (k string, price decimal({p}, {s}), n int, ts long);
@OutOfOrder('correct')
define aggregation Agg from S[price != 0.5 and price < n * 1000000]
select k, sum(price) as total, avg(price) as mean, min(price) as low, max(price) as high, count(price) as events,
    distinctCount(price) as kinds, sum({value}) as value, last(price) as newest
group by k aggregate by ts every hour ... year;
@OutOfOrder('correct')
define aggregation ByPrice from S select price, count() as events group by price aggregate by ts every hour ... day;
"""
HOUR, START = 3_600_000, 1_515_110_400_000


@pytest.fixture(autouse=True)
def _all_digits() -> Iterator[None]:
    with localcontext(prec=80):
        yield


def _app(p: int, s: int, times: bool) -> str:
    """An app; a product has more digits than some sums can have."""
    return APP.format(p=p, s=s, value="price * n" if times else "price")


def _events(p: int, s: int) -> list[tuple[str, Decimal | None, int, int]]:
    choose, unit = random.Random(p * 100 + s), Decimal(1).scaleb(-s)
    numbers = [0, 1, -1, 10**p - 1, -(10**p - 1), *(choose.randrange(-(10**p), 10**p) for _ in range(40))]
    numbers += [choose.randrange(-3000, 3000) for _ in range(40)] + [5 * 10**s // 10]
    values = [None, *(Decimal(number) * unit for number in numbers)]
    choose.shuffle(values)
    return [(choose.choice("ab"), value, choose.randrange(5), START + choose.randrange(3 * HOUR)) for value in values]


def _counted(event: Sequence[Any]) -> bool:
    return event[1] is not None and event[1] != Decimal("0.5") and event[1] < event[2] * 1_000_000


def _expected(events: Sequence[Sequence[Any]], s: int, finer: int, times: bool) -> dict[str, Any]:
    prices = [event[1] for event in events]
    newest = max(enumerate(events), key=lambda each: (each[1][3], each[0]))[1]
    total, unit = sum(prices, Decimal(0)), Decimal(1).scaleb(-s - finer)
    return {
        "total": total,
        "mean": (total / len(prices)).quantize(unit, ROUND_HALF_UP),
        "low": min(prices),
        "high": max(prices),
        "events": len(prices),
        "kinds": len(set(prices)),
        "value": sum((event[1] * (event[2] if times else 1) for event in events), Decimal(0)),
        "newest": newest[1],
    }


@pytest.mark.parametrize(("p", "s", "finer"), [(10, 2, 6), (18, 0, 6), (28, 9, 0)])
@pytest.mark.few(4)
def test_answers_are_those_of_exact_arithmetic(p: int, s: int, finer: int, opened: Open) -> None:
    times = p < 20
    text, events = _app(p, s, times), _events(p, s)
    for batch in (events[:30], events[30:60], events[60:]):
        opened(text).send("S", batch)
    asked = opened(text)
    good = [event for event in events if _counted(event)]
    for hour in range(3):
        start = START + hour * HOUR
        found = asked.query(f"from Agg within {start}L, {start + HOUR}L per 'hours' select *")
        for row in found.to_pylist():
            mine = [event for event in good if event[0] == row["k"] and start <= event[3] < start + HOUR]
            assert row == {"AGG_TIMESTAMP": start, "k": row["k"], **_expected(mine, s, finer, times)}
        assert set(found["k"].to_pylist()) == {event[0] for event in good if start <= event[3] < start + HOUR}
    everything = _expected(good, s, finer, times)
    (merged,) = asked.query(
        "from Agg within '2018' per 'years' select merge(total) as total, merge(mean) as mean, merge(low) as low, merge(high) as high"
    ).to_pylist()
    assert merged == {name: everything[name] for name in merged}
    (over,) = asked.query(
        "from Agg within '2018' per 'hours' select sum(total) as total, max(high) as high"
    ).to_pylist()
    assert over == {name: everything[name] for name in over}
    by_price = asked.query(
        "from ByPrice within '2018' per 'hours' select price, sum(events) as n group by price"
    ).to_pylist()
    counts = {price: sum(event[1] == price for event in events) for price in {event[1] for event in events}}
    counts[None] = sum(event[1] is None for event in events)
    assert {row["price"]: row["n"] for row in by_price} == counts


def test_columns_have_the_digits_that_their_values_need(opened: Open) -> None:
    text = _app(10, 2, True)
    opened(text).send("S", [("a", Decimal("12.50"), 2, START)])
    schema = opened(text).query("from Agg within '2018' per 'days' select *").schema
    kinds = {"total": (20, 2), "mean": (16, 8), "low": (10, 2), "value": (30, 2), "newest": (10, 2)}
    assert {name: schema.field(name).type for name in kinds} == {
        n: pa.decimal128(*digits) for n, digits in kinds.items()
    }


def test_a_constant_beside_a_decimal_is_the_number_that_is_written(opened: Open) -> None:
    text = (
        "define stream S (price decimal(20, 2), ts long); define aggregation Agg from S[price > 9007199254740992.99] "
        "select sum(price * 1.19) as gross, sum(price - 0.1) as less, count() as n, max(minimum(price, 0.1)) as least, "
        "max(ifThenElse(price > 1, 0.3, price)) as chosen, max(coalesce(price, 0.5)) as there, max(price * -0.1) as minus, "
        "max(ifThenElse(price < convert('none', 'double'), 1, 0)) as none aggregate by ts every day ... year;"
    )
    prices = [Decimal("9007199254740992.99"), Decimal("9007199254740993.00")]
    opened(text).send("S", [(price, START) for price in prices])
    assert opened(text).query("from Agg within '2018' per 'years' select *").drop_columns(
        "AGG_TIMESTAMP"
    ).to_pylist() == [
        {
            "gross": prices[1] * Decimal("1.19"),
            "less": prices[1] - Decimal("0.1"),
            "n": 1,
            "least": Decimal("0.1"),
            "chosen": Decimal("0.3"),
            "there": prices[1],
            "minus": prices[1] * Decimal("-0.1"),
            "none": 0,
        }
    ]


def test_what_has_more_digits_than_its_attribute_is_a_dead_letter() -> None:
    made = LocalHost.of(
        "define stream S (price decimal(5, 2), ts long); define aggregation Agg from S select sum(price) as total aggregate by ts every day ... year;"
    )
    good, bad = (
        ["999.99", 0.1, "1e2", 1, "-1.50", " 1.5 ", "1.100", Decimal("7")],
        ["1000", "0.001", "1e-3", "x", True, 1e9],
    )
    made.send("S", [(value, START) for value in [*good, *bad]])
    assert [letter["reason"] for letter in made.dead] == ["price is not a decimal(5, 2)"] * len(bad)
    assert made.query("from Agg within '2018' per 'days' select total").to_pylist() == [{"total": Decimal("1109.19")}]


def test_the_endpoint_shows_the_digits_of_a_column() -> None:
    made = compile_app(_app(10, 2, True)).aggregations["Agg"]
    shown = " ".join(aggregation_ddl(made))
    assert '"total"::numeric(20,2) as "total"' in shown and '"mean"::numeric(16,8) as "mean"' in shown
    assert '"total" numeric(20,2)' in shown


def test_statements_refuse_a_decimal_that_they_read_and_no_other() -> None:
    stream = "define stream S (k string, price decimal(10, 2), ts long);"
    with pytest.raises(
        PlanError, match=r"statements carry no decimal\(10, 2\), which price of S is .*convert\(price, 'double'\)"
    ):
        compile_app(stream + "from S#window.length(3) select k, price insert into T;")
    cured = "from S select k, convert(price, 'double') as price insert into P; from P#window.length(3) select k, price insert into T;"
    assert compile_app(stream + cured).streams["T"].attributes == {"k": "string", "price": "double"}


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("sum(wide) as x", "sums of decimal(30, 2) need 40 digits, and a decimal has at most 38"),
        ("max(wide * wide) as x", "products of decimal(30, 2) and decimal(30, 2) need 60 digits"),
        ("max(wide + fine) as x", "decimal(30, 2) and decimal(20, 19) together need 47 digits"),
        ("max(convert(wide, 'decimal(39, 2)')) as x", "there is no decimal(39, 2)"),
    ],
)
def test_what_could_need_more_than_38_digits_is_refused_when_the_app_is_read(select: str, message: str) -> None:
    app = "define stream S (wide decimal(30, 2), fine decimal(20, 19), ts long); define aggregation Agg from S select {} aggregate by ts every day ... year;"
    with pytest.raises(PlanError) as refused:
        compile_app(app.format(select))
    assert message in str(refused.value) and "line 1" in str(refused.value)
