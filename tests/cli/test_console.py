"""What is printed for people is the text as it is: a printer that takes brackets for markup leaves out what is in them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import rollup
from rollup.cli.lifecycle.shared import show as show_differences
from rollup.cli.query import Format, show
from rollup.core.calendar import GMT, Duration
from rollup.lifecycle.replay.compare import Difference

ODD = ["[bold]x[/bold]", "[/]", ":warning:", "[late] policy", "a\\[b]"]


def test_values_of_users_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show(pa.table({"[red]name": ODD, ":x:": [1] * len(ODD)}), Format.TABLE, GMT)
    printed = capsys.readouterr().out
    assert [text for text in [*ODD, "[red]name", ":x:"] if text not in printed] == []
    assert printed.endswith(f"\n{len(ODD)} rows\n")


def test_a_row_is_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    show(pa.table({"n": [1]}), Format.TABLE, GMT)
    assert capsys.readouterr().out.endswith("\n1 row\n")


def test_keys_of_differences_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    show_differences([Difference("A", Duration.DAYS, 0, GMT, (odd,), "s", 1, 2) for odd in ODD], False)
    printed = capsys.readouterr().out
    assert [text for text in ODD if text not in printed] == []


def test_nothing_prints_on_another_console() -> None:
    package = Path(rollup.__file__).parent
    made = [path.relative_to(package) for path in package.rglob("*.py") if "rich.console" in path.read_text()]
    assert [str(path) for path in made] == ["cli/console.py"]


WIDE = pa.table({f"a_long_name_of_column_{n}": [f"value {n} of row {row}" for row in range(2)] for n in range(8)})


def test_an_answer_for_a_pipe_is_as_wide_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show(WIDE, Format.TABLE, None)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "value 0 of row 1" in line and "value 7 of row 1" in line]


def test_an_answer_that_a_terminal_is_too_narrow_for_has_a_line_a_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    show(WIDE, Format.TABLE, None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "── row 1 ──" and lines[9] == "── row 2 ──" and lines[-1] == "2 rows"
    assert lines[1:9] == [f"a_long_name_of_column_{n}  value {n} of row 0" for n in range(8)]
