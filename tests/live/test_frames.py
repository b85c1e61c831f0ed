"""Frames of pandas and Polars: events of an engine, their instants, and its output, with both real libraries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from rollup.core.errors import QueryError
from rollup.live import Engine

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
TIMES = [FIRST, FIRST + timedelta(milliseconds=1500)]
NAIVE = [each.replace(tzinfo=None) for each in TIMES]
MS = [1_704_067_200_000, 1_704_067_201_500]
VALUES: dict[str, list[Any]] = {"s": ["a", None], "v": [1, 2], "x": [0.5, None]}
EXPECTED = [{"s": "a", "v": 1, "x": 0.5}, {"s": None, "v": 2, "x": None}]
FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with types of its own": lambda values: pd.DataFrame(values).convert_dtypes(),
    "pandas over Arrow": lambda values: pd.DataFrame(values).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with a category": lambda values: pd.DataFrame(values).astype({"s": "category"}),
    "pandas, some of its rows": lambda values: pd.DataFrame({**values, "n": [1, 2]}).query("n > 0").drop(columns="n"),
    "Polars": pl.DataFrame,
    "Polars with a category": lambda values: pl.DataFrame(values).cast({"s": pl.Categorical}),
}


def engine(schema: str = "s string, v int, x double", unit: Any = "ms") -> Engine:
    made = Engine(unit=unit)
    made.deploy(f"create schema S({schema}); @name('out') select * from S;")
    return made


def rows(made: Engine) -> list[Any]:
    return [row for each in made.heard() for row in each.new]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_the_rows_of_a_frame_are_events(make: Callable[[dict[str, list[Any]]], Any]) -> None:
    made = engine()
    made.send("S", make(VALUES))
    assert rows(made) == EXPECTED


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("times", [TIMES, NAIVE], ids=["zone", "no zone"])
def test_times_of_a_frame_are_instants_of_fields_and_of_the_clock(make: Any, times: list[datetime]) -> None:
    made = engine("t long")
    made.send("S", make({"t": times}), at="t")
    assert [row["t"] for row in rows(made)] == MS
    assert made.now == MS[-1]


COLUMNS: dict[str, Any] = {
    "pandas": pd.Series(NAIVE),
    "pandas, zone": pd.Series(TIMES).dt.tz_convert("Asia/Kolkata"),
    "pandas, seconds and less": pd.Series(NAIVE).astype("datetime64[us]"),
    "pandas, index": pd.DatetimeIndex(TIMES),
    "Polars": pl.Series(NAIVE),
    "Polars, zone": pl.Series(TIMES).dt.convert_time_zone("Asia/Kolkata"),
    "Polars, nanoseconds": pl.Series(NAIVE, dtype=pl.Datetime("ns")),
    "NumPy": np.array(NAIVE, "datetime64[ns]"),
    "Arrow": pa.array(TIMES),
    "Arrow, pieces": pa.chunked_array([[TIMES[0]], [TIMES[1]]]),
    "Python": TIMES,
    "Python, no zone": NAIVE,
}


NUMBERS: dict[str, Any] = {
    "pandas": pd.Series(MS),
    "pandas, type of its own": pd.Series(MS, dtype="Int64"),
    "Polars": pl.Series(MS),
    "NumPy": np.array(MS),
    "Arrow": pa.array(MS),
    "Python": MS,
    "Python, of NumPy": [np.int64(each) for each in MS],
}


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_of_times_of_any_library_gives_the_instants(column: Any, unit: str) -> None:
    made = engine("v int", unit)
    made.send("S", [{"v": 1}, {"v": 2}], at=column)
    assert [each.at for each in made.heard()] == [each * (1 if unit == "ms" else 1000) for each in MS]


@pytest.mark.parametrize("column", NUMBERS.values(), ids=NUMBERS)
def test_a_column_of_numbers_of_any_library_gives_the_instants(column: Any) -> None:
    made = engine("v int")
    made.send("S", [{"v": 1}, {"v": 2}], at=column)
    assert [each.at for each in made.heard()] == MS


@pytest.mark.parametrize("at", [FIRST, FIRST.replace(tzinfo=None), pd.Timestamp(FIRST), np.datetime64(NAIVE[0]), MS[0]])
def test_one_time_is_that_of_all_events(at: Any) -> None:
    made = engine("v int")
    made.send("S", pd.DataFrame({"v": [1, 2]}), at=at)
    assert [each.at for each in made.heard()] == [MS[0], MS[0]]


@pytest.mark.parametrize("at", [FIRST, pd.Timestamp(FIRST), np.datetime64(NAIVE[0])])
def test_the_clock_goes_to_a_time(at: Any) -> None:
    for move in (Engine.advance, Engine.jump):
        made = Engine(unit="us")
        move(made, at)
        assert made.now == MS[0] * 1000


def test_an_engine_starts_at_a_time_and_at_nothing_else() -> None:
    assert Engine(FIRST, "us").now == MS[0] * 1000
    for wrong in ("create schema S(v int)", None, 1.5, True):
        with pytest.raises(QueryError, match="is no instant"):
            Engine(wrong)  # type: ignore[arg-type]


def test_an_instant_before_1970_is_cut_downwards() -> None:
    made = Engine(start=-10_000)
    made.deploy("create schema S(v int); @name('out') select * from S;")
    made.send("S", {"v": 1}, at=pd.Series([pd.Timestamp(-1_500_000_001)]))
    assert [each.at for each in made.heard()] == [-1501]


@pytest.mark.parametrize(
    "at",
    [
        pd.Series([NAIVE[0], pd.NaT]),
        pl.Series([NAIVE[0], None]),
        np.array([NAIVE[0], "NaT"], "datetime64[ms]"),
        [NAIVE[0], None],
        [TIMES[0], MS[1]],
        pd.Series([1.5, 2.5]),
        pd.Series(["a", "b"]),
        [True, False],
        pd.Series(NAIVE[:1]),
        [1 << 70, 1 << 70],
    ],
)
def test_instants_that_are_missing_or_none_are_refused(at: Any) -> None:
    made = engine("v int")
    with pytest.raises(QueryError, match="2 events need 2 instants"):
        made.send("S", [{"v": 1}, {"v": 2}], at=at)
    assert rows(made) == []


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"s": ["a", 1]}), pd.DataFrame([["a", "b"]], columns=["s", "s"])], ids=["mixed", "twice"]
)
def test_a_frame_that_is_no_table_is_refused_in_a_sentence(frame: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match="events of `S`: Arrow makes no table of this frame"):
        engine("s string").send("S", frame)


def test_output_becomes_a_frame() -> None:
    made, told = engine("s string, v int"), list[Any]()
    made.listen_arrow(lambda arrived: told.append(arrived.rows))
    made.send("S", pl.DataFrame({"s": ["a", "b"], "v": [1, 2]}))
    assert pd.concat([each.to_pandas() for each in told]).to_dict("list") == {"s": ["a", "b"], "v": [1, 2]}
    assert pl.concat([pl.from_arrow(each) for each in told]).to_dict(as_series=False) == {"s": ["a", "b"], "v": [1, 2]}
