"""Statements beside aggregations on the local host: what they give, worked out by hand, and that cuts and restarts of the
same events change nothing of it (hypothesis draws events, cuts and the batches before which the host is made anew)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.checkpoint.records import home
from rollup.core.errors import ConfigError, PlanError, RollupError, StoreError, SyntaxProblem
from rollup.engine.state import State
from rollup.hosts.local import LocalHost
from rollup.program import Program, compile_app
from rollup.statements.committed.commits import FOLDER, Commits
from rollup.statements.committed.kept import Kept
from rollup.stores.base import Store
from rollup.stores.memory import MemoryStore
from tests.profiles import examples

STREAM = "define stream S (k string, v double, ts long);\n"
AGGREGATION = "define aggregation A from S select k, sum(v) as total group by k aggregate by ts every sec ... hour;\n"
MINUTE = 60_000
NOON = 1_700_000_040_000  # a full minute


def rows(host: LocalHost, stream: str) -> list[tuple[Any, ...]]:
    """What was inserted into a stream, in order."""
    return [tuple(row.values()) for name, table in host.emitted if name == stream for row in table.to_pylist()]


def test_a_window_of_siddhiql_and_a_pattern_of_epl_run_beside_an_aggregation() -> None:
    host = LocalHost.of(
        STREAM
        + AGGREGATION
        + "from S#window.length(2) select k, avg(v) as mean insert into Means;\n"
        + "@lang('epl') { insert into Rises select a.k as k, b.v as v from pattern [every a=S -> b=S(v > a.v)]; }"
    )
    host.send("S", [("a", 1.0, NOON), ("a", 3.0, NOON + 1000), ("b", 2.0, NOON + 2000), ("b", 4.0, NOON + MINUTE)])
    assert rows(host, "Means") == [("a", 1.0), ("a", 2.0), ("b", 2.5), ("b", 3.0)]
    assert rows(host, "Rises") == [("a", 3.0), ("a", 4.0), ("b", 4.0)]
    asked = "from A within '2023-11-14 **:**:**' per 'minutes' select k, total"
    assert sorted(tuple(row.values()) for row in host.query(asked).to_pylist()) == [("a", 4.0), ("b", 2.0), ("b", 4.0)]


def test_what_one_language_inserts_another_reads_right_after_its_cause() -> None:
    host = LocalHost.of(
        STREAM
        + "from S[v > 1] select k, v, 'big' as what insert into Big;\n"
        + "from S#window.length(1) select k, v, 'seen' as what insert into Seen;\n"
        + "@lang('epl') { insert into Both select b.v as big, s.v as next from pattern [every b=Seen -> s=S]; }"
    )
    host.send("S", [("a", 1.0, 1), ("a", 2.0, 2), ("a", 3.0, 3)])
    assert rows(host, "Both") == [(1.0, 2.0), (2.0, 3.0)]
    assert rows(host, "Big") == [("a", 2.0, "big"), ("a", 3.0, "big")]


def test_time_is_that_of_the_events() -> None:
    host = LocalHost.of(
        "@time('ts') " + STREAM + "from S#window.time(5 sec) select k, count() as n insert into Counts;"
    )
    host.send("S", [("a", 1.0, NOON), ("a", 1.0, NOON + 4000), ("a", 1.0, NOON + 8000)])
    assert rows(host, "Counts") == [("a", 1), ("a", 2), ("a", 2)]


def test_what_an_aggregation_closes_is_a_stream() -> None:
    host = LocalHost.of(
        STREAM
        + AGGREGATION
        + """@lang('epl') {
            @name('rising') select a.k as k, a.total as first, c.total as last from pattern [
              every a=A_MINUTES -> b=A_MINUTES(k = a.k, total > a.total) -> c=A_MINUTES(k = a.k, total > b.total)];
        }"""
    )
    for minute, total in enumerate([1.0, 2.0, 3.0, 1.0, 1.0]):
        host.send("S", [("a", total, NOON + minute * MINUTE)])
    assert rows(host, "rising") == [("a", 1.0, 3.0)]


def test_a_correction_is_the_row_as_it_was_and_the_row_as_it_is() -> None:
    host = LocalHost.of(
        STREAM
        + "@OutOfOrder('correct') "
        + AGGREGATION
        + "@lang('epl') { @name('was') select k, total from A_MINUTES_REMOVED; @name('is') select k, total from A_MINUTES; }"
    )
    host.send("S", [("a", 1.0, NOON), ("a", 2.0, NOON + MINUTE), ("a", 1.0, NOON + 2 * MINUTE)])
    host.send("S", [("a", 4.0, NOON + 1000)])
    assert rows(host, "was") == [("a", 1.0)]
    assert rows(host, "is") == [("a", 1.0), ("a", 5.0)]


def test_statements_feed_an_aggregation() -> None:
    host = LocalHost.of(
        STREAM
        + "define stream Rises (k string, v double, ts long);\n"
        + "define aggregation R from Rises select k, count() as n, last(v) as v group by k aggregate by ts every sec, min;\n"
        + "@lang('epl') { insert into Rises select b.k as k, b.v as v, b.ts as ts from pattern [every a=S -> b=S(v > a.v)]; }"
    )
    host.send("S", [("a", 1.0, NOON), ("a", 2.0, NOON + 1000)])
    host.send("S", [("a", 3.0, NOON + 2000), ("a", 1.0, NOON + MINUTE)])
    asked = "from R within '2023-11-14 **:**:**' per 'minutes' select k, n, v"
    assert host.query(asked).to_pylist() == [{"k": "a", "n": 2, "v": 3.0}]


# cuts and restarts

MIXED = (
    STREAM
    + AGGREGATION
    + """
