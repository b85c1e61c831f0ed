"""A path with odd signs in it is read and written as it is, or refused before anything is begun with the sign that is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollup.conf import load
from rollup.core.errors import ConfigError
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.driver import SparkHost
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

APP = """define stream S (k string, v double, ts long);
define aggregation A from S select k, sum(v) as total, count() as n group by k aggregate by ts every sec ... year;
from S select k, v insert into Out;
from S select k, v insert into Files;
"""
LINES = '{"k": "a", "v": 1.5, "ts": 1700000000000}\nnonsense\n'
READ = ["a b", "a#b", "a?b", "Größe", "日本", "50%", "a%zz", "a'b", 'a"b', "a&b=c", "a*b", "{a}", "a+b", "a:b", "~"]
REFUSED = {"a%20b": "'%20'", "a%25b": "'%25'", "a[1]": "'['", "a]": "']'", "a^b": "'^'", "a|b": "'|'", "a\tb": "'\\t'"}
SINKS = '[sinks.Out]\nkind = "delta"\npath = "out"\n[sinks.Files]\nkind = "files"\npath = "files"\n'


def job_in(folder: Path) -> Job:
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "f.json").write_text(LINES)
    return Job(folder, {"kind": "json", "path": "in"}, app=APP, streams=("S",), more=SINKS)


@pytest.mark.parametrize("name", READ)
def test_a_job_in_a_folder_of_any_name_keeps_all_it_takes(tmp_path: Path, name: str) -> None:
    job = job_in(tmp_path / name)
    SparkHost(job.conf, ModelSpark(), Reporter(terminal=False)).run(once=True)  # type: ignore[arg-type]
    assert answers(job.conf, "n", "years", "A") == [(1,)] and len(job.letters()) == 1
    assert (job.folder / "out" / "_delta_log").is_dir() and list((job.folder / "files").iterdir())
    assert {each.name for each in tmp_path.iterdir()} == {name}, "nothing is written to another place"


@pytest.mark.parametrize(
    "store", [{"kind": "delta", "path": "tables"}, {"kind": "sql", "url": "sqlite:///x.db"}], ids=str
)
@pytest.mark.parametrize("name", REFUSED)
def test_what_deltas_library_misreads_is_refused_with_the_sign(
    tmp_path: Path, name: str, store: dict[str, str]
) -> None:
    """Also where the tables are in a database: dead letters are a Delta table all the same."""
    job = job_in(tmp_path / name)
    kind, place = 'kind = "delta"\npath = "tables"', "\n".join(f'{key} = "{value}"' for key, value in store.items())
    text = job.path.read_text().replace(SINKS, "")
    assert kind in text
    job.path.write_text(text.replace(kind, place))
    with pytest.raises(ConfigError) as problem:
        load(job.path)
    assert f"a path without {REFUSED[name]}" in str(problem.value)
