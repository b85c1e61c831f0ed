"""Recorded cases of streaming SQL whose groups fall apart by keys answer in shards as undivided."""

from __future__ import annotations

from rollup.hosts.local import LocalHost
from rollup.statements.flow import Flow
from tests.statements.recorded import COLUMNS, FEED, app, feed
from tests.statements.test_recorded import cut, told
from tests.statements.test_shards import in_shards


def test_recorded_cases_that_have_keys_answer_in_shards() -> None:
    cases = [case for case in told("calcite") if _keyed(LocalHost.of(app([case])))]
    assert len(cases) >= 3
    host = LocalHost.of(app(cases))
    running = host.statements
    assert running is not None
    running.flow = Flow(in_shards(running.flow.statements, 3, host.program.streams), host.program.times, "GMT")
    for piece in cut(feed(cases), 1):
        host.send(FEED, [[row.get(name) for name in COLUMNS] for row in piece])
    for case in cases:
        tables = [table for name, table in host.emitted if name == case.out]
        case.compare([list(row.values()) for table in tables for row in table.to_pylist()])


def _keyed(host: LocalHost) -> bool:
    assert host.statements is not None
    return all(part.component.described.keys for part in host.statements.flow.statements.parts)
