"""GROUP BY: its keys, its sets, its window, and the aggregates that a select asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product

from sqlglot import exp

from rollup.engine.flows.grouping import Hops, Set
from rollup.engine.overlaps import overlap
from rollup.lang.calcite.semantics import WINDOW_FUNCTIONS, Moves, interval, moves, refused, time_of_day

NO_GROUP = "Streaming aggregation requires at least one monotonic expression in GROUP BY clause"
HINT = "as GROUP BY FLOOR(rowtime TO HOUR) or TUMBLE(rowtime, INTERVAL '1' HOUR), rowtime being declared monotonic"
_WINDOW = -1
_MOST_SETS = 1000


@dataclass(frozen=True)
class Grouping:
    """What a grouped select needs; keys and aggregates are over generated columns, not yet DuckDB's."""

    keys: tuple[exp.Expr, ...]
    sets: tuple[Set, ...]
    hops: Hops | None
    window: exp.Expr | None
    aggregates: tuple[exp.Expr, ...]
    groupings: tuple[tuple[int, ...], ...]
    grouping_calls: tuple[exp.Expr, ...]


def grouping(
    select: exp.Select, parts: Sequence[exp.Expr], renamed: Callable[[exp.Expr], exp.Expr], of: Moves
) -> Grouping | None:
    """The grouping of a select, None when it has none. Raises PlanError when a set cannot close."""
    group = select.args.get("group")
    check_groupings(parts)
    aggregates = _aggregates(parts)
    if group is None:
        if aggregates:
            raise refused(select, NO_GROUP, HINT)
        return None
    named, sets = _sets(group)
    keys: list[exp.Expr] = []
    window: exp.Expr | None = None
    places: list[tuple[int, ...]] = []
    for set_ in sets:
        mine: list[int] = []
        for node in set_:
            key = renamed(node)
            if _is_window(key):
                if window is not None and window != key:
                    raise refused(node, "a query has one TUMBLE or HOP in its GROUP BY", "one of them, or two queries")
                window = key
                mine.append(_WINDOW)
                continue
            if key not in keys:
                keys.append(key)
            mine.append(keys.index(key))
        places.append(tuple(mine))
    hops = _hops(window, of) if window is not None else None
    made = tuple(_closing(mine, keys, of, named, sets, i, group) for i, mine in enumerate(places))
    if window is not None and any(_WINDOW not in mine for mine in places):
        raise refused(
            group,
            "every grouping set needs the TUMBLE or HOP that one of them has",
            "write it before GROUPING SETS, as GROUP BY TUMBLE(..), GROUPING SETS (..)",
        )
    calls = _grouping_calls(parts)
    asked = tuple(tuple(_key_of(argument, keys) for argument in _arguments(call)) for call in calls)
    return Grouping(tuple(keys), made, hops, window, tuple(aggregates), asked, tuple(calls))


def _closing(
    mine: Sequence[int],
    keys: Sequence[exp.Expr],
    of: Moves,
    named: str | None,
    sets: Sequence[Sequence[exp.Expr]],
    at: int,
    group: exp.Expr,
) -> Set:
    closing = [place for place in mine if place == _WINDOW or moves(keys[place], of) is not None]
    if not closing:
        words = f"({', '.join(node.sql() for node in sets[at])})"
        if named:
            raise refused(
                group,
                f"{named} is not valid in a streaming query: the grouping set {words} has no monotonic expression",
                HINT,
            )
        if len(sets) > 1:
            raise refused(
                group,
                f"Streaming aggregation requires at least one monotonic expression in every grouping set: {words} has none",
                HINT,
            )
        raise refused(group, NO_GROUP, HINT)
    return Set(tuple(place for place in mine if place != _WINDOW), tuple(closing))


