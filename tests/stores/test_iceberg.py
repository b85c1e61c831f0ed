"""Levels as Iceberg tables: what readers of Iceberg see of a table is what readers of Delta see, whatever happened before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table

import rollup.stores.delta.iceberg as iceberg
from rollup.conf import load
from rollup.core.calendar import Duration
from rollup.core.errors import ConfigError, NoCommitError
from rollup.core.objects import at
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.delta.iceberg import COMMIT, listed
from rollup.stores.delta.read import DeltaReader
from rollup.stores.delta.store import DeltaStore
from tests.job.jobs import EVENTS, Job, command, trades_in, write_trades
from tests.retrieval.trades import DAY, START, app, delta_host
from tests.servers.s3 import S3Server
from tests.stores.test_delta_compaction import batches, store_of

pytestmark = pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # a faster package is not needed here
Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    """A catalog in a file of SQLite."""
    return SqlCatalog("rollup", uri=f"sqlite:///{tmp_path}/iceberg.db")


def host_in(folder: Path, count: int = 20) -> LocalHost:
    """A host whose tables have corrections, and files enough to be put together."""
    host = delta_host(folder, app("correct"))
    store_of(host).compact_after = 4
    for batch in batches(count):
        host.send("S", batch)
    return host


def rows_of(rows: pa.Table) -> Rows:
    """Rows with their columns in the order of the names, however they lie in files."""
    return Counter(tuple(row.values()) for row in rows.select(sorted(rows.schema.names)).to_pylist())


def tables(catalog: SqlCatalog) -> Mapping[str, Table]:
    """The tables of the namespace."""
    return {name[-1]: catalog.load_table(name) for name in catalog.list_tables("trades")}


def assert_same(catalog: SqlCatalog, root: Path) -> None:
    """Every level has the rows of its Delta table, for pyiceberg and for Polars' own reader."""
    found = tables(catalog)
    assert sorted(found) == [f"A_{level}" for level in ("DAYS", "HOURS", "MINUTES", "MONTHS", "SECONDS", "YEARS")]
    for name, table in found.items():
        wanted = rows_of(pa.table(DeltaTable(str(root / name)).to_pyarrow_table()))
        assert rows_of(table.scan().to_arrow()) == wanted
        assert rows_of(pl.scan_iceberg(table, reader_override="native").collect().to_arrow()) == wanted


def again(catalog: SqlCatalog, host: LocalHost, root: Path) -> list[str]:
    """The tables that have changed when they are listed once more."""
    return listed(catalog, ["trades"], DeltaReader(store_of(host).aggregation, host.engine, root))


def test_the_rows_are_those_of_the_delta_tables_behind_commits_compaction_and_rewrites(
    tmp_path: Path, catalog: SqlCatalog
) -> None:
    root = tmp_path / "store"
    host = host_in(tmp_path)
    assert sorted(again(catalog, host, root)) == ["A_HOURS", "A_MINUTES", "A_SECONDS"]
    assert_same(catalog, root)
    assert again(catalog, host, root) == []
    store = store_of(host)
    assert store.maintain(30.0)["SECONDS"] > 3
    host.pipelines["A"].rewrite({})
    assert "A_SECONDS" in again(catalog, host, root)
    said = tables(catalog)["A_SECONDS"].current_snapshot()
    assert said and said.summary and said.summary.additional_properties[COMMIT] == str(store.snapshot().number)
    assert_same(catalog, root)
    store.vacuum_hours = 0
    store.release(lambda: host.pipelines["A"].rewrite({}))
    again(catalog, host, root)
    assert_same(catalog, root)


def test_a_range_of_time_reads_the_files_that_have_it(tmp_path: Path, catalog: SqlCatalog) -> None:
    host = host_in(tmp_path, 30)
    again(catalog, host, tmp_path / "store")
    seconds = tables(catalog)["A_SECONDS"]
    scan = seconds.scan(f"AGG_TIMESTAMP >= {START} and AGG_TIMESTAMP < {START + DAY}")
    every = rows_of(seconds.scan().to_arrow())
    place = sorted(seconds.schema().column_names).index("AGG_TIMESTAMP")
    assert rows_of(scan.to_arrow()) == Counter({row: n for row, n in every.items() if row[place] < START + DAY})
    assert 0 < len(list(scan.plan_files())) < len(list(seconds.scan().plan_files()))


