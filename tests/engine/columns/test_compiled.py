"""The loops as numba compiles them: a statement of each kind, and all that reach the ends of their numbers.

The other tests of statements over columns run the loops as they are written, which is several times as quick as to compile
hundreds of them for a few events each. `make crash` compiles those of random statements.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tests.engine.columns.delivering import by_columns, by_rows, cuts, steps, timed
from tests.engine.columns.statements import SECTIONS
from tests.profiles import examples

WHOLE = ("numbers about a window", "sums of longs, which wrap", "extremes of longs")
STATEMENTS = [each for title, entries in SECTIONS.items() for each in (entries if title in WHOLE else entries[:1])]


@pytest.mark.parametrize("text", STATEMENTS)
@examples(20)
@given(found=steps, batches=cuts)
@pytest.mark.few(24)
def test_a_compiled_core_delivers_what_the_row_executor_delivers(text: str, found: Any, batches: Any) -> None:
    events = timed(found)
    end = events[-1][0] if events else 0
    assert by_columns(text, events, end, batches, False) == by_rows(text, events, end)
