"""Values that do not fit, through every language and every sink: each event comes out, or is a dead letter, and no job stops.

Values are random, many of them at an edge or no value of their column at all. `ROLLUP_MISFITS` says how many events the
long run takes.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from tests.job.jobs import Job
from tests.job.model_spark import ModelSpark

STREAM = "@time('ts') define stream {s} (n long, k string, q int, l long, x double, b bool, ts long);\n"
LANGUAGES = {
    "siddhi": "from {s}#window.length(3) select n, k, q * q as a, l + 1 as c, x * x as d, x / q as e insert into {o};",
    "epl": "@lang('epl') {{ insert into {o} select n, k, q * q as a, l + 1 as c, x * x as d, x / q as e from {s}; }}",
    "sql": "@lang('sql', into='{o}') {{ SELECT STREAM n, k, q * q AS a, l + 1 AS c, x * x AS d, CAST(x AS INTEGER) AS e,"
    " CAST(k AS INTEGER) AS f FROM {s} }}",
    "uql": "@lang('uql') {{ from {s} window slice 1 rows aggregate first(n) as n, first(k) as k, sum(q) as a,"
    " sum(l) as c, sum(x) as d append n, k, a, c, d to {o} }}",
    "streamcruncher": "define stream {o} (n long, k string, a int, c long, d double);\n@lang('streamcruncher', into='{o}') {{ select n, k, q * q as a, l + 1 as c, x * x as d from {s}"
    " (partition store last 1000000) as w where w.$row_status is new; }}",
}
SINKS = {
    "delta": 'kind = "delta"\npath = "{place}"\n',
    "files": 'kind = "files"\npath = "{place}"\n',
    "database": 'kind = "postgres"\nurl = "{url}"\ntable = "{table}"\n',
}
EDGES: dict[str, list[Any]] = {
    "k": [
        "",
        "a",
        "12",
        "no number",
        "a\0b",
        "\ud800",
        "\U0001f642",
        "x" * 5000,
        "2147483648",
        None,
        7,
        [1],
        {"a": "b"},
    ],
    "q": [0, 1, -1, 2**31 - 1, -(2**31), 46_341, 2**31, 2**64, 1.5, 1e300, "7", "many", True, None, [], {}],
    "l": [0, 1, 2**63 - 1, -(2**63), 2**63, 10**40, 0.5, "9", "x", None, [2**63]],
    "x": [0.0, -0.0, 1.0, 1e308, -1e308, 5e-324, 10**400, "NaN", "Infinity", "-Infinity", "x", None, False, [0.1]],
    "b": [True, False, None, "true", "maybe", 0, 1, 2, []],
    "ts": [1_700_000_000_000_000, 1_700_000_000_000_000_000, -1, 0, 2**63 - 1, 2**63, "soon", None, 1.5, [1]],
}
NOON, LATER = 1_700_000_040_000, 1_700_009_000_000


def records(moments: random.Random, count: int) -> list[str]:
    """Lines of JSON; in each at most three values are at an edge, and every twentieth is no record."""
    found: list[str] = []
    for n in range(count):
        record = {"n": n, "k": str(n % 7), "q": n % 100, "l": n, "x": n / 8, "b": n % 2 == 0, "ts": NOON + n}
        for name in moments.sample(sorted(EDGES), moments.randint(0, 3)):
            if name != "ts" or moments.random() < 0.2:
                record[name] = moments.choice(EDGES[name])
        found.append(json.dumps(record) if n % 20 else moments.choice(["{broken", "[]", '"text"', "\x01"]))
    return found


def rows(job: Job, kind: str, name: str) -> list[int]:
    """The numbers of the events that reached a sink."""
    if kind == "delta":
        table = job.folder / name
        return DeltaTable(str(table)).to_pyarrow_table()["n"].to_pylist() if table.exists() else []
    if kind == "files":
        return pq.read_table(job.folder / name)["n"].to_pylist() if (job.folder / name).exists() else []
    with sqlite3.connect(job.folder / "out.db") as database:
        if not database.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone():
            return []
        return [row[0] for row in database.execute(f"select n from {name}").fetchall()]  # a name of the test's own


def accounted(folder: Path, seed: int, count: int, files: int = 3) -> Counter[str]:
    """Run a job of every language before every sink; how many events came out, and how many became letters."""
    moments = random.Random(seed)
    pairs = [(language, kind) for language in LANGUAGES for kind in SINKS]
    app, more, sources, streams = "", '[late]\nahead = "1 day"\n', [], []
    given = dict[str, int]()
    for at, (language, kind) in enumerate(pairs):
        stream, out = f"S{at}", f"Out{at}"
        app += STREAM.format(s=stream) + LANGUAGES[language].format(s=stream, o=out) + "\n"
        place = {"place": str(folder / out), "url": f"sqlite:///{folder / 'out.db'}", "table": out}
        more += f"[sinks.{out}]\n" + SINKS[kind].format(**place)
        (folder / stream).mkdir()
        lines = records(moments, count)
        given[stream] = sum(1 for line in lines if line.strip())
        for part in range(files):
            size = -(-len(lines) // files)
            text = "\n".join(lines[part * size : (part + 1) * size]) + "\n"
            file = folder / stream / f"{part}.json"
            file.write_text(text)
            os.utime(file, (1_600_000_000 + part, 1_600_000_000 + part))
        sources.append({"kind": "json", "path": str(folder / stream), "max_files_per_batch": 1})
        streams.append(stream)
    job = Job(folder, *sources, app=app, streams=tuple(streams), more=more)
    job.run(ModelSpark())  # type: ignore[arg-type]
    # What StreamCruncher takes at an instant comes out when time goes on, by whichever stream.
    (folder / "S0" / "later.json").write_text(
        json.dumps({"n": count, "k": "1", "q": 1, "l": 1, "x": 1.0, "ts": LATER}) + "\n"
    )
    given["S0"] += 1
    job.run(ModelSpark())  # type: ignore[arg-type]
    letters = Counter(letter["stream"] for letter in job.letters())
    assert all(letter["reason"] and (letter["position"] or letter["raw"]) for letter in job.letters())
    total = Counter[str]()
    wrong = list[str]()
    for at, (language, kind) in enumerate(pairs):
        found = rows(job, kind, f"Out{at}")
        total += Counter(events=given[f"S{at}"], out=len(found), letters=letters[f"S{at}"])
        if len(set(found)) != len(found) or len(found) + letters[f"S{at}"] != given[f"S{at}"]:
            wrong.append(
                f"{language} to {kind}: {given[f'S{at}']} events, {len(found)} out, {letters[f'S{at}']} letters"
            )
    assert not wrong, wrong
    return total


def test_every_event_comes_out_or_is_a_dead_letter(tmp_path: Path) -> None:
    total = accounted(tmp_path, 1, 25, files=2)
    assert total["out"] > total["events"] / 3 and total["letters"] > total["events"] / 10


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_every_one_of_many_events_comes_out_or_is_a_dead_letter(tmp_path: Path) -> None:
    print(accounted(tmp_path, 2, int(os.environ.get("ROLLUP_MISFITS", "15000")) // 15, files=9))
