"""What people look at: drawings are made for real, and what cannot be drawn is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rollup.ask import Asker
from rollup.cli.plot import plot, series
from rollup.cli.query import Format, show
from rollup.core.errors import QueryError

TEXT = "from A within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, k, total, mean order by AGG_TIMESTAMP"


def test_a_png_has_a_line_for_each_key_and_number(trades: Asker, tmp_path: Path) -> None:
    answer = trades.query(TEXT)
    assert set(series(answer)) == {"a total", "a mean", "b total", "b mean", "None total", "None mean"}
    plot(answer, str(tmp_path / "plot.png"))
    content = (tmp_path / "plot.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) > 10_000


def test_a_plot_in_the_terminal_names_its_lines_its_axes_and_the_question(
    trades: Asker, capsys: pytest.CaptureFixture[str]
) -> None:
    plot(trades.query(TEXT), "-", TEXT)
    shown = capsys.readouterr().out
    assert "a total" in shown and "AGG_TIMESTAMP (UTC)" in shown and TEXT[:40] in shown


def test_a_png_has_a_title_and_names_at_its_axes(
    trades: Asker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import pyplot

    drawn = list[Any]()
    close = pyplot.close
    monkeypatch.setattr(pyplot, "close", lambda figure: (drawn.append(figure), close(figure)))
    plot(trades.query(TEXT), str(tmp_path / "plot.png"), TEXT)
    (axes,) = drawn[0].axes
    assert axes.get_title().startswith("from A within")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("AGG_TIMESTAMP (UTC)", "total, mean")


def test_explain_fits_into_eighty_columns(
    trades: Asker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    answer = trades.query("explain from A within '2018-01-** **:**:**' per 'days'")
    show(answer, Format.TABLE, "UTC")
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    for word in ("A_DAYS", "open buckets of days", "files skipped", "days from 2018-01-01 00:00:00", "commit 10"):
        assert word in shown, shown


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
