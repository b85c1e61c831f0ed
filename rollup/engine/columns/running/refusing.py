"""Which events a statement over columns may refuse. A batch that may hold one comes event by event, so that the very event is
refused.
"""

from __future__ import annotations

from rollup.engine.columns.cores.batches import Batch, Core
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.of_matches import OfMatches
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.prior_access import PriorAccess
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.selected import Selected
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.expressions import Expr
from rollup.engine.state import State


def against_refusing(core: Core | str) -> str | None:
    """Why a statement cannot hear what others insert in the midst of a batch, whose events come as they are."""
    if isinstance(core, Matched | Renewing | OfMatches) or (
        isinstance(core, Partitioned) and isinstance(core.inner, Matched | Renewing)
    ):
        return "a pattern over what is inserted"
    return None if isinstance(core, str) or _time(core) is None else "a window by a time over what is inserted"


def roomy(core: Core, state: State, batch: Batch) -> bool:
    """Whether a batch can be taken as a whole, without too much memory and with no event that may be refused.

    An event is refused when there are too many partial matches, or when it lacks a time that its window needs.
    """
    if isinstance(core, Matched):
        return core.roomy(state, batch)
    if isinstance(core, OfMatches):
        return roomy(core.pattern, state.held()["pattern"], batch)
    if isinstance(core, LifecycleStatement | Partitioned) and not core.roomy(state, batch):
        return False
    time = _time(core)
    return time is None or not evaluate(time, batch.columns, batch.rows).null_count


def _time(core: Core) -> Expr | None:
    """The time that a window needs of each row."""
    match core:
        case PriorAccess():
            return _time(core.main)
        case Selected():
            return core.time
        case Partitioned():
            return _time(core.inner)
        case _:
            return None
