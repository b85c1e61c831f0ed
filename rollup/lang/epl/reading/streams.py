"""Streams, patterns and contexts: one method a rule of the grammar."""

from __future__ import annotations

from typing import Any

from lark import v_args
from lark.tree import Meta

from rollup.lang.epl.reading.clause import Clause, clauses, others
from rollup.lang.epl.reading.expressions import Parts, ReadExpressions, has, nodes, place, stream_name, token
from rollup.lang.epl.tree import contexts as cx
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import streams as st


class ReadStreams(ReadExpressions):
    """The grammar's parts "streams", "patterns" and contexts."""

    # annotations and columns

    def annotation(self, meta: Meta, parts: Parts) -> st.Annotation:
        name, *values = nodes(parts)
        pairs = tuple(value if isinstance(value, _Pair) else _Pair(("value", _plain(value))) for value in values)
        return st.Annotation(name, tuple((pair[0], pair[1]) for pair in pairs), at=place(meta))

    def annotation_pair(self, meta: Meta, parts: Parts) -> _Pair:
        return _Pair((parts[0].lower(), _plain(parts[1])))

    def annotation_list(self, meta: Meta, parts: Parts) -> tuple[Any, ...]:
        return tuple(_plain(part) for part in nodes(parts))

    def items(self, meta: Meta, parts: Parts) -> Clause:
        return Clause(
            "items",
            tuple(part if isinstance(part, st.Item) else st.Item(part, at=part.at) for part in parts),
        )

    def item(self, meta: Meta, parts: Parts) -> st.Item:
        return st.Item(parts[0], parts[1], at=place(meta))

    def stream_star(self, meta: Meta, parts: Parts) -> st.Item:
        return st.Item(ex.StreamStar(stream_name(parts[0]), at=place(meta)), parts[-1], at=place(meta))

    # streams

    def stream(self, meta: Meta, parts: Parts) -> st.Stream:
        retain = token(parts, "RETAIN")
        views = tuple(part for part in parts if isinstance(part, st.View))
        return st.Stream(
            parts[0],
            views,
            clauses(parts).get("alias"),
            has(parts, "UNIDIRECTIONAL"),
            None if retain is None else "union" if retain.endswith("union") else "intersection",
            at=place(meta),
        )

    def stream_alias(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("alias", parts[0])

    def filter_source(self, meta: Meta, parts: Parts) -> st.FilterSource:
        name, *found = nodes(parts)
        contained = tuple(part for part in found if isinstance(part, st.Contained))
        filters = tuple(part for part in found if not isinstance(part, st.Contained))
        return st.FilterSource(name, filters, contained, at=place(meta))

    def contained(self, meta: Meta, parts: Parts) -> st.Contained:
        found, rest = clauses(parts), others(parts)
        return st.Contained(
            rest[0],
            found.get("items", ()),
            found.get("alias"),
            found.get("where"),
            tuple(rest[1:]),
            at=place(meta),
        )

    def contained_select(self, meta: Meta, parts: Parts) -> Clause:
        return parts[0]

    def contained_alias(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("alias", parts[0])

    def view(self, meta: Meta, parts: Parts) -> st.View:
        return st.View(parts[0].lower(), parts[1] or (), at=place(meta))

    def old_view(self, meta: Meta, parts: Parts) -> st.View:
        return st.View(parts[1].lower(), parts[2] or (), at=place(meta))

    def pattern_source(self, meta: Meta, parts: Parts) -> st.PatternSource:
        *annotations, pattern = nodes(parts)
        return st.PatternSource(pattern, tuple(annotations), at=place(meta))

    def trigger(self, meta: Meta, parts: Parts) -> st.Trigger:
        return st.Trigger(parts[0], clauses(parts).get("alias"), at=place(meta))

    # patterns

    def followed_by(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.FollowedBy(parts[0], parts[1], at=place(meta))

    def followed_by_at_most(self, meta: Meta, parts: Parts) -> st.Pattern:
        left, limit, right = nodes(parts)
        return st.FollowedBy(left, right, limit, at=place(meta))

    def pattern_or(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.PatternOr(parts[0], parts[1], at=place(meta))

    def pattern_and(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.PatternAnd(tuple(nodes(parts)), at=place(meta))

    def not_pattern(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.PatternNot(nodes(parts)[0], at=place(meta))

    def every_pattern(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.Every(parts[0], at=place(meta))

    def every_repeated(self, meta: Meta, parts: Parts) -> st.Pattern:
        (low, high), child = parts
        return st.Every(st.Repeat(child, low, high, at=place(meta)), at=place(meta))

    def every_distinct(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.EveryDistinct(parts[1], parts[2], at=place(meta))

    def times(self, meta: Meta, parts: Parts) -> tuple[Any, Any]:
        count = nodes(parts)[0]
        return count, count

    def between_times(self, meta: Meta, parts: Parts) -> tuple[Any, Any]:
        low, high = (part for part in parts if part is None or isinstance(part, ex.Expression))
        return low, high

    def repeated(self, meta: Meta, parts: Parts) -> st.Pattern:
        (low, high), child = parts
        return st.Repeat(child, low, high, at=place(meta))

    def until(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.Repeat(parts[0], stop=parts[1], at=place(meta))

    def repeated_until(self, meta: Meta, parts: Parts) -> st.Pattern:
        (low, high), child, stop = parts
        return st.Repeat(child, low, high, stop, at=place(meta))

    def guard(self, meta: Meta, parts: Parts) -> st.Pattern:
        child, space, name, arguments = parts
        return st.Guard(child, f"{space}:{name}".lower(), arguments, at=place(meta))

    def while_guard(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.While(parts[0], parts[1], at=place(meta))

    def untagged(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.EventAtom(parts[0], None, tuple(parts[1:]), at=place(meta))

    def tagged(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.EventAtom(parts[1], parts[0], tuple(parts[2:]), at=place(meta))

    def timer_at(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.TimerAt(parts[-1], at=place(meta))

    def observer(self, meta: Meta, parts: Parts) -> st.Pattern:
        return st.Observer(f"timer:{parts[1]}".lower(), parts[2], at=place(meta))

    # contexts

    def create_context(self, meta: Meta, parts: Parts) -> cx.CreateContext:
        name, *levels = nodes(parts)
        if len(levels) == 1:
            levels = [(name, levels[0])]
        return cx.CreateContext(name, tuple(levels), at=place(meta))

    def nested_context(self, meta: Meta, parts: Parts) -> tuple[str, cx.ContextForm]:
        return parts[0], parts[1]

    def keyed(self, meta: Meta, parts: Parts) -> cx.Keyed:
        found = clauses(parts)
        return cx.Keyed(tuple(others(parts)), found.get("initiated", ()), found.get("terminated"), at=place(meta))

    def keyed_stream(self, meta: Meta, parts: Parts) -> cx.KeyedStream:
        return cx.KeyedStream(parts[0], parts[1], clauses(parts).get("alias"), at=place(meta))

    def key_list(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ...]:
        return tuple(parts)

    def keyed_start(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("initiated", tuple(parts))

    def keyed_end(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("terminated", parts[0])

    def hashed(self, meta: Meta, parts: Parts) -> cx.Hashed:
        count = token(parts, "INTEGER")
        return cx.Hashed(nodes(parts), int(count or 0), has(parts, "PREALLOCATE"), at=place(meta))

    def hashed_stream(self, meta: Meta, parts: Parts) -> cx.HashedStream:
        return cx.HashedStream(parts[0], parts[1], at=place(meta))

    def categories(self, meta: Meta, parts: Parts) -> cx.Categories:
        *categories, source = parts
        return cx.Categories(tuple(categories), source, at=place(meta))

    def category(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, str]:
        return parts[0], parts[1]

    def start_end(self, meta: Meta, parts: Parts) -> cx.StartEnd:
        return cx.StartEnd(parts[0], parts[1], at=place(meta))

    def initiated(self, meta: Meta, parts: Parts) -> cx.Overlapping:
        distinct, start, end = parts
        return cx.Overlapping(start, end, distinct or (), at=place(meta))

    def distinct_by(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ...]:
        return nodes(parts)

    def start(self, meta: Meta, parts: Parts) -> cx.Start:
        return cx.Start(False, parts[0], at=place(meta))

    def start_now(self, meta: Meta, parts: Parts) -> cx.Start:
        return cx.Start(True, None, at=place(meta))

    def start_now_and(self, meta: Meta, parts: Parts) -> cx.Start:
        return cx.Start(True, parts[1], at=place(meta))

    def condition_filter(self, meta: Meta, parts: Parts) -> cx.Condition:
        return cx.FilterCondition(parts[0], clauses(parts).get("alias"), at=place(meta))

    def condition_pattern(self, meta: Meta, parts: Parts) -> cx.Condition:
        return cx.PatternCondition(parts[0], has(parts, "INCLUSIVE"), clauses(parts).get("alias"), at=place(meta))

    def condition_after(self, meta: Meta, parts: Parts) -> cx.Condition:
        return cx.AfterCondition(parts[0], at=place(meta))

    def condition_crontab(self, meta: Meta, parts: Parts) -> cx.Condition:
        return cx.CrontabCondition(tuple(parts), at=place(meta))


class _Pair(tuple[str, Any]):
    """A named value of an annotation, told from a list of values by its type."""


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, ex.Constant) else value


v_args(meta=True)(ReadStreams)  # in place: as a decorator it would hide the type of the class
