"""Every command on every kind of bad configuration: exit code 2 and one sentence, never a traceback, nothing begun."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.core.errors import RollupError

APP = """define stream Trades (symbol string, price double, ts long);
define aggregation TradeAgg from Trades select symbol, sum(price) as total group by symbol aggregate by ts every sec ... day;
"""
CONF = """app = "app.siddhi"
checkpoint = "checkpoint"
[sources.Trades]
kind = "parquet"
path = "incoming"
[store]
kind = "delta"
path = "tables"
"""
QUESTION = "from TradeAgg within '2018-**-** **:**:**' per 'days' select symbol, total"
COMMANDS: dict[str, tuple[str, ...]] = {
    "run": ("--once",),
    "plan": (),
    "ddl": (),
    "query": (QUESTION,),
    "serve": (),
    "status": (),
    "verify": (),
    "replay": ("--from", "2018-01-01", "--to", "2018-01-02"),
    "recover": (),
    "change": (),
    "maintain": (),
}
BAD: dict[str, str | tuple[str, str]] = {
    "not TOML": ("app", "app = = "),
    "an unknown key": ('checkpoint = "checkpoint"', 'checkpoint = "checkpoint"\ncolour = "red"'),
    "no store": ('[store]\nkind = "delta"\npath = "tables"', ""),
    "an app that is not there": ("app.siddhi", "other.siddhi"),
    "an app that is a folder": ("app.siddhi", "."),
    "an app with a zero byte": ('"app.siddhi"', '"a\\u0000b"'),
    "an app that is a number": ('"app.siddhi"', "5"),
    "a checkpoint that is a list": ('"checkpoint"', '["a"]'),
    "a zone that is nowhere": ("[sources.Trades]", 'zone = "Nowhere/Atall"\n[sources.Trades]'),
    "a zone that is a number": ("[sources.Trades]", "zone = 5\n[sources.Trades]"),
    "no shards at all": ("[sources.Trades]", "statement_shards = 0\n[sources.Trades]"),
    "shards that are no number": ("[sources.Trades]", "statement_shards = true\n[sources.Trades]"),
    "a trigger that is a number": ("[sources.Trades]", "trigger = 5\n[sources.Trades]"),
    "a trigger that is no time": ("[sources.Trades]", 'trigger = "often"\n[sources.Trades]'),
    "a source that is a text": ('[sources.Trades]\nkind = "parquet"\npath = "incoming"', 'sources = { Trades = "x" }'),
    "sources that are a text": ('[sources.Trades]\nkind = "parquet"\npath = "incoming"', 'sources = "x"'),
    "a source of an unknown kind": ('"parquet"', '"jsno"'),
    "a source without kind": ('kind = "parquet"\n', ""),
    "a source without path": ('path = "incoming"\n', ""),
    "a path that is a number": ('"incoming"', "5"),
    "a folder that is not there": ('"incoming"', '"elsewhere"'),
    "columns that name no attribute": ('"incoming"', '"incoming"\ncolumns = { cost = "price" }'),
    "optional that is a text": ('"incoming"', '"incoming"\noptional = "price"'),
    "optional that names no attribute": ('"incoming"', '"incoming"\noptional = ["cost"]'),
    "many files a batch": ('"incoming"', '"incoming"\nmax_files_per_batch = "many"'),
    "no files a batch": ('"incoming"', '"incoming"\nmax_files_per_batch = 0'),
    "lateness that is no time": ('"incoming"', '"incoming"\nlateness = "some"'),
    "a store of an unknown kind": ('kind = "delta"', 'kind = "mongodb"'),
    "files of a store that are kept for no time": ('path = "tables"', 'path = "tables"\nkeep_files = "soon"'),
    "a store that Delta would look for elsewhere": ('"tables"', '"a%20b"'),
    "a sink that Delta cannot read": ("[store]", '[sinks.Trades]\nkind = "delta"\npath = "out[1]"\n[store]'),
    "a store that is a text": ('[store]\nkind = "delta"\npath = "tables"', "[store]\nkind = 5"),
    "a database without scheme": ('kind = "delta"\npath = "tables"', 'kind = "sql"\nurl = "nothing"'),
    "a database of an unknown kind": ('kind = "delta"\npath = "tables"', 'kind = "sql"\nurl = "tea://pot/x"'),
    "metrics that are a number": ("[store]", "metrics = 5\n[store]"),
    "a metrics port that is a text": ("[store]", '[metrics]\nport = "many"\n[store]'),
    "a metrics port out of range": ("[store]", "[metrics]\nport = 99999\n[store]"),
    "a cascade host that is unknown": ("[store]", '[cascade]\nhost = "moon"\n[store]'),
    "cascade that is a number": ("[sources.Trades]", "cascade = 5\n[sources.Trades]"),
    "spark that is a number": ("[sources.Trades]", "spark = 5\n[sources.Trades]"),
    "serve that is a number": ("[sources.Trades]", "serve = 5\n[sources.Trades]"),
    "a sink of an unknown kind": ("[store]", '[sinks.Trades]\nkind = "moon"\n[store]'),
    "sinks that are a number": ("[sources.Trades]", "sinks = 5\n[sources.Trades]"),
}


def write(folder: Path, conf: str) -> Path:
    (folder / "incoming").mkdir()
    (folder / "app.siddhi").write_text(APP)
    path = folder / "rollup.toml"
    path.write_text(conf)
    return path


@pytest.fixture(autouse=True)
def no_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bad configuration must be refused before anything is started: neither Spark nor an endpoint."""

    def started(*_: object, **__: object) -> None:
        raise AssertionError("it was not refused before the start")

    import_module("rollup.hosts.spark.driver")  # now, so that it does not take what is set here for good
    monkeypatch.setattr("rollup.hosts.spark.session.Coming", started)
    monkeypatch.setattr("rollup.gateway.servers.serve.PrivateServer", started, raising=False)


