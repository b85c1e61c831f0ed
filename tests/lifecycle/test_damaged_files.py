"""One bit of a data file or of a table's log is another: it is found and named, nothing is made of it, and what whole rows
can give is made anew. The oracle is the store as it was before the bit was turned."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.records import Record
from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.core.untyped import pc
from rollup.stores.delta.read import FileIndex
from tests.lifecycle.conftest import trades
from tests.lifecycle.filejob import FileJob, Place
from tests.lifecycle.test_replay_verify import everything, loaded

Cli = Callable[..., tuple[int, str]]
COARSER = [Duration.MINUTES, Duration.HOURS, Duration.DAYS]


def files(place: Place, level: Duration) -> list[Path]:
    return [Path(file) for file in FileJob(place.conf).store.snapshot().files(level)]


def flip(file: Path, at: float = 0.4) -> Path:
    """Turn one bit of a file."""
    content = bytearray(file.read_bytes())
    content[int(len(content) * at)] ^= 4
    file.write_bytes(content)
    return file


def bytes_of(place: Place) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (place.root / "tables").rglob("*.parquet")}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three days of trades, of which some levels have several files."""
    place = Place(tmp_path, "@OutOfOrder('correct') ").write()
    loaded(place, trades(600), files=4)
    return place


@pytest.mark.parametrize("level", COARSER, ids=lambda level: level.plural)
@pytest.mark.few(1)
def test_a_damaged_file_is_named_and_made_anew_from_the_finer_level(place: Place, rollup: Cli, level: Duration) -> None:
    before = everything(FileJob(place.conf))
    bad = flip(files(place, level)[0])
    code, said = rollup("verify", place.conf.path)
    assert code == 1 and f"TradeAgg_{level.table_suffix}: {bad} is damaged" in said and "1 damaged files" in said
    code, said = rollup("verify", place.conf.path, "--json")
    assert code == 1 and json.loads(said.splitlines()[0])["damaged"] == str(bad)
    code, said = rollup(
        "query", place.conf.path, f"from TradeAgg within '2018-**-** **:**:**' per '{level.plural}' select *"
    )
    assert code == 2 and f"the file {bad} is damaged" in said, said
    assert rollup("recover", place.conf.path)[0] == 2, "it is no commit to start from without a word"
    code, said = rollup("verify", place.conf.path, "--repair")
    assert code == 1 and "repair is commit" in said
    assert rollup("verify", place.conf.path) == (0, "TradeAgg, commit 5: every level is right\n")
    assert everything(FileJob(place.conf)) == before


def test_damage_in_the_finest_level_is_not_copied_upward_and_the_replay_that_is_named_helps(
    place: Place, rollup: Cli
) -> None:
    before, others = everything(FileJob(place.conf)), bytes_of(place)
    bad = flip(files(place, Duration.SECONDS)[0])
    code, said = rollup("verify", place.conf.path, "--repair")
    assert code == 2 and f"no other table has the rows of {bad}" in said, said
    assert {name: content for name, content in bytes_of(place).items() if name != str(bad)} == {
        name: content for name, content in others.items() if name != str(bad)
    }
    span = re.search(r"--from '([^']*)' --to '([^']*)'", said.replace("\n", " "))
    assert span is not None, said
    code, said = rollup("replay", place.conf.path, "--from", span[1], "--to", span[2])
    assert code == 0, said
    assert rollup("verify", place.conf.path, "--raw", "--true-buckets")[0] == 0
    assert everything(FileJob(place.conf)) == before


@pytest.mark.parametrize("level", [Duration.SECONDS, Duration.HOURS], ids=lambda level: level.plural)
@pytest.mark.few(1)
def test_recovery_makes_damaged_tables_anew_and_says_what_is_lost(place: Place, rollup: Cli, level: Duration) -> None:
    before = everything(FileJob(place.conf))
    bad = flip(files(place, level)[0])
    code, said = rollup("recover", place.conf.path)
    assert code == 2 and str(bad) in said and "is damaged: its checksum is another" in said
    code, said = rollup("recover", place.conf.path, "--rebuild")
    assert code == 0 and ("made anew" in said or "`rollup replay`" in said), said
    assert not bad.exists(), "it is beside the records, for whoever wants to look"
    if level is Duration.SECONDS:
        rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-01-05")
    assert rollup("verify", place.conf.path)[0] == 0
    assert everything(FileJob(place.conf)) == before