def _sets(group: exp.Expr) -> tuple[str | None, list[list[exp.Expr]]]:
    """The grouping sets, and CUBE or ROLLUP when one of them made them."""
    base: list[exp.Expr] = []
    factors: list[list[list[exp.Expr]]] = []
    named: str | None = None
    count = 1
    parts = [
        part
        for value in group.args.values()
        for part in (value if isinstance(value, list) else [value])
        if isinstance(part, exp.Expr)
    ]
    for part in parts:
        if (count := count * _choices(part)) > _MOST_SETS:
            raise refused(
                group, f"there would be more than {_MOST_SETS:,} grouping sets", "fewer columns in CUBE or ROLLUP"
            )
        if isinstance(part, exp.Rollup):
            named = "ROLLUP"
            items = [_members(item) for item in part.expressions]
            factors.append([list(chain(*items[:n])) for n in range(len(items), -1, -1)])
        elif isinstance(part, exp.Cube):
            named = "CUBE"
            items = [_members(item) for item in part.expressions]
            choices = list(product((True, False), repeat=len(items)))
            factors.append([list(chain(*(m for m, taken in zip(items, c, strict=True) if taken))) for c in choices])
        elif isinstance(part, exp.GroupingSets):
            factors.append([_members(item) for item in part.expressions])
        else:
            base += _members(part)
    return named, [base + list(chain(*choice)) for choice in product(*factors)]


def _choices(part: exp.Expr) -> int:
    """How many grouping sets a part of GROUP BY stands for."""
    if isinstance(part, exp.Cube):
        return int(2 ** len(part.expressions))
    if isinstance(part, exp.Rollup):
        return len(part.expressions) + 1
    return len(part.expressions) if isinstance(part, exp.GroupingSets) else 1


def _members(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this] if isinstance(node, exp.Paren) else [node]


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in WINDOW_FUNCTIONS


def _hops(node: exp.Expr, of: Moves) -> Hops:
    """The windows of TUMBLE(t, every[, align]) and HOP(t, every, width[, align])."""
    name, arguments = node.name.upper(), node.expressions
    least = 2 if name == "TUMBLE" else 3
    if not least <= len(arguments) <= least + 1:
        forms = "TUMBLE(t, interval[, time])" if name == "TUMBLE" else "HOP(t, emit, retain[, time])"
        raise refused(node, f"{name} has {len(arguments)} arguments", forms)
    found = moves(arguments[0], of)
    if found is None or not found.rising:
        raise refused(node, NO_GROUP, f"the first argument of {name} is a column declared monotonic")
    every = interval(arguments[1])
    width = interval(arguments[2]) if name == "HOP" else every
    if every <= 0 or width <= 0:
        raise refused(node, f"{name} needs intervals above zero", "as INTERVAL '1' HOUR")
    if max(every, width) >= 1 << 62:
        raise refused(node, f"{name} has an interval of more than 146,000 years", "as INTERVAL '1' HOUR")
    if said := overlap(width, every):
        raise refused(node, said, "a longer emit, or a shorter retain: HOP(t, emit, retain)")
    align = time_of_day(arguments[least]) if len(arguments) > least else 0
    return Hops(arguments[0], every, width, align)


