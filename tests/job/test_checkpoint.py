"""What a checkpoint says of its owner, without Spark: its secrets stay out, and tables that went are noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollup.conf import Conf, load
from rollup.core.errors import ConfigError
from rollup.hosts.spark.ownership import claim, refuse_without_tables

APP = """define stream Trades (symbol string, price double, ts long);
define aggregation TradeAgg from Trades select symbol, sum(price) as total group by symbol aggregate by ts every sec ... day;
"""


def conf_of(folder: Path, password: str) -> Conf:
    (folder / "incoming").mkdir(exist_ok=True)
    (folder / "app.siddhi").write_text(APP)
    (folder / "app.toml").write_text(f"""app = "app.siddhi"
checkpoint = "checkpoint"
[sources.Trades]
kind = "json"
path = "incoming"
[store]
kind = "sql"
url = "postgresql+psycopg2://writer:{password}@127.0.0.1/trades"
""")
    return load(folder / "app.toml")


def test_a_checkpoint_holds_no_password_and_stays_when_it_changes(tmp_path: Path) -> None:
    conf = conf_of(tmp_path, "first-secret")
    claim(conf, conf.program())
    assert "first-secret" not in (tmp_path / "checkpoint" / "rollup.json").read_text()
    conf = conf_of(tmp_path, "second-secret")
    claim(conf, conf.program())


def test_batches_behind_a_checkpoint_without_a_commit_in_the_store_are_refused(tmp_path: Path) -> None:
    conf = conf_of(tmp_path, "secret")
    program = conf.program()
    refuse_without_tables(conf, program, {"TradeAgg": 0})  # nothing has run yet
    commits = tmp_path / "checkpoint" / "Trades" / "commits"
    commits.mkdir(parents=True)
    (commits / "0").write_text("v1\n{}")
    refuse_without_tables(conf, program, {"TradeAgg": 3})
    with pytest.raises(ConfigError, match=r"has batches behind it, but the store has no rows of TradeAgg"):
        refuse_without_tables(conf, program, {"TradeAgg": 0})
