"""One Delta store for all tests that only read."""

from __future__ import annotations

import pytest

from rollup.ask import Asker
from tests.retrieval.trades import EVENTS, app, asker, delta_host


@pytest.fixture(scope="session")
def trades(tmp_path_factory: pytest.TempPathFactory) -> Asker:
    """The events of `trades.EVENTS`, sent one by one into a Delta store."""
    folder = tmp_path_factory.mktemp("trades")
    host = delta_host(folder, app())
    for event in EVENTS:
        host.send("S", [event])
    return asker(folder)
