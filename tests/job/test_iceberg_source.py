"""An Iceberg table as a source: its appended rows in the order of its history, and what it refuses by name.

The table is written by pyiceberg. What a source must give is what a plain list holds of the rows that were appended.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, SourceError
from rollup.plan.app import StreamDef
from rollup.program import compile_app
from rollup.sources.iceberg import Iceberg
from rollup.sources.new_files import NewFiles
from tests.job.jobs import TRADES, Job, answers, command
from tests.servers.s3 import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("quantity", pa.int64()), ("ts", pa.int64())])
STREAM: StreamDef = compile_app(TRADES).streams["Trades"]


def rows(number: int) -> list[dict[str, Any]]:
    """The trades of one append."""
    return [
        {"symbol": f"S{i % 3}", "price": i / 4, "quantity": i, "ts": 1_600_000_000_000 + (number * 40 + i) * 700}
        for i in range(40)
    ]


def append(table: Table, *numbers: int) -> None:
    for number in numbers:
        table.append(pa.Table.from_pylist(rows(number), schema=SCHEMA))


class Read:
    """A source with the checkpoint of its query, asked as the job asks it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder / "checkpoint"
        self.options = {
            "kind": "iceberg", "table": "lake.trades", "catalog": "lake", "uri": f"sqlite:///{folder}/lake.db", **options,
        }  # fmt: skip
        self.batch = -1

    @property
    def source(self) -> Iceberg:
        return Iceberg(STREAM, self.options)

    def plan(self, most: int = 100) -> int:
        """Plan the next batch; the entry of the log with which it ends."""
        source = self.source
        source.check()
        before = self.batch if self.batch < 0 else self._entry(self.batch)
        entry = NewFiles(source.folder, source.order, self.folder, most).after(before)
        if entry > before:
            self.batch += 1
            (self.folder / "offsets").mkdir(parents=True, exist_ok=True)
            (self.folder / "offsets" / str(self.batch)).write_text(json.dumps({"logOffset": entry}))
        return entry

    def _entry(self, batch: int) -> int:
        return int(json.loads((self.folder / "offsets" / str(batch)).read_text())["logOffset"])

    def taken(self) -> tuple[list[dict[str, Any]], list[str]]:
        """The events of the newest batch in their order, and why some are none."""
        source, engine, events, dead = self.source, ColumnEngine(threads=1), list[Any](), list[str]()
        parts = list[tuple[int, list[Any]]]()
        planned: Any = source.planned(None, self.folder, self.batch)  # type: ignore[arg-type]
        for part in source.parts(engine, planned):
            names = ", ".join(SCHEMA.names)
            found = engine.run(f"SELECT {names} FROM {part.view} ORDER BY __arrival").to_pylist()
            parts.append((part.order, found))
            dead += [f"{row['position']}: {row['reason']}" for row in part.dead.to_pylist()]
        for _, found in sorted(parts, key=lambda part: part[0]):
            events += found
        return events, dead

    def read(self, most: int = 100) -> tuple[list[dict[str, Any]], list[str]]:
        self.plan(most)
        return self.taken()


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    made = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"file://{tmp_path}/ware house")
    made.create_namespace("lake")
    return made


@pytest.fixture
def table(catalog: SqlCatalog) -> Table:
    return catalog.create_table("lake.trades", SCHEMA)


def wanted(*numbers: int) -> list[dict[str, Any]]:
    return [row for number in numbers for row in rows(number)]


def test_rows_come_in_the_order_of_the_history_and_a_batch_tried_again_has_the_same(
    tmp_path: Path, table: Table
) -> None:
    read = Read(tmp_path)
    assert read.plan() == -1
    append(table, 2, 0, 3, 1)
    assert read.read(most=3) == (wanted(2, 0, 3), [])
    append(table, 9)
    assert read.taken() == (wanted(2, 0, 3), [])
    assert read.read() == (wanted(1, 9), [])
    assert read.plan() == 1


