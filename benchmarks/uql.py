"""UQL beside a plain Python loop and beside DuckDB: `python -m benchmarks.uql [rows]`. Prints ratios from one run.

* slice: rows of CSV sliced by 10 seconds, 100 groups, count, sum and mean of each. The loop is csv and dict; DuckDB
  reads the same file with the types named and groups it.
* session: sessions of 1,000 users from login to logout, expiring after 30 minutes. The loop is csv and dict.

All of them write their results as CSV. Times are of the work alone, without the start of the process
and the loading of compiled loops.
"""

from __future__ import annotations

import csv
import io
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import duckdb

from rollup.lang.uql import scanning
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.plan import plan
from rollup.lang.uql.run import run

ZONE = timezone(timedelta(hours=-7))
FIELDS = {
    "slice": ("g text", "x integer64", "t timestamp"),
    "session": ("user text", "action text", "v integer64", "t timestamp time"),
}
QUERIES = {
    "slice": "from slice group by g window slice 10 seconds based on t "
    "aggregate count() as n, sum(x) as s, avg(x) as m append n, s, m to out",
    "session": 'from session group by user window session begin when action = "login" end when action = "logout" '
    "expire after 30 minutes aggregate count() as n, sum(v) as s append n, s to out",
}
DUCKDB = (
    "copy (select count(*), sum(x), avg(x), g from read_csv('{path}', delim='|', header=false, "
    "columns={{'g': 'varchar', 'x': 'bigint', 't': 'timestamptz'}}) group by g, time_bucket(interval 10 seconds, t)) "
    "to '{path}.out' (delimiter '|', header false)"
)


def catalog() -> Catalog:
    """The tables of the benchmark."""
    return Catalog.of(
        {
            "schemas": [
                {
                    "name": name,
                    "fields": [dict(zip(("name", "type", "usage"), field.split(), strict=False)) for field in fields],
                }
                for name, fields in FIELDS.items()
            ]
        }
    )


def write(folder: Path, rows: int) -> dict[str, Path]:
    """The input of each query, as files."""
    chance = random.Random(1)
    start = datetime(2030, 1, 1, 17, tzinfo=ZONE)
    paths = {name: folder / f"{name}.csv" for name in QUERIES}
    with paths["slice"].open("w") as slices, paths["session"].open("w") as sessions:
        for _ in range(rows):
            start += timedelta(milliseconds=chance.randrange(20))
            t = start.isoformat(timespec="milliseconds")
            slices.write(f"g{chance.randrange(100)}|{chance.randrange(1000)}|{t}\n")
            action = chance.choice(("login", "view", "view", "view", "view", "logout"))
            sessions.write(f"u{chance.randrange(1000)}|{action}|{chance.randrange(1000)}|{t}\n")
    return paths


def ours(name: str, path: Path) -> None:
    """The query by rollup, from bytes to bytes."""
    with path.open("rb") as source, path.with_suffix(".out").open("wb") as sink:
        for _ in run(plan(QUERIES[name], catalog()), source, sink):
            pass


def loop_slice(path: Path) -> None:
    """The slices by csv and dict."""
    with path.open(newline="") as source, io.StringIO() as sink:
        out = csv.writer(sink, delimiter="|")
        groups: dict[str, list[int]] = {}
        current = None
        for g, x, t in csv.reader(source, delimiter="|"):
            window = datetime.fromisoformat(t).timestamp() // 10
            if window != current:
                out.writerows((n, s, s / n, key) for key, (n, s) in groups.items())
                groups, current = {}, window
            group = groups.get(g)
            if group is None:
                groups[g] = [1, int(x)]
            else:
                group[0] += 1
                group[1] += int(x)
        out.writerows((n, s, s / n, key) for key, (n, s) in groups.items())


def loop_session(path: Path) -> None:
    """The sessions by csv and dict. Users that expire are looked for among the open ones, the oldest first."""
    with path.open(newline="") as source, io.StringIO() as sink:
        out = csv.writer(sink, delimiter="|")
        open_: dict[str, list[Any]] = {}
        for user, action, v, t in csv.reader(source, delimiter="|"):
            now = datetime.fromisoformat(t).timestamp()
            while open_ and next(iter(open_.values()))[0] + 1800 <= now:
                key, (_, n, s) = next(iter(open_.items()))
                out.writerow((n, s, key))
                del open_[key]
            session = open_.get(user)
            if session is not None:
                session[1] += 1
                session[2] += int(v)
                if action == "logout":
                    out.writerow((*session[1:], user))
                    del open_[user]
            elif action == "login":
                open_[user] = [now, 1, int(v)]
        out.writerows((n, s, key) for key, (_, n, s) in open_.items())


def best(work: Callable[[], object], times: int = 3) -> tuple[float, float]:
    """The shortest of several runs in seconds: of the wall's clock, and of the processor's."""
    found: list[tuple[float, float]] = []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        found.append((time.perf_counter() - wall, time.process_time() - cpu))
    return min(wall for wall, _ in found), min(cpu for _, cpu in found)


def main(rows: int) -> None:
    """Run everything and print the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), rows)
        peers: dict[str, dict[str, Callable[[], object]]] = {
            "slice": {
                "loop": lambda: loop_slice(paths["slice"]),
                "DuckDB": lambda: duckdb.sql(DUCKDB.format(path=paths["slice"])),
            },
            "session": {"loop": lambda: loop_session(paths["session"])},
        }
        scanning.load()
        print(f"{rows:,} rows; the shortest of 3 runs, wall (processor) seconds")
        for name, others in peers.items():
            mine = best(lambda name=name: ours(name, paths[name]))
            print(f"{name:8} rollup {mine[0]:.3f} ({mine[1]:.3f})")
            for peer, work in others.items():
                theirs = best(work)
                ratio = f"{theirs[0] / mine[0]:.1f} times as fast ({theirs[1] / mine[1]:.1f} by processor time)"
                print(f"{name:8} {peer} {theirs[0]:.3f} ({theirs[1]:.3f}): rollup is {ratio}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