def _aggregates(parts: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The aggregates, each once: those that are not computed over frames."""
    found: list[exp.Expr] = []
    for part in parts:
        for node in part.find_all(exp.AggFunc):
            if not _outer(node) or isinstance(node, (exp.Grouping, exp.GroupingId)):
                continue
            inner: exp.Expr = node
            while isinstance(inner.parent, (exp.Filter, exp.WithinGroup)):
                inner = inner.parent
            outer = inner.find_ancestor(exp.AggFunc)
            if outer is not None and not isinstance(outer.parent, exp.Window):
                raise refused(
                    node, "an aggregate cannot stand in an aggregate", "a sub-query for the inner one, or OVER"
                )
            if inner not in found:
                found.append(inner)
    return found


def _grouping_calls(parts: Sequence[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for part in parts:
        for node in part.walk():
            if (isinstance(node, (exp.Grouping, exp.GroupingId)) or _is_group_id(node)) and node not in found:
                found.append(node)
    return found


def _is_group_id(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() == "GROUP_ID"


def check_groupings(parts: Iterable[exp.Expr]) -> None:
    """GROUPING and GROUP_ID tell groups apart: no row inside an aggregate knows its group. Raises PlanError."""
    for part in parts:
        for call in part.find_all(exp.Grouping, exp.GroupingId, exp.Anonymous):
            outer = call.find_ancestor(exp.AggFunc, exp.Select)
            if isinstance(outer, exp.AggFunc) and (not isinstance(call, exp.Anonymous) or _is_group_id(call)):
                name = call.sql().partition("(")[0].upper()
                raise refused(outer, f"{name} cannot stand inside an aggregate", "give it a name in a sub-query")


def without_group_id(tree: exp.Expr) -> None:
    """GROUP_ID() tells equal grouping sets of one query apart; where each is there once it is 0. Raises PlanError."""
    check_groupings([tree])
    calls = dict[exp.Expr | None, list[exp.Expr]]()
    for call in [node for node in tree.find_all(exp.Anonymous) if _is_group_id(node)]:
        calls.setdefault(call.find_ancestor(exp.Select), []).append(call)
    for select, mine in calls.items():
        group = select.args.get("group") if select is not None else None
        if select is None or group is None:
            raise refused(mine[0], "GROUP_ID() needs a GROUP BY", "GROUP BY GROUPING SETS (..)")
        sets = _sets(group)[1]
        if sum(not each for each in sets) > 1:
            hint = "name the empty set once"
            raise refused(mine[0], "GROUP_ID() over tables cannot tell empty grouping sets apart", hint)
        before = _told_apart(select, sets)
        for call in mine:
            call.replace(before.copy())


def _told_apart(select: exp.Expr, sets: Sequence[Sequence[exp.Expr]]) -> exp.Expr:
    """How many sets like its own stood before a row's grouping set. Each has as many constants as further keys."""
    named = [frozenset(node.sql() for node in each) for each in sets]
    before = [named[:place].count(each) for place, each in enumerate(named)]
    marks = [exp.Literal.string(f"group id {number}") for number in range(max(before))]
    if not marks:
        return exp.Literal.number(0)
    tuples = [
        exp.Tuple(expressions=[*(node.copy() for node in each), *(mark.copy() for mark in marks[:number])])
        for each, number in zip(sets, before, strict=True)
    ]
    select.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=tuples)]))
    count: exp.Expr = exp.Literal.number(len(marks))
    for mark in marks:
        count = exp.Sub(this=count, expression=exp.Grouping(expressions=[mark.copy()]))
    return exp.Paren(this=count)


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    return list(call.expressions) or ([call.this] if isinstance(call.this, exp.Expr) else [])


def _key_of(argument: exp.Expr, keys: Sequence[exp.Expr]) -> int:
    if argument not in keys:
        raise refused(
            argument, f"GROUPING({argument.sql()}): not a key of GROUP BY", "GROUPING tells of keys of GROUP BY"
        )
    return list(keys).index(argument)


def aggregated(node: exp.Expr) -> bool:
    """Whether an expression holds an aggregate that is not computed over a frame."""
    return any(_outer(found) for found in node.find_all(exp.AggFunc))


def _outer(aggregate: exp.Expr) -> bool:
    """Whether an aggregate is over groups: not over a frame, and not a sub-query's own."""
    around = aggregate.parent
    while isinstance(around, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        around = around.parent
    return not isinstance(around, exp.Window) and aggregate.find_ancestor(exp.Select) is None


def unaliased(node: exp.Expr, select: exp.Select) -> exp.Expr:
    """HAVING may name a column of the output."""
    aliases = {item.alias.lower(): item.unalias() for item in select.expressions if item.alias}
    root = exp.Paren(this=node.copy())
    for found in list(root.find_all(exp.Column)):
        inside = found.find_ancestor(exp.AggFunc) is not None
        if not found.table and not inside and found.name.lower() in aliases:
            found.replace(aliases[found.name.lower()].copy())
    return root.this.pop()
