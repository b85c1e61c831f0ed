"""What other programs do to Delta tables: each operation is harmless, repaired, or refused by its name; no row is lost."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.stores.delta.store import DeltaStore
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import FileJob, Place
from tests.lifecycle.test_replay_verify import everything

Cli = Callable[..., tuple[int, str]]
Foreign = Callable[[DeltaTable], object]
DAYS = "from TradeAgg within '2018-01-** **:**:**' per 'seconds' select AGG_TIMESTAMP, symbol, total"


def vacuum(table: DeltaTable) -> None:
    """VACUUM RETAIN 0 HOURS."""
    table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)


def optimize(table: DeltaTable) -> None:
    """OPTIMIZE."""
    table.optimize.compact()


def zorder(table: DeltaTable) -> None:
    """OPTIMIZE ... ZORDER BY."""
    table.optimize.z_order(["AGG_TIMESTAMP"])


def both(table: DeltaTable) -> None:
    """OPTIMIZE, then VACUUM RETAIN 0 HOURS."""
    optimize(table)
    vacuum(DeltaTable(table.table_uri))


def property_(table: DeltaTable) -> None:
    """ALTER TABLE ... SET TBLPROPERTIES."""
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})


HARMLESS = [vacuum, optimize, zorder, both, property_]
UNDONE: list[Foreign] = [
    lambda table: table.delete("AGG_TIMESTAMP > 0"),
    lambda table: table.update({"symbol": "'other'"}),
]


def tables(place: Place) -> list[DeltaTable]:
    """All tables of levels."""
    return [DeltaTable(str(place.root / "tables" / f"TradeAgg_{level.name}")) for level in Duration]


def begun(place: Place, compacted: bool) -> tuple[FileJob, list[tuple[str, float, int, int]]]:
    """A job that has taken most of some trades, in many commits; perhaps with a compaction that no record pins."""
    events = trades(900)
    for at in range(0, 800, 80):
        place.add(*events[at : at + 80])
    job = FileJob(place.conf).run()
    if compacted:
        assert job.store.maintain(5.0)
    return job, events[800:]


@pytest.mark.parametrize("compacted", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("operation", HARMLESS)
@pytest.mark.few(2)
def test_what_changes_no_row_is_harmless(
    place: Place, rollup: Cli, operation: Foreign, compacted: bool, tmp_path: Path
) -> None:
    job, rest = begun(place, compacted)
    wanted, asked = everything(job), rollup("query", place.conf.path, DAYS, "--format", "json")
    for table in tables(place):
        operation(table)
    assert rollup("query", place.conf.path, DAYS, "--format", "json") == asked
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert "nothing to recover" in rollup("recover", place.conf.path, "--rebuild")[1]
    assert everything(FileJob(place.conf)) == wanted
    place.add(*rest)
    FileJob(place.conf).run()
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


@pytest.mark.parametrize("operation", UNDONE)
@pytest.mark.few(1)
def test_what_changes_rows_is_undone_and_said(
    place: Place, rollup: Cli, operation: Foreign, caplog: pytest.LogCaptureFixture
) -> None:
    job, rest = begun(place, True)
    wanted = everything(job)
    for table in tables(place):
        operation(table)
    assert everything(job) == wanted, "readers see what the commit has"
    place.add(*rest)
    FileJob(place.conf).run()
    assert "is of another program and is undone" in caplog.text
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_recovery_keeps_the_rows_that_are_there(place: Place, rollup: Cli) -> None:
    begun(place, False)
    root = place.root / "tables" / "TradeAgg_SECONDS"
    before = DeltaTable(str(root)).to_pyarrow_table().num_rows
    foreign = DeltaTable(str(root))
    foreign.update({"symbol": "'other'"})
    vacuum(DeltaTable(str(root)))
    assert "lacks" in rollup("verify", place.conf.path)[1]
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 0, said
    assert DeltaTable(str(root)).to_pyarrow_table().num_rows == before


@pytest.mark.slow
def test_a_job_beside_a_compactor_goes_on_and_undoes_nothing(
    place: Place, rollup: Cli, caplog: pytest.LogCaptureFixture
) -> None:
    events, stopped, failed = trades(900), threading.Event(), list[BaseException]()

    def foreign() -> None:
        while not stopped.wait(0.02):
            for table in tables(place):
                try:
                    optimize(table)
                except Exception as problem:
                    failed.append(problem)  # of two at once one may lose

    for at in range(0, 900, 30):
        place.add(*events[at : at + 30])
    job = FileJob(place.conf)
    beside = threading.Thread(target=foreign)
    beside.start()
    try:
        while job.step():
            job.store.maintain(0.1)
    finally:
        stopped.set()
        beside.join()
    assert "is undone" not in caplog.text
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_a_feature_of_a_table_that_is_not_written_is_refused_with_the_way_out(place: Place) -> None:
    job, rest = begun(place, True)
    wanted, features = everything(job), ["appendOnly", "invariants", "domainMetadata", "rowTracking"]
    protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}}
    for table in tables(place):
        log = place.root / "tables" / Path(table.table_uri).name / "_delta_log"
        lines = [{"commitInfo": {"operation": "SET TBLPROPERTIES"}}, protocol]
        (log / f"{table.version() + 1:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert everything(job) == wanted, "readers need no feature of writers"
    place.add(*rest)
    with pytest.raises(StoreError, match="RowTracking") as refused:
        FileJob(place.conf).run()
    assert "DROP FEATURE" in str(refused.value.hint)


def test_a_column_of_another_program_is_refused_and_goes_with_the_version_before(place: Place, rollup: Cli) -> None:
    job, rest = begun(place, True)
    wanted = everything(job)
    for table in tables(place)[:2]:
        table.alter.add_columns([Field("mine", PrimitiveType("string"))])
    with pytest.raises(StoreError, match="has foreign mine") as refused:
        FileJob(place.conf)
    assert "RESTORE TABLE" in str(refused.value.hint)
    assert everything(job) == wanted
    for table in tables(place)[:2]:
        table.restore(table.version() - 1)
    place.add(*rest)
    FileJob(place.conf).run()
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_a_version_made_while_a_start_opens_the_tables_is_harmless(
    place: Place, rollup: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a second job that makes the tables at the same time."""
    _, rest = begun(place, compacted=False)
    opened = DeltaStore._open_tables  # pyright: ignore[reportPrivateUsage]

    def slowly(store: DeltaStore) -> bool:
        fresh = opened(store)
        for table in tables(place):
            property_(table)
        return fresh

    place.add(*rest)
    with monkeypatch.context() as patched:
        patched.setattr(DeltaStore, "_open_tables", slowly)
        FileJob(place.conf).run()
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
