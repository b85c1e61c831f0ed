"""Recovery and faults: what a disk, a damaged file or a foreign hand does to a store.

Each has a message that says what to do, and nothing is lost. Real files, a real full disk (a tmpfs) and a real
read-only mount where the machine allows it, because only they fail as they do.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.hosts.local import LocalHost
from rollup.stores.delta.store import DeltaStore
from tests.lifecycle.conftest import EVERY_STORE, ON_POSTGRES, execute, remove_table, trades
from tests.lifecycle.filejob import MIDNIGHT, FileJob, Place

Cli = Callable[..., tuple[int, str]]
ROOT = Path(__file__).parents[2]


def begun(place: Place, files: int = 4) -> list[tuple[str, float, int, int]]:
    """A job that has taken some of a thousand trades, 100 a file."""
    events = trades(1000)
    for at in range(0, files * 100, 100):
        place.add(*events[at : at + 100])
    FileJob(place.conf).run()
    return events


def finish(place: Place, events: list[tuple[str, float, int, int]], taken: int) -> FileJob:
    """Take the rest."""
    for at in range(taken, len(events), 100):
        place.add(*events[at : at + 100])
    return FileJob(place.conf).run()


def record(place: Place, number: int) -> Path:
    return place.root / "tables" / "_rollup" / "TradeAgg" / f"commit-{number:012d}.json"


@EVERY_STORE
def test_recover_leaves_a_whole_store_alone(place: Place, rollup: Cli) -> None:
    begun(place)
    assert rollup("recover", place.conf.path) == (0, "TradeAgg: commit 4 is whole: nothing to recover\n")


def test_a_damaged_commit_record_is_named_and_going_back_loses_nothing(place: Place, rollup: Cli) -> None:
    events = begun(place)
    record(place, 4).write_text('{"number": 4, "versions"')
    with pytest.raises(StoreError, match=r"commit-000000000004.json is damaged.*rollup recover"):
        FileJob(place.conf)
    code, output = rollup("recover", place.conf.path)
    assert code == 2 and "commit 4 of TradeAgg is damaged" in output
    assert "`rollup recover CONF --aggregation TradeAgg --to-commit 3`" in output
    code, output = rollup("recover", place.conf.path, "--to-commit", 3)
    assert code == 0 and "Trades: goes on after batch 2" in output
    finish(place, events, 400)
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_damaged_open_rows_are_found_too(place: Place, rollup: Cli) -> None:
    events = begun(place)
    opened = json.loads(record(place, 4).read_text())["open"]["SECONDS"]
    (record(place, 4).parent / opened).write_bytes(b"not arrow")
    with pytest.raises(StoreError, match=r"open rows.*cannot be read.*rollup recover"):
        FileJob(place.conf)
    assert rollup("recover", place.conf.path, "--to-commit", 3)[0] == 0
    finish(place, events, 400)
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_going_back_further_than_the_checkpoint_knows_is_refused_and_touches_nothing(place: Place, rollup: Cli) -> None:
    begun(place)
    (place.root / "checkpoint" / "Trades" / "offsets" / "1").unlink()
    code, output = rollup("recover", place.conf.path, "--to-commit", 2)
    assert code == 2 and "no longer knows batch 1" in output and record(place, 4).exists()


@pytest.mark.parametrize("lost", ["plan", "rows", "first", "table"])
@pytest.mark.few(2)
def test_a_commit_that_is_named_is_not_refused(place: Place, rollup: Cli, lost: str) -> None:
    """Of the last commits one is damaged, another cannot be gone back to: the streams' log, its rows, or a table lack it."""
    events = begun(place)
    record(place, 4).write_text('{"number": 4, "versions"')
    if lost == "plan":
        (place.root / "checkpoint" / "Trades" / "offsets" / "2").unlink()
    elif lost == "rows":
        (record(place, 3).parent / json.loads(record(place, 3).read_text())["open"]["SECONDS"]).unlink()
    elif lost == "first":
        for number in (1, 2, 3):
            record(place, number).unlink(missing_ok=True)
    else:
        table = place.root / "tables" / "TradeAgg_SECONDS"
        pinned = (json.loads(record(place, number).read_text())["versions"]["SECONDS"] for number in (3, 2))
        newest, before = (set(DeltaTable(table, version=version).file_uris()) for version in pinned)
        assert newest - before
        for file in newest - before:
            Path(file).unlink()
    code, output = rollup("recover", place.conf.path)
    assert code == 2 and "commit 4 of TradeAgg is damaged" in output
    named = re.search(r"--to-commit (\d+)", output)
    code, tried = rollup("recover", place.conf.path, "--to-commit", 99)
    assert code == 2 and f"those to go back to: {named[1] if named else 'none'}" in tried
    if named is None:
        assert "--rebuild uses the tables alone" in output
        return
    assert int(named[1]) < 3
    assert rollup("recover", place.conf.path, "--to-commit", named[1])[0] == 0
    finish(place, events, 400)
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