def test_a_table_that_is_away_is_no_fault_of_the_configuration(tmp_path: Path, table: Table) -> None:
    append(table, 1)
    read, warehouse = Read(tmp_path), tmp_path / "ware house"
    warehouse.rename(tmp_path / "away")
    with pytest.raises(SourceError, match="cannot read the table"):
        read.plan()
    (tmp_path / "away").rename(warehouse)
    assert read.read() == (wanted(1), [])


def test_what_changes_rows_is_refused_by_its_number_and_what_only_moves_them_adds_nothing(
    tmp_path: Path, table: Table
) -> None:
    append(table, 0, 1)
    read = Read(tmp_path)
    assert read.read() == (wanted(0, 1), [])
    table.delete("quantity = 7")
    append(table, 2)
    table.overwrite(pa.Table.from_pylist(rows(3), schema=SCHEMA))
    _, _, changed, _, removed, _ = table.snapshots()
    events, dead = read.read()
    assert events == wanted(2, 3)
    assert [letter.partition(" changes")[0] for letter in dead] == [
        f"lake.trades:{each.snapshot_id}: snapshot {each.snapshot_id} ({each.summary.operation.value})"  # type: ignore[union-attr]
        for each in (changed, removed)
    ]
    table.delete("quantity = 7")
    metadata = Path(table.metadata_location.removeprefix("file://"))
    said = json.loads(metadata.read_text())
    said["snapshots"][-1]["summary"]["operation"] = "replace"  # pyiceberg puts no files together
    metadata.write_text(json.dumps(said))
    append(table.catalog.load_table("lake.trades"), 4)
    assert read.read() == (wanted(4), [])


def expired(table: Table, *places: int) -> None:
    table.maintenance.expire_snapshots().by_ids([table.snapshots()[place].snapshot_id for place in places]).commit()


def test_snapshots_that_are_over_before_they_are_read_are_refused_with_the_way_on(tmp_path: Path, table: Table) -> None:
    append(table, 0, 1, 2)
    with pytest.raises(ConfigError, match="no snapshot 17 is in its history"):
        Read(tmp_path, starting_snapshot=17).plan()
    oldest = table.snapshots()[1].snapshot_id
    expired(table, 0)
    with pytest.raises(ConfigError, match=f"before {oldest} are expired") as refused:
        Read(tmp_path).plan()
    assert f"starting_snapshot = {oldest}" in str(refused.value.hint)
    read = Read(tmp_path, starting_snapshot=oldest)
    assert read.read() == (wanted(1, 2), [])
    append(table, 3)
    expired(table, 0, 1)  # of those that were read
    assert read.read() == (wanted(3), [])
    append(table, 4, 5)
    expired(table, 1)
    with pytest.raises(ConfigError, match="are expired"):
        read.plan()


def test_a_batch_that_was_planned_is_not_passed_over_when_its_snapshot_is_gone(tmp_path: Path, table: Table) -> None:
    append(table, 0, 1)
    read = Read(tmp_path)
    read.plan(most=1)
    gone = table.snapshots()[0].snapshot_id
    expired(table, 0)
    with pytest.raises(SourceError, match=f"snapshot {gone} of lake.trades is expired, and batch 0 has it"):
        read.taken()