def said(path: Path, command: str) -> tuple[int, str]:
    """Exit code and the sentence; anything else that is raised fails the test."""
    found = CliRunner().invoke(cli, [command, str(path), *COMMANDS[command]])
    if isinstance(found.exception, RollupError):
        return 2, str(found.exception)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.output


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize("what", list(BAD))
def test_a_bad_configuration_is_refused_in_a_sentence(tmp_path: Path, what: str, command: str) -> None:
    wrong, instead = BAD[what]
    assert CONF.count(wrong) >= 1
    path = write(tmp_path, CONF.replace(wrong, instead, 1))
    code, sentence = said(path, command)
    assert "Traceback" not in sentence
    if code == 0:
        assert command not in ("run", "plan"), "these two read all of it; others need not know how events come"
        return
    assert code == 2, sentence
    assert len(sentence) > 20 and not re.search(r"\b(?:KeyError|TypeError|AttributeError|ValueError)\b", sentence)
    if command in ("run", "plan"):
        assert not (tmp_path / "tables").exists() and not (tmp_path / "checkpoint").exists()


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_configuration_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path, command: str) -> None:
    code, sentence = said(tmp_path / "none.toml", command)
    assert code == 2 and "cannot read" in sentence


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another process listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_metrics_port_in_use_is_named_before_anything_starts(tmp_path: Path, taken: int) -> None:
    path = write(tmp_path, CONF + f"[metrics]\nport = {taken}\n")
    code, sentence = said(path, "run")
    assert code == 2 and f"port {taken}" in sentence and "in use" in sentence and "[metrics]" in sentence


@pytest.mark.parametrize("given", [lambda path: path, str])
def test_a_host_of_a_path_is_refused_by_name(tmp_path: Path, given: Callable[[Path], object]) -> None:
    from rollup.hosts.spark.driver import SparkHost
    from rollup.lifecycle.job import Job

    for kind in (SparkHost, Job):
        with pytest.raises(RollupError, match=r"rollup\.conf\.load"):
            kind(given(tmp_path / "rollup.toml"))  # type: ignore[arg-type]


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_annotation_without_effect_is_named(tmp_path: Path, command: str) -> None:
    path = write(tmp_path, CONF)
    (tmp_path / "app.siddhi").write_text(APP.replace("define agg", "@Index('symbol') define agg"))
    found = CliRunner().invoke(cli, [command, str(path), *COMMANDS[command]])
    assert "app.siddhi, line 2, column 1: @Index of TradeAgg has no effect" in found.output
