"""All statements that cores run."""

from __future__ import annotations

from tests.engine.columns.statements.aggregates import EVER_IN_WINDOWS, EXTREMES_OF_LONGS, LONGS, LOOKED_UP
from tests.engine.columns.statements.contexts import EACH, KEYED, LIVING
from tests.engine.columns.statements.joins import FOLDED_JOINS, JOINS, RATED_JOINS
from tests.engine.columns.statements.rates import (
    AFTER,
    FINISHED,
    HELD,
    LATELY,
    RATES,
    RATES_AFTER,
    RATES_IN_ORDER,
    RATES_LEAVING,
    RATES_OF_BATCHES,
    RATES_WHEN,
)
from tests.engine.columns.statements.rows import ASKING, EARLIER, EARLIER_IN_ORDER, PATTERNS
from tests.engine.columns.statements.windows import (
    BEHIND,
    BESIDE,
    BY_CONDITION,
    BY_KEY,
    FILTERS,
    IN_ORDER,
    KEPT,
    KEYED_WINDOWS,
    LEAVING,
    MOVING,
    NUMBERS,
    SEVERAL_WINDOWS,
    SIZES,
    UNTIL,
    WINDOWS,
)

COVERED = [
    *LOOKED_UP,
    *EXTREMES_OF_LONGS,
    *EVER_IN_WINDOWS,
    *LONGS,
    *IN_ORDER,
    *BY_CONDITION,
    *EARLIER_IN_ORDER,
    *BEHIND,
    *RATES_IN_ORDER,
    *FINISHED,
    *KEYED_WINDOWS,
    *FILTERS,
    *WINDOWS,
    *NUMBERS,
    *SIZES,
    *BESIDE,
    *MOVING,
    *BY_KEY,
    *UNTIL,
    *SEVERAL_WINDOWS,
    *KEPT,
    *LEAVING,
    *PATTERNS,
    *KEYED,
    *EACH,
    *LIVING,
    *ASKING,
    *EARLIER,
    *JOINS,
    *FOLDED_JOINS,
    *RATED_JOINS,
    *RATES,
    *LATELY,
    *HELD,
    *RATES_LEAVING,
    *RATES_OF_BATCHES,
    *RATES_AFTER,
    *AFTER,
    *RATES_WHEN,
]
