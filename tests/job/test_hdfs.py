"""All that a job has in HDFS, and what HDFS refuses; the tests that name `afar` run there, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rollup.core.objects import at, names_in
from tests.job.test_azure import test_a_job_with_all_that_it_has_in_a_container_answers_as_one_in_folders
from tests.servers.hdfs import HdfsServer

__all__ = ["test_a_job_with_all_that_it_has_in_a_container_answers_as_one_in_folders"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def hdfs() -> Iterator[HdfsServer]:
    with HdfsServer() as server:
        yield server


@pytest.fixture
def afar(hdfs: HdfsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A folder that is not there yet."""
    monkeypatch.setenv("ROLLUP_CACHE_OBJECTS", str(tmp_path / "copies"))
    return hdfs.new_bucket()


def test_what_hdfs_does_not_allow_is_said_without_its_stack(afar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = at(afar)
    (root / "file").write_bytes(b"1")
    with pytest.raises(NotADirectoryError):
        (root / "file" / "below").write_bytes(b"2")
    monkeypatch.setenv("HADOOP_USER_NAME", "mallory")
    with pytest.raises(PermissionError, match="HDFS does not allow it: Permission denied: user=mallory") as refused:
        (root / "file").write_bytes(b"2")
    assert "org.apache" not in str(refused.value)
    assert (root / "file").read_bytes() == b"1" and names_in(root) == ["file"]
