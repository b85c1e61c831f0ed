"""The page for notebooks, run from top to bottom in one session as a notebook does, over the files of the tutorial."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.lifecycle.job import Job
from tests.docs.markdown import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "notebooks.md"


@pytest.mark.spark
def test_the_cells_of_the_page_run_one_after_the_other_and_show_the_days(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for block in blocks(ROOT / "README.md"):
        if block.title:
            (tmp_path / block.title).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.title).write_text(block.text)
    monkeypatch.chdir(tmp_path)
    cells = [block for block in blocks(PAGE) if block.language == "python"]
    assert len(cells) >= 4
    notebook: dict[str, Any] = {"spark": spark}
    for cell in cells:
        exec(compile("\n" * cell.line + cell.text, str(PAGE), "exec"), notebook)
    assert notebook["spark"].sparkContext is spark.sparkContext, "what is there is used"
    days = [{"symbol": "IBM", "total": 180}, {"symbol": "WSO2", "total": 30}]
    assert sorted(notebook["days"].to_pylist(), key=lambda row: row["symbol"]) == days
    shown = capsys.readouterr().out
    assert shown.count("|") > 0 and shown.count("WSO2") == 2, "the DataFrame of `read` and that of the function"


def test_the_classes_that_the_page_names_are_there() -> None:
    """In words, so no cell runs them."""
    text = PAGE.read_text()
    assert f"`{Job.__module__}.{Job.__qualname__}`" in text
    from rollup.jars import spark_jars_option

    assert f"`{spark_jars_option.__module__}.{spark_jars_option.__name__}()`" in text
