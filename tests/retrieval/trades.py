"""A small store that the tests of this folder ask: an app, events, late ones among them, and a Delta store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rollup.ask import Asker, opened
from rollup.core.calendar import Duration, bucket_start
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from tests.servers.postgres import NewUrl

Event = tuple[str | None, int, int]
SECOND, HOUR, DAY = 1_000, 3_600_000, 86_400_000
START = 1_514_764_800_000  # 2018-01-01T00:00:00Z

EVENTS: Sequence[Event] = [
    ("a", 1, START), ("b", 5, START + 2 * SECOND), ("a", 2, START + HOUR + 1500), ("a", 7, START + 3 * HOUR),
    ("b", 1, START + SECOND), (None, 4, START + 4 * HOUR), ("a", 9, START + 30 * HOUR), ("b", 3, START + 40 * DAY),
    ("a", 6, START + 29 * HOUR), ("a", 8, START + 41 * DAY + HOUR),
]  # fmt: skip


def app(policy: str = "merge", buffer: int = 2) -> str:
    """The app: sum, average, count and last value by key, seconds to years."""
    return f"""define stream S (k string, v long, ts long);
        @BufferSize('{buffer}') @OutOfOrder('{policy}')
        define aggregation A from S select k, sum(v) as total, avg(v) as mean, count() as n, v as last
        group by k aggregate by ts every sec ... year;"""


def delta_host(folder: Path, text: str, zone: str | None = None) -> LocalHost:
    """A local host whose tables are in a Delta store, and a configuration that reads it."""
    (folder / "app.siddhi").write_text(text)
    (folder / "conf.toml").write_text(
        f'app = "app.siddhi"\ncheckpoint = "checkpoint"\n{_said(zone)}[store]\nkind = "delta"\npath = "store"\n'
    )
    return LocalHost(
        compile_app(text, zone), lambda aggregation, engine: DeltaStore(aggregation, engine, folder / "store")
    )


def _said(zone: str | None) -> str:
    return "" if zone is None else f'zone = "{zone}"\n'


STORES = ["delta", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


def host_of(
    request: pytest.FixtureRequest, folder: Path, text: str, zone: str | None = None, kind: str | None = None
) -> LocalHost:
    """A job over a store of a kind, or that of the fixture's parameter; its configuration is `conf.toml` in the folder."""
    kind = kind or request.param
    if kind == "delta":
        return delta_host(folder, text, zone)
    url = f"sqlite:///{folder}/a.db"
    if kind == "postgresql":
        new_url: NewUrl = request.getfixturevalue("new_url")
        url = new_url()
    (folder / "app.siddhi").write_text(text)
    (folder / "conf.toml").write_text(
        f'app = "app.siddhi"\ncheckpoint = "state"\n{_said(zone)}[store]\nkind = "sql"\nurl = "{url}"\n'
    )
    return LocalHost(compile_app(text, zone), lambda aggregation, engine: store_of(aggregation, engine, url))


def stored_in(
    request: pytest.FixtureRequest,
    folder: Path,
    text: str,
    *batches: Sequence[tuple[Any, ...]],
    zone: str | None = None,
) -> Path:
    """The configuration of a store, of the kind that is the fixture's parameter, which holds the batches of events."""
    host = host_of(request, folder, text, zone)
    for batch in batches:
        host.send("S", batch)
    return folder / "conf.toml"


def asker(folder: Path) -> Asker:
    """What reads the store of `delta_host`, as another process would."""
    return opened(folder / "conf.toml")


def grouped(
    events: Sequence[Event], level: Duration, start: int, end: int
) -> dict[tuple[int, str | None], tuple[int, int]]:
    """Sum and count by bucket and key, from the events themselves."""
    found: dict[tuple[int, str | None], tuple[int, int]] = {}
    for key, value, ts in events:
        bucket = bucket_start(ts, level)
        if start <= bucket < end:
            total, count = found.get((bucket, key), (0, 0))
            found[bucket, key] = total + value, count + 1
    return found
