"""Statements in shards give what they give undivided, whatever the batches, with every state packed and read again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import ConfigError
from rollup.engine.state import State
from rollup.hosts.spark.tasks.statement_step import StepSpec, leave_events, step_of_shard, taken_in
from rollup.program import Declaration, compile_app
from rollup.statements.committed.commits import Saved, rows_of, saved_in
from rollup.statements.compiled import Statements
from rollup.statements.component import Event, Streams, Taken
from rollup.statements.flow import Flow, States
from rollup.statements.shards import Divided, Sharded, in_process, refuse_other_shards, shard_of

STREAM = "@time('ts') define stream S (k string, v double, ts long);\n"
EPL = {
    "a keyed context with rates and patterns": """@lang('epl') {
      create context PerKey partition by k from S;
      @name('Totals') context PerKey select k, count(*) as n, sum(v) as total from S output last every 2 sec;
      @name('Rising') context PerKey select a.v as first, b.v as second
        from pattern [every a=S -> b=S(v > a.v) where timer:within(3 sec)];
      @name('High') select k, v from S(v > 80);
    }""",
    "groups that live for ever": """@lang('epl') {
      @name('Totals') select k, sum(v) as total, count(*) as n from S group by k;
      @name('Means') select k, avg(v) as mean from S#groupwin(k)#time(4 sec) group by k;
      @name('Latest') select irstream k, v from S#unique(k);
    }""",
    "a keyed context whose partitions end": """@lang('epl') {
      create context PerKey partition by k from S terminated after 3 sec;
      @name('Totals') context PerKey select k, sum(v) as total from S output when terminated;
    }""",
}
SIDDHI = {
    "partitions": """
      partition with (k of S) begin
        from S#window.time(2 sec) select k, sum(v) as total insert into Totals;
        from S#window.lengthBatch(3) select k, max(v) as v insert into #Highest;
        from every a=#Highest -> b=#Highest[v > a.v] select a.v as first, b.v as second insert into Rising;
        from S#window.timeBatch(2 sec) select k, count() as n insert into Counts;
      end;
      from Totals[total > 150.0] select k, total insert into High;""",
}
SQL = {
    "windows of time": """@lang('sql') {
      INSERT INTO Minutes SELECT STREAM TUMBLE_END(rowtime, INTERVAL '2' SECOND) AS ended, k, SUM(v) AS total FROM S
        GROUP BY TUMBLE(rowtime, INTERVAL '2' SECOND), k;
      INSERT INTO Sliding SELECT STREAM rowtime AS at, k, SUM(v) OVER
        (PARTITION BY k ORDER BY rowtime RANGE INTERVAL '3' SECOND PRECEDING) AS total FROM S;
    }""",
}
SHARED = compile_app(STREAM + EPL["groups that live for ever"]).streams
UQL = {
    "slices of UQL": "from S group by k where v >= 10 window slice 2 seconds based on rowtime "
    "aggregate sum(v) as s, count() as n where n > 0 append s, n to Out",
    "slides of UQL": "from S group by k window slide 3 seconds advance every 1 seconds based on rowtime "
    "aggregate max(v) as m append m to Out",
    "row windows of UQL": "from S group by k where v < 90 window slice 9 rows aggregate count() as n append n to Out",
    "rows of UQL that grow": "from S group by k window slide 9 rows advance every 0 rows aggregate count() as n append n to Out",
    "sessions of UQL": "from S group by k window session begin when v > 30 end when v > 80 expire after 2 seconds "
    "aggregate sum(v) as s append s to Out",
    "sessions of UQL that do not expire": "from S group by k window session begin when v > 20 end when v > 50 "
    "aggregate sum(v) as s append s to Out",
    "the wall's clock in UQL": "from S group by k window slice 1 seconds aggregate count() as n append n to Out",
}
CRUNCHER = {
    "a sliding partition": "select k, v from S (partition by k store last 3) as w where w.$row_status is dead;",
    "a time partition with aggregates": "select k, total from S (partition by k store last 2 seconds max 3 "
    "with pinned sum(v) as total) as w where w.$row_status is new;",
    "the highest": "select k, v from S (partition by k store highest 2 using v) as w where w.$row_status is new;",
    "chained partitions": "select k, total from S (partition by k store last 2 seconds) to (partition by k store last 4 "
    "with sum(v) as total where $row_status is new) as w where w.$row_status is new;",
    "rows of a time": "select k, v from S (partition store last 2 seconds) as w where w.$row_status is dead;",
    "an alert": "select k, early from alert a.v as early, a.k as k using S (partition by k store last 1 seconds where v < 50) as a "
    "correlate on k, S (partition by k store last 2 seconds where v > 60) as b correlate on k when present(a and b);",
}
APPS = {
    **EPL,
    **SIDDHI,
    **SQL,
    **{name: f"@lang('uql') {{ {text} }}" for name, text in UQL.items()},
    **{
        name: f"define stream Out (a string, b double);\n@lang('streamcruncher', into='Out') {{ {text} }}"
        for name, text in CRUNCHER.items()
    },
}


def statements(app: str) -> Statements:
    """The statements of an app over the stream."""
    program = compile_app(STREAM + app)
    assert program.statements is not None
    return program.statements


def in_shards(found: Statements, shards: int, streams: Streams | None = None) -> Statements:
    """The same statements, each component that has keys in shards."""
    parts = [
        replace(
            part, component=Sharded.of(part.component, streams or SHARED, shards, in_process(part.component, shards))
        )
        if part.component.described.keys
        else part
        for part in found.parts
    ]
    return replace(found, parts=tuple(parts))


def events(seed: int, late: bool, count: int = 150) -> list[Event]:
    """Random events; late ones go back in time."""
    chance, at, found = random.Random(seed), 1_700_000_000_000, list[Event]()
    for place in range(count):
        at += chance.choice([0, 1, 5, 50, 400])
        time = at - chance.choice([0, 0, 0, 700]) if late else at
        values = (f"k{chance.randrange(7)}", float(chance.randrange(100)), time)
        found.append(Event((place, 0), time, "S", values))
    return found


def given(found: Statements, batches: Sequence[Sequence[Event]], again: bool) -> Any:
    """All rows of every stream, and how many events were refused; `again`: states are packed and read between batches."""
    flow, states, rows, refused = Flow(found), {}, dict[str, list[Any]](), 0
    for batch in batches:
        states, out = flow.step(states if not again else stored(states), batch)
        refused += len(out.refused)
        for name, table in out.streams.items():
            rows.setdefault(name, []).extend(tuple(row.values()) for row in table.to_pylist())
    return rows, refused


def stored(states: States) -> States:
    """States as a commit holds them."""
    return saved_in(rows_of(Saved(states=states))).states


def cut(found: Sequence[Event], seed: int) -> Iterator[Sequence[Event]]:
    """Events in batches of any size."""
    chance, begin = random.Random(seed), 0
    while begin < len(found):
        size = chance.choice([1, 2, 7, 40, 120])
        yield found[begin : begin + size]
        begin += size


@pytest.mark.parametrize("name", APPS)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("shards", [2, 5])
@pytest.mark.few(10)
def test_shards_give_the_rows_of_the_undivided_statements(name: str, late: bool, shards: int) -> None:
    found = statements(APPS[name])
    for seed in range(2):
        batches = list(cut(events(seed, late), seed))
        whole, refused = given(found, batches, again=False)
        divided, divided_refused = given(in_shards(statements(APPS[name]), shards), batches, again=True)
        assert sum(map(len, whole.values())) > 10
        assert {each: Counter(rows) for each, rows in divided.items()} == {
            each: Counter(r) for each, r in whole.items()
        }
        assert divided_refused == refused


@pytest.mark.parametrize("name", APPS)
@pytest.mark.few(9)
def test_shards_give_the_same_whatever_the_batches(name: str) -> None:
    found = statements(APPS[name])
    every = events(5, late=False)
    one, _ = given(in_shards(found, 3), [every], again=False)
    many, _ = given(in_shards(statements(APPS[name]), 3), list(cut(every, 9)), again=True)
    assert {each: Counter(rows) for each, rows in many.items()} == {each: Counter(rows) for each, rows in one.items()}


OUT = "define stream Out (a string, b double); "
ONE = {
    "a chain of UQL": (
        "@lang('uql') { from S group by k window slice 9 rows aggregate sum(v) as s append s to T "
        "from T group by k window slice 2 rows aggregate count() as n append n to Out }",
        "a query reads what another gives for all groups",
    ),
    "a window of UQL": (
        "@lang('uql') { from S window slice 9 rows aggregate sum(v) as s append s to Out }",
        "its windows are over all events",
    ),
    "groups of UQL that are times": (
        "@lang('uql') { from S group by rowtime window slice 9 rows aggregate sum(v) as s append s to Out }",
        "its groups are times of events",
    ),
    "a partition over all": (
        f"{OUT}@lang('streamcruncher', into='Out') {{ select k, v from S (partition store last 3) as w where w.$row_status is dead; }}",
        "its partitions have no column of the stream in common",
    ),
    "a select over all keys": (
        f"{OUT}@lang('streamcruncher', into='Out') {{ select k, max(v) as m from S (partition by k store last 3) as w group by k; }}",
        "its select is over the rows of all keys",
    ),
    "rows that stay": (
        f"{OUT}@lang('streamcruncher', into='Out') {{ select k, v from S (partition by k store last 3) as w where w.$row_status is not dead; }}",
        "its select gives the rows that stay, with every cycle",
    ),
    "a tumbling partition": (
        f"{OUT}@lang('streamcruncher', into='Out') {{ select k, v from S (partition by k store latest 3) as w where w.$row_status is dead; }}",
        "its rows leave with whatever cycle comes next",
    ),
    "rows that left and time": (
        f"{OUT}@lang('streamcruncher', into='Out') {{ select k, v from S (partition by k store last 3) "
        "to (partition by k store last 2 seconds where $row_status is dead) as w where w.$row_status is dead; }",
        "what has left one of its partitions leaves the next with whatever cycle comes next",
    ),
    "a window over all groups": (
        "@lang('epl') { @name('A') select k, sum(v) as t from S#length(9) group by k; }",
        "one window is over all groups",
    ),
    "a rate over all keys": (
        "@lang('epl') { @name('A') select k, sum(v) as t from S group by k output every 2 sec; }",
        "its output goes by the events of all keys: the first one starts its clock",
    ),
    "an order over all keys": (
        "@lang('epl') { @name('A') select k, sum(v) as t from S group by k output every 2 sec order by k; }",
        "order by, limit and distinct are over all keys",
    ),
    "a pattern over all keys": (
        "@lang('epl') { @name('A') select a.k as k from pattern [every a=S -> S(k = a.k)]; }",
        "what one event meets may be of any key",
    ),
    "a context that is not keyed": (
        "@lang('epl') { create context C start after 1 sec end after 2 sec; @name('A') context C select sum(v) as t from S; }",
        "the context C is not keyed",
    ),
    "the number of a partition": (
        "@lang('epl') { create context C partition by k from S; @name('A') context C select context.id as i from S; }",
        "context.id numbers the partitions of all keys",
    ),
    "a named window": (
        "@lang('epl') { create window W#keepall as S; insert into W select * from S; @name('A') select k from W; }",
        "a named window or a table is one for all keys",
    ),
    "two groupings": (
        "@lang('epl') { @name('A') select k, count(*) as n from S group by k; @name('B') select v, count(*) as n from S group by v; }",
        "S is grouped by k and by v",
    ),
    "a stream of statements that is grouped again": (
        "@lang('epl') { insert into T select k, v from S; @name('A') select k, sum(v) as t from T group by k; }",
        "T is made by one statement and grouped by another",
    ),
    "a window of SiddhiQL": (
        "from S#window.length(2) select sum(v) as t insert into A;",
        "a query outside of partitions has a window or a pattern over all events",
    ),
    "a partition by ranges": (
        "partition with (v < 5.0 as 'low' or v >= 5.0 as 'high' of S) begin from S select k insert into A; end;",
        "a partition by ranges",
    ),
    "grouping sets": (
        """@lang('sql') { INSERT INTO A SELECT STREAM FLOOR(rowtime TO SECOND) AS at, k, COUNT(*) AS n FROM S
        GROUP BY GROUPING SETS ((FLOOR(rowtime TO SECOND), k), (FLOOR(rowtime TO SECOND))); }""",
        "its groups have no column of the stream in common",
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_what_is_over_all_keys_is_not_divided_and_says_why(name: str) -> None:
    app, reason = ONE[name]
    (part,) = statements(app).parts
    keys = part.component.described.keys
    assert (dict(keys.by), keys.reason) == ({}, reason)


@pytest.mark.parametrize("name", APPS)
def test_the_key_is_said(name: str) -> None:
    (part,) = statements(APPS[name]).parts
    assert str(part.component.described.keys) == ("events as they come" if name == "rows of a time" else "k of S")


def test_a_shard_is_of_the_value_and_not_of_its_type() -> None:
    for value in (0, -1, 7, 2**53):
        assert shard_of((value,), 97) == shard_of((float(value),), 97)
    assert shard_of((float("nan"), None), 97) == shard_of((-float("nan"), None), 97)
    assert len({shard_of((f"user {n}",), 16) for n in range(200)}) == 16


def test_states_of_another_number_of_shards_are_refused_with_the_way_back() -> None:
    found = statements(EPL["groups that live for ever"])
    divided = in_shards(found, 3)
    states, _ = Flow(divided).step({}, events(1, late=False, count=5))
    (part,), (other,), (state,) = divided.parts, in_shards(found, 4).parts, states.values()
    refuse_other_shards(part.name, part.component, state, "/x")
    with pytest.raises(ConfigError, match=r"ran in 3 shards, and now would run in 4 shards.*"):
        refuse_other_shards(part.name, other.component, state, "/x")
    with pytest.raises(ConfigError, match="now would run in the driver"):
        refuse_other_shards(part.name, found.parts[0].component, state, "/x")


def test_sums_beyond_64_bits_are_counted_over_all_shards(tmp_path: Path) -> None:
    app = """@time('ts') define stream S (k string, n long, ts long);
    @lang('sql') { INSERT INTO A SELECT STREAM FLOOR(rowtime TO SECOND) AS at, k, SUM(n) AS total FROM S
      GROUP BY FLOOR(rowtime TO SECOND), k; }"""
    program = compile_app(app)
    assert program.statements is not None
    at = 1_700_000_000_000
    batch = [Event((i, 0), at + i, "S", (f"k{i % 4}", 2**62, at + i)) for i in range(12)]
    batch.append(Event((12, 0), at + 5000, "S", ("k0", 1, at + 5000)))
    (part,) = in_shards(program.statements, 3, {**program.streams, **program.statements.streams}).parts
    assert part.component.step(None, batch)[1].beyond == 4
    (state, file) = step_of_shard(_spec(app, tmp_path, batch), 0)[1:]
    assert state and taken_in(file).beyond == 4


def _spec(app: str, folder: Path, batch: Sequence[Event]) -> StepSpec:
    """The step of an app's only component, all in one shard."""
    events = leave_events(folder, Divided([batch], []))
    return StepSpec(Declaration(app), "sql block", 0, str(folder), 1, 1, events, ())


@pytest.mark.parametrize("name", ["slices of UQL", "a sliding partition", "windows of time"])
def test_shards_give_the_same_through_the_files_of_tasks(name: str, tmp_path: Path) -> None:
    found = statements(APPS[name])
    (part,), batches = found.parts, list(cut(events(3, late=False), 3))
    steps = list[int]()

    def run(state: State | None, batch: Divided) -> tuple[State, list[Taken]]:
        files, steps[:] = () if state is None else tuple(state.scalars["files"]), [*steps, len(steps)]
        said = leave_events(tmp_path, batch)
        spec = StepSpec(Declaration(STREAM + APPS[name]), part.name, 0, str(tmp_path), 2, len(steps), said, files)
        made = [step_of_shard(spec, shard) for shard in range(2)]
        return State({}, {"files": [file for _, file, _ in made]}), [taken_in(blob) for *_, blob in made]

    divided = replace(found, parts=(replace(part, component=Sharded.of(part.component, SHARED, 2, run)),))
    whole, tasks = given(found, batches, again=False), given(divided, batches, again=False)
    assert steps and {each: Counter(rows) for each, rows in tasks[0].items()} == {
        each: Counter(rows) for each, rows in whole[0].items()
    }
