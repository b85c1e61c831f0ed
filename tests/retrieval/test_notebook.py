"""Cells of a notebook, run by IPython as it runs those of a user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import rollup
from rollup.conf import Conf
from rollup.notebook import Shown
from tests.gateway.trades import APP, at, configuration, host


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Conf:
    found = configuration(tmp_path_factory.mktemp("notebook"), APP)
    host(found).send(
        "Trades", [("<b>IBM</b>", 4.0, 1, at("2018-01-01T10:00:00")), ("X", 5.0, 1, at("2018-01-02T10:00:00"))]
    )
    return found


@pytest.fixture(scope="module")
def shell() -> Any:
    made = InteractiveShell.instance()
    made.run_line_magic("load_ext", "rollup")
    return made


def run(shell: Any, text: str) -> Any:
    with capture_output() as found:
        shell.run_cell(text)
    return found


def test_a_cell_shows_a_table_and_a_plot_and_keeps_the_answer(shell: Any, conf: Conf) -> None:
    found = run(
        shell,
        f"%%rollup '{conf.path}' days\nfrom TradeAgg within '2018' per 'days' select AGG_TIMESTAMP, symbol, total",
    )
    table, plot = (output.data for output in found.outputs)
    assert "<td>2018-01-01 00:00:00</td><td>&lt;b&gt;IBM&lt;/b&gt;</td>" in table["text/html"]
    assert plot["image/png"]
    assert shell.user_ns["days"].column("total").to_pylist() == [4.0, 5.0]


def test_what_is_wrong_is_one_line(shell: Any, conf: Conf, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(shell, f"%%rollup '{conf.path}'\nfrom TradeAgg within '2018' per 'days' select nosuch")
    assert "unknown attribute 'nosuch'" in found.stderr
    assert "Traceback" not in found.stderr + found.stdout
    assert "a cell begins with" in run(shell, "%%rollup a b c\nselect 1").stderr
    assert "a cell begins with" in run(shell, f"%%rollup '{conf.path}' not-a-name\nselect 1").stderr


def test_an_answer_without_times_is_a_table_alone(shell: Any, conf: Conf) -> None:
    found = run(shell, f"%%rollup '{conf.path}'\nselect symbol from TradeAgg within '2018' per 'years' order by symbol")
    assert len(found.outputs) == 1


def test_all_times_are_those_of_the_zone_that_is_named() -> None:
    night = datetime(2026, 3, 27, 23, tzinfo=UTC)
    times = pa.array([night], pa.timestamp("us", "UTC"))
    answer = pa.table({"AGG_TIMESTAMP": [round(night.timestamp() * 1000)], "AGG_TIME": times, "n": [1234]})
    said = Shown(answer, "Europe/Berlin")._repr_html_()
    assert said.count("<td>2026-03-28 00:00:00</td>") == 2 and "<td>1,234</td>" in said
    assert "times in Europe/Berlin" in said


def test_what_there_is_can_be_found() -> None:
    assert {"open", "query", "Engine", "__version__"} <= set(dir(rollup))
    assert rollup.__version__
    assert all(getattr(rollup, name) is not None for name in dir(rollup))
