"""What `plan` refuses: everything that is wrong with a configuration or an app and can be seen without a server.

Each case is a change to a right configuration and what the one line says. `run` asks the same function before it
starts Spark, which one test holds; nothing that is written in a configuration may be without effect and without a word.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rollup.cli.main import app
from rollup.conf import load
from rollup.core.errors import RollupError
from rollup.lifecycle.readiness import ready

ROOT = Path(__file__).parents[2]
APP = """define stream Trades (symbol string, price double, ts long);
{store} define aggregation TradeAgg from Trades select symbol, sum(price) as total, {more} count() as n
group by symbol aggregate by ts every sec ... year;
"""
CONF = """app = "app.siddhi"
checkpoint = "state"

[sources.Trades]
kind = "json"
path = "incoming"

[store]
kind = "delta"
path = "tables"
"""
KAFKA = 'kind = "kafka"\nservers = "127.0.0.1:9"\ntopic = "t"\n'
FILES = 'kind = "json"\npath = "incoming"\n'
DELTA = 'kind = "delta"\npath = "tables"\n'


def _source(text: str) -> str:
    return CONF.replace(FILES, text)


def _store(text: str) -> str:
    return CONF.replace(DELTA, text)


WRONG_CONF: dict[str, tuple[str, str]] = {
    "kind of a source": (
        _source(FILES.replace("json", "jsno")),
        "[sources.Trades] has the unknown kind 'jsno' (did you mean 'json'?)",
    ),
    "no kind": (_source('path = "incoming"\n'), "[sources.Trades] lacks `kind` (one of parquet, csv, json"),
    "key of a source": (
        _source(FILES + 'glop = "*.json"\n'),
        "[sources.Trades] has an unknown key `glop` (did you mean `glob`?)",
    ),
    "key of another kind": (_source(FILES + 'separator = ";"\n'), "[sources.Trades] has an unknown key `separator`"),
    "Kafka without topic": (
        _source(KAFKA.replace('topic = "t"\n', "")),
        '[sources.Trades] lacks `topic` (`topic = "a"`, `topics = ["a", "b"]`, or `topic_pattern = "orders-.*"`)',
    ),
    "key of Kafka": (_source(KAFKA + 'group_id = "g"\n'), "[sources.Trades] has an unknown key `group_id`"),
    "number as a word": (
        _source(FILES + 'max_files_per_batch = "many"\n'),
        "[sources.Trades] max_files_per_batch is 'many' (a whole number from 1",
    ),
    "flag as a word": (
        _source(FILES.replace("json", "csv") + 'header = "yes"\n'),
        "[sources.Trades] header is 'yes' (true or false)",
    ),
    "columns as a list": (_source(FILES + 'columns = ["a"]\n'), "[sources.Trades] columns is ['a'] (a table of texts"),
    "source as a text": (CONF.replace("[sources.Trades]\n" + FILES, "").replace("[store]", 'sources = "incoming"\n[store]'),
                         "[sources] is 'incoming' (a table of options is expected here)"),
    "trigger as a number": ("trigger = 5\n" + CONF, 'trigger is 5 (a length of time, e.g. "1 second"'),
    "trigger as words": ('trigger = "often"\n' + CONF, "trigger is 'often' (a length of time"),
    "app as a number": (CONF.replace('"app.siddhi"', "7"), "app is 7 (a text)"),
    "zone": ('zone = "Mars/Olympus"\n' + CONF, "Mars/Olympus"),
    "kind of the store": (_store(DELTA.replace("delta", "detla")), "[store] has the unknown kind 'detla' (did you mean 'delta'?)"),
    "key of Delta": (_store(DELTA + 'partition = "day"\n'), "[store] has an unknown key `partition` (known: kind, path, keep_files, keep_log, catalog, iceberg)"),
    "key of SQL": (_store('kind = "sql"\nurl = "sqlite:///x"\nprefix = "a"\n'), "[store] has an unknown key `prefix`"),
    "database URL": (_store('kind = "sql"\nurl = "nonsense"\n'), "url='nonsense' is no database URL"),
    "database of another kind": (_store('kind = "sql"\nurl = "redis://h"\n'), "names the database 'redis' (known are"),
    "partition of another database": (_store('kind = "sql"\nurl = "sqlite://"\npartition = "day"\n'), "partition='day' needs PostgreSQL"),
    "width of partitions": (_store('kind = "sql"\nurl = "postgresql://h/d"\npartition = "week"\n'), "partition='week' is not known"),
    "key of metrics": (CONF + "[metrics]\nprot = 1\n", "[metrics] has an unknown key `prot` (did you mean `port`?)"),
    "metrics port": (CONF + '[metrics]\nport = "9400"\n', "[metrics] port is '9400' (a whole number from 0 to 65535)"),
    "policy": (CONF + '[late]\npolicy = "corect"\n', "[late] policy is 'corect' (one of merge, drop, correct)"),
    "key of late": (CONF + '[late]\nmode = "drop"\n', "[late] has an unknown key `mode` (known: policy, ahead)"),
    "key of cascade": (CONF + "[cascade]\nshard = 1\n", "[cascade] has no `shard` (did you mean `shards`?)"),
    "key of serve": (CONF + '[serve]\nusers.ann.password_env = "A"\nprot = 5\n', "[serve] has an unknown key `prot`"),
    "setting of Spark": (CONF + '[spark]\n"spark.jars" = ["a"]\n', "[spark] spark.jars is ['a'] (a text"),
    "kind of a sink": (CONF + '[sinks.Trades]\nkind = "file"\n', "[sinks.Trades] has the unknown kind 'file' (did you mean 'files'?)"),
    "key of a sink": (CONF + '[sinks.Trades]\nkind = "console"\npath = "x"\n', "[sinks.Trades] has an unknown key `path`"),
    "sink without path": (CONF + '[sinks.Trades]\nkind = "files"\n', "[sinks.Trades] lacks `path`"),
}  # fmt: skip
WRONG_APP: dict[str, tuple[str, str, str]] = {
    "type of @store": (
        "@store(type='mongodb', uri='mongodb://h')",
        "",
        "the @store of TradeAgg has the type 'mongodb'",
    ),
    "no type of @store": ("@store(jdbc.url='jdbc:postgresql://h/d')", "", "the @store of TradeAgg lacks its type"),
    "table.prefix": (
        "@store(type='rdbms', jdbc.url='jdbc:postgresql://h/d', table.prefix='x')",
        "",
        "@store: unknown option 'table.prefix' (known are type",
    ),
    "pool.properties": (
        "@store(type='rdbms', jdbc.url='jdbc:postgresql://h/d', pool.properties='maximumPoolSize:10')",
        "",
        "@store: unknown option 'pool.properties'",
    ),
    "columns that differ in case": (
        "",
        "price as x, price as X,",
        "the columns of TradeAgg: 'x' and 'X' differ only in case",
    ),
}


def job(folder: Path, conf: str, text: str) -> Path:
    """An app and its configuration; the configuration's path."""
    (folder / "app.siddhi").write_text(text)
    (folder / "incoming").mkdir()
    (folder / "job.toml").write_text(conf)
    return folder / "job.toml"


