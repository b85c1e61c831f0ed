"""A sink that is behind, ahead or removed gets what it lacks and nothing twice, or is refused by name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rollup.checkpoint.records import KEPT
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.sinks.delta import DeltaSink
from rollup.sinks.files import FileSink
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Event

APP = "define stream S (k string, v int); from S#window.length(1) select k, v insert into Out;"
ENGINE = ColumnEngine(threads=1)


def running(folder: Path, out: str = "out") -> Running:
    """The statements, taken up from their last commit."""
    sink = FileSink({"path": str(folder / out), "name": "Out"})
    found = Running(compile_app(APP), {}, Commits(folder / "commits"), {"Out": sink})
    found.start(ENGINE)
    return found


def send(to: Running, *batches: range) -> None:
    """Some events a batch."""
    for batch in batches:
        to.advance(ENGINE, [Event((n, 0), 1000 + n, "S", ("k", n)) for n in batch], {})


def had(folder: Path, out: str = "out") -> list[int]:
    """What the sink has, in the order of its files."""
    files = sorted((folder / out).glob("*.parquet"))
    return [v for file in files for v in pq.read_table(file)["v"].to_pylist()]


def kept(folder: Path, what: str) -> Callable[[], None]:
    """A copy of a folder, and how to bring it back."""
    shutil.copytree(folder / what, folder / "copy" / what)

    def back() -> None:
        shutil.rmtree(folder / what, ignore_errors=True)
        shutil.copytree(folder / "copy" / what, folder / what)

    return back


@pytest.mark.parametrize("again", [[range(5, 8), range(8, 12)], [range(5, 10), range(10, 12)], [range(5, 12)]])
def test_commits_that_go_back_bring_a_sink_only_what_it_has_not(tmp_path: Path, again: list[range]) -> None:
    job = running(tmp_path)
    send(job, range(1, 3), range(3, 5))
    back = kept(tmp_path, "commits")
    send(job, range(5, 6), range(6, 9))
    back()
    send(running(tmp_path), *again)
    assert had(tmp_path) == list(range(1, 12))


def test_a_sink_of_a_backup_or_that_was_removed_gets_what_it_lacks(tmp_path: Path) -> None:
    job = running(tmp_path)
    send(job, range(1, 4))
    back = kept(tmp_path, "out")
    send(job, range(4, 6), range(6, 9))
    back()
    running(tmp_path)
    assert had(tmp_path) == list(range(1, 9))
    shutil.rmtree(tmp_path / "out")
    send(running(tmp_path), range(9, 10))
    assert had(tmp_path) == list(range(1, 10))


def test_files_that_were_taken_away_are_not_brought_again(tmp_path: Path) -> None:
    send(running(tmp_path), range(1, 4), range(4, 6))
    for file in (tmp_path / "out").glob("*.parquet"):
        file.unlink()
    send(running(tmp_path), range(6, 8))
    assert had(tmp_path) == [6, 7]


def test_rows_that_are_no_longer_kept_are_named_and_another_place_begins_behind_them(tmp_path: Path) -> None:
    send(running(tmp_path), *(range(n, n + 1) for n in range(1, 2 * KEPT)))
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(
        StoreError, match=r"the folder .*out has 0 of the 62 rows that Out has given: .* rows 1 to \d+ are no"
    ):
        running(tmp_path)
    send(running(tmp_path, "new"), range(100, 102))
    assert had(tmp_path, "new") == [63, 100, 101], "the last commit's, which had no place to go, and what follows"


def test_other_rows_in_the_place_of_those_that_a_sink_has_are_refused(tmp_path: Path) -> None:
    job = running(tmp_path)
    send(job, range(1, 3))
    back = kept(tmp_path, "commits")
    send(job, range(3, 5))
    back()
    with pytest.raises(
        StoreError, match=r"the folder .*out has 4 rows of Out, and the events that came again give others"
    ):
        send(running(tmp_path), range(7, 12))
    assert had(tmp_path) == [1, 2, 3, 4]


def test_a_delta_table_says_what_it_has_also_behind_what_others_do_to_it(tmp_path: Path) -> None:
    sink = DeltaSink({"path": str(tmp_path / "out"), "name": "Out"})
    job = Running(compile_app(APP), {}, Commits(tmp_path / "commits"), {"Out": sink})
    job.start(ENGINE)
    send(job, range(1, 3), range(3, 5))
    from deltalake import DeltaTable

    before = sink.held(job._saved.id)
    DeltaTable(str(tmp_path / "out")).optimize.compact()
    assert before is not None and before.rows == 4 and before == sink.held(job._saved.id)
