"""An event of which a text would be made that fills the memory is a dead letter; the others count as they would without it.

The bound is that of the statements: 16,777,216 characters.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from rollup.hosts.local import LocalHost
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.driver import SparkHost
from tests.job.jobs import Job
from tests.job.model_spark import ModelSpark

MOST, NOON = 16_777_216, 1_700_000_040_000
STREAM = "define stream S (k string, v string, ts long);\n"
LONG = "str:length(str:replace(k, 'x', v))"
TENFOLD = "k"
for _ in range(9):
    TENFOLD = f"str:replace({TENFOLD}, 'x', 'xxxxxxxxxx')"
APPS = {
    "a value": f"define aggregation A from S select sum({LONG}) as n aggregate by ts every sec;",
    "a condition": f"define aggregation A from S[{LONG} > 0] select count() as n aggregate by ts every sec;",
    "a key": "define aggregation A from S select str:length(str:replace(k, 'x', v)) as n, count() as c"
    " group by str:replace(k, 'x', v) aggregate by ts every sec;",
    "a text of two": f"define aggregation A from S select sum(str:length({'str:concat(k, ' * 4}"
    f"str:replace(k, 'x', v){')' * 4})) as n aggregate by ts every sec;",
    "calls within calls": f"define aggregation A from S select sum(str:length({TENFOLD})) as n aggregate by ts every sec;",
    "a derived stream": "from S select str:replace(k, 'x', v) as k, ts insert into T;\n"
    "define aggregation A from T select sum(str:length(k)) as n aggregate by ts every sec;",
    "a condition of a derived stream": f"from S[{LONG} > 0] select k, ts insert into T;\n"
    "define aggregation A from T select count() as n aggregate by ts every sec;",
}
HUGE = ("x" * 5_000, "y" * 5_000, NOON)
ASKED = "from A within 0L, 253402300799000L per 'seconds' select n"


@pytest.mark.parametrize("name", APPS)
def test_an_event_whose_text_would_fill_the_memory_is_a_dead_letter(name: str) -> None:
    text = STREAM + APPS[name]
    good = [("ax", "b", NOON), ("c", "d", NOON + 1_000), (None, "x", NOON + 2_000)]
    if name == "calls within calls":
        good = good[1:]
    alone, host = LocalHost.of(text), LocalHost.of(text)
    alone.send("S", good)
    host.send("S", [good[0], HUGE, *good[1:]])
    (letter,) = host.dead
    assert (letter["stream"], letter["reason"]) == ("S", "a text of more than 16,777,216 characters")
    assert json.loads(letter["raw"])["v"] == HUGE[1]
    assert host.query(ASKED).to_pylist() == alone.query(ASKED).to_pylist() != []


@pytest.mark.parametrize(("more", "dead"), [(0, 0), (1, 1)])
def test_a_text_of_so_many_characters_is_taken_and_no_longer_one(more: int, dead: int) -> None:
    """4,096 places of 4,096 characters each are the bound to the character."""
    host = LocalHost.of(STREAM + f"define aggregation A from S select sum({LONG}) as n aggregate by ts every sec;")
    host.send("S", [("x" * 4_096 + "z" * more, "y" * 4_096, NOON)])
    assert len(host.dead) == dead
    assert [row["n"] for row in host.query(ASKED).to_pylist()] == [MOST] * (1 - dead)


def test_a_condition_keeps_what_would_be_too_long_away() -> None:
    app = f"define aggregation A from S[str:length(k) < 1000] select sum({LONG}) as n aggregate by ts every sec;"
    host = LocalHost.of(STREAM + app)
    host.send("S", [HUGE, ("xx", "abc", NOON)])
    assert not host.dead and [row["n"] for row in host.query(ASKED).to_pylist()] == [6]


@pytest.mark.parametrize("name", ["a value", "a derived stream"])
def test_a_job_goes_on_and_what_is_folded_again_leaves_it_out_too(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    rows = [("ax", "bb", NOON), HUGE, ("c", "d", NOON + 1_000)]
    lines = (json.dumps(dict(zip(("k", "v", "ts"), row, strict=True))) for row in rows)
    (tmp_path / "in" / "f.json").write_text("\n".join(lines) + "\n")
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=STREAM + APPS[name], streams=("S",))
    SparkHost(job.conf, ModelSpark(), Reporter(terminal=False)).run(once=True)  # type: ignore[arg-type]
    assert [each["reason"] for each in job.letters()] == ["a text of more than 16,777,216 characters"]
    found = CliRunner().invoke(cli, ["verify", str(job.path), "--raw"])
    assert found.exit_code == 0, found.output