def test_what_another_program_does_to_a_table_is_put_right(tmp_path: Path, catalog: SqlCatalog) -> None:
    root = tmp_path / "store"
    host = host_in(tmp_path)
    again(catalog, host, root)
    hours = tables(catalog)["A_HOURS"]
    rows = hours.scan().to_arrow()
    hours.delete(f"AGG_TIMESTAMP < {START + 3 * 3_600_000}")
    hours.append(rows.slice(0, 2))
    assert again(catalog, host, root) == ["A_HOURS"]
    assert_same(catalog, root)
    catalog.drop_table("trades.A_MINUTES")
    assert again(catalog, host, root) == ["A_MINUTES"]
    assert_same(catalog, root)


@pytest.mark.slow
def test_of_two_who_list_at_once_one_is_refused_and_no_file_is_listed_twice(
    tmp_path: Path, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    host = host_in(tmp_path)
    again(catalog, host, root)
    host.send("S", batches(25)[-1])
    opened, others = iceberg._opened, [SqlCatalog("rollup", uri=f"sqlite:///{tmp_path}/iceberg.db")]  # pyright: ignore[reportPrivateUsage]

    def slowly(*given: Any) -> Any:
        table = opened(*given)
        if others and given[3] is Duration.YEARS:  # the last that is opened: now another lists all of them
            again(others.pop(), host, root)
        return table

    monkeypatch.setattr(iceberg, "_opened", slowly)
    with pytest.raises(CommitFailedException):
        again(catalog, host, root)
    assert others == []
    assert_same(catalog, root)


@pytest.mark.slow
def test_old_snapshots_go_with_their_metadata(
    tmp_path: Path, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    host = host_in(tmp_path, 1)
    monkeypatch.setattr(iceberg, "_KEPT", iceberg.timedelta(0))
    monkeypatch.setattr(iceberg, "_EXPIRED", 4)
    counts = list[int]()
    for batch in batches(14):
        host.send("S", batch)
        again(catalog, host, root)
        counts.append(len(list((root / "A_SECONDS" / "_iceberg").iterdir())))
    assert max(counts[10:]) <= max(counts[5:10]) + 4
    assert len(tables(catalog)["A_SECONDS"].snapshots()) <= 5
    assert_same(catalog, root)


def test_tables_in_an_object_store_are_listed_beside_them(tmp_path: Path, s3: S3Server, bucket: str) -> None:
    keys = {
        "s3.access-key-id": s3.environment["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": s3.environment["AWS_SECRET_ACCESS_KEY"],
    }
    catalog = SqlCatalog(
        "rollup", uri=f"sqlite:///{tmp_path}/iceberg.db", **keys, **{"s3.endpoint": s3.environment["AWS_ENDPOINT_URL"]}
    )
    root = at(f"{bucket}/tables")
    host = LocalHost(compile_app(app(), None), lambda aggregation, engine: DeltaStore(aggregation, engine, root))
    for batch in batches(2):
        host.send("S", batch)
    again(catalog, host, root)
    seconds = tables(catalog)["A_SECONDS"]
    assert seconds.metadata_location.startswith(f"{root}/A_SECONDS/_iceberg/")
    wanted = store_of(host).snapshot().rows(Duration.SECONDS)
    found = seconds.scan(selected_fields=tuple(wanted.schema.names)).to_arrow()
    assert wanted.num_rows and rows_of(found) == rows_of(wanted)


def test_without_a_commit_there_is_nothing_to_list(tmp_path: Path, catalog: SqlCatalog) -> None:
    with pytest.raises(NoCommitError):
        again(catalog, delta_host(tmp_path, app()), tmp_path / "other")


WRONG: Iterable[tuple[str, str]] = [
    ('"trades"', "a table with a namespace"),
    ('{ uri = "sqlite:///i.db" }', "a table with a namespace"),
    ('{ namespace = "a b", uri = "sqlite:///i.db" }', "a namespace"),
    ('{ namespace = "a", type = "nosuch" }', "a type of catalog: rest, hive"),
    ('{ namespace = "a", uri = "foo://x" }', "a uri that says which catalog it is"),
    ('{ namespace = "a", uri = "http://h", token_env = "NOT_SET_ANYWHERE" }', "token_env: the name of a variable"),
]


@pytest.mark.parametrize(("given", "said"), WRONG)
def test_a_wrong_catalog_is_refused_with_what_is_right(tmp_path: Path, given: str, said: str) -> None:
    delta_host(tmp_path, app())
    text = (tmp_path / "conf.toml").read_text()
    (tmp_path / "conf.toml").write_text(f"{text}iceberg = {given}\n")
    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "conf.toml")
    assert "iceberg" in str(refused.value) and said in f"{refused.value} {refused.value.hint}"


def _store(uri: str) -> str:
    return f'kind = "delta"\npath = "tables"\niceberg = {{ namespace = "trades", uri = "{uri}" }}'


@pytest.mark.slow
@pytest.mark.spark
def test_jobs_and_commands_list_their_tables_and_a_catalog_that_is_away_is_a_warning(
    tmp_path: Path, catalog: SqlCatalog
) -> None:
    job = Job(tmp_path, trades_in(tmp_path), store=_store("sqlite:///iceberg.db"))

    def run() -> None:
        code, said = job.finish("--once")
        assert (code, "warning" in said) == (0, False), said

    def seconds(*columns: str) -> Rows:
        table = catalog.load_table("trades.TradeAgg_SECONDS")
        return rows_of(table.scan(selected_fields=("symbol", *columns)).to_arrow())

    run()
    assert seconds("AGG_SUM_quantity") == Counter([(3, "a"), (4, "b")])
    text = (tmp_path / "app.siddhi").read_text()
    (tmp_path / "app.siddhi").write_text(text.replace("count() as events", "count() as events, max(quantity) as most"))
    assert command("change", job.path, "--accept") == (0, "")
    assert seconds("AGG_MAX_quantity") == Counter([(None, "a"), (None, "b")])
    at = EVENTS[-1][3]
    write_trades(tmp_path / "in" / "two.json", [("c", 1.0, 9, ts) for ts in (at + 1_000, at + 5_000)])
    run()
    assert seconds("AGG_MAX_quantity") == Counter([(None, "a"), (None, "b"), (None, "a"), (9, "c")])
    job.path.write_text(job.path.read_text().replace("sqlite:///iceberg.db", "http://127.0.0.1:1"))
    code, said = command("maintain", job.path)
    assert code == 0
    assert re.search(
        r"^rollup: warning: \[store\] iceberg: \d+ times the catalog of trades could not be reached: ConnectionError",
        said,
    ), said


WIDE = """define stream S (k string, b bool, x float, m decimal(12, 2), t timestamp, day date, ts long);
define aggregation A from S select k, b, day, sum(m) as total, min(t) as first, max(x) as most, distinctCount(k) as keys,
    percentile(x, 0.5) as half group by k, b, day aggregate by ts every sec ... year;"""


def test_columns_of_every_type_are_those_of_the_events(tmp_path: Path, catalog: SqlCatalog) -> None:
    host = delta_host(tmp_path, WIDE)
    day, time = date(2018, 1, 1), datetime(2018, 1, 1, tzinfo=UTC)
    host.send("S", [("k", True, 2.5, Decimal("1.25"), time, day, START + n * 1_000) for n in (0, 0, 5)])
    again(catalog, host, tmp_path / "store")
    (row,) = tables(catalog)["A_SECONDS"].scan().to_arrow().to_pylist()
    wanted = {
        "k": "k",
        "b": True,
        "day": day,
        "AGG_SUM_m": Decimal("2.50"),
        "AGG_MIN_t": time,
        "AGG_MAX_x": 2.5,
        "AGG_SET_k": ["k"],
    }
    assert {name: row[name] for name in wanted} == wanted
    assert (row["AGG_TIMESTAMP"], row["AGG_PERIOD"], len(row["AGG_KLL_x"]) > 0) == (START, "2018-01-01", True)
