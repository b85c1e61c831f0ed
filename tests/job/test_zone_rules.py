"""A commit says by which version of the database of zones it was cut; the next one by another version is said, once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.core import zones
from tests.job.jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("zone", "times"), [("Europe/Berlin", 1), ("+02:00", 0)])
def test_another_version_of_the_zones_is_said_once(
    tmp_path: Path, spark: SparkSession, zone: str, times: int, capsys: pytest.CaptureFixture[str]
) -> None:
    job = Job(tmp_path, {"kind": "json", "path": "in"}, top=f'zone = "{zone}"')
    (tmp_path / "in").mkdir()

    def batch(number: int) -> str:
        row = {"symbol": "a", "price": 1.0, "quantity": 1, "ts": 1_700_000_000_000 + number * 1000}
        (tmp_path / "in" / f"{number}.json").write_text(json.dumps(row) + "\n")
        job.run(spark)
        return "".join(capsys.readouterr())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zones, "VERSION", "2020a")
        assert "time zone database" not in batch(0)
    assert batch(1).count("time zone database") == times
    assert "time zone database" not in batch(2)