@EVERY_STORE
@pytest.mark.few(1)
def test_without_any_record_open_rows_come_from_the_finer_tables_and_the_rest_is_said_and_replayed(
    place: Place, rollup: Cli
) -> None:
    events = begun(place)
    FileJob(place.conf).store.forget()
    code, output = rollup("recover", place.conf.path)
    assert (
        code == 0
        and "open rows from TradeAgg_SECONDS" in output
        and "lost: what was still open at seconds, that is events from 2018-01-0" in output
    )
    assert "earlier ones are known to be in the tables and are dropped" in output
    assert rollup("verify", place.conf.path)[0] == 0
    range_ = ("--from", "2018-01-01", "--to", "2018-02-01")
    resume = re.search(r"events from ([\d: -]+) on", output)
    assert resume is not None
    begin = datetime.fromisoformat(resume[1]).replace(tzinfo=UTC).timestamp() * 1000
    lost = sum(at >= begin for *_, at in events[:400])
    for option in ("--dry-run", "--json"):
        assert f"events left out: {lost}, from " in rollup("replay", place.conf.path, *range_, option)[1]
    finish(place, events, 400)
    assert rollup("verify", place.conf.path)[0] == 0
    code, output = rollup("replay", place.conf.path, *range_)
    assert code == 0 and "left out" not in output
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0


def test_recover_does_nothing_while_a_job_runs(place: Place, rollup: Cli) -> None:
    from rollup.lifecycle.lease.holding import Lease
    from rollup.lifecycle.lease.places import Files

    begun(place)
    lease = Lease(Files(record(place, 1).parent), "run")
    assert lease.take()
    code, output = rollup("recover", place.conf.path, "--rebuild")
    assert code == 2 and "run, process" in output and "is at work (stop it first)" in output
    lease.release()


@pytest.mark.parametrize(
    ("new_store", "damage"),
    [
        pytest.param("postgres", "clocks = '{'", marks=pytest.mark.postgres),
        ("sqlite", "source = 'nothing'"),
    ],
    indirect=["new_store"],
)
@pytest.mark.few(1)
def test_a_damaged_record_in_a_database_is_named_and_made_anew_from_the_tables(
    place: Place, rollup: Cli, damage: str
) -> None:
    events = begun(place)
    execute(place, f'update "TradeAgg_COMMIT" set {damage} where number = 4')
    with pytest.raises(StoreError, match=r"commit 4 in TradeAgg_COMMIT is damaged.*rollup recover CONF --rebuild"):
        FileJob(place.conf)
    assert rollup("recover", place.conf.path)[0] == 2, "only looking changes nothing"
    code, output = rollup("recover", place.conf.path, "--to-commit", 3)
    assert code == 2 and "a database keeps one commit of TradeAgg, the newest (--rebuild" in output
    assert rollup("recover", place.conf.path, "--rebuild")[0] == 0
    finish(place, events, 400)
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-02-01")[0] == 0
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0


@EVERY_STORE
@pytest.mark.few(1)
def test_a_missing_table_stops_the_job_with_its_name_and_is_made_anew_from_the_finer_one(
    place: Place, rollup: Cli
) -> None:
    events = begun(place)
    remove_table(place, "MINUTES")
    with pytest.raises(StoreError, match=r"TradeAgg_MINUTES is gone.*rollup recover CONF --rebuild"):
        FileJob(place.conf)
    assert not (place.root / "tables" / "TradeAgg_MINUTES").exists(), "looking makes nothing"
    assert rollup("recover", place.conf.path, "--rebuild")[0] == 0
    code, output = rollup("verify", place.conf.path)
    assert code == 0 and output.endswith("every level is right\n")
    finish(place, events, 400)
    assert rollup("verify", place.conf.path)[0] == 0


def test_a_foreign_column_and_a_wrong_type_are_named(place: Place) -> None:
    begun(place)
    path = str(place.root / "tables" / "TradeAgg_DAYS")
    table = DeltaTable(path).to_pyarrow_table()
    write_deltalake(
        path,
        table.append_column("mine", pa.nulls(table.num_rows, pa.string())),
        mode="overwrite",
        schema_mode="overwrite",
    )
    with pytest.raises(StoreError, match="TradeAgg_DAYS has foreign mine"):
        FileJob(place.conf)
    index = table.schema.get_field_index("AGG_SUM_quantity")
    wrong = table.set_column(index, "AGG_SUM_quantity", table["AGG_SUM_quantity"].cast(pa.float64()))
    write_deltalake(path, wrong, mode="overwrite", schema_mode="overwrite")
    with pytest.raises(StoreError, match=r"TradeAgg_DAYS has another type in AGG_SUM_quantity \(double, not int64\)"):
        FileJob(place.conf)


