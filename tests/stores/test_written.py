"""A table's log as its one writer continues it, beside what Delta's own library makes of the same files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from rollup.core.calendar import Duration
from rollup.core.objects import create
from rollup.stores.delta import store, written
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.write import PERIOD, add_files, write_files
from rollup.stores.delta.written import WrittenTable
from tests.retrieval.trades import app, delta_host
from tests.stores.test_delta_compaction import batches, content, store_of

DAY = 86_400_000
KEYS = [None, "plain", 'a "b"/ü', "a\u2028b", "a\nb%20"]
ROWS = pa.table({"AGG_TIMESTAMP": [DAY * i for i in range(5)], "k": KEYS, PERIOD: [None] * 5})
SCHEMA = ROWS.schema.set(2, pa.field(PERIOD, pa.string()))


def made(path: Path) -> DeltaTable:
    return DeltaTable.create(path, SCHEMA, partition_by=[PERIOD])


def test_an_entry_says_what_the_library_says(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", made(tmp_path / "theirs")
    made(ours)
    known = WrittenTable(ours)
    assert not known.index.paths
    for number in range(3):
        files = write_files(ours, Duration.SECONDS, ROWS.drop_columns([PERIOD]), ["k"])
        assert known.append(files, "rollup/A", number)
        properties = CommitProperties(app_transactions=[Transaction("rollup/A", number)])
        add_files(theirs, Duration.SECONDS, files, properties)
        theirs.update_incremental()
    read = DeltaTable(ours)
    assert known.version == read.version() == theirs.version() == 3
    assert read.transaction_version("rollup/A") == 2

    def listed(table: DeltaTable) -> list[str]:
        return sorted(map(str, pa.table(table.get_add_actions()).to_pylist()))

    assert listed(read) == listed(theirs) and len(listed(read)) == 15
    assert known.index.sum == FileIndex.of(read).sum
    assert sorted(known.index.paths) == sorted(FileIndex.of(read).paths)


def test_a_version_of_another_is_not_built_upon(tmp_path: Path) -> None:
    made(tmp_path)
    ours, other = WrittenTable(tmp_path), WrittenTable(tmp_path)
    files = write_files(tmp_path, Duration.SECONDS, ROWS.drop_columns([PERIOD]), ["k"])
    assert other.append(files, "rollup/B", 1)
    assert not ours.append(files, "rollup/A", 1)
    assert (ours.version, ours.index.paths) == (0, [])
    ours.reread()
    assert ours.version == 1 and ours.index.sum == other.index.sum


def test_a_table_with_a_feature_of_another_program_is_left_to_the_library(tmp_path: Path) -> None:
    table = made(tmp_path)
    assert WrittenTable(tmp_path).append([], "rollup/A", 1)
    table.update_incremental()
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    assert not WrittenTable(tmp_path).append([], "rollup/A", 2)


def test_checkpoints_of_a_log_are_made_when_their_time_has_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(store._PROPERTIES, "delta.checkpointInterval", "3")  # type: ignore[attr-defined]
    host = delta_host(tmp_path, app())
    for batch in batches(9):
        host.send("S", batch)
    logs = list(tmp_path.glob("store/A_*/_delta_log"))
    for log in logs:
        newest = max(int(file.stem) for file in log.glob("*.json"))
        made = {int(file.name[:20]) for file in log.glob("*.checkpoint.parquet")}
        assert made == set(range(2, newest + 1, 3))
    assert any(log.glob("*.checkpoint.parquet") for log in logs)


@pytest.mark.parametrize("made_all_the_same", [True, False])
def test_an_entry_of_which_no_answer_comes_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_all_the_same: bool
) -> None:
    calls = 0

    def lost(act: Callable[[Path, bytes], None]) -> Callable[[Path, bytes], None]:
        def acted(path: Path, data: bytes) -> None:
            nonlocal calls
            calls += 1
            if calls % 4 or made_all_the_same:
                act(path, data)
            if calls % 4 == 0:
                raise OSError(5, "no answer", str(path))

        return acted

    for name in ("whole", "lost"):
        (tmp_path / name).mkdir()
    whole, host = delta_host(tmp_path / "whole", app()), delta_host(tmp_path / "lost", app())
    for batch in batches(8):
        whole.send("S", batch)
    monkeypatch.setattr(written, "create", lost(create))
    for batch in batches(8):
        host.send("S", batch)
    assert calls > 8
    assert content(store_of(host)) == content(store_of(whole))
