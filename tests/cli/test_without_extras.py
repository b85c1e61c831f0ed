"""`pip install rollup` alone: the engine, `rollup try` and questions over Delta work; what else is asked for names its extra.

A process in which no package of an extra can be imported stands for such an installation.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from rollup.core.packages import EXTRAS
from tests.retrieval.trades import EVENTS, app, delta_host

ROOT = Path(__file__).parents[2]
WHERE = packages_distributions()
INSTALLED = {re.sub("[-_.]+", "-", name).lower() for names in WHERE.values() for name in names}
_PLAIN = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *given):
        return None if name.partition(".")[0] in missing else self.finder.find_spec(name, *given)

missing, commands = json.loads(sys.argv[1])
sys.meta_path[:] = map(Without, sys.meta_path)
from rollup.cli.main import app
said = []
for words in commands:
    sys.argv, code = ["rollup", *words], 0
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            app()
        except SystemExit as end:
            code = end.code or 0
    said.append([code, out.getvalue(), err.getvalue()])

import rollup
engine, sums = rollup.Engine(), []
engine.deploy("create schema S(v int); @name('out') select sum(v) as s from S;")
engine.listen("out", lambda new, old: sums.extend(row["s"] for row in new))
engine.send("S", [{"v": 2}, {"v": 3}])
said.append([0, json.dumps(sums), ""])
print("\\x00" + json.dumps(said))
"""
_QUESTION = "from A within '2018-**-** **:**:**' per 'years' select total"
WORKING = {
    "try": ["try", "app.epl"],
    "query": ["query", "conf.toml", _QUESTION, "--format", "csv"],
    "status": ["status", "conf.toml"],
    "plan": ["plan", "conf.toml"],
    "ddl": ["ddl", "conf.toml"],
    "doctor": ["doctor"],
    "dead": ["dead", "conf.toml"],
}
REFUSED = {
    "run": (["run", "conf.toml"], "`rollup run`", "spark"),
    "a database": (["query", "sql.toml", _QUESTION], "what the configuration names", "postgres"),
    "serve": (["serve", "conf.toml"], "`rollup serve`", "postgres"),
    "ui": (["ui", "conf.toml"], "the console", "ui"),
    "lsp": (["lsp"], "the language server", "lsp"),
    "objects": (["query", "objects.toml", _QUESTION], "s3://bucket/store", "objects"),
    "hdfs": (["query", "hdfs.toml", _QUESTION], "hdfs://host:8020/store", "hdfs"),
    "telemetry": (["maintain", "telemetry.toml"], "[telemetry] lineage", "telemetry"),
    "plan for iceberg": (["plan", "planned.toml"], "[store] iceberg", "iceberg"),
    "iceberg": (["maintain", "iceberg.toml"], "[store] iceberg", "iceberg"),
    "topic": (["init", "kafka://127.0.0.1:1/t", "--into", "new"], "`rollup init`", "kafka"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """The exit code of each command, and what it prints, where no extra is installed."""
    folder = tmp_path_factory.mktemp("plain")
    delta_host(folder, app()).send("S", EVENTS)
    (folder / "app.epl").write_text("create schema S(v int); @name('out') select sum(v) as s from S;")
    plain = (folder / "conf.toml").read_text()
    (folder / "conf.toml").write_text(plain.replace("[store]", '[sources.S]\nkind = "rate"\n[store]'))
    (folder / "sql.toml").write_text(plain.replace('kind = "delta"\npath = "store"', 'kind = "sql"\nurl = "sqlite://"'))
    (folder / "objects.toml").write_text(plain.replace('"store"', '"s3://bucket/store"'))
    (folder / "hdfs.toml").write_text(plain.replace('"store"', '"hdfs://host:8020/store"'))
    (folder / "telemetry.toml").write_text(f'{plain}\n[telemetry]\nlineage = "http://127.0.0.1:1"\n')
    (folder / "iceberg.toml").write_text(f'{plain}\niceberg = {{ namespace = "t", uri = "http://127.0.0.1:1" }}\n')
    source = '[sources.S]\nkind = "rate"\n[store]'
    (folder / "planned.toml").write_text((folder / "iceberg.toml").read_text().replace("[store]", source))
    commands = {**WORKING, **{name: words for name, (words, _, _) in REFUSED.items()}}
    given = json.dumps([sum(EXTRAS.values(), ()), list(commands.values())])
    ran = subprocess.run(
        [sys.executable, "-c", _PLAIN, given],
        cwd=folder,
        input='{"stream": "S", "v": 2}\n{"stream": "S", "v": 3}\n',
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return dict(zip((*commands, "engine"), json.loads(ran.stdout.rsplit("\x00", 1)[1]), strict=True))


@pytest.mark.parametrize("name", [*WORKING, "engine"])
def test_it_works_without_an_extra(answers: dict[str, tuple[int, str, str]], name: str) -> None:
    code, _, wrong = answers[name]
    assert (code, wrong) == (0, "")


def test_the_answers_are_those_of_the_events(answers: dict[str, tuple[int, str, str]]) -> None:
    _, *totals = answers["query"][1].split()
    assert sum(map(int, totals)) == sum(value for _, value, _ in EVENTS)
    assert [json.loads(line)["insert"] for line in answers["try"][1].splitlines()] == [[{"s": 2}], [{"s": 5}]]
    assert answers["engine"][1] == "[2, 5]"


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_an_extra_says_which(answers: dict[str, tuple[int, str, str]], name: str) -> None:
    _, what, extra = REFUSED[name]
    code, _, wrong = answers[name]
    assert code == 2
    assert wrong.startswith(f"rollup: {what} needs the package ")
    assert wrong.endswith(f" (pip install 'rollup[{extra}]')\n")


def _asked(lines: Iterable[str], extra: str) -> dict[str, set[str]]:
    """The packages that requirements name for an extra, or without one, and the extras of each that they ask for."""
    found = defaultdict[str, set[str]](set)
    for line in map(Requirement, lines):
        if line.marker is None or line.marker.evaluate({"extra": extra}):
            found[re.sub("[-_.]+", "-", line.name).lower()] |= line.extras
    return found


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_the_modules_that_the_sentence_names(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    direct = _asked(project["optional-dependencies"][extra], "")
    brought = {*direct}
    for name, extras in direct.items():
        for each in ("", *extras) if name != "rollup" else ():
            brought |= _asked(requires(name) or (), each).keys() if name in INSTALLED else set()
    for module in EXTRAS[extra]:
        there = {re.sub("[-_.]+", "-", name).lower() for name in WHERE.get(module, ())}
        assert brought & there or not there, f"not by {extra}: {module}"
