"""An event with which a statement cannot compute is set aside with the reason, and the others are what they would be without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError
from rollup.hosts.statements.refusals import letters_of
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.statements.component import Event, Refused

NOON, NANOSECONDS = 1_700_000_040_000, 1_700_000_040_000_000_000
STREAM = "define stream S (symbol string, q int, l long, x double);\n"
BLOCKS = {
    "a cast of a text": (
        "@lang('sql', into='Out') { SELECT STREAM CAST(symbol AS INTEGER) AS v FROM S }",
        ("no number", 1, 1, 1.0),
    ),
    "a product": ("@lang('sql', into='Out') { SELECT STREAM q * q AS v FROM S }", ("1", 2_000_000_000, 1, 1.0)),
    "a sum": ("@lang('sql', into='Out') { SELECT STREAM l + 1 AS v FROM S }", ("1", 1, 2**63 - 1, 1.0)),
    "no number": (
        "@lang('sql', into='Out') { SELECT STREAM CAST(x AS INTEGER) AS v FROM S }",
        ("1", 1, 1, float("nan")),
    ),
    "a text that would be too long": (
        "@lang('sql', into='Out') { SELECT STREAM CHAR_LENGTH(LPAD(symbol, q)) AS v FROM S }",
        ("1", 2_000_000_000, 1, 1.0),
    ),
    "a text repeated too often": (
        "@lang('sql', into='Out') { SELECT STREAM CHAR_LENGTH(REPEAT(symbol, q)) AS v FROM S }",
        ("12345678", 3_000_000, 1, 1.0),
    ),
    "a text repeated too often in EPL": (
        "@lang('epl') { insert into Out select symbol.repeat(q) as v from S; }",
        ("1", 2_000_000_000, 1, 1.0),
    ),
    "a text that replaces too much in EPL": (
        "@lang('epl') { insert into Out select symbol.replace('x', symbol).length() as v from S; }",
        ("x" * 5000, 1, 1, 1.0),
    ),
    "a text that replaces too much": (
        "from S#window.length(2) select str:length(str:replace(symbol, 'x', symbol)) as v insert into Out;",
        ("x" * 5000, 1, 1, 1.0),
    ),
    "texts that are too long together": (
        f"from S#window.length(2) select str:length(str:concat({', '.join(['symbol'] * 10)})) as v insert into Out;",
        ("x" * 2_000_000, 1, 1, 1.0),
    ),
    "signs of EPL that join texts": (
        "@lang('epl') { insert into Out select symbol || symbol || symbol as v from S; }",
        ("x" * 6_000_000, 1, 1, 1.0),
    ),
    "a method of EPL that joins texts": (
        "@lang('epl') { insert into Out select symbol.concat(symbol).length() as v from S; }",
        ("x" * 9_000_000, 1, 1, 1.0),
    ),
    "signs of SQL that join texts": (
        "@lang('sql', into='Out') { SELECT STREAM CHAR_LENGTH(symbol || '-' || symbol) AS v FROM S }",
        ("x" * 9_000_000, 1, 1, 1.0),
    ),
    "a repeated text within another call": (
        "@lang('sql', into='Out') { SELECT STREAM CHAR_LENGTH(REPEAT(REPEAT(symbol, q), 1)) AS v FROM S }",
        ("12345678", 3_000_000, 1, 1.0),
    ),
    "arithmetic with a text that would be too long": (
        "@lang('sql', into='Out') { SELECT STREAM CHAR_LENGTH(REPEAT(symbol, q)) * q AS v FROM S }",
        ("12345678", 3_000_000, 1, 1.0),
    ),
    "a repeated text within another call of StreamCruncher": (
        "define stream Out (v long);\n@lang('streamcruncher', into='Out') { select length(repeat(repeat(symbol, q), 1)) as v"
        " from S (partition store last 3) as w where w.$row_status is new; }",
        ("12345678", 3_000_000, 1, 1.0),
    ),
    "signs of StreamCruncher that join texts": (
        "define stream Out (v long);\n@lang('streamcruncher', into='Out') { select length(symbol || symbol) as v from S"
        " (partition store last 3) as w where w.$row_status is new; }",
        ("x" * 9_000_000, 1, 1, 1.0),
    ),
    "a text of StreamCruncher that would be too long": (
        "define stream Out (v long);\n@lang('streamcruncher', into='Out') { select length(repeat(symbol, q)) as v from S"
        " (partition store last 3) as w where w.$row_status is new; }",
        ("1", 2_000_000_000, 1, 1.0),
    ),
    "a total by rows": (
        "@lang('sql', into='Out') { SELECT STREAM SUM(CAST(symbol AS INTEGER)) OVER (ORDER BY rowtime ROWS UNBOUNDED PRECEDING) AS v FROM S }",
        ("no number", 1, 1, 1.0),
    ),
}
OUT = "define stream Out (v int);\n"
CRUNCHER = OUT + "@lang('streamcruncher', into='Out') {{ select q * q as v from S (partition store {}) as w {}; }}"
SECONDS = "GROUP BY TUMBLE(rowtime, INTERVAL '1' SECOND)"
LATER = {
    "what is new": CRUNCHER.format("last 1000", "where w.$row_status is new"),
    "what leaves a window": CRUNCHER.format("last 3", "where w.$row_status is dead"),
    "what leaves with time": CRUNCHER.format("last 2 seconds", "where w.$row_status is dead"),
    "all that a window has": CRUNCHER.format("last 3", ""),
    "a sum of a window": "define stream Out (v long);\n@lang('streamcruncher', into='Out') { select t * 4611686018427387 as v"
    " from S (partition by symbol store last 3 with sum(q) as t) as w where w.$row_status is new; }",
    "two streams": OUT
    + "@lang('streamcruncher', into='Out') { select a.q * b.q as v from S (partition store last 3) as a, T (partition"
    " store last 3) as b where a.q = b.q and a.$row_status is new; }",
    "a sum": f"@lang('sql', into='Out') {{ SELECT STREAM SUM(q * q) AS v FROM S {SECONDS} }}",
    "a cast": f"@lang('sql', into='Out') {{ SELECT STREAM COUNT(CAST(symbol AS INTEGER)) AS v FROM S {SECONDS} }}",
    "a product of what a group has": f"@lang('sql', into='Out') {{ SELECT STREAM MAX(q) * MAX(q) AS v FROM S {SECONDS} }}",
    "groups of windows": "@lang('sql', into='Out') { SELECT STREAM SUM(q * q) AS v FROM S GROUP BY HOP(rowtime, INTERVAL '1'"
    " SECOND, INTERVAL '2' SECOND) }",
    "rows that follow": "@lang('sql', into='Out') { SELECT STREAM SUM(q * q) OVER (ORDER BY rowtime ROWS BETWEEN CURRENT ROW"
    " AND 2 FOLLOWING) AS v FROM S }",
    "a join": "@lang('sql', into='Out') { SELECT STREAM a.q * b.q AS v FROM S AS a JOIN S AS b ON a.rowtime BETWEEN b.rowtime"
    " - INTERVAL '1' SECOND AND b.rowtime AND a.l = b.l }",
}
"""Statements that compute with an event only when others come, or time goes on."""
TIMED = {
    "sql": "@lang('sql', into='Out') { SELECT STREAM q AS v FROM S }",
    "uql": "@lang('uql') { from S window slice 1 rows aggregate sum(q) as v append v to Out }",
}


def given(
    text: str, events: list[tuple[int, tuple[Any, ...]]], stops: bool = False, size: int = 1000, stream: str = "S"
) -> tuple[list[Any], list[Any]]:
    """What the statements give for events in batches, and which they refuse, each with the reason; every third event is one
    of `stream`."""
    engine = ColumnEngine(threads=1)
    running = Running(compile_app(STREAM + STREAM.replace("S", "T") + text), {})
    running.flow.stops = stops
    running.start(engine)
    given = [Event((n, 0), at, stream if n % 3 == 2 else "S", values) for n, (at, values) in enumerate(events)]
    values, refused = list[Any](), list[Any]()
    for begin in range(0, len(given), size):
        found = running.advance(engine, given[begin : begin + size], {})
        values += found.streams["Out"]["v"].to_pylist()
        refused += [(each.event.key[0], each.reason) for each in found.refused]
    return values, refused


def good(count: int) -> list[tuple[int, tuple[Any, ...]]]:
    return [(NOON + n, (str(n), n, n, float(n))) for n in range(count)]


@pytest.mark.parametrize("size", [1000, 4])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_value_that_cannot_be_computed_with_is_set_aside_alone(name: str, size: int) -> None:
    text, bad = BLOCKS[name]
    events = good(40)
    wanted = given(text, events, size=size)[0]
    for place in (29, 12):
        events.insert(place, (events[place][0], bad))
    values, refused = given(text, events, size=size)
    assert values == wanted and [place for place, _ in refused] == [12, 30] and all(reason for _, reason in refused)


TOTALS = {
    "epl, a total": "@lang('epl') { insert into Out select sum(l) as v, symbol.repeat(q) as w from S; }",
    "epl, a total of another statement": "@lang('epl') { insert into Out select sum(l) as v from S; "
    "insert into Long select symbol.repeat(q) as w from S; }",
    "epl, the rows of a window behind it": "@lang('epl') { create window W#keepall as S; insert into W select * from S; "
    "insert into Out select sum(l) as v from W; insert into Long select symbol.repeat(q) as w from W; }",
    "epl, a table": "@lang('epl') { create table K(n sum(long)); into table K select sum(l) as n from S; "
    "insert into Out select K.n as v from S; "
    "insert into Long select symbol.repeat(q) as w from S; }",
    "siddhi": "from S select sum(l) as v, str:replace(symbol, 'x', str:concat(symbol, symbol)) as w insert into Out;",
    "siddhi, a total of another query": "@info(name='a') from S#window.length(100) select sum(l) as v insert into Out;\n"
    "@info(name='b') from S#window.length(2) select str:replace(symbol, 'x', str:concat(symbol, symbol)) as w insert into Long;",
}
"""Statements that sum up, beside what cannot take an event with too long a text."""


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("name", TOTALS)
def test_an_event_that_is_set_aside_is_in_no_total_and_has_no_answer(name: str, size: int) -> None:
    bad = ("x" * 9000, 2_000_000_000, 1000, 1.0)
    events = [(NOON + n, bad if n in (3, 4, 30) else ("1", 1, n, 1.0)) for n in range(40)]
    taken = [n for n in range(40) if events[n][1] is not bad]
    values, refused = given(TOTALS[name], events, size=size)
    assert values == [sum(taken[: place + 1]) for place in range(len(taken))]
    assert [place for place, _ in refused] == [3, 4, 30]


@pytest.mark.parametrize("language", TIMED)
def test_a_time_in_nanoseconds_is_set_aside_alone(language: str) -> None:
    events = good(20)
    wanted = given(TIMED[language], events)[0]
    events.insert(7, (NANOSECONDS, events[0][1]))
    values, refused = given(TIMED[language], events)
    assert values == wanted and [place for place, _ in refused] == [7]


@pytest.mark.parametrize(("name", "size"), [*((name, 4) for name in LATER), ("what leaves with time", 1000)])
@pytest.mark.few(5)
def test_an_event_that_would_fail_later_is_set_aside_when_it_comes_and_none_in_its_place(name: str, size: int) -> None:
    stream = "T" if name == "two streams" else "S"
    events = [(NOON + n // 5 * 1500, (str(n % 5), n // 3, n, 1.0)) for n in range(18)]
    bad = ("no number", 2_000_000_000, 2**62, 1.0)
    for place in (5, 13, 14):  # the first of an instant, and two in one
        events[place] = (events[place][0], bad)
    values, refused = given(LATER[name], events, size=size, stream=stream)
    if stream == "S":
        without = [event for event in events if event[1] is not bad]
        assert values and values == given(LATER[name], without)[0]
        assert [place for place, _ in refused] == [5, 13, 14]
    else:  # none is bad alone, and what two make together is null
        assert None in values and not refused
    assert all("Overflow" in reason or "no number" in reason for _, reason in refused)


FRAME = "CAST(SUM(q) OVER (ORDER BY rowtime ROWS BETWEEN {}) AS INTEGER)"
TOGETHER = {
    "a cast of a sum": (f"SELECT STREAM CAST(SUM(q) AS INTEGER) AS v FROM S {SECONDS}", [None, 6], 1),
    "what a having asks": (f"SELECT STREAM COUNT(*) AS v FROM S {SECONDS} HAVING CAST(SUM(q) AS INTEGER) > 0", [3], 1),
    "arithmetic with what is null then": (f"SELECT STREAM CAST(SUM(q) AS INTEGER) - 1 AS v FROM S {SECONDS}", [None, 5], 1),
    "a query over it": (
        f"SELECT STREAM t AS v FROM (SELECT STREAM CAST(SUM(q) AS INTEGER) AS t FROM S {SECONDS}) WHERE t > 1", [6], 1
    ),
    "a product of two sums": (f"SELECT STREAM SUM(q) * (SUM(q) * 2) AS v FROM S {SECONDS}", [None, 72], 1),
    "the rows before": (f"SELECT STREAM {FRAME.format('1 PRECEDING AND CURRENT ROW')} AS v FROM S", [2**31 - 1, None, None, None, 3, 5, 6], 3),
    "the rows behind": (f"SELECT STREAM {FRAME.format('CURRENT ROW AND 1 FOLLOWING')} AS v FROM S", [None, None, None, 3, 5, 6], 3),
}  # fmt: skip
"""Queries, what they give for three numbers at the end of 32 bits and then 1, 2, 3 and 3, and how many nulls are said."""


@pytest.mark.parametrize(
    ("name", "size"), [*((name, 1000) for name in TOGETHER), ("a cast of a sum", 1), ("the rows before", 3)]
)
def test_what_only_several_events_make_is_null_and_said_and_takes_nobody_with_it(name: str, size: int) -> None:
    query, wanted, said = TOGETHER[name]
    numbers = [(0, 2**31 - 1), (1, 2**31 - 1), (2, 2**31 - 1), (1000, 1), (1001, 2), (1002, 3), (2000, 3)]
    events = [Event((n, 0), NOON + at, "S", ("1", q, 1, 1.0)) for n, (at, q) in enumerate(numbers)]
    running = Running(compile_app(f"{STREAM}@lang('sql', into='Out') {{ {query} }}"), {})
    running.start(engine := ColumnEngine(threads=1))
    found = [running.advance(engine, events[at : at + size], {}) for at in range(0, len(events), size)]
    assert [value for each in found for value in each.streams["Out"]["v"].to_pylist()] == wanted
    assert not any(each.refused for each in found)
    assert sum(sum(each.beyond.values()) for each in found) == said


def in_32_bits(value: int) -> int | None:
    return value if -(2**31) <= value < 2**31 else None


def in_64_bits(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


WINDOWS: dict[str, tuple[str, Callable[[list[int], list[int]], int | None]]] = {
    "a cast of a sum of the partition": (
        "select cast(t as int) as v from S (partition by symbol store last 3 with sum(q) as t) as w where w.$row_status is new",
        lambda q, _: in_32_bits(sum(q)),
    ),
    "a cast of a sum of the select": ("select cast(sum(q) as int) as v from S (partition store last 3) as w", lambda q, _: in_32_bits(sum(q))),
    "a product of two sums": ("select max(q) * max(l) as v from S (partition store last 3) as w", lambda q, m: in_64_bits(max(q) * max(m))),
    "a sum of it": ("select max(q) * max(l) + 1 as v from S (partition store last 3) as w", lambda q, m: None if in_64_bits(max(q) * max(m)) is None else max(q) * max(m) + 1),
}  # fmt: skip
"""Queries of StreamCruncher over a window of three events, and what one gives for the numbers that are in it."""


@pytest.mark.parametrize(("name", "size"), [*((name, 1000) for name in WINDOWS), ("a product of two sums", 1)])
def test_a_window_of_streamcruncher_that_has_no_answer_gives_a_null_and_goes_on(name: str, size: int) -> None:
    query, answer = WINDOWS[name]
    q, m = [2**31 - 1, 2**31 - 1, 2, 1, 2, 3, 4, 5], [1, 3, 2**61, 2**61, 5, 1, 2, 3]
    events = [Event((n, 0), NOON + n, "S", ("1", *each, 1.0)) for n, each in enumerate(zip(q, m, strict=True))]
    running = Running(
        compile_app(f"{STREAM}define stream Out (v long);\n@lang('streamcruncher', into='Out') {{ {query}; }}"), {}
    )
    running.start(engine := ColumnEngine(threads=1))
    found = [running.advance(engine, events[at : at + size], {}) for at in range(0, len(events), size)]
    wanted = [answer(q[max(0, n - 2) : n + 1], m[max(0, n - 2) : n + 1]) for n in range(len(q) - 1)]  # the last is open
    assert None in wanted and wanted[-1] is not None
    assert [value for each in found for value in each.streams["Out"]["v"].to_pylist()] == wanted
    assert not any(each.refused for each in found)
    assert sum(sum(each.beyond.values()) for each in found) == wanted.count(None)


def test_where_it_is_asked_for_it_is_an_error() -> None:
    text, bad = BLOCKS["a cast of a text"]
    with pytest.raises((RollupError, Exception), match="no number"):
        given(text, [*good(3), (NOON + 3, bad)], stops=True)


def test_what_time_alone_brings_and_a_statement_refuses_is_no_less_a_letter() -> None:
    text = (
        "@lang('epl') { insert into Mid select symbol from S output last every 1 sec; }\n"
        "@lang('sql', into='Out') { SELECT STREAM CAST(symbol AS INTEGER) AS v FROM Mid }"
    )
    program, engine, found = compile_app(STREAM + text), ColumnEngine(threads=1), list[Refused]()
    running = Running(program, {})
    running.start(engine)
    running.advance(engine, [Event((0, 0), NOON, "S", ("no number", 1, 1, 1.0))], {}, found.extend)
    assert not found
    assert running.pass_time(engine, NOON + 5_000, found.extend).streams["Mid"]["__received"].to_pylist() == [
        NOON + 1_000
    ]
    (letter,) = letters_of(found, program).to_pylist()
    assert (letter["stream"], letter["raw"], letter["position"]) == ("Mid", '{"symbol": "no number"}', "")
    assert "no number" in letter["reason"] and letter["by"] in {part.name for part in running.flow.statements.parts}


ARITHMETIC = {
    "in a condition on rows": ("where l * 8 > 0 window slice 2 rows aggregate count() as n append n to Out", 2),
    "in what is shown": ("window slice 2 rows aggregate max(l) as m append m * 4 to Out", 2),
    "in a condition on groups": ("window slice 2 rows aggregate max(l) as m where m * 4 > 0 append m to Out", 2),
    "a division by 0 is none": ("window slice 2 rows aggregate max(l) as m append m / 0 to Out", 0),
}
"""Queries of UQL over longs of which some times 4 or 8 have no room in 64 bits, and how many results are said to be null."""


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_arithmetic_of_uql_that_has_no_room_is_said(name: str, size: int) -> None:
    query, said = ARITHMETIC[name]
    longs = [1, 2**61, 3, 2**62, 5, 6]
    events = [Event((n, 0), NOON + n, "S", ("1", 1, value, 1.0)) for n, value in enumerate(longs)]
    running = Running(compile_app(f"{STREAM}@lang('uql', into='Out') {{ from S {query} }}"), {})
    running.start(engine := ColumnEngine(threads=1))
    found = [running.advance(engine, events[at : at + size], {}) for at in range(0, len(events), size)]
    assert sum(sum(each.beyond.values()) for each in found) == said
    assert not any(each.refused for each in found)
