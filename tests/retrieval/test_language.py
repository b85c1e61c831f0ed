"""Every word of the language on one small store, with answers written by hand: what a user reads in the manual must hold.

Recorded cases of the reference engine stand in tests/conformance; here is what goes beyond them, and what is refused.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import rollup
from rollup.ask import Asker
from rollup.core.errors import RollupError
from tests.retrieval.trades import DAY, HOUR, SECOND, START


def rows(answer: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in answer.to_pylist()]


def test_auto_takes_the_coarsest_level_inside_the_range_and_finer_ones_at_its_ends(trades: Asker) -> None:
    text = f"from A within {START + SECOND}L, {START + 60 * DAY}L per 'auto' select AGG_TIMESTAMP, AGG_PER, k, total order by AGG_TIMESTAMP, k"
    assert rows(trades.query(text)) == [
        (START + 2 * SECOND, "seconds", "b", 5),
        (START + HOUR, "hours", "a", 2),
        (START + 2 * HOUR, "hours", "b", 1),  # a late event of the first second, moved into the oldest open one
        (START + 3 * HOUR, "hours", "a", 7),
        (START + 4 * HOUR, "hours", None, 4),
        (START + DAY, "days", "a", 9),
        (START + 31 * DAY, "months", "a", 14),
        (START + 31 * DAY, "months", "b", 3),
    ]


def test_auto_counts_every_event_once_whatever_the_range(trades: Asker) -> None:
    for first, last in ((0, 60 * DAY), (SECOND, 41 * DAY), (HOUR + 1500, 365 * DAY), (3 * HOUR, 3 * HOUR + 1)):
        within = f"within {START + first}L, {START + last}L"
        exact = trades.query(f"from A {within} per 'seconds' select sum(n) as n")["n"][0].as_py()
        assert trades.query(f"from A {within} per 'auto' select sum(n) as n")["n"][0].as_py() == exact


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("null", [1, 2, None, 7, None]),
        ("zero", [1, 2, 0, 7, 0]),
        ("previous", [1, 2, 2, 7, 7]),
        ("linear", [1, 2, 5, 7, None]),
    ],
)
def test_gaps_are_filled_for_each_key_over_the_whole_range_when_that_is_asked_for(
    trades: Asker, word: str, expected: list[int | None]
) -> None:
    text = f"from A on k == 'a' within {START}L, {START + 5 * HOUR}L per 'hours' fill({word}, range) select AGG_TIMESTAMP, k, total order by AGG_TIMESTAMP"
    assert rows(trades.query(text)) == [(START + hour * HOUR, "a", value) for hour, value in enumerate(expected)]
    between = rows(trades.query(text.replace(", range)", ")")))
    assert between == [(START + hour * HOUR, "a", value) for hour, value in enumerate(expected[:4])]


def test_filled_months_have_the_lengths_of_the_calendar(trades: Asker) -> None:
    found = rows(
        trades.query(
            "from A on k == 'a' within '2018-**-** **:**:**' per 'months' fill (zero, range) select AGG_TIMESTAMP, n order by AGG_TIMESTAMP"
        )
    )
    assert [n for _, n in found] == [4, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert {(after[0] - before[0]) // DAY for before, after in itertools.pairwise(found)} == {28, 30, 31}


def test_the_null_key_is_a_key_whose_gaps_are_filled_too(trades: Asker) -> None:
    found = rows(
        trades.query(
            f"from A on k is null within {START}L, {START + 6 * HOUR}L per 'hours' fill(previous, range) select k, total order by AGG_TIMESTAMP"
        )
    )
    assert found == [(None, None)] * 4 + [(None, 4)] * 2


def test_the_ledger_says_what_became_of_late_events_at_their_own_bucket(trades: Asker) -> None:
    text = "from A on k == 'b' within '2018-01-01 00:00:**' per 'minutes' select total, AGG_EVENTS, AGG_LATE_MOVED, AGG_LATE_DROPPED, AGG_LATE_CORRECTED, AGG_REVISION, AGG_FINAL"
    assert rows(trades.query(text)) == [(5, 1, 1, 0, 0, 0, True)]
    newest = rows(trades.query("from A within '2018-02-** **:**:**' per 'months' select k, AGG_FINAL order by k"))
    assert newest == [("a", False), ("b", False)]


def test_explain_names_tables_versions_files_and_open_buckets(trades: Asker) -> None:
    found = trades.query("EXPLAIN from A within '2018-**-** **:**:**' per 'days'").to_pylist()
    stored = found[0]
    assert (stored["reads"], stored["level"], stored["rows"]) == ("A_DAYS", "days", 3)
    assert stored["version"] >= 1 and stored["files_read"] >= 1 and stored["commit"] == 10
    assert sum(row["rows"] for row in found[1:]) >= 1 and all(
        row["reads"].startswith("open buckets of ") for row in found[1:]
    )
    early = trades.query("EXPLAIN from A within '2017-**-** **:**:**' per 'days'").to_pylist()
    assert [(row["files_read"], row["rows"]) for row in early] == [(0, 0)] and early[0]["files_skipped"] >= 1


REFUSED = [
    ("from B within '2018-**-** **:**:**' per 'days'", 1, 6, "there is no aggregation 'B'"),
    ("from A\nwithin '2018-**-** **:**' per 'days'", 2, 8, "no time pattern"),
    ("from A within '2018-**-01 **:**:**' per 'days'", 1, 15, "star before a number"),
    ("from A within '2018-13-** **:**:**' per 'days'", 1, 15, "names no instant"),
    ("from A within 5L, 5L per 'days'", 1, 15, "not before its end"),
    ("from A within 1.5, 5L per 'days'", 1, 15, "milliseconds"),
    ("from A within '2018-**-** **:**:**' per 'fortnights'", 1, 41, "unknown duration 'fortnights'"),
    ("from A within '2018-**-** **:**:**' per 5", 1, 41, "`per` takes a text"),
    ("from A within '2018-**-** **:**:**' per 'days' fill(guess)", 1, 53, "unknown fill 'guess'"),
    ("from A within '2018-**-** **:**:**' per 'auto' fill(zero)", 1, 41, "`fill` needs one level"),
    ("from A within 0L, 99999999999999L per 'seconds' fill(zero)", 1, 15, "`fill` over more than"),
    ("from A on x > 1 within '2018-**-** **:**:**' per 'days'", 1, 11, "unknown attribute 'x'"),
    ("from A on total within '2018-**-** **:**:**' per 'days'", 1, 11, "must be a bool"),
    ("from A within '2018-**-** **:**:**' per 'days' select nosuch", 1, 55, "unknown attribute 'nosuch'"),
    ("from A within '2018-**-** **:**:**' per 'days' limit -1", 1, 54, "whole number"),
    ("from A within '2018-**-** **:**:**' per", 1, 37, "unexpected end"),
    ("select * from A within '2018-**-** **:**:**' per 'fortnights'", 1, 15, "unknown duration 'fortnights'"),
    ("select *\nfrom Nowhere within '2018-**-** **:**:**' per 'days'", 2, 6, "unknown aggregation"),
    ("select nosuch from A within '2018-**-** **:**:**' per 'days'", 1, 8, "nosuch"),
    ("select * from A within $start per 'days'", 1, 15, "parameter $start has no value"),
    ("drop table A", 1, 1, "one SELECT"),
    ("", 1, 1, "one SELECT"),
    ("select k,, n\nfrom A within '2018-**-** **:**:**' per 'days'", 1, 10, "syntax error"),
    ("select k\nfrom A within '2018-**-** **:**:**' per 'days'\ngroup by", 3, 7, "syntax error"),
    ("select k,\n  foo(n) from A within '2018-**-** **:**:**' per 'days'", 2, 3, "name foo does not exist"),
    ("select k, sum(n) from A within '2018-**-** **:**:**' per 'days'", 1, 8, "GROUP BY"),
    ("select * from A within '2018-**-** **:**:**' per 'days' order by 17", 1, 66, "ORDER term"),
    ("select k from A within '2018-**-** **:**:**' per 'days' where n > '", 1, 67, "open quote"),
    ("select 1 as x union select k, n from A within '2018-**-** **:**:**' per 'days'", 1, 1, "Set operations"),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_a_wrong_question_is_refused_with_its_place(
    trades: Asker, text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(RollupError) as caught:
        trades.query(text)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert message in str(caught.value)


def test_a_refused_question_has_not_opened_the_store(tmp_path: Any) -> None:
    (tmp_path / "app.siddhi").write_text(
        "define stream S (v int, ts long); define aggregation A from S select sum(v) as s aggregate by ts every sec ... day;"
    )
    (tmp_path / "conf.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "c"\n[store]\nkind = "delta"\npath = "nowhere"\n'
    )
    with pytest.raises(RollupError, match="not aggregated per years"):
        rollup.query(tmp_path / "conf.toml", "from A within '2018-**-** **:**:**' per 'years'")
    assert not (tmp_path / "nowhere").exists()


def test_questions_of_one_form_are_planned_once_and_still_get_their_own_answers(trades: Asker) -> None:
    for key, hour in (("a", 1), ("b", 0), ("a", 3), ("it", 3)):
        text = f"from A on k == '{key}' and n > 0 within {START + hour * HOUR}L, {START + (hour + 1) * HOUR}L per 'hours' select k, total"
        expected = {("a", 1): [("a", 2)], ("b", 0): [("b", 5)], ("a", 3): [("a", 7)]}.get((key, hour), [])
        assert rows(trades.query(text)) == expected
    forms = trades.planner._forms  # pyright: ignore[reportPrivateUsage]
    texts = ["".join(part for part in outline if isinstance(part, str)) for outline, _ in forms]
    assert sum("AGG_TIMESTAMP" not in text and "n > " in text for text in texts) == 1
