"""How much of the program a command loads: help, refusals and questions must not wait for what they do not use.

Time depends on the machine and on what else it does, so the modules are named instead: each of the named ones takes
a tenth of a second or more to load, and one import at the top of a module that the command line reads brings it back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.retrieval.trades import EVENTS, app, delta_host

ROOT = Path(__file__).parents[2]
NEVER = {"pydantic", "pandas", "pyspark", "numba", "matplotlib", "plotext", "prometheus_client", "structlog", "asyncio"}
FOR_DATA = {"pyarrow", "numpy", "duckdb", "sqlglot", "lark", "deltalake", "sqlalchemy", "psycopg2", "datasketches"}
FOR_QUESTIONS = NEVER | {"sqlalchemy", "psycopg2", "datasketches", "rich", "sqlglot.dialects.spark", "pyarrow.compute"}
_TELL = """
import json, sys
from rollup.cli.main import app
sys.argv = ["rollup", *sys.argv[1:]]
try:
    app()
except SystemExit as end:
    print("\\x00" + json.dumps([end.code or 0, sorted(sys.modules)]))
"""


def loaded(folder: Path, *words: str) -> tuple[int, set[str]]:
    """The exit code of a command in a process of its own, and the modules that are loaded at its end."""
    ran = subprocess.run(
        [sys.executable, "-c", _TELL, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    code, modules = json.loads(ran.stdout.rsplit("\x00", 1)[1])
    return code, set(modules)


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], [], ["query", "--help"], ["replay", "--help"], ["quarry"]]
)
def test_help_and_the_version_load_nothing_that_works_on_data(tmp_path: Path, words: list[str]) -> None:
    _, modules = loaded(tmp_path, *words)
    assert modules & (NEVER | FOR_DATA | {"rich"}) == set()


@pytest.mark.parametrize(
    "words", [["run"], ["plan"], ["ddl"], ["query", "x"], ["status"], ["verify"], ["change"], ["recover"], ["serve"]]
)
def test_a_configuration_is_refused_before_anything_that_works_on_data_is_loaded(
    tmp_path: Path, words: list[str]
) -> None:
    (tmp_path / "job.toml").write_text('ap = "a.siddhi"')
    code, modules = loaded(tmp_path, words[0], "job.toml", *words[1:])
    assert code == 2
    assert modules & (NEVER | FOR_DATA | {"rich"}) == set()


def test_a_question_loads_what_answers_it_and_nothing_of_spark_or_databases(tmp_path: Path) -> None:
    delta_host(tmp_path, app()).send("S", EVENTS)
    conf = next(tmp_path.glob("*.toml"))
    question = "from A within '2018-**-** **:**:**' per 'days'"
    code, modules = loaded(tmp_path, "query", str(conf), question, "--format", "csv")
    assert code == 0
    assert modules & FOR_QUESTIONS == set()


_INTERRUPTED = """
import sys
class Signal:
    def find_spec(self, name, *given):
        if name == "rollup.cli.lifecycle.change":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Signal())
from rollup.cli.main import app
"""


def test_ctrl_c_among_the_imports_is_a_line_and_no_traceback() -> None:
    command = [sys.executable, "-c", _INTERRUPTED]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert ran.returncode and ran.stderr == "rollup: interrupted\n"


_COMMAND = """
import sys
from rollup.cli.main import app, cli
@cli.command("stop")
def stop():
    raise KeyboardInterrupt
sys.argv = ["rollup", "stop"]
app()
"""


def test_ctrl_c_in_a_command_is_a_line_too() -> None:
    command = [sys.executable, "-c", _COMMAND]
    ran = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "rollup: interrupted\n")


@pytest.mark.parametrize("words", [["--version"], ["query", "job.toml", "x"], ["quarry"]])
def test_a_short_command_that_leaves_at_once_has_said_all_and_keeps_its_exit_code(
    tmp_path: Path, words: list[str]
) -> None:
    said: list[tuple[int, str, str]] = []
    for name in ("app", "entry"):
        command = [sys.executable, "-c", f"from rollup.cli.main import {name}; {name}()", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        said.append((ran.returncode, ran.stdout, ran.stderr))
    assert said[0] == said[1] and any(said[0][1:])


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["try", "app.epl"], ["ddl", "rollup.toml"]])
def test_what_cannot_be_written_is_one_line_and_no_success(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "app.epl").write_text("create schema S(v int); select v from S;")
    (tmp_path / "app.siddhi").write_text(
        "define stream S (ts long); define aggregation A from S select count() as n aggregate by ts every sec;"
    )
    (tmp_path / "rollup.toml").write_text(
        'app = "app.siddhi"\ncheckpoint = "c"\n[sources.S]\nkind = "rate"\n[store]\nkind = "delta"\npath = "t"\n'
    )
    command = [sys.executable, "-c", "from rollup.cli.main import entry; entry()", *words]
    events = '{"stream": "S", "v": 1}\n' * 9
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            input=events,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (2, "rollup: the output cannot be written: No space left on device\n")