def test_compaction_leaves_a_damaged_file_as_it_is(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    bad = flip(files(place, Duration.SECONDS)[0])
    job = FileJob(place.conf)
    job.store.compact_after = 2
    job.store.maintain(60)
    assert f"{bad} is damaged and stays as it is" in caplog.text
    assert str(bad) in FileIndex.of(DeltaTable(str(place.root / "tables" / "TradeAgg_SECONDS"))).paths


def test_a_log_that_says_something_else_than_was_committed_is_refused(place: Place, rollup: Cli) -> None:
    [log] = [
        path
        for path in (place.root / "tables" / "TradeAgg_HOURS" / "_delta_log").glob("*.json")
        if '"add"' in path.read_text()
    ][-1:]
    said = log.read_text()
    maximum = re.search(r'maxValues.*?AGG_TIMESTAMP\\": ?(\d+)', said)
    assert maximum is not None
    log.write_text(said.replace(maximum[1], str(int(maximum[1]) - 86_400_000)))
    asked = "from TradeAgg within '2018-**-** **:**:**' per 'hours' select symbol, total"
    for words in (("query", place.conf.path, asked), ("verify", place.conf.path), ("status", place.conf.path)):
        code, answer = rollup(*words)
        assert code == 2 and "the log of the table" in answer and "is damaged" in answer, answer
    with pytest.raises(StoreError, match=r"the log of the table .*TradeAgg_HOURS is damaged"):
        FileJob(place.conf)
    assert rollup("recover", place.conf.path, "--rebuild")[0] == 0
    assert rollup("verify", place.conf.path)[0] == 0


def as_before_checksums(place: Place, level: Duration) -> None:
    """Give a level's files the names, and all records the content, that a former version wrote."""
    logs = list((place.root / "tables" / f"TradeAgg_{level.table_suffix}" / "_delta_log").glob("*.json"))
    for file in files(place, level):
        plain = file.with_name(re.sub("-c[0-9a-f]{8}", "", file.name))
        file.rename(plain)
        for log in logs:
            log.write_text(log.read_text().replace(file.name, plain.name))
    for path in (place.root / "tables" / "_rollup" / "TradeAgg").glob("commit-*.json"):
        found = unsealed(path.read_bytes(), [*Record.__dataclass_fields__])
        path.write_bytes(sealed({name: value for name, value in found.items() if name != "sums"}))


@pytest.mark.slow
def test_files_from_before_there_were_checksums_are_read_and_made_anew_from_others(place: Place, rollup: Cli) -> None:
    before = everything(FileJob(place.conf))
    as_before_checksums(place, Duration.MINUTES)
    assert everything(FileJob(place.conf)) == before
    assert rollup("verify", place.conf.path)[0] == 0
    file = files(place, Duration.MINUTES)[0]
    rows = pq.ParquetFile(file).read()
    at = rows.schema.get_field_index("AGG_SUM_quantity")
    pq.write_table(rows.set_column(at, rows.schema.field(at), pc.add(rows.column(at), 1)), file)
    code, said = rollup("verify", place.conf.path, "--repair")
    assert code == 1 and "repair is commit" in said, said
    assert rollup("verify", place.conf.path)[0] == 0
    assert everything(FileJob(place.conf)) == before


def test_nothing_is_made_of_files_that_nothing_says_are_whole(place: Place, rollup: Cli) -> None:
    as_before_checksums(place, Duration.MINUTES)
    flip(files(place, Duration.HOURS)[0])
    code, said = rollup("verify", place.conf.path, "--repair")
    assert code == 2 and "TradeAgg_MINUTES" in said and "have no checksum" in said and "rollup replay" in said, said