define stream Pairs (k string, v double, ts long);
define aggregation P from Pairs select k, count() as n group by k aggregate by ts every sec ... hour;
from S#window.time(3 sec) select k, sum(v) as total group by k insert into Totals;
from every e1=S -> e2=S[k == e1.k and v > e1.v] within 20 sec select e2.k as k, e2.v as v, e2.ts as ts insert into Pairs;
partition with (k of S) begin from S#window.lengthBatch(3) select k, max(v) as most insert into Most; end;
@lang('epl') {
  create context ByKey partition by k from S;
  @name('spread') context ByKey select k, max(v) - min(v) as spread from S#length(4) output last every 2 events;
  @name('later') select p.v as p, s.v as s from pattern [every p=Pairs -> s=S(v < p.v)];
}
@lang('epl') {
  @name('rising') select a.total as a, b.total as b from pattern [every a=A_SECONDS -> b=A_SECONDS(k = a.k, total > a.total)];
  @name('minutes') select * from A_MINUTES;
}
"""
)
STREAMS = ("Totals", "Pairs", "Most", "spread", "later", "rising", "minutes")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from([1.0, 2.0, 3.0, None]),
        st.integers(-40_000, 30_000).map(lambda step: step if step > 0 or step < -35_000 else 500),
    ),
    min_size=1,
    max_size=16,
)


@cache
def mixed() -> Program:
    """The program; its components take a state that they have not given as any other."""
    return compile_app(MIXED)


def taken(cuts: list[str], events: list[tuple[str, float | None, int]], folder: Path) -> dict[str, Any]:
    """What the app gives for the events, cut where `cuts` says, or cut and with a new host from then on."""
    program, stores = mixed(), dict[str, MemoryStore]()

    def kept(aggregation: Any, engine: Any) -> Store:
        return stores.setdefault(aggregation.name, MemoryStore(aggregation, engine))

    found: dict[str, list[Any]] = {name: [] for name in STREAMS}
    host, batch, arrivals = LocalHost(program, kept, Commits(folder)), list[Any](), 0
    for place, event in enumerate(events):
        batch.append(event)
        cut = cuts[place % len(cuts)]
        if place + 1 == len(events) or cut != "on":
            host.send("S", batch)
            for name in STREAMS:
                found[name] += rows(host, name)
            batch, arrivals = [], host.arrivals
            host.emitted.clear()
            if cut == "restart":
                host = LocalHost(program, kept, Commits(folder))
                host.arrivals = arrivals
    asked = ("from A", "from P")
    answers = [
        host.query(f"{each} within '2023-**-** **:**:**' per 'minutes' select *").sort_by(
            [("AGG_TIMESTAMP", "ascending"), ("k", "ascending")]
        )
        for each in asked
    ]
    return {**found, **{name: table.to_pylist() for name, table in zip(asked, answers, strict=True)}}


CUTS = st.lists(st.sampled_from(["on", "on", "cut", "cut", "restart"]), min_size=1, max_size=16)


@examples(8)
@given(EVENTS, CUTS)
def test_neither_cuts_nor_restarts_change_what_statements_and_aggregations_give(
    steps: list[tuple[str, float | None, int]], cuts: list[str]
) -> None:
    same_as_one_batch(steps, cuts)


@pytest.mark.slow
@examples(150)
@given(EVENTS, CUTS)
def test_neither_do_many_other_cuts_and_restarts(steps: list[tuple[str, float | None, int]], cuts: list[str]) -> None:
    same_as_one_batch(steps, cuts)


def same_as_one_batch(steps: list[tuple[str, float | None, int]], cuts: list[str]) -> None:
    """The steps of time are from the latest event on, or back from it."""
    at, events = NOON, list[tuple[str, float | None, int]]()
    for k, v, step in steps:
        at = max(at, at + step) if step > 0 else at
        events.append((k, v, at if step > 0 else at + step))
    with TemporaryDirectory() as one, TemporaryDirectory() as many:
        assert taken(cuts, events, Path(many)) == taken(["on"], events, Path(one))


# refusals

REFUSED = [
    (
        "an unknown stream of a block is named with its place in the app",
        STREAM + "@lang('epl') {\n  select * from Nothing;\n}",
        PlanError,
        "line 3, column 17: no event type, named window or table is called `Nothing`",
    ),
    (
        "a block that is not closed",
        STREAM + "@lang('epl') { select * from S where k = '}'",
        SyntaxProblem,
        "line 2, column 1: the block is not closed",
    ),
    (
        "a language that nobody speaks",
        STREAM + "@lang('cobol') { MOVE S TO T }",
        PlanError,
        "line 2, column 1: unknown language 'cobol' (one of epl, sql, uql, streamcruncher)",
    ),
    (
        "two blocks that feed each other",
        STREAM
        + "@lang('epl') { insert into T select k from U; insert into X select k from S; }\n"
        + "@lang('epl') { insert into U select k from T; }",
        PlanError,
        "the statements of epl block, epl block 2 feed each other in a circle",
    ),
    (
        "a mistake in a text of a file is told with the file",
        STREAM + "@lang('epl', file='alerts.epl') { select * from\nwhere }",
        SyntaxProblem,
        "alerts.epl: ",
    ),
    (
        "what goes into a defined stream must fit it",
        STREAM + "define stream T (k string, n long); from S#window.length(2) select k, avg(v) as n insert into T;",
        PlanError,
        "the query selects (k string, n double), but T is defined as (k string, n long)",
    ),
    (
        "a time that is no attribute",
        "@time('when') " + STREAM + "from S#window.length(2) select k insert into T;",
        PlanError,
        "@time names 'when', which is no long or string of S",
    ),
]


@pytest.mark.parametrize(("text", "kind", "message"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_an_app_is_refused_with_the_place(text: str, kind: type[RollupError], message: str) -> None:
    with pytest.raises(kind) as refused:
        compile_app(text)
    assert message in str(refused.value)


def test_statements_do_not_go_on_with_the_state_of_another_text(tmp_path: Path) -> None:
    text = STREAM + "from S#window.length({}) select k, avg(v) as mean insert into Means;"
    LocalHost(compile_app(text.format(2)), commits=Commits(tmp_path)).send("S", [("a", 1.0, NOON)])
    with pytest.raises(ConfigError, match="have changed"):
        LocalHost(compile_app(text.format(3)), commits=Commits(tmp_path))


KEEPS = "@lang('epl') {{ create window {0}#keepall as S; insert into {0} select * from S; }}\n"
COUNTS = "@lang('epl') {{ insert into C{0} select k, count(*) as n from S(v > {0}); }}\n"


def begun(*blocks: str, folder: Path) -> LocalHost:
    return LocalHost(compile_app(STREAM + "".join(blocks)), commits=Commits(folder))


def test_a_block_that_is_put_before_others_or_taken_away_leaves_them_their_states(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second, third = COUNTS.format(0), COUNTS.format(1), COUNTS.format(2)
    begun(first, second, folder=tmp_path).send("S", [("a", 9.0, NOON), ("b", 0.5, NOON)])
    assert "statements" not in capfd.readouterr().out

    host = begun(third, first, second, folder=tmp_path)  # each of the old ones has another name now
    host.send("S", [("c", 9.0, NOON)])
    assert (rows(host, "C0"), rows(host, "C1"), rows(host, "C2")) == ([("c", 3)], [("c", 2)], [("c", 1)])
    said = capfd.readouterr().out
    assert "these statements are new" in said and "new=['epl block']" in said, said
    assert "no longer has" not in said, said

    host = begun(second, folder=tmp_path)
    host.send("S", [("d", 9.0, NOON)])
    assert rows(host, "C1") == [("d", 3)]
    said = capfd.readouterr().out
    assert "no longer has these statements" in said and "gone=['epl block', 'epl block 2']" in said, said

    with pytest.raises(ConfigError, match="the statements of 'epl block' have changed"):
        begun(first, folder=tmp_path)


def test_states_of_another_version_are_told_from_damage_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        later.setattr("rollup.statements.committed.commits.FORMAT", 7)
        begun(COUNTS.format(0), folder=tmp_path).send("S", [("a", 1.0, NOON)])
    with pytest.raises(
        StoreError, match=r"it is of format 7, and this version of rollup reads 4 \(go on with the version"
    ):
        begun(COUNTS.format(0), folder=tmp_path)


@pytest.mark.parametrize("block", [COUNTS.format(0), "from S#window.length(2) select k, v insert into T;"])
def test_a_state_without_what_this_version_needs_is_told_with_what_to_do(tmp_path: Path, block: str) -> None:
    begun(block, folder=tmp_path).send("S", [("a", 1.0, NOON)])
    commits = Commits(tmp_path)
    found = commits.newest()
    less = {name: State(state.tables, {"another": 1}) for name, state in found.states.items()}
    commits.write(replace(found, number=found.number + 1, states=less, given={}))
    host = begun(block, folder=tmp_path)
    with pytest.raises(StoreError, match=r"does not fit this version of rollup: KeyError.*remove `_"):
        host.send("S", [("b", 1.0, NOON)])


def test_files_of_others_among_the_commits_stop_nobody(tmp_path: Path) -> None:
    host = begun(COUNTS.format(0), folder=tmp_path)
    for name in ("open-.arrow", "open-mine.arrow", "open-a-12a.arrow", "commit-mine.json", "notes.txt"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "open-mine-000000000001.arrow").mkdir()
    for at in range(40):  # long enough to be tidied twice
        host.send("S", [("a", 1.0, NOON + at)])
    assert (tmp_path / "open-mine.arrow").read_text() == "mine"
    assert len(list(tmp_path.glob("open-__statements-*.arrow"))) <= 40
    host = begun(COUNTS.format(0), folder=tmp_path)
    host.send("S", [("a", 1.0, NOON + 40)])
    assert rows(host, "C0") == [("a", 41)]


def test_two_blocks_that_change_places_keep_their_states(tmp_path: Path) -> None:
    begun(COUNTS.format(0), COUNTS.format(1), folder=tmp_path).send("S", [("a", 0.5, NOON)])
    host = begun(COUNTS.format(1), COUNTS.format(0), folder=tmp_path)
    host.send("S", [("b", 9.0, NOON)])
    assert (rows(host, "C0"), rows(host, "C1")) == ([("b", 2)], [("b", 1)])


def test_whoever_reads_named_windows_finds_them_under_the_new_name_of_their_block(tmp_path: Path) -> None:
    folder = home(tmp_path, FOLDER)
    begun(KEEPS.format("W"), folder=folder).send("S", [("a", 1.0, NOON)])
    kept = Kept(tmp_path, compile_app(STREAM + KEEPS.format("V") + KEEPS.format("W")))
    assert kept.rows("W", kept.newest()).num_rows == 1
    assert kept.rows("V", kept.newest()).num_rows == 0
    changed = Kept(tmp_path, compile_app(STREAM + KEEPS.format("W").replace("keepall", "length(2)")))
    with pytest.raises(StoreError, match="has changed since the last commit"):
        changed.rows("W", changed.newest())


def test_an_app_without_statements_loads_no_engine_of_statements() -> None:
    assert compile_app(STREAM + AGGREGATION + "from S[v > 1] select k, v insert into T;").statements is None


# the other languages

ALL = """@time('ts') define stream S (k string, v double, ts long);
define stream Latest (k string, v double);
@lang('sql') {
  INSERT INTO Minutes
  SELECT STREAM TUMBLE_END(rowtime, INTERVAL '1' MINUTE) AS ended, k, SUM(v) AS total
  FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' MINUTE), k;
}
@lang('uql') {
  from S window slice 60 seconds based on rowtime aggregate sum(v) as total, last(rowtime) as seen
  append total, seen to Slices
}
@lang('streamcruncher', into='Latest') {
  select k, v from S (partition by k store last 1) as s where s.$row_status is new;
}
@lang('epl') { @name('both') select m.total as m, s.total as s from Minutes#lastevent as m, Slices#lastevent as s; }
"""
SENT = [
    ("a", 1.0, NOON),
    ("a", 2.0, NOON + 1000),
    ("b", 5.0, NOON + 61_000),
    ("b", 6.0, NOON + 61_000),
    ("a", 7.0, NOON + 120_000),
    ("a", 8.0, NOON + 181_000),
    ("a", 9.0, NOON + 5),
]
GIVEN = {
    "Minutes": [(NOON + MINUTE, "a", 3.0), (NOON + 2 * MINUTE, "b", 11.0), (NOON + 3 * MINUTE, "a", 7.0)],
    "Slices": [(3.0, NOON + 1000), (11.0, NOON + 61_000), (7.0, NOON + 120_000)],
    "Latest": [("a", 1.0), ("a", 2.0), ("b", 5.0), ("b", 6.0), ("a", 7.0)],
    "both": [(3.0, 3.0), (11.0, 3.0), (11.0, 11.0), (7.0, 11.0), (7.0, 7.0)],
}


@cache
def all_languages() -> Program:
    """The program of `ALL`."""
    return compile_app(ALL)


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "restarts"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_four_languages_read_one_stream(size: int, restart: bool, tmp_path: Path) -> None:
    host, found, dead = LocalHost(all_languages(), commits=Commits(tmp_path)), dict[str, list[Any]](), list[Any]()
    for start in range(0, len(SENT), size):
        host.send("S", SENT[start : start + size])
        for name in GIVEN:
            found.setdefault(name, []).extend(rows(host, name))
        dead += host.dead
        host.emitted.clear()
        host.dead.clear()
        if restart:
            host = LocalHost(all_languages(), commits=Commits(tmp_path))
    assert found == GIVEN
    assert ["is below" in letter["reason"] for letter in dead] == [True]  # SQL's rowtime may only rise


def test_plan_says_that_an_aggregation_would_answer_a_tumbling_query() -> None:
    statements = all_languages().statements
    assert statements is not None
    remarks = {part.section.language: part.component.described.remarks for part in statements.parts}
    assert "an aggregation would also answer it" in remarks["sql"][0]
    assert not remarks["uql"]


def test_sql_reads_what_an_aggregation_closes() -> None:
    host = LocalHost.of(
        STREAM + AGGREGATION + "@lang('sql', into='Big') { SELECT STREAM k, total FROM A_MINUTES WHERE total > 2 }"
    )
    host.send("S", [("a", float(minute), NOON + minute * MINUTE) for minute in range(7)])
    assert rows(host, "Big") == [("a", 3.0), ("a", 4.0)]


@pytest.mark.parametrize(
    "block",
    [
        "@lang('sql', into='O') { SELECT STREAM SUM(n) AS s FROM N GROUP BY FLOOR(rowtime TO MINUTE) }",
        "@lang('uql') { from N window slice 1 minute based on rowtime aggregate sum(n) as s append s to O }",
        "define stream O (s long);\n@lang('streamcruncher', into='O') { select s from N (partition store last 30 seconds "
        "with sum(n) as s) as w where w.$row_status is new and (s is null or s < 3); }",
        "define stream O (s long);\n@lang('streamcruncher', into='O') { select sum(n) as s from N (partition store "
        "last 30 seconds) as w where w.$row_status is not dead having s > 9000000000000000000 or s < 3; }",
    ],
)
def test_sums_beyond_64_bits_are_said(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    host = LocalHost.of("@time('ts') define stream N (n long, ts long);\n" + block)
    host.send("N", [(2**62, NOON), (2**62, NOON + 1), (1, NOON + MINUTE), (1, NOON + 2 * MINUTE)])
    assert rows(host, "O") == [(None,), (1,)]
    assert "whole numbers that do not fit are null" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "taken"),
    [(7.0, 7), (1e3, 1000), (7.5, None), (float("nan"), None), (True, None), ("x", None), (2**63, None)],
)
def test_a_value_that_is_no_whole_number_is_a_dead_letter_and_is_not_cut(value: Any, taken: int | None) -> None:
    host = LocalHost.of(
        "define stream N (n long, ts long); define aggregation A from N select sum(n) as s aggregate by ts every sec, min;"
    )
    host.send("N", [(value, NOON)])
    found = host.query("from A within 0L, 1800000000000L per 'minutes' select s").to_pylist()
    assert found == ([] if taken is None else [{"s": taken}])
    assert [row["reason"] for row in host.dead] == ([] if taken is not None else ["n is not a long"])
