"""Tables that others have deleted or vacuumed: every command says which, none ends in a traceback, none says all is
well, and what can be made anew is, without touching an aggregation that is whole."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

import rollup as product
from rollup.core.calendar import Duration
from rollup.core.errors import FencedError, StoreError
from rollup.stores.delta.store import DeltaStore
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import FileJob, Place

Cli = Callable[..., tuple[int, str]]
LEVELS = [level.table_suffix for level in Duration]
OTHER = """
@OutOfOrder('correct') define aggregation Other from Trades
select symbol, max(quantity) as most group by symbol aggregate by ts every sec ... hour;
"""


@pytest.fixture
def two(tmp_path: Path) -> Place:
    """Two aggregations that have taken six files, and whose coarser levels are closed in part."""
    place = Place(tmp_path, "@OutOfOrder('correct') ").write()
    with (tmp_path / "app.siddhi").open("a") as app:
        app.write(OTHER)
    events = trades(240, width=90 * 86_400_000)
    for at in range(0, 240, 40):
        place.add(*events[at : at + 40])
    for name in ("TradeAgg", "Other"):
        FileJob(place.conf, name=name).run()
    return place


def path_of(place: Place, table: str) -> Path:
    return place.root / "tables" / f"TradeAgg_{table}"


def test_without_the_folder_of_commits_the_tables_are_said_to_be_there(two: Place, rollup: Cli) -> None:
    kept, aside = two.root / "tables" / "_rollup" / "TradeAgg", two.root / "aside"
    kept.rename(aside)
    asked = "from TradeAgg within '2020-**-** **:**:**' per 'days' select symbol, total"
    for words in (("query", asked), ("status", "--aggregation", "TradeAgg")):
        code, said = rollup(words[0], two.conf.path, *words[1:])
        assert code != 0, said
        assert "the tables of TradeAgg are in" in said and "bring it back" in said, said
    shutil.rmtree(kept, ignore_errors=True)
    aside.rename(kept)
    code, said = rollup("status", two.conf.path, "--aggregation", "TradeAgg")
    assert code == 0, said


def test_what_is_removed_under_a_running_job_is_not_laid_to_another_job(two: Place) -> None:
    job = FileJob(two.conf)
    job.run()
    shutil.rmtree(two.root / "tables" / "_rollup" / "TradeAgg")
    two.add(*trades(10, width=90 * 86_400_000))
    with pytest.raises(StoreError, match=r"is gone from .*: somebody has removed it under the job") as gone:
        job.run()
    assert not isinstance(gone.value, FencedError)


def remove(place: Place, table: str) -> None:
    shutil.rmtree(path_of(place, table))


def vacuum(place: Place, table: str) -> None:
    """Remove some of the data files, as a foreign vacuum of an older version does."""
    files = DeltaTable(str(path_of(place, table))).file_uris()
    for file in files[: max(1, len(files) // 2)]:
        Path(file.removeprefix("file://")).unlink()


def forget_log(place: Place, table: str) -> None:
    """Remove the log up to the version that the newest commit names."""
    for file in (path_of(place, table) / "_delta_log").iterdir():
        file.unlink()


def contents(place: Place, name: str = "TradeAgg") -> dict[str, Counter[tuple[Any, ...]]]:
    """Rows of every level, stored and open, however they are spread over files and parts; sums of doubles rounded."""
    job = FileJob(place.conf, name=name)
    snapshot, levels = job.store.snapshot(), job.aggregation.levels
    found = {f"open {level.plural}": snapshot.loaded().state.open[level] for level in levels}
    for level in levels:
        rows = snapshot.rows(level).cast(job.aggregation.state_schema)
        found[level.plural] = job.pipeline.cascade.merge(job.engine, level, [rows])
    return {table: Counter(map(_row, rows.to_pylist())) for table, rows in found.items()}


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row.values())


COMMANDS: list[tuple[str, ...]] = [
    ("verify",),
    ("status",),
    ("recover",),
    ("verify", "--raw"),
    ("replay", "--from", "2018-01-01", "--to", "2018-02-01"),
]


@pytest.mark.parametrize("damage", [remove, vacuum, forget_log])
@pytest.mark.parametrize("table", ["SECONDS", "HOURS"])
@pytest.mark.few(1)
def test_every_command_names_a_table_that_is_damaged(
    two: Place, rollup: Cli, damage: Callable[[Place, str], None], table: str
) -> None:
    damage(two, table)
    for command, *options in COMMANDS:
        code, said = rollup(command, two.conf.path, *options)
        assert code == 2 and f"TradeAgg_{table}" in said and "nothing to recover" not in said.split("Other")[0], (
            command,
            said,
        )
    level = table.lower()
    question = f"from TradeAgg within 0L, 253402300799000L per '{level}' select symbol, total"
    for text in (question, f"select * from TradeAgg within '2018-**-** **:**:**' per '{level}'"):
        code, said = rollup("query", two.conf.path, text)
        assert code == 2 and f"TradeAgg_{table}" in said, said


def test_a_damaged_data_file_is_named(two: Place, rollup: Cli) -> None:
    """Wherever a bit flips, a refusal names the file; no error of a library's comes through."""
    files = sorted((two.root / "tables").glob("TradeAgg_MINUTES/**/*.parquet"), key=lambda file: file.stat().st_size)
    file = files[-1]
    whole, chance = file.read_bytes(), random.Random(7)
    question = (
        "from TradeAgg within '2018-**-** **:**:**' per 'minutes' select symbol, total, count() as n group by symbol"
    )
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        try:
            product.query(two.conf.path, question)
        except StoreError as problem:
            refused += 1
            assert file.name in problem.message, problem
    assert refused == 60
    file.write_bytes(whole)


