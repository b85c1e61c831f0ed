"""Patterns of the tree → the engine's pattern algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Expr, Field, RowOf, inputs_read, walk
from rollup.engine.rows.patterns import algebra as al
from rollup.engine.types import INT, DataType, Kind, RowType
from rollup.lang.epl.catalog import problem, unknown
from rollup.lang.epl.lowering.values.expressions import condition, constant, key
from rollup.lang.epl.lowering.values.filtering import filter_condition
from rollup.lang.epl.lowering.values.times import crontab, span, span_expr
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, Source
from rollup.lang.epl.scope import walk as names_in
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import streams as st

_ANNOTATIONS = ("discardpartialsonmatch", "suppressoverlappingmatches")


def lower_pattern(source: st.PatternSource, scope: Scope) -> tuple[al.Pattern, list[tuple[str, DataType]]]:
    """A pattern and its tags with their types, in the order in which they are written."""
    for annotation in source.annotations:
        if annotation.name.lower() not in _ANNOTATIONS:
            raise unknown(
                "annotation of a pattern",
                annotation.name,
                ["DiscardPartialsOnMatch", "SuppressOverlappingMatches"],
                annotation,
            )
    words = {annotation.name.lower() for annotation in source.annotations}
    lowering = _Patterns(source.pattern, scope)
    root = lowering.lower(source.pattern)
    return (
        al.Pattern(root, len(lowering.tags), _ANNOTATIONS[0] in words, _ANNOTATIONS[1] in words),
        list(lowering.types().items()),
    )


class _Patterns:
    def __init__(self, pattern: st.Pattern, scope: Scope) -> None:
        self.scope = scope
        self.tags: dict[str, tuple[int, RowType, bool]] = {}
        self._before: dict[int, int] = {}
        self._turn: set[str] = set()
        """The tags of the repeat that is being lowered: in it each is the event of one turn."""
        self._find(pattern, False)

    def types(self) -> dict[str, DataType]:
        """The type of each tag: a row, or a list of rows."""
        return {
            tag: DataType(Kind.LIST, element=rows.data_type) if many else rows.data_type
            for tag, (_, rows, many) in self.tags.items()
        }

    def _find(self, node: Any, many: bool) -> None:
        """The tags in the order of the text, and how many of them stand before each filter."""
        self._before.setdefault(id(node), len(self.tags))
        if isinstance(node, st.EventAtom) and node.tag is not None:
            kinds = self._row_type(node)
            known = self.tags.get(node.tag)
            if known is not None and known[1] is not kinds:
                raise problem(f"two events have the tag `{node.tag}`", node, "one tag, one event type")
            self.tags.setdefault(node.tag, (len(self.tags), kinds, many))
        if isinstance(node, st.Pattern):
            inside = many or isinstance(node, st.Repeat)
            for part in _parts(node):
                self._find(part, inside)
            if isinstance(node, st.Repeat):
                self._find(node.stop, many)

    def _row_type(self, node: st.EventAtom) -> RowType:
        return self.scope.catalog.row_type(node.source.type, node.source)

    def _inside(self, own: Source | None = None) -> Scope:
        """The names in a pattern: the tags, and for a filter its own event as the last."""
        sources = [Source(tag, rows, True) for tag, (_, rows, _) in self.tags.items()]
        names: dict[str, Expr] = dict(self.scope.names)
        for tag, (place, rows, many) in self.tags.items():
            if many and tag not in self._turn:
                sources[place] = Source(None, RowType(tag, {}), True)
                names[tag] = RowOf(place, DataType(Kind.LIST, element=rows.data_type))
        if own is not None:
            sources.append(own)
        outer = len(sources) - 1 if own is not None else 0
        return replace(
            self.scope, sources=tuple(sources), outer=outer, names=names, slots=None, no_aggregates="in a pattern"
        )

    def lower(self, node: st.Pattern) -> al.Node:
        match node:
            case st.EventAtom():
                return self._filter(node)
            case st.FollowedBy():
                return self._followed(node)
            case st.PatternAnd():
                return al.AndNode(tuple(self.lower(part) for part in node.parts))
            case st.PatternOr():
                return al.OrNode((self.lower(node.left), self.lower(node.right)))
            case st.PatternNot():
                return al.NotNode(self.lower(node.child))
            case st.Every():
                return al.EveryNode(self.lower(node.child))
            case st.EveryDistinct():
                return self._distinct(node)
            case st.Repeat():
                return self._repeat(node)
            case st.Guard():
                return self._guard(node)
            case st.While():
                return al.WhileNode(self.lower(node.child), condition(node.condition, self._inside()))
            case st.TimerAt():
                return al.ScheduleNode(crontab(node.crontab, self.scope))
            case st.Observer():
                return self._observer(node)
            case _:
                raise problem("this pattern is not supported", node)

    def _filter(self, node: st.EventAtom) -> al.Node:
        kinds = self._row_type(node)
        if node.source.contained:
            hint = f"insert into Parts select * from {node.source.type}[…], and Parts in the pattern"
            raise problem("contained events in a pattern are not supported", node.source.contained[0], hint)
        info = self.scope.catalog.stores.get(node.source.type)
        if info is not None and info.kind == "table":
            raise problem(f"`{node.source.type}` is a table and has no events", node, "a stream or a named window")
        name = None if node.tag is None or (self.tags[node.tag][2] and node.tag not in self._turn) else node.tag
        scope = self._inside(Source(name, kinds, stream=node.source.type))
        own = len(scope.sources) - 1
        equals: dict[int, Expr] = {}
        rest: list[Expr] = []
        tests = [filter_condition(each, scope, own) for each in node.source.filters]
        self._check_order(node, tests, own)
        for test in (part for each in tests for part in conjuncts(each)):
            pair = _bound(test, own)
            if pair is not None and pair[0] not in equals:
                equals[pair[0]] = pair[1]
            else:
                rest.append(test)
        tag = self.tags[node.tag][0] if node.tag is not None else None
        level = self._consume(node)
        return al.FilterNode(node.source.type, tag, tuple(equals.items()), conjunction(rest), level)

    def _check_order(self, node: st.EventAtom, tests: Sequence[Expr], own: int) -> None:
        """A filter begins to wait with what stands before it: of a later tag it would never know anything."""
        read = inputs_read(tests)
        for tag, (place, _, _) in self.tags.items():
            if place in read - {own} and place >= self._before[id(node)]:
                raise problem(f"`{tag}` stands after the filter that asks for it", node, "a=A -> b=B(id = a.id)")

    def _consume(self, node: st.EventAtom) -> int:
        level = 0
        for annotation in node.annotations:
            if annotation.name.lower() != "consume":
                raise unknown("annotation of a filter", annotation.name, ["consume"], annotation)
            value = annotation.value
            if value is not None and not isinstance(value, int):
                raise problem("the level of @consume is a whole number", annotation, "@consume(2)")
            level = 1 if value is None else int(value)
        return level

    def _followed(self, node: st.FollowedBy) -> al.Node:
        children: list[al.Node] = []
        limits: list[int | None] = []
        left: st.Pattern = node
        while isinstance(left, st.FollowedBy):
            children.append(self.lower(left.right))
            limits.append(None if left.limit is None else self._whole(left.limit, "the limit of ->"))
            left = left.left
        children.append(self.lower(left))
        found = tuple(reversed(limits)) if any(limit is not None for limit in limits) else ()
        return al.FollowedNode(tuple(reversed(children)), found)

    def _distinct(self, node: st.EveryDistinct) -> al.Node:
        values, life = list(node.values), None
        if not values:
            raise problem("`every-distinct` needs what tells matches apart", node, "every-distinct(a.id)")
        if len(values) > 1 and (isinstance(values[-1], (ex.Period, ex.Constant))):
            life = span(values.pop(), self.scope, "the life of a value")
        inside = self._inside()
        own = {self.tags[tag][0] for tag in _tags_of(node.child)}
        keys = tuple(self._key(value, inside, own) for value in values)
        return al.EveryNode(self.lower(node.child), keys, life)

    def _key(self, node: ex.Expression, scope: Scope, own: set[int]) -> Expr:
        """What tells matches of `every-distinct` apart; `own` are the tags of its own part of the pattern."""
        found = key(node, scope)
        read = inputs_read([found])
        if not read:
            raise problem(f"`{render(node)}` names no property of a tag", node, "every-distinct(a.id)")
        if not read <= own:
            raise problem(
                f"`{render(node)}` names a tag that every-distinct does not hold", node, "every-distinct(a.id) a=A"
            )
        return found

    def _repeat(self, node: st.Repeat) -> al.Node:
        low = None if node.low is None else self._whole(node.low, "a repeat's bound")
        high = None if node.high is None else self._whole(node.high, "a repeat's bound")
        if low is not None and high is not None and low > high:
            raise problem(f"a repeat from {low} to {high}", node, "the lower bound first")
        if low == high == 0:
            raise problem("a repeat of nothing", node, "[1] or more")
        if node.stop is None and (low is None or low != high):
            raise problem("a repeat without `until` has one number", node, "[3] a=A")
        until = self.lower(node.stop) if node.stop is not None else None
        inside, outside = _tags_of(node.child), self._turn
        nested = {tag for each in _repeats(node.child) for tag in _tags_of(each)}
        self._turn = (outside | inside) - nested
        child = self.lower(node.child)
        self._turn = outside
        tags = tuple(place for tag, (place, _, _) in self.tags.items() if tag in inside)
        return al.RepeatNode(child, low, high, until, tags)

    def _whole(self, node: ex.Expression, what: str) -> int:
        value = constant(node, self.scope, what)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise problem(f"{what} is a whole number, not `{render(node)}`", node)
        return value

    def _guard(self, node: st.Guard) -> al.Node:
        if node.name not in ("timer:within", "timer:withinmax"):
            raise unknown("guard", node.name, ["timer:within", "timer:withinmax"], node)
        wanted = 1 if node.name == "timer:within" else 2
        if len(node.arguments) != wanted:
            raise problem(f"`{node.name}` takes {wanted} argument(s), not {len(node.arguments)}", node)
        most = self._whole(node.arguments[1], "the number of matches") if wanted == 2 else None
        return al.WithinNode(self.lower(node.child), self._span(node.arguments[0], node.name), most)

    def _span(self, node: ex.Expression, what: str) -> int | Expr:
        """A length of time: a number, or with names in it (tags, variables) what it is when the guard begins."""
        if any(isinstance(each, ex.Reference) for each in names_in(node)):
            return span_expr(node, self._inside(), what)
        return span(node, self.scope, what)

    def _observer(self, node: st.Observer) -> al.Node:
        if node.name != "timer:interval" or len(node.arguments) != 1:
            raise unknown("observer", node.name, ["timer:interval(10 sec)", "timer:at(…)"], node)
        return al.IntervalNode(span_expr(node.arguments[0], self._inside(), node.name))


def _bound(test: Expr, own: int) -> tuple[int, Expr] | None:
    """`field = value` where the value is bound when the filter begins: constants and tags."""
    from rollup.engine import operators as op
    from rollup.engine.expressions import Ask, Call, Const, Local, Variable

    if not isinstance(test, Call) or test.op is not op.EQUAL:
        return None
    for one, other in (test.args, test.args[::-1]):
        if isinstance(one, Field) and one.input == own and one.type.kind is not Kind.LIST:
            inside = list(walk(other))
            reads_own = any(isinstance(each, (Field, RowOf)) and each.input == own for each in inside)
            moving = any(isinstance(each, (Ask, Variable, Local)) for each in inside)
            if not reads_own and not moving and not (isinstance(other, Const) and other.value is None):
                return one.index, other
    return None


def _tags_of(node: Any) -> set[str]:
    if isinstance(node, st.EventAtom):
        return {node.tag} if node.tag else set()
    if not isinstance(node, st.Pattern):
        return set()
    return set().union(*(_tags_of(part) for part in (*_parts(node), getattr(node, "stop", None))))


def _repeats(node: Any) -> list[st.Repeat]:
    """The repeats in a pattern, the outermost ones."""
    if isinstance(node, st.Repeat):
        return [node]
    return [each for part in _parts(node) for each in _repeats(part)] if isinstance(node, st.Pattern) else []


def _parts(node: st.Pattern) -> list[Any]:
    """What a pattern is made of; what ends a repetition is not among it."""
    return [*getattr(node, "parts", ()), *(getattr(node, name, None) for name in ("left", "right", "child"))]


NUMBER = INT
