"""Subscriptions: what a subscriber has put together is the table, whatever commits he has seen and wherever he went on."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import rollup
from rollup.ask import Asker
from rollup.cli.main import cli as command
from rollup.core.calendar import Duration
from rollup.core.errors import QueryError
from rollup.grants import Grant
from rollup.hosts.local import LocalHost
from rollup.subscribe import Change, Subscription
from tests.retrieval.trades import DAY, HOUR, SECOND, START, STORES, app, delta_host, grouped, host_of

Rows = dict[tuple[int, str | None], tuple[int, int]]
KEYS = ["a", "b", "it's", None]


@pytest.fixture(params=STORES)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[LocalHost, Path]]:
    """A job over a store of each kind, and its configuration."""
    return lambda text: (host_of(request, tmp_path, text), tmp_path / "conf.toml")


def put(known: Rows, change: Change) -> None:
    """Do with a change what the documentation says."""
    for low, high in change.cleared:
        for key in [k for k in known if (low is None or k[0] >= low) and (high is None or k[0] < high)]:
            del known[key]
    for row in change.removed.to_pylist():
        del known[row["AGG_TIMESTAMP"], row["k"]]
    for row in change.rows.to_pylist():
        known[row["AGG_TIMESTAMP"], row["k"]] = row["total"], row["n"]


def drawn(seed: int, late: bool) -> list[list[tuple[str | None, int, int]]]:
    """Batches of events whose time goes on by leaps of all sizes; with `late` some are of long ago."""
    draw, now, batches = random.Random(seed), START, []
    for _ in range(7):
        batch = []
        for _ in range(draw.randrange(1, 6)):
            now += draw.choice([0, 200, SECOND, 70 * SECOND, HOUR, DAY, 40 * DAY])
            back = draw.choice([0, SECOND, HOUR, DAY, 50 * DAY]) if late and draw.random() < 0.4 else 0
            batch.append((draw.choice(KEYS), draw.randrange(-5, 50), max(START, now - back)))
        batches.append(batch)
    return batches


@pytest.mark.few("delta-0", "sqlite-1", "postgresql-0")
@pytest.mark.parametrize("seed", range(2))
def test_what_is_put_together_is_the_sums_of_the_events(
    job: Callable[[str], tuple[LocalHost, Path]], seed: int
) -> None:
    """Corrections reach closed buckets; the subscriber misses commits, goes on from one he has seen, or begins anew."""
    draw = random.Random(seed)
    host, conf = job(app("correct", draw.choice([0, 2])))
    asker = rollup.open(conf)
    levels = [Duration.SECONDS, Duration.DAYS, Duration.YEARS]
    known: dict[Duration, Rows] = {level: {} for level in levels}
    listening = {level: asker.subscribe("A", level.plural) for level in levels}
    sent: list[Any] = []
    for batch in drawn(seed, late=True):
        host.send("S", batch)
        sent += batch
        for level in levels:
            if draw.random() < 0.3:
                continue
            change = listening[level].step()
            assert change is not None and listening[level].step() is None
            put(known[level], change)
            assert known[level] == grouped(sent, level, 0, 2**60)
            if draw.random() < 0.3:
                listening[level] = rollup.open(conf).subscribe("A", level.plural, commit=change.commit)


def test_only_rows_that_changed_come_while_one_listens(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app())
    listening = rollup.open(conf).subscribe("A", "years")
    assert listening.step() is None
    host.send("S", [(key, 1, START) for key in KEYS])
    first = _next(listening)
    assert [len(first.cleared), first.rows.num_rows] == [1, 4]
    host.send("S", [("b", 5, START + HOUR)])
    second = _next(listening)
    assert not second.cleared and not second.removed.num_rows
    assert [(r["k"], r["total"], r["AGG_FINAL"]) for r in second.rows.to_pylist()] == [("b", 6, False)]
    host.send("S", [("a", 1, START + leap * 400 * DAY) for leap in range(1, 8)])  # closes at every level
    third = [(r["k"], r["total"]) for r in _next(listening).rows.to_pylist() if r["AGG_TIMESTAMP"] == START]
    assert len(third) == 4 and set(third) == {("a", 1), ("b", 6), ("it's", 1), (None, 1)}


def test_closed_and_void_rows_follow_a_condition(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app())
    listening = rollup.open(conf).subscribe("A", "days", on="total < 10")
    known: Rows = {}
    for batch in ([("a", 4, START), ("b", 9, START)], [("a", 4, START + HOUR)], [("b", 9, START + 2 * HOUR)]):
        host.send("S", batch)
        put(known, _next(listening))
    assert known == {(START, "a"): (8, 2)}


def test_since_leaves_earlier_buckets_out(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app("correct"))
    host.send("S", [("a", 1, START), ("a", 1, START + 3 * DAY)])
    listening = rollup.open(conf).subscribe("A", "days", since="2018-01-02 **:**:**")
    known: Rows = {}
    put(known, _next(listening))
    host.send("S", [("a", 2, START), ("a", 1, START + DAY)])
    put(known, _next(listening))
    assert known == {(START + DAY, "a"): (1, 1), (START + 3 * DAY, "a"): (1, 1)}


def test_a_grant_holds(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app("correct"))
    host.send("S", [("a", 1, START), ("b", 2, START)])
    asker = Asker(rollup.load(conf), grant=Grant(("A",), (("A", "k = 'a'"),)))
    listening = asker.subscribe("A", "days")
    assert [row["k"] for row in _next(listening).rows.to_pylist()] == ["a"]
    host.send("S", [("b", 2, START), ("a", 2, START + DAY)])
    assert {row["k"] for row in _next(listening).rows.to_pylist()} == {"a"}
    with pytest.raises(QueryError, match="no aggregation"):
        Asker(rollup.load(conf), grant=Grant((), ())).subscribe("A", "days")


@pytest.mark.parametrize("kind", STORES)
def test_nobody_is_told_of_rows_that_a_grant_hides(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Two jobs differ in hidden rows alone. Whoever listens, or comes back to them, is told the same of both."""
    corrections = [("b", 7, START + 3 * HOUR), ("b", 7, START + 3 * HOUR + SECOND), ("it's", 1, START)]
    batches = [
        [(key, 1, START + at * HOUR // 2) for at in range(20) for key in KEYS],
        [("a", 1, START + 10 * HOUR)],
        [("a", 5, START + 2 * HOUR), ("a", 1, START + 5 * HOUR + SECOND)],
        [("a", 1, START + 11 * HOUR)],
    ]
    told: dict[bool, list[Any]] = {True: [], False: []}
    for hidden, found in told.items():
        (tmp_path / str(hidden)).mkdir()
        host = host_of(request, tmp_path / str(hidden), app("correct", 0), kind=kind)
        asker = Asker(rollup.load(tmp_path / str(hidden) / "conf.toml"), grant=Grant(("A",), (("A", "k = 'a'"),)))
        listening, known, seen = asker.subscribe("A", "seconds"), dict[Any, Any](), None
        for batch in batches:
            host.send("S", batch + corrections * hidden)
            for each in (listening, asker.subscribe("A", "seconds", commit=seen)):
                change = _next(each)
                found.append((change.cleared, change.removed.to_pylist(), change.rows.to_pylist()))
                put(known, change)
            seen = change.commit
        ours = [event for batch in batches for event in batch if event[0] == "a"]
        assert known == grouped(ours, Duration.SECONDS, 0, 2**60)
    assert told[True] == told[False]


def test_tables_that_are_made_anew_are_told_anew(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    """After `recover --rebuild` commits are numbered from 1 again."""
    host, conf = job(app("correct"))
    for day in range(3):
        host.send("S", [("a", 1, START + day * DAY)])
    listening, known = rollup.open(conf).subscribe("A", "days"), dict[Any, Any]()
    put(known, _next(listening))
    done = CliRunner().invoke(command, ["recover", str(conf), "--rebuild", "--aggregation", "A"])
    assert done.exit_code == 0, done.output
    put(known, _next(listening))
    text = "from A within '2018' per 'days' select AGG_TIMESTAMP, k, total, n"
    now = {(r["AGG_TIMESTAMP"], r["k"]): (r["total"], r["n"]) for r in rollup.query(conf, text).to_pylist()}
    assert known == now


def test_iterators_wait_for_commits_and_end(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app())
    host.send("S", [("a", 1, START)])

    async def listen() -> list[int]:
        found, listening = list[int](), rollup.open(conf).subscribe("A", "days", every=0.01)
        async for change in listening:
            found.append(change.commit)
            if len(found) == 3:
                listening.close()
            else:
                await asyncio.to_thread(host.send, "S", [("a", 1, START + len(found) * HOUR)])
        return found

    commits = asyncio.run(listen())
    assert commits == [commits[0] + i for i in range(3)]
    plain = rollup.open(conf).subscribe("A", "days", commit=commits[1])
    for change in plain:
        plain.close()
        assert change.commit == commits[2]


def test_the_command_prints_lines_of_json(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app())
    host.send("S", [("a", 1, START), (None, 2, START)])
    host.send("S", [("a", 3, START + HOUR)])
    newest = _next(rollup.open(conf).subscribe("A", "days")).commit
    lines = _printed("subscribe", str(conf), "A", "--per", "days", "--to-commit", str(newest))
    day = {"AGG_COMMIT": newest, "AGG_CHANGE": "row", "AGG_TIMESTAMP": "2018-01-01T00:00:00+00:00"}
    assert lines == [
        {"AGG_COMMIT": newest, "AGG_CHANGE": "cleared"},
        {**day, "k": None, "total": 2, "mean": 2.0, "n": 1, "last": 2, "AGG_FINAL": False},
        {**day, "k": "a", "total": 4, "mean": 2.0, "n": 2, "last": 3, "AGG_FINAL": False},
        {"AGG_COMMIT": newest, "AGG_CHANGE": "commit"},
    ]
    since = _printed("subscribe", str(conf), "A", "--per", "days", "--from-commit", str(newest - 1), "--to-commit", "0")
    assert [line["total"] for line in since if line["AGG_CHANGE"] == "row" and line["k"] == "a"] == [4]


def _printed(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(command, list(arguments))
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def _next(listening: Subscription) -> Change:
    change = listening.step()
    assert change is not None
    return change


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"per": "auto"}, "a subscription has no end .one of seconds"),
        ({"per": "days", "on": "nobody = 1"}, "nobody"),
        ({"per": "days", "on": "total ="}, "unexpected"),
        ({"per": "days", "since": "soon"}, "soon"),
        ({"name": "B", "per": "days"}, "'B' is no aggregation"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(tmp_path: Path, said: Any, message: str) -> None:
    delta_host(tmp_path, app())
    arguments: dict[str, Any] = {"name": "A", **said}
    with pytest.raises(rollup.RollupError, match=message):
        rollup.open(tmp_path / "conf.toml").subscribe(**arguments)


def test_a_commit_that_is_to_come_is_refused(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    host.send("S", [("a", 1, START)])
    with pytest.raises(QueryError, match="no commit 99 yet: its newest is 1"):
        rollup.open(tmp_path / "conf.toml").subscribe("A", "days", commit=99).step()


def test_a_key_that_is_not_selected_is_refused(tmp_path: Path) -> None:
    delta_host(tmp_path, app().replace("select k, ", "select "))
    with pytest.raises(QueryError, match="does not select its group key k"):
        rollup.open(tmp_path / "conf.toml").subscribe("A", "days")