def test_a_store_that_is_named_wrong_is_no_empty_store(two: Place, rollup: Cli) -> None:
    text = two.conf.path.read_text()
    path = next(line for line in text.splitlines() if line.startswith("path") and "tables" in line)
    two.conf.path.write_text(text.replace(path, 'path = "tabels"'))
    for command in ("status", "verify"):
        code, said = rollup(command, two.conf.path)
        assert code == 2 and "there is no folder" in said and "tabels" in said, said


@pytest.mark.parametrize("damage", [remove, vacuum, forget_log])
@pytest.mark.parametrize("table", ["MINUTES and HOURS", "MINUTES", "MONTHS", "YEARS"])
@pytest.mark.few(1)
def test_a_coarser_table_is_made_anew_and_nothing_is_lost(
    two: Place, rollup: Cli, damage: Callable[[Place, str], None], table: str
) -> None:
    before, other = contents(two), contents(two, "Other")
    tables = table.split(" and ")
    if damage is vacuum and not DeltaTable(str(path_of(two, tables[-1]))).file_uris():
        damage = remove  # nothing of years is closed yet
    for each in tables:
        damage(two, each)
    code, said = rollup("recover", two.conf.path, "--rebuild")
    assert code == 0 and all(f"{each.lower()}: " in said for each in tables), said
    assert "Other: commit 6 is whole: nothing to recover" in said
    assert contents(two) == before
    assert contents(two, "Other") == other
    assert FileJob(two.conf).pipeline.number == 7
    assert rollup("verify", two.conf.path, "--raw")[0] == 0
    assert rollup("recover", two.conf.path)[0] == 0
    two.add(*trades(50, seed=9, width=10**9))
    assert FileJob(two.conf).step(), "the stream goes on where it was"
    assert rollup("verify", two.conf.path, "--raw", "--aggregation", "TradeAgg")[0] == 0


@pytest.mark.parametrize("damage", [remove, vacuum])
@pytest.mark.few(1)
def test_what_the_finest_table_has_lost_comes_back_with_a_replay(
    two: Place, rollup: Cli, damage: Callable[[Place, str], None]
) -> None:
    before = contents(two)
    damage(two, "SECONDS")
    code, said = rollup("recover", two.conf.path, "--rebuild")
    assert code == 0 and "bring it back with `rollup replay`" in said
    after = contents(two)
    assert after["open seconds"] == before["open seconds"] and after["minutes"] == before["minutes"]
    if damage is vacuum:
        assert after["seconds"] and not after["seconds"] - before["seconds"], "what is there is kept"
    code, said = rollup("verify", two.conf.path)
    assert code == 1, "the minutes have more than the seconds"
    assert rollup("replay", two.conf.path, "--from", "2018-01-01", "--to", "2018-05-01")[0] == 0
    assert rollup("verify", two.conf.path, "--raw", "--true-buckets")[0] == 0


def test_a_ledger_that_is_gone_is_made_anew_and_said(two: Place, rollup: Cli) -> None:
    before = contents(two)
    remove(two, "LATE")
    code, said = rollup("status", two.conf.path)
    assert code == 2 and "TradeAgg_LATE is gone" in said
    code, said = rollup("recover", two.conf.path, "--rebuild")
    assert code == 0 and "late events: the counts" in said
    assert contents(two) == before and rollup("status", two.conf.path)[0] == 0


def test_a_rebuild_killed_before_its_commit_is_done_again(
    two: Place, rollup: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(two)
    remove(two, "MINUTES")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as fault:
        fault.setattr(DeltaStore, "commit", die)
        with pytest.raises((KeyboardInterrupt, AssertionError)):
            assert rollup("recover", two.conf.path, "--rebuild")[0] == 0
    code, said = rollup("recover", two.conf.path)
    assert code == 2 and "TradeAgg_MINUTES" in said, "it is not taken for a table that is whole"
    assert rollup("recover", two.conf.path, "--rebuild")[0] == 0
    assert contents(two) == before


def test_an_aggregation_that_is_whole_is_rebuilt_only_by_its_name(two: Place, rollup: Cli) -> None:
    before = contents(two)
    assert rollup("recover", two.conf.path, "--rebuild")[0] == 0
    assert contents(two) == before
    code, said = rollup("recover", two.conf.path, "--rebuild", "--aggregation", "TradeAgg")
    assert code == 0 and "lost: what was still open at seconds" in said


def test_a_file_of_another_that_a_question_names_is_not_taken_for_damage(two: Place, rollup: Cli) -> None:
    code, said = rollup("query", two.conf.path, "select * from read_parquet('nowhere.parquet')")
    assert code == 2 and "nowhere.parquet" in said and "the table" not in said
