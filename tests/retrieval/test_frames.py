"""Answers as frames of pandas and Polars: an Arrow table is what both read, and times stay times."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import polars as pl

import rollup
from tests.retrieval.trades import DAY, EVENTS, START, app, delta_host

QUESTION = "from A within '2018-01' per 'months' select AGG_TIME, k, total order by k"
KEYS = [None, "a", "b"]
TOTALS = [sum(value for key, value, at in EVENTS if key == each and at < START + 31 * DAY) for each in KEYS]


def test_an_answer_becomes_a_frame_of_either_library(tmp_path: Path) -> None:
    delta_host(tmp_path, app("correct")).send("S", EVENTS)
    answer = rollup.open(tmp_path / "conf.toml").query(QUESTION)
    by_pandas, by_polars = answer.to_pandas(), pl.from_arrow(answer)
    assert isinstance(by_polars, pl.DataFrame)
    assert by_pandas["total"].tolist() == by_polars["total"].to_list() == TOTALS
    assert by_pandas["AGG_TIME"].dt.tz_convert("UTC").tolist() == [pd.Timestamp("2018-01-01", tz="UTC")] * 3
    assert by_polars["AGG_TIME"].to_list() == [datetime(2018, 1, 1, tzinfo=UTC)] * 3
    assert by_pandas["k"].tolist() == by_polars["k"].to_list() == KEYS