def test_a_poison_file_and_a_file_of_another_schema_are_dead_letters_and_the_rest_counts(
    place: Place, rollup: Cli
) -> None:
    import pyarrow.parquet as pq

    begun(place, 2)
    (place.root / "incoming" / "part-00002.parquet").write_bytes(b"PAR1 this is no parquet file PAR1")
    pq.write_table(
        pa.table({"symbol": ["A"], "price": [1.0], "ts": [MIDNIGHT]}), place.root / "incoming" / "part-00003.parquet"
    )
    place.files = 4
    place.add(("A", 1.0, 5, MIDNIGHT + 10**9))
    job = FileJob(place.conf).run()
    assert job.pipeline.number == 5 and job.pipeline.state.clocks[Duration.SECONDS] == MIDNIGHT + 10**9
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_an_event_far_in_the_future_closes_what_is_open_and_a_replay_undoes_what_it_did(
    tmp_path: Path, rollup: Cli
) -> None:
    place = Place(tmp_path).write()
    place.add(*[("A", 1.0, 1, MIDNIGHT + i * 1000) for i in range(100)])
    place.add(("A", 1.0, 1, MIDNIGHT + 10**12))
    place.add(*[("A", 1.0, 1, MIDNIGHT + i * 1000) for i in range(100, 200)])
    job = FileJob(place.conf).run()
    assert job.store.snapshot().ledger()["AGG_EVENTS"].to_pylist() == [1] * 100, "every one is counted as late"
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2049-09-10")[0] == 0
    minutes = rollup(
        "query",
        place.conf.path,
        "from TradeAgg within '2018-01-01 00:**:**' per 'hours' select symbol, total",
        "--format",
        "json",
    )[1]
    assert json.loads(minutes) == {"symbol": "A", "total": 200}


_TAKE = """
import rollup
from tests.lifecycle.filejob import FileJob, load
FileJob(load("rollup.toml")).run()
found = rollup.query("rollup.toml", "from TradeAgg within 0L, 9000000000000L per 'days' select AGG_TIMESTAMP, total")
print({row["AGG_TIMESTAMP"]: row["total"] for row in found.to_pylist()})
"""


def test_another_zone_database_of_the_machine_moves_no_bucket(tmp_path: Path) -> None:
    """Buckets and bounds are cut by the pinned package of zones: an update of the machine's between two batches changes
    nothing.

    The other database is a folder in which Paris keeps the time of Tokyo.
    """
    hour, day = 3_600_000, 86_400_000
    place = Place(tmp_path / "job")
    place.root.mkdir()
    place.write()
    path = place.root / "rollup.toml"
    path.write_text('zone = "Europe/Paris"\n' + path.read_text())
    place.add(("A", 1.0, 1, MIDNIGHT), ("A", 1.0, 2, MIDNIGHT + 25 * hour))
    FileJob(place.conf).run()
    other = tmp_path / "zones" / "Europe"
    other.mkdir(parents=True)
    (other / "Paris").write_bytes((files("tzdata") / "zoneinfo" / "Asia" / "Tokyo").read_bytes())
    place.add(("A", 1.0, 4, MIDNIGHT + 40 * day))
    ran = subprocess.run(
        [sys.executable, "-c", _TAKE],
        cwd=place.root,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONTZPATH": str(tmp_path / "zones")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    starts = {MIDNIGHT - hour: 1, MIDNIGHT + day - hour: 2, MIDNIGHT + 40 * day - hour: 4}
    assert ast.literal_eval(ran.stdout) == starts


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB; skipped with a reason where it cannot be mounted."""
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)], check=False, capture_output=True
    ).returncode:
        pytest.skip("only root may mount a small file system")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=False)


def test_a_full_disk_stops_the_job_with_its_reason_and_the_same_store_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path, rollup: Cli
) -> None:
    place = Place(tmp_path / "job", "@OutOfOrder('correct') ")
    (tmp_path / "job").mkdir()
    place.write()
    (small_disk / "tables").mkdir()
    (place.root / "tables").symlink_to(small_disk / "tables")
    events = trades(3000)
    for at in range(0, 3000, 100):
        place.add(*events[at : at + 100])
    with pytest.raises(StoreError, match=r"No space left on device|StorageFull|os error 28"):
        FileJob(place.conf).run()
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert FileJob(place.conf).run().pipeline.number == 30
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_a_commit_that_failed_may_be_tried_again_by_the_same_process(tmp_path: Path) -> None:
    """The library's case: an error is caught, the batch sent again. Rows of the failed try must not count."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    text = (
        "define stream S (k string, ts long);"
        "define aggregation A from S select k, count() as n group by k aggregate by ts every sec ... min;"
    )
    host = LocalHost.of(text, lambda aggregation, engine: DeltaStore(aggregation, engine, tmp_path))
    host.send("S", [("a", i * 1000) for i in range(5)])
    store, write = host.stores["A"], host.stores["A"].records.write_rows  # type: ignore[attr-defined]

    def full(*_: object) -> None:
        raise StoreError("no space left")

    store.records.write_rows = full  # type: ignore[attr-defined]
    for _ in range(2):
        with pytest.raises(StoreError, match="no space left"):
            host.send("S", [("a", i * 1000) for i in range(5, 100)])
    store.records.write_rows = write  # type: ignore[attr-defined]
    host.send("S", [("a", i * 1000) for i in range(5, 100)])
    assert host.query("from A within 0L, 1000000L per 'minutes' select n")["n"].to_pylist() in ([60, 40], [40, 60])
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == limit


