"""Recorded cases answer the same where those whose groups fall apart by keys run in shards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from rollup.hosts.local import LocalHost
from rollup.statements.flow import Flow
from rollup.statements.shards import Sharded
from tests.conformance.languages import LANGUAGES
from tests.statements.recorded import COLUMNS, FEED, app, feed
from tests.statements.recorded_epl import stated
from tests.statements.test_recorded import cut, told
from tests.statements.test_shards import given, in_shards


@pytest.mark.parametrize(("language", "least"), [("calcite", 3), ("uql", 10), ("streamcruncher", 30)])
@pytest.mark.slow
def test_recorded_cases_that_have_keys_answer_in_shards(language: str, least: int) -> None:
    cases = told(language)
    host = LocalHost.of(app(cases))
    running = host.statements
    assert running is not None
    divided = in_shards(running.flow.statements, 3, host.program.streams)
    assert sum(isinstance(part.component, Sharded) for part in divided.parts) >= least
    running.flow = Flow(divided)
    for piece in cut(feed(cases), 1):
        host.send(FEED, [[row.get(name) for name in COLUMNS] for row in piece])
    for case in cases:
        tables = [table for name, table in host.emitted if name == case.out]
        rows = [list(row.values()) for table in tables for row in table.to_pylist()]
        replace(case, ordered=False).compare(rows)


@pytest.mark.slow
def test_recorded_statements_of_epl_that_have_keys_answer_in_shards() -> None:
    """Each in 3 shards and undivided, its state packed and read between batches; one that is not divided says why."""
    divided = 0
    for case in LANGUAGES["epl"].own.values():
        for each in stated(case):
            whole, other = each.compiled(), each.compiled()
            if whole is None or other is None or whole.statements is None or other.statements is None:
                continue
            found = [part.component.described.keys for part in whole.statements.parts]
            assert all(keys.by or keys.reason for keys in found), each.text
            if not any(keys.by for keys in found):
                continue
            divided += 1
            batches, streams = list(cut(each.events, 3)), {**whole.streams, **whole.statements.streams}
            rows, refused = given(whole.statements, batches, again=False)
            shards = given(in_shards(other.statements, 3, streams), batches, again=True)
            assert (_alike(rows), refused) == (_alike(shards[0]), shards[1]), each.text
    assert divided >= 20


def _alike(rows: dict[str, list[object]]) -> dict[str, Counter[str]]:
    return {stream: Counter(map(repr, given)) for stream, given in rows.items()}
