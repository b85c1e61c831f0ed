"""The loops as numba compiles them: a statement of each kind, and all that reach the ends of their numbers.

The other tests of statements over columns run the loops as they are written, which is several times as quick as to compile
hundreds of them for a few events each. `make crash` compiles those of random statements.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.engine.columns import test_cores as cores

KINDS = [
    *(
        cores.FILTERS,
        cores.WINDOWS,
        cores.BESIDE,
        cores.SIZES,
        cores.KEYED_WINDOWS,
        cores.MOVING,
        cores.SEVERAL_WINDOWS,
    ),
    *(cores.BY_KEY, cores.UNTIL, cores.KEPT, cores.LEAVING, cores.PATTERNS, cores.KEYED, cores.EACH, cores.LIVING),
    *(cores.ASKING, cores.EARLIER, cores.JOINS, cores.FOLDED_JOINS, cores.RATED_JOINS, cores.RATES, cores.LOOKED_UP),
]
STATEMENTS = [*(kind[0] for kind in KINDS), *cores.NUMBERS, *cores.LONGS, *cores.EXTREMES_OF_LONGS]


@pytest.mark.parametrize("text", STATEMENTS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=cores.steps, batches=cores.cuts)
def test_a_compiled_core_delivers_what_the_row_executor_delivers(text: str, found: Any, batches: Any) -> None:
    events = cores.timed(found)
    end = events[-1][0] if events else 0
    assert cores.by_columns(text, events, end, batches, False) == cores.by_rows(text, events, end)
