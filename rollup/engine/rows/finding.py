"""Sub-queries by equal fields, over a store or a window that finds rows by these fields.

Their functions are generated for each store, so an event costs one look-up of its key and the rows found there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import attrgetter

from rollup.core.descriptions import descendants
from rollup.engine.compiling import Same
from rollup.engine.expressions import Ask as Asks
from rollup.engine.folding import Fold
from rollup.engine.rows.keyed import MANY, ByKey, Keyed
from rollup.engine.rows.plans import Subquery
from rollup.engine.rows.runner import Ask
from rollup.engine.types import DataType


def finding(plan: Subquery, store: Keyed, width: int, otherwise: Ask) -> Ask | None:
    """The answer of a sub-query asked with `width` rows; `otherwise` is asked with any other number, or where the rows are
    not found by key this time. None where they never are, or where more is asked than a value or whether there is a row.
    """
    asks = any(isinstance(each, Asks) for each in descendants(plan, (DataType,)))
    if asks or plan.keys or plan.mode not in ("value", "exists") or (plan.mode == "exists" and plan.calls):
        return None
    if plan.mode == "value" and len(plan.columns) != 1:
        return None
    places, known, whole = ByKey(plan.where, width).key(store)
    if not places:
        return None
    found = store.index_by(places)
    alone = found.single or (whole and plan.having is None)
    if not (alone or plan.calls or plan.mode == "exists"):
        return None  # all rows would have to be looked at, to know of the one
    bind = _generated(Same((plan,)), Same(known), width, whole, found.single, found.ordered, found.window is not None)
    return bind(found.having, found.sole, found.window, otherwise)


@lru_cache(maxsize=4096)
def _generated(
    plan: Same, known: Same, width: int, whole: bool, single: bool, ordered: bool, windowed: bool
) -> Callable[..., Ask]:
    """Generated: `bind(having, sole, window, otherwise)` gives `ask(r, s, e)`."""
    (query,) = plan.items
    fold = Fold(query.calls)
    source = fold.source([f"v{place}" for place in range(len(query.calls))], {width: "row"})
    source.objects.update(MANY=MANY, start=fold.start, number=attrgetter("id"))
    nothing = "False" if query.mode == "exists" else "None"

    def key() -> None:
        """The key; where all depends on it, a null finds nothing."""
        values = [source.emit(each) for each in known.items]
        source.line(f"key = ({''.join(f'{value}, ' for value in values)})")
        if whole and not query.calls:
            source.line(f"if None in key: return {nothing}")

    def unless_passing() -> str | None:
        return None if whole else f"if {source.emit(query.where)} is not True:"

    def answer() -> None:
        if query.having is not None:
            source.line(f"if {source.emit(query.having)} is not True: return None")
        source.line(f"return {source.emit(query.columns[0])}")

    def of_one() -> None:
        source.line("row = sole(key)")
        source.line(f"if row is None: return {nothing}")
        if query.mode == "exists" and whole:
            source.line("return True")
            return
        if not single:
            source.line("if row is MANY: return otherwise(r, s, e)")
        if (test := unless_passing()) is not None:
            source.line(f"{test} return {nothing}")
        source.line("return True") if query.mode == "exists" else answer()

    def of_any() -> None:
        def each() -> None:
            source.line(f"if {source.emit(query.where)} is True: return True")

        source.block("for row in having(key):", each)
        source.line("return False")

    def folded() -> None:
        source.line("g, s, found = start(), (), having(key)")
        if whole:
            source.line("if None in key: found = ()")
        if not ordered:
            source.line("if len(found) > 1: return otherwise(r, s, e)")
        elif not single:
            source.line("if len(found) > 1: found = sorted(found, key=number)")
        source.block("for row in found:", entering)
        for place in range(len(query.calls)):
            source.line(f"v{place} = {fold.value(place)}")
        source.line("row = None")
        answer()

    def entering() -> None:
        if (test := unless_passing()) is not None:
            source.line(f"{test} continue")
        fold.changes(source, "enter")

    def body() -> None:
        source.line(f"if len(r) != {width}{' or window.untold' if windowed else ''}: return otherwise(r, s, e)")
        key()
        if query.calls:
            folded()
        elif single or whole:
            of_one()
        else:
            of_any()

    source.block("def ask(r, s, e):", body)
    source.line("return ask")
    return source.function("bind", "having, sole, window, otherwise")
