"""Statements as programs beside the same statements on rows: random events with ties, nulls and gaps, cut at random, in both
modes and with the state carried between them after each batch. A statement that does not become a program fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rollup.engine.programs.lowering.components import Program, lowered
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Mode, Running
from rollup.live import Engine
from tests.engine.compiler.modes import same

SCHEMA = "create schema S(symbol string, price double, volume int);"
TEXTS = (Path(__file__).parent / "statements.txt").read_text().splitlines()
STATEMENTS = {title.removeprefix("# "): text for title, text in zip(TEXTS[::2], TEXTS[1::2], strict=True)}
MODES: tuple[Mode, ...] = ("interpreted", "checked", "compiled")
Deliveries = dict[str, list[tuple[Any, ...]]]


def engine_of(text: str) -> Engine:
    engine = Engine(columns=None)
    engine.deploy(SCHEMA)
    engine.deploy(text, "s")
    return engine


def program_of(engine: Engine) -> Program | Unsupported:
    return lowered(engine._component, engine._deployer.catalog.types.get)  # pyright: ignore[reportPrivateUsage]


def batches(seed: int) -> Iterator[tuple[pa.Table, list[int]]]:
    """Fourteen batches of events with their instants."""
    random, at = np.random.default_rng(seed), 1
    for _ in range(14):
        n = int(random.choice([1, 2, 3, 17, 60]))
        times = at + np.cumsum(random.choice([0, 0, 1, 2, 3, 40], n))
        at = int(times[-1])

        def some(values: Any, kind: pa.DataType, n: int = n) -> pa.Array:
            return pa.array(values, kind, mask=random.random(n) < 0.06)

        yield (
            pa.table(
                {
                    "symbol": some([f"K{i}" for i in random.integers(0, 5, n)], pa.string()),
                    "price": some(random.integers(0, 1000, n) / 100, pa.float64()),
                    "volume": some(random.integers(0, 8, n), pa.int32()),
                }
            ),
            times.tolist(),
        )


def heard(engine: Engine) -> Deliveries:
    """What the engine's listeners were told."""
    found: Deliveries = {}
    for each in engine.heard():
        rows = [[tuple(row.values()) for row in some] for some in (each.new, each.old)]
        if any(rows):
            found.setdefault(each.statement, []).append((each.at, *rows))
    return found


def delivered(running: Running) -> Deliveries:
    """The same of a program."""
    found: Deliveries = {}
    for each in running.deliveries():
        found.setdefault(each.statement, []).append((each.at, [*each.inserted], [*each.removed]))
    return found


def sent(running: Running, table: pa.Table, at: list[int]) -> Deliveries:
    running.send("S", [column.combine_chunks() for column in table.columns], pa.array(at, pa.int64()))
    return delivered(running)


@pytest.mark.parametrize("title", STATEMENTS)
@pytest.mark.few(24)
def test_a_program_says_what_rows_say(title: str) -> None:
    for seed in range(3):
        engine = engine_of(STATEMENTS[title])
        program = program_of(engine)
        assert isinstance(program, Program), str(program)
        ways = [Running(program, mode) for mode in MODES]
        restarted = Running(program, "checked")
        for number, (table, at) in enumerate(batches(seed)):
            engine.send("S", table, at=at)
            expected = heard(engine)
            for way in [*ways, restarted]:
                assert sent(way, table, at) == expected, (title, way.mode, number)
            assert same(ways[0].save(), ways[1].save()), title
            restarted = restarted.moved(MODES[(number + seed) % 3])
        engine.advance(at[-1] + 1000)
        expected = heard(engine)
        for way in [*ways, restarted]:
            way.advance(at[-1] + 1000)
            assert delivered(way) == expected
        states = [way.save() for way in [*ways, restarted]]
        assert all(same(states[0], each) for each in states[1:])


DELETED = (
    "keepall length(3) firstlength(3) time_accum(20_msec) unique(symbol) firstunique(symbol) sort(3,price) length_batch(3) time(30_msec) "
    "time_batch(30_msec) groupwin(symbol)#length(2) groupwin(symbol)#length_batch(2)"
)


@pytest.mark.parametrize("window", DELETED.split())
def test_a_window_that_would_not_hear_of_a_deletion_is_no_program(window: str) -> None:
    """The row would leave once more."""
    text = f"create window W#{window.replace('_msec', ' msec')} as S; insert into W select * from S; "
    text += "on S(volume = 3) as s delete from W as w where w.symbol = s.symbol; select irstream symbol, price from W"
    engine = engine_of(text)
    program = program_of(engine)
    if isinstance(program, Unsupported):
        assert (program.code, program.detail) == ("window", "rows are taken out")
        return
    running = Running(program, "checked")
    for table, at in batches(1):
        engine.send("S", table, at=at)
        assert sent(running, table, at) == heard(engine)


def test_the_names_of_a_state_are_those_of_the_statements() -> None:
    """A statement that is deployed beside others changes no name of theirs."""
    one = program_of(engine_of(STATEMENTS["length, groups"]))
    two = program_of(engine_of(f"{STATEMENTS['length, groups']}; {STATEMENTS['on delete by key']}"))
    assert isinstance(one, Program) and isinstance(two, Program)
    assert one.source.layout.state.saved.items() <= two.source.layout.state.saved.items()


def test_programs_that_differ_in_a_number_have_one_text() -> None:
    one = program_of(engine_of("select symbol, sum(price) from S(volume > 3)#length(5) group by symbol"))
    other = program_of(engine_of("select symbol, sum(price) from S(volume > 7)#length(9) group by symbol"))
    assert isinstance(one, Program) and isinstance(other, Program)
    assert one.source.key == other.source.key
    assert one.constants != other.constants


UNSUPPORTED = {
    "select count(*) as n from S#length(3) where price > current_timestamp()": "value",
    "create variable int v = 1; on S set v = volume; select count(*) as n from S#unique(v + volume)": "value",
    "select * from S#length(3) order by price": "output",
    "select * from S#length(3) output every 2 events": "rate",
    "insert rstream into T select rstream * from S#length(3)": "removed",
    "select a.price as p from S#length(3) as a, S#length(2) as b, S#length(2) as c where a.symbol = b.symbol": "join",
    "select * from pattern [a=S -> b=S]": "input",
    "select * from S where price in (select price from S#length(2))": "lookup",
    "select * from S#time_length_batch(3 sec, 2)": "window",
    "select * from S#groupwin(symbol)#unique(volume)": "window",
    "select firstever(symbol || 'a') as x from S": "function",
    "select distinct symbol from S#length(3)": "output",
    "select price, volume as n from S#ext_timed(volume, 3 sec)": "window",
    "create table T(symbol string primary key, n int)": "store",
    "insert into T select symbol, price from S; insert into T select symbol, price + 1 as price from T(price < 9)": "circle",
    "create context C partition by symbol from S; context C select * from S": "context",
    "select sum(price, group_by: symbol) as s from S#length(3)": "groups",
}


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_what_does_not_become_a_program_says_why(text: str) -> None:
    reason = program_of(engine_of(text))
    assert isinstance(reason, Unsupported)
    assert reason.code == UNSUPPORTED[text]
