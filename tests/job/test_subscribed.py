"""A subscriber beside the real job, which is killed in the midst of commits: in the end he has the table, nothing twice."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rollup
from rollup.subscribe import Change
from tests.job.jobs import Job, answers
from tests.job.test_crash import job, write_events
from tests.servers.postgres import NewUrl

pytestmark = [pytest.mark.slow, pytest.mark.spark]
KILLED_AT = ("commit.levels:2", "commit.record:3")
COLUMNS = ("AGG_TIMESTAMP", "symbol", "total", "low", "high", "mean", "events", "AGG_FINAL")


class Subscriber:
    """What a thread has put together of the changes of a level; it goes on from its commit in a new subscription."""

    def __init__(self, real: Job, per: str) -> None:
        self.rows: dict[tuple[Any, Any], tuple[Any, ...]] = {}
        self.commit: int | None = None
        self._real, self._per = real, per
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        over = False
        while not over:
            over = self._over.is_set()  # one look more after it is over
            asker = rollup.open(self._real.conf)
            change = asker.subscribe("TradeAgg", self._per, commit=self.commit).step()
            if change is not None:
                self._put(change)
            self._over.wait(0.2)

    def _put(self, change: Change) -> None:
        self.commit = change.commit
        for low, high in change.cleared:
            inside = [k for k in self.rows if (low is None or k[0] >= low) and (high is None or k[0] < high)]
            for key in inside:
                del self.rows[key]
        for row in change.removed.to_pylist():
            del self.rows[row["AGG_TIMESTAMP"], row["symbol"]]
        for row in change.rows.to_pylist():
            self.rows[row["AGG_TIMESTAMP"], row["symbol"]] = tuple(row[name] for name in COLUMNS)

    def end(self) -> list[tuple[Any, ...]]:
        """All rows, when there is no more to come."""
        self._over.set()
        self._thread.join()
        return sorted(self.rows.values(), key=repr)


@pytest.fixture(params=["delta", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Job]:
    write_events(tmp_path / "events")
    store = 'kind = "delta"\npath = "tables"'
    if request.param != "delta":
        new_url: NewUrl = request.getfixturevalue("new_url") if request.param == "postgresql" else lambda: ""
        store = f'kind = "sql"\nurl = "{new_url() or f"sqlite:///{tmp_path}/a.db"}"'
    yield job(tmp_path / "real", store=store)


def test_a_subscriber_has_the_table_although_the_job_is_killed(real: Job) -> None:
    listening = {per: Subscriber(real, per) for per in ("seconds", "years")}
    for fault in KILLED_AT:
        code, said = real.finish("--once", fault=fault)
        assert code == -signal.SIGKILL, said
    assert real.finish("--once")[0] == 0
    found = {per: subscriber.end() for per, subscriber in listening.items()}
    for per, rows in found.items():
        assert rows == answers(real.conf, ", ".join(COLUMNS), per)
    lines = (line for file in (real.folder.parent / "events").iterdir() for line in file.read_text().splitlines())
    events = [json.loads(line) for line in lines if not line.startswith("{broken")]
    assert {row[1]: (row[2], row[6]) for row in found["years"]} == {
        symbol: (
            sum(event["quantity"] for event in events if event["symbol"] == symbol),
            sum(event["symbol"] == symbol for event in events),
        )
        for symbol in {event["symbol"] for event in events}
    }
