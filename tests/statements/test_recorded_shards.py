"""Recorded cases answer the same where those whose groups fall apart by keys run in shards."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollup.hosts.local import LocalHost
from rollup.statements.flow import Flow
from rollup.statements.shards import Sharded
from tests.statements.recorded import COLUMNS, FEED, app, feed
from tests.statements.test_recorded import cut, told
from tests.statements.test_shards import in_shards


@pytest.mark.parametrize(("language", "least"), [("calcite", 3), ("uql", 10), ("streamcruncher", 30)])
def test_recorded_cases_that_have_keys_answer_in_shards(language: str, least: int) -> None:
    cases = told(language)
    host = LocalHost.of(app(cases))
    running = host.statements
    assert running is not None
    divided = in_shards(running.flow.statements, 3, host.program.streams)
    assert sum(isinstance(part.component, Sharded) for part in divided.parts) >= least
    running.flow = Flow(divided, host.program.times, "GMT")
    for piece in cut(feed(cases), 1):
        host.send(FEED, [[row.get(name) for name in COLUMNS] for row in piece])
    for case in cases:
        tables = [table for name, table in host.emitted if name == case.out]
        rows = [list(row.values()) for table in tables for row in table.to_pylist()]
        replace(case, ordered=False).compare(rows)