def test_a_folder_that_cannot_be_written_is_named_and_can_still_be_read(place: Place, rollup: Cli) -> None:
    begun(place)
    tables = place.root / "tables"
    bound = (
        subprocess.run(["mount", "--bind", str(tables), str(tables)], check=False, capture_output=True).returncode == 0
    )
    if not bound:
        pytest.skip("only root may mount a folder read-only")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(tables)], check=True)
        assert rollup("verify", place.conf.path)[0] == 0 and rollup("status", place.conf.path)[0] == 0
        code, output = rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-01-02")
        assert code == 2 and "Read-only file system" in output and "Traceback" not in output
        job = FileJob(place.conf)
        place.add(("A", 1.0, 5, MIDNIGHT + 10**9))
        with pytest.raises(StoreError, match=r"cannot write.*(Read-only|os error 30)"):
            job.run()
    finally:
        subprocess.run(["umount", str(tables)], check=True)
    FileJob(place.conf).run()
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


@ON_POSTGRES
def test_status_says_how_a_store_is_doing_also_as_json(place: Place, rollup: Cli) -> None:
    assert rollup("status", place.conf.path)[0] == 0, "before the first commit, too"
    begun(place)
    code, output = rollup("status", place.conf.path, "--json")
    found = json.loads(output)
    assert (
        code == 0
        and found["commit"] == 4
        and found["lag"] > 10**8
        and found["holder"] is None
        and found["commit_age"] < 60
    )
    assert sum(level["open_rows"] for level in found["levels"]) > 0 and found["levels"][0]["stored_rows"] > 300
    assert set(found["late"]) == {"corrected"} and found["source"]["Trades"]["batch"] == 3
    assert "TradeAgg: commit 4" in rollup("status", place.conf.path)[1]


@pytest.mark.slow
def test_a_million_keys_in_one_batch(tmp_path: Path) -> None:
    code = (
        "import resource, sys, time; from tests.lifecycle.test_recover_faults import million; "
        "began = time.time(); million(sys.argv[1]); "
        "print(round(time.time() - began, 1), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    seconds, megabytes = map(float, found.stdout.split())
    print(f"1,000,000 keys in one batch: {seconds} s, {megabytes} MB")
    assert seconds < 120 and megabytes < 6000


def million(root: str) -> None:
    """One batch of a million keys, and one that closes them at every level up to the hour."""
    text = (
        "define stream S (k long, v long, ts long);"
        "define aggregation A from S select k, sum(v) as s, avg(v) as a group by k aggregate by ts every sec ... year;"
    )
    host = LocalHost.of(text, lambda aggregation, engine: DeltaStore(aggregation, engine, root))
    count = 1_000_000
    for batch, ts in enumerate((MIDNIGHT, MIDNIGHT + 2 * 3_600_000, MIDNIGHT + 4 * 3_600_000)):
        columns = [
            pa.array(range(count)),
            pa.array(range(count)),
            pa.array([ts] * count),
            pa.array(range(batch * count, (batch + 1) * count)),
            pa.array([0] * count),
        ]
        host.process("S", pa.table(columns, names=["k", "v", "ts", "__arrival", "__received"]))
    assert host.stores["A"].snapshot().sizes()[Duration.SECONDS].rows == 2 * count
