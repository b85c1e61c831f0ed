"""All statements that cores run."""

from __future__ import annotations

from tests.engine.columns.statements.aggregates import (
    EVER_IN_WINDOWS,
    EXTREMES_OF_LONGS,
    GROUPS_BY_DOUBLES,
    LEFT,
    LONGS,
    LOOKED_UP,
)
from tests.engine.columns.statements.contexts import EACH, KEYED, LIVING
from tests.engine.columns.statements.joins import BY_DOUBLES, FOLDED_JOINS, JOINS, RATED_JOINS
from tests.engine.columns.statements.rates import (
    FINISHED,
    GROUPS_AS_THEY_COME,
    HELD,
    RATES,
    RATES_IN_ORDER,
    RATES_LEAVING,
    RATES_OF_BATCHES,
)
from tests.engine.columns.statements.rows import (
    ASKING,
    BY_ORDER,
    CORRELATED,
    EARLIER,
    EARLIER_IN_ORDER,
    PATTERNS,
)
from tests.engine.columns.statements.windows import (
    BEHIND,
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
    STAYING,
    WINDOWS,
)

COVERED = [
    *LOOKED_UP,
    *EXTREMES_OF_LONGS,
    *EVER_IN_WINDOWS,
    *LONGS,
    *GROUPS_BY_DOUBLES,
    *LEFT,
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
    *MOVING,
    *BY_KEY,
    *SEVERAL_WINDOWS,
    *KEPT,
    *STAYING,
    *LEAVING,
    *PATTERNS,
    *KEYED,
    *EACH,
    *LIVING,
    *GROUPS_AS_THEY_COME,
    *ASKING,
    *CORRELATED,
    *BY_ORDER,
    *EARLIER,
    *JOINS,
    *BY_DOUBLES,
    *FOLDED_JOINS,
    *RATED_JOINS,
    *RATES,
    *HELD,
    *RATES_LEAVING,
    *RATES_OF_BATCHES,
]
