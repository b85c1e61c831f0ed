"""The loops as numba compiles them: a statement of each kind, and all that reach the ends of their numbers.

The other tests of statements over columns run the loops as they are written, which is several times as quick as to compile
hundreds of them for a few events each. `make crash` compiles those of random statements.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.engine.columns.delivering import by_columns, by_rows, cuts, steps, timed
from tests.engine.columns.statements import aggregates, contexts, joins, rates, rows, windows
from tests.profiles import examples

KINDS = [
    *(windows.FILTERS, windows.WINDOWS, windows.KEYED_WINDOWS, windows.MOVING),
    *(windows.SEVERAL_WINDOWS, windows.BY_KEY, windows.KEPT, windows.LEAVING, aggregates.LOOKED_UP),
    *(rows.PATTERNS, rows.ASKING, rows.EARLIER, contexts.KEYED, contexts.EACH, contexts.LIVING),
    *(joins.JOINS, joins.FOLDED_JOINS, joins.RATED_JOINS, rates.RATES),
]
STATEMENTS = [*(kind[0] for kind in KINDS), *windows.NUMBERS, *aggregates.LONGS, *aggregates.EXTREMES_OF_LONGS]


@pytest.mark.parametrize("text", STATEMENTS)
@examples(20)
@given(found=steps, batches=cuts)
@pytest.mark.few(24)
def test_a_compiled_core_delivers_what_the_row_executor_delivers(text: str, found: Any, batches: Any) -> None:
    events = timed(found)
    end = events[-1][0] if events else 0
    assert by_columns(text, events, end, batches, False) == by_rows(text, events, end)