def taken_back(catalog: SqlCatalog, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().rollback_to_snapshot(first).commit()


def taken_back_and_gone_on(catalog: SqlCatalog, table: Table) -> None:
    taken_back(catalog, table)
    append(table, 5)


def made_anew(catalog: SqlCatalog, table: Table) -> None:
    catalog.drop_table("lake.trades")
    append(catalog.create_table("lake.trades", SCHEMA), 5)


def emptied(catalog: SqlCatalog, table: Table) -> None:
    catalog.drop_table("lake.trades")
    catalog.create_table("lake.trades", SCHEMA)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (taken_back, "was read, and the table was taken back before it"),
        (taken_back_and_gone_on, "was read, and the table was taken back before it"),
        (made_anew, "what was read is no longer in its history"),
        (emptied, "what was read is no longer in its history"),
    ],
)
def test_another_history_than_the_one_that_was_read_is_refused(
    tmp_path: Path, catalog: SqlCatalog, table: Table, change: Callable[[SqlCatalog, Table], None], said: str
) -> None:
    append(table, 0, 1)
    read = Read(tmp_path)
    read.read()
    change(catalog, table)
    with pytest.raises(ConfigError, match=said):
        read.plan()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "lake.none"}, "the catalog lake has no table lake.none"),
        ({"uri": "sqlite:///none.db"}, "there is no catalog .*none.db"),
        ({"table": "trades"}, "a table with its namespace, as lake.trades"),
        ({"properties": {"token_env": "NOT_THERE"}}, "token_env: the name of a variable that is set"),
        ({"type": "foo"}, "type is 'foo' .one of rest, hive"),
        ({"starting_snapshott": 3}, "did you mean `starting_snapshot`"),
    ],
)
def test_a_source_that_cannot_be_is_refused_by_plan_and_makes_nothing(
    tmp_path: Path, table: Table, options: dict[str, Any], said: str
) -> None:
    job = Job(tmp_path, {**Read(tmp_path).options, **options})
    code, error = command("plan", job.path)
    assert code != 0
    assert re.search(said, re.sub(r"\s+", " ", error)), error
    assert not (tmp_path / "none.db").exists()


@pytest.mark.spark
def test_a_job_answers_as_one_over_the_same_rows_in_files(tmp_path: Path, spark: SparkSession, table: Table) -> None:
    (tmp_path / "in").mkdir()
    options = Read(tmp_path).options | {"max_files_per_batch": 2, "uri": "sqlite:///lake.db"}
    near = tmp_path / "near"
    near.mkdir()
    job, files = Job(tmp_path, options), Job(near, {"kind": "parquet", "path": str(tmp_path / "in")})
    for number in range(4):
        append(table, number)
        pq.write_table(pa.Table.from_pylist(rows(number), schema=SCHEMA), tmp_path / "in" / f"{number}.parquet")
        if number % 2:
            job.run(spark)
    files.run(spark)
    for per in ("seconds", "hours", "years"):
        assert answers(job.conf, "symbol, total, low, mean, events", per) == answers(
            files.conf, "symbol, total, low, mean, events", per
        )


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["batch.begin:2", "commit.level:4", "commit.record:2", "batch.end:2"])
def test_a_job_that_is_killed_takes_each_snapshot_once(tmp_path: Path, table: Table, fault: str) -> None:
    job = Job(tmp_path, Read(tmp_path).options | {"max_files_per_batch": 1})
    append(table, 0, 1, 2, 3)
    assert job.finish("--once", fault=fault)[0] == -signal.SIGKILL
    append(table, 4)
    code, said = job.finish("--once")
    assert code == 0, said
    counted = {symbol: (0, 0) for symbol in ("S0", "S1", "S2")}
    for row in wanted(0, 1, 2, 3, 4):
        total, events = counted[row["symbol"]]
        counted[row["symbol"]] = total + row["quantity"], events + 1
    assert answers(job.conf, "symbol, total, events", "years") == [(key, *both) for key, both in counted.items()]


def test_a_table_in_an_object_store_is_read_there(tmp_path: Path, s3: S3Server, bucket: str) -> None:
    keys = {
        f"s3.{name}": s3.environment[f"AWS_{name.upper().replace('-', '_')}"]
        for name in ("access-key-id", "secret-access-key")
    }
    made = SqlCatalog(
        "lake", uri=f"sqlite:///{tmp_path}/lake.db", warehouse=f"{bucket}/lake", **keys, **{"s3.endpoint": s3.endpoint}
    )
    made.create_namespace("lake")
    append(made.create_table("lake.trades", SCHEMA), 1, 0)
    assert Read(tmp_path).read() == (wanted(1, 0), [])
