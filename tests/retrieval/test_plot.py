"""What people look at: drawings are made for real, and what cannot be drawn is refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.ask import Asker
from rollup.cli.plot import plot, series
from rollup.cli.query import Format, show
from rollup.core.calendar import Duration, bucket_end
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
    assert "a total" in shown and "AGG_TIMESTAMP (+00:00)" in shown and TEXT[:40] in shown


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
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("AGG_TIMESTAMP (+00:00)", "total, mean")


def drawn(monkeypatch: pytest.MonkeyPatch, answer: pa.Table, target: Path, zone: str) -> Any:
    """The axes of a picture."""
    from matplotlib import pyplot

    figures, close = list[Any](), pyplot.close
    monkeypatch.setattr(pyplot, "close", lambda figure: (figures.append(figure), close(figure)))
    plot(answer, str(target), "", zone)
    return figures[0].axes[0], [text.get_text() for text in figures[0].legends[0].get_texts()]


def rows(keys: int, buckets: int) -> pa.Table:
    """Days of New York's, from 7 March 2026 on, over the end of winter time."""
    starts = [bucket_end(1_772_859_600_000, Duration.DAYS, "America/New_York", n) for n in range(buckets)]
    found = [(start, f"k{key:02d}", float(key)) for start in starts for key in range(keys)]
    return pa.table(dict(zip(("AGG_TIMESTAMP", "k", "v"), map(list, zip(*found, strict=True)), strict=True)))


def test_sixteen_series_are_seven_in_colour_and_the_others_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes, names = drawn(monkeypatch, rows(16, 60), tmp_path / "plot.png", "America/New_York")
    assert names == [f"k{key:02d} v" for key in range(15, 8, -1)] + ["9 others"]
    assert len([line for line in axes.lines if len(line.get_xdata())]) == 16


def test_few_rows_are_bars_at_the_days_of_the_zone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes, names = drawn(monkeypatch, rows(2, 4), tmp_path / "plot.svg", "America/New_York")
    assert (len(axes.patches), names, axes.get_xlabel()) == (8, ["k01 v", "k00 v"], "AGG_TIMESTAMP (America/New_York)")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [f"2026-03-{day:02d}" for day in range(7, 11)]


@pytest.mark.parametrize("buckets", [3, 60])
def test_a_pipe_gets_letters_for_colours(buckets: int, capsys: pytest.CaptureFixture[str]) -> None:
    plot(rows(12, buckets), "-", TEXT, "America/New_York")
    shown = capsys.readouterr().out
    assert (
        "\x1b" not in shown and "aa k11 v" in shown and "(5 more series, with smaller values, are not drawn)" in shown
    )


@pytest.mark.parametrize(
    ("buckets", "target", "said"),
    [
        (0, "-", "there is nothing to draw: the answer has no rows"),
        (1, "no/folder/plot.png", "cannot write no/folder/plot.png: No such file or directory"),
        (1, "plot.gif", "'plot.gif' is no kind of picture"),
        (1, "plot", "'plot' is no kind of picture"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(buckets: int, target: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        plot(rows(1, 1).slice(0, buckets), target)


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
