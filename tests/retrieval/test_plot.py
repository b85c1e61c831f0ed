"""What people look at: drawings are made for real, and what cannot be drawn is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rollup.ask import Asker
from rollup.cli.plot import plot, series
from rollup.errors import QueryError

TEXT = "from A within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, k, total, mean order by AGG_TIMESTAMP"


def test_a_png_has_a_line_for_each_key_and_number(trades: Asker, tmp_path: Path) -> None:
    answer = trades.query(TEXT)
    assert set(series(answer)) == {"a total", "a mean", "b total", "b mean", "None total", "None mean"}
    plot(answer, str(tmp_path / "plot.png"))
    content = (tmp_path / "plot.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) > 10_000


def test_a_plot_in_the_terminal_names_its_lines(trades: Asker, capsys: pytest.CaptureFixture[str]) -> None:
    plot(trades.query(TEXT), "-")
    assert "a total" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "lacks"), [("select k, total", "AGG_TIMESTAMP"), ("select AGG_TIMESTAMP, k", "a column of numbers")]
)
def test_an_answer_without_time_or_numbers_is_not_drawn(trades: Asker, text: str, lacks: str) -> None:
    with pytest.raises(QueryError, match=lacks):
        plot(trades.query(f"from A within '2018-**-** **:**:**' per 'days' {text}"), "-")


def test_a_question_needs_neither_spark_nor_pandas(trades: Asker) -> None:
    code = f"import sys, rollup; rollup.query({str(trades.conf.path)!r}, {TEXT!r}); print(sorted({{'pyspark', 'pandas', 'datasketches'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
