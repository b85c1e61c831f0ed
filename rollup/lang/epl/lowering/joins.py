"""Joins: which inputs bring rows about, what `on` may say, and where null equals null."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace

from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Expr, RowOf, inputs_read
from rollup.engine.operators import EQUAL, NOT_NULL, SAME
from rollup.engine.rows.plans import Input, StoreInput
from rollup.engine.rows.selects.joining import JoinSpec, Side
from rollup.engine.types import BOOL
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import condition, lower
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import Stream


def moving(query: sm.Query, streams: Sequence[Stream], inputs: Sequence[Input]) -> tuple[int | None, bool]:
    """The one input that brings rows about, if it is one alone, and whether each stands by itself; raises PlanError."""
    alone = _all_alone(query, streams)
    only = None if alone else _only(streams)
    if len(streams) > 1 and not alone:
        _check_windows(streams, inputs, only)
    return only, alone


def join_spec(
    query: sm.Query, inputs: Sequence[Input], inside: Scope, only: int | None, alone: bool
) -> JoinSpec | None:
    """How the inputs of a query are joined, None where there is one; raises PlanError."""
    checking = replace(inside, registry=deepcopy(inside.registry)) if query.joins else inside
    for join in query.joins:
        _check_on(join.on, checking)
    sides = [Side() for _ in query.streams[1:]]
    nulls = _nulls_equal(query, inputs, only)
    for join in query.joins:
        on = None if join.on is None else condition(join.on, inside)
        sides.append(Side(join.kind, _equal_nulls(on, len(sides) + 1, inside) if nulls else on))
    return JoinSpec(tuple(sides), only, alone) if sides else None


def _nulls_equal(query: sm.Query, inputs: Sequence[Input], only: int | None) -> bool:
    """Whether null equals null in `on`, which says by what rows are looked up. An inner join asks it once more as a condition,
    which null does not fulfil, but where nothing is kept of what looks up; so does a join with a table."""
    if any(isinstance(each, StoreInput) and not each.follow for each in inputs):
        return False
    outer = any(join.kind != "inner" for join in query.joins)
    return outer or only is not None or all(getattr(each, "window", each) is None for each in inputs)


def _equal_nulls(on: Expr | None, place: int, scope: Scope) -> Expr | None:
    """`on` of the input at a place where null equals null; of a row that is not there nothing equals anything."""
    parts = list[Expr]()
    for part in conjuncts(on):
        assert isinstance(part, Call) and part.op is EQUAL
        parts.append(Call(SAME, part.args, BOOL))
        known = inputs_read(part.args) - {place}
        rows = [RowOf(at, scope.sources[at].type.data_type) for at in sorted(known) if scope.sources[at].optional]
        parts += [Call(NOT_NULL, (row,), BOOL) for row in rows if place > 1]
    return conjunction(parts)


def _check_on(on: ex.Expression | None, scope: Scope) -> None:
    """Raise PlanError unless `on` says which properties of two streams are equal; `where` takes any condition."""
    if on is None:
        return
    if isinstance(on, ex.Logical) and on.operator == "and":
        _check_on(on.left, scope)
        _check_on(on.right, scope)
        return
    sides = (on.left, on.right) if isinstance(on, ex.Comparison) and on.operator == "=" else ()
    if not sides or not all(isinstance(side, (ex.Reference, ex.Member, ex.Index)) for side in sides):
        raise problem("`on` says that two properties are equal", on, "other conditions stand in `where`")
    read = [inputs_read([lower(side, scope)]) for side in sides]
    if read[0] == read[1]:
        raise problem("`on` compares a stream with itself", on, "properties of two streams")


def _all_alone(query: sm.Query, streams: Sequence[Stream]) -> bool:
    """Whether nothing is kept of any stream: a full outer join gives each event by itself."""
    full = len(query.streams) == 1 and bool(query.joins) and all(join.kind == "full" for join in query.joins)
    return full and all(stream.unidirectional for stream in streams)


def _only(streams: Sequence[Stream]) -> int | None:
    found = [place for place, stream in enumerate(streams) if stream.unidirectional]
    if len(found) > 1:
        hint = "one of them, or all of a full outer join"
        raise problem("only one stream of a join can be unidirectional", streams[found[1]], hint)
    return found[0] if found else None


def _check_windows(streams: Sequence[Stream], inputs: Sequence[Input], only: int | None) -> None:
    bare = [
        place
        for place, each in enumerate(inputs)
        if not isinstance(each, StoreInput) and each.window is None and place != only
    ]
    kinds = {getattr(stream.source, "type", None) for stream in streams}
    pure_self_join = len(bare) == len(streams) and len(kinds) == 1 and None not in kinds
    tables = sum(isinstance(each, StoreInput) and not each.follow for each in inputs)
    if bare and not pure_self_join and tables < len(inputs) - 1:
        stream = streams[bare[0]]
        name = stream.alias or getattr(stream.source, "type", "the pattern")
        raise problem(f"`{name}` needs a window in a join", stream, "#length(10), #time(1 min), or unidirectional")
    if only is not None and not isinstance(inputs[only], StoreInput) and getattr(inputs[only], "window", None):
        raise problem("a unidirectional stream has no window", streams[only], "leave the # out")