def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line of a command that is refused."""
    monkeypatch.setattr(sys, "argv", ["rollup", *words])
    with pytest.raises(SystemExit) as end:
        app()
    out, err = capsys.readouterr()
    assert (end.value.code, out, err.count("\n")) == (2, "", 1), err
    return err


@pytest.mark.parametrize("name", WRONG_CONF)
def test_plan_refuses_a_wrong_configuration_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    conf, wanted = WRONG_CONF[name]
    assert wanted in said(monkeypatch, capsys, "plan", str(job(tmp_path, conf, APP.format(store="", more=""))))


@pytest.mark.parametrize("name", WRONG_APP)
def test_plan_refuses_a_wrong_app_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    store, more, wanted = WRONG_APP[name]
    assert wanted in said(monkeypatch, capsys, "plan", str(job(tmp_path, CONF, APP.format(store=store, more=more))))


@pytest.mark.parametrize("store", [DELTA, 'kind = "sql"\nurl = "postgresql://h/d"\n'])
def test_a_name_that_is_too_long_for_its_store_is_refused(tmp_path: Path, store: str) -> None:
    text = APP.format(store="", more="").replace("TradeAgg", "A" * 300)
    conf = load(job(tmp_path, _store(store), text))
    with pytest.raises(RollupError, match=r"AAAA.*(255|63)"):
        ready(conf, conf.program())


def test_aggregations_that_differ_only_in_case_are_refused(tmp_path: Path) -> None:
    text = APP.format(store="", more="")
    conf = load(job(tmp_path, CONF, text + text.split("\n", 1)[1].replace("TradeAgg", "TRADEAGG")))
    with pytest.raises(RollupError, match="TradeAgg and TRADEAGG differ only in case"):
        ready(conf, conf.program())


def test_run_refuses_what_plan_refuses_before_it_starts_spark(tmp_path: Path) -> None:
    conf = job(tmp_path, CONF, APP.format(store="@store(type='mongodb')", more=""))
    ran = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", "run", str(conf), "--once"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    assert "has the type 'mongodb'" in ran.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("spelling", ['spark.driver.memory = "3g"', '"spark.driver.memory" = "3g"'])
def test_a_setting_of_spark_is_the_same_with_and_without_quotes(tmp_path: Path, spelling: str) -> None:
    """Without quotes TOML reads tables in tables, which became one setting called `spark`."""
    path = job(tmp_path, CONF + f"[spark]\n{spelling}\nspark.ui.enabled = true\n", APP.format(store="", more=""))
    assert load(path).spark == {"spark.driver.memory": "3g", "spark.ui.enabled": "true"}


def test_what_is_right_is_planned(tmp_path: Path) -> None:
    every: list[Callable[[str], str]] = [
        lambda conf: conf,
        lambda conf: conf.replace(
            FILES, KAFKA + 'options = { "kafka.session.timeout.ms" = 6000 }\nslack = "2 hours"\n'
        ),
        lambda conf: conf.replace(FILES, 'kind = "rate"\nkeys = 3\n'),
        lambda conf: conf.replace(DELTA, 'kind = "sql"\nurl = "sqlite:///x.db"\n'),
        lambda conf: conf.replace(
            FILES, FILES.replace("json", "csv") + 'separator = ";"\nnull = ""\nlateness = "1 min"\n'
        ),
        lambda conf: conf + '[late]\npolicy = "correct"\n[metrics]\nport = 0\n[cascade]\nhost = "driver"\n',
    ]
    for number, change in enumerate(every):
        (tmp_path / str(number)).mkdir()
        conf = load(job(tmp_path / str(number), change(CONF), APP.format(store="", more="")))
        ready(conf, conf.program())
