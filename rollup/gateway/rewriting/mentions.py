"""What a text asks of the aggregations: its sources cut out, each with its bounds, level, columns and conditions.

A text is read once and kept as a `Template`: the client's text with a mark in each source's place. What stands there
is decided anew every time it is sent. It is a table of loaded rows, when all is constant and the server runs the text at
once. Otherwise it is a call of the function, which runs the question when it is executed. Both give the same rows.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlglot import exp

from rollup.core.calendar import Duration
from rollup.core.errors import QueryError
from rollup.gateway.rewriting.bounds import time_bounds
from rollup.gateway.rewriting.buckets import buckets_of, level_of
from rollup.lang.sql.within import Within, columns_used, conditions_on, mentions, rewrite
from rollup.plan.aggregation import TIME, TIMESTAMP, Aggregation
from rollup.plan.types import Type
from rollup.retrieval.answer import EXTRA
from rollup.retrieval.merging import added_in_sql

LONGEST_KEPT = 65_536
MOST_SOURCES = 256
"""In one text, since each is a question of its own to the store."""

_MARK = f"rollup_{secrets.token_hex(6)}_"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of a text: `low`, `high` and `per` as SQL, their `values` when all are constants.

    `spec` is what the text around lets the answer leave out, as JSON: columns, conditions, limit; `fill`; `as_of`; `view`, for
    a level's view, whose range may be empty or open. `named` are the columns that come only where a text names them.
    """

    aggregation: str
    spec: str
    low: str
    high: str
    per: str
    values: tuple[str | int | None, str | int | None, str | int | None] | None = None
    position: tuple[int, int] = (1, 1)

    @property
    def given(self) -> dict[str, Any]:
        """The spec, read."""
        return json.loads(self.spec)


@dataclass(frozen=True, slots=True)
class Template:
    """A text with a mark for each source, `mark` with its number; one may stand in the bounds of one after it."""

    text: str
    sources: tuple[Source, ...]
    remarks: tuple[str, ...] = ()
    """What the client should know beside the answer."""
    mark: str = f'"{_MARK}{{}}_"'

    def filled(self, places: Sequence[str]) -> str:
        """The text with what stands in each source's place, in time linear in what comes out.

        >>> Template('a <0> b', (), (), "<{}>").filled(["x"])
        'a x b'
        """
        done: list[str] = []
        for place in places:
            done.append(self._put(place, done))
        return self._put(self.text, done)

    def _put(self, text: str, places: Sequence[str]) -> str:
        before, after = self.mark.split("{}")
        first, *rest = text.split(before)
        parts = [first]
        for each in rest:
            number, _, tail = each.partition(after)
            parts += [places[int(number)], tail]
        return "".join(parts)


@dataclass
class Reader:
    """Reads texts about the aggregations of a program; the names of level views are among the known ones."""

    aggregations: Mapping[str, Aggregation]
    views: Mapping[str, tuple[str, Duration]] = field(init=False)
    read: Callable[[str, bool], Template] = field(init=False)

    def __post_init__(self) -> None:
        self.views = {
            view_name(aggregation, level): (aggregation.name, level)
            for aggregation in self.aggregations.values()
            for level in aggregation.levels
        }
        self.read = lru_cache(maxsize=4096)(self._read)

    def needs(self, sql: str) -> bool:
        """Whether a text may hold a source of ours, or one whose name is mistyped."""
        return mentions(sql, ["within", *self.aggregations])

    def template(self, sql: str, whole: bool = True) -> Template:
        """What a text asks for in a session whose clocks are `whole` hours from UTC. Raises RollupError with the position of
        what is wrong."""
        return self.read(sql, whole) if len(sql) <= LONGEST_KEPT else self._read(sql, whole)

    def _read(self, sql: str, whole: bool) -> Template:
        sources: list[Source] = []
        remarks: dict[str, None] = {}

        def resolve(within: Within) -> exp.Expr:
            if len(sources) == MOST_SOURCES:
                raise QueryError(f"more than {MOST_SOURCES} ranges in one statement", hint="ask in several")
            sources.append(self._source(within, whole))
            remarks.update(dict.fromkeys(added_in_sql(self.aggregations[sources[-1].aggregation], within.root())))
            return exp.Table(this=exp.to_identifier(f"{_MARK}{len(sources) - 1}_", quoted=True))

        bare = {*self.views, *self.aggregations}
        text = rewrite(sql, self.aggregations, resolve, bare=bare, wanted=self._wanted)
        return Template(text, tuple(sources), tuple(remarks))

    def _wanted(self, within: Within) -> bool:
        """Whether a source is more than the view of the aggregation's name, which answers by itself."""
        own = self.aggregations.get(within.aggregation)
        try:
            return own is None or not isinstance(within.args["start"], exp.Null) or bool(buckets_of(own, within))
        except QueryError as problem:
            raise problem.at(*within.position) from None

    def _source(self, within: Within, whole: bool) -> Source:
        if within.aggregation in self.views:
            return self._of_view(within, *self.views[within.aggregation])
        aggregation = self.aggregations[within.aggregation]
        if isinstance(within.args["start"], exp.Null):
            return self._of_view(
                within, aggregation.name, level_of(aggregation, buckets_of(aggregation, within), whole)
            )
        nodes = [within.args["start"], within.args.get("end"), within.args["per"]]
        values = [None if node is None else constant(node) for node in nodes]
        known = all(node is None or value is not None for node, value in zip(nodes, values, strict=True))
        texts = ["null" if node is None else node.sql(dialect="postgres") for node in nodes]
        found = (values[0], values[1], values[2]) if known else None
        return Source(
            aggregation.name, _spec(aggregation, within), texts[0], texts[1], texts[2], found, within.position
        )

    def _of_view(self, within: Within, name: str, level: Duration) -> Source:
        if not isinstance(within.args["start"], exp.Null):
            raise QueryError(f"{within.aggregation} is per {level.plural} already", hint=f"{name} within … per …")
        low, high = time_bounds(within)
        values = (low, high, level.plural) if not isinstance(low, exp.Expr) and not isinstance(high, exp.Expr) else None
        spec = _spec(self.aggregations[name], within, view=True)
        return Source(name, spec, _text(low), _text(high), f"'{level.plural}'", values, within.position)


def _text(bound: exp.Expr | int | None) -> str:
    if isinstance(bound, exp.Expr):
        return bound.sql(dialect="postgres")
    return "null::bigint" if bound is None else f"({bound})::bigint"


def view_name(aggregation: Aggregation, level: Duration) -> str:
    """The name of the view of a level.

    >>> from types import SimpleNamespace
    >>> view_name(SimpleNamespace(name="TradeAgg"), Duration.DAYS)
    'TradeAgg_per_days'
    """
    return f"{aggregation.name}_per_{level.plural}"


def constant(node: exp.Expr) -> str | int | None:
    """The text or whole number a node is, None when it has to be computed.

    >>> constant(exp.Literal.number("-5")), constant(exp.column("x"))
    (-5, None)
    """
    if isinstance(node, exp.Literal):
        text = str(node.this)
        return text if node.is_string else int(text) if text.lstrip("-").isdigit() else None
    if isinstance(node, exp.Neg):
        value = constant(node.this)
        return -value if isinstance(value, int) else None
    return constant(node.this) if isinstance(node, exp.Paren) else None


# The spec


def _spec(aggregation: Aggregation, within: Within, view: bool = False) -> str:
    spec: dict[str, Any] = {}
    used = columns_used(within.root(), within)
    if used is not None:
        folded = {name.casefold() for name in used}
        names = {name.casefold() for name in columns(aggregation)}
        spec["columns"] = sorted(folded & names)
    found = {each.name.casefold() for each in within.root().find_all(exp.Column)}
    named = [name for name in by_name(aggregation) if name.casefold() in found]
    if named:
        spec["named"] = named
    wanted = [_condition(aggregation, part) for part in conditions_on(within.root(), within)]
    conditions = sorted(part for part in wanted if part is not None)
    if conditions:
        spec["where"] = conditions
    limit = _limit(within)
    if limit is not None:
        spec["limit"] = limit
    if view:
        spec["view"] = True
    if within.fill:
        spec["fill"] = within.fill
    if within.as_of:
        spec["as_of"] = within.as_of
    return json.dumps(spec, sort_keys=True)


def columns(aggregation: Aggregation) -> dict[str, Type]:
    """The columns of an answer in their order: AGG_TIMESTAMP, the keys that are not selected, the outputs."""
    keys = {key.name: key.type for key in aggregation.keys}
    outputs = {output.name: output.type for output in aggregation.outputs}
    return {TIMESTAMP: Type.LONG, **{name: kind for name, kind in keys.items() if name not in outputs}, **outputs}


def by_name(aggregation: Aggregation) -> dict[str, Type]:
    """The columns of an answer that come where a text names them: its late events, whether it is final, and the like."""
    shown = {TIME, *columns(aggregation)}
    return {name: kind for name, kind in EXTRA.items() if name not in shown}


def _condition(aggregation: Aggregation, part: exp.Expr) -> tuple[str, list[str | int]] | None:
    """`key = constant` and `key in (constants)`, which every engine understands alike; None for all else.

    Only group keys that are shown as they are count: on those the rows of other keys need not even be merged.
    """
    bare = part.unnest()
    if not isinstance(bare, (exp.EQ, exp.In)) or not isinstance(bare.this, exp.Column):
        return None
    kinds = {key.name: key.type for key in aggregation.keys}
    finals = {output.name: output.final for output in aggregation.outputs}
    name = bare.this.name
    final = finals.get(name)
    if name not in kinds or (final is not None and not (isinstance(final, exp.Column) and final.name == name)):
        return None
    given = [bare.expression] if isinstance(bare, exp.EQ) else list(bare.expressions)
    values = [constant(node) for node in given]
    wanted = {Type.STRING: str, Type.INT: int, Type.LONG: int}.get(kinds[name])
    if wanted is None or not values or not all(isinstance(value, wanted) for value in values):
        return None
    return name, sorted({value for value in values if value is not None}, key=str)


def _limit(within: Within) -> int | None:
    """How many rows are enough, where the query shows the source's rows as they come: what table browsers ask."""
    select = within.parent_select
    if select is None or not isinstance(within.parent, exp.From) or within.parent.parent is not select:
        return None
    stops = ("joins", "laterals", "where", "group", "having", "order", "distinct", "qualify", "windows")
    if any(select.args.get(key) for key in stops) or select.find(exp.AggFunc, exp.Window, exp.Explode):
        return None
    found = [select.args.get(key) for key in ("limit", "offset")]
    nodes = [node.expression for node in found if isinstance(node, (exp.Limit, exp.Offset))]
    values = [constant(node) for node in nodes]
    whole = [value for value in values if isinstance(value, int)]
    return sum(whole) if found[0] is not None and len(whole) == len(nodes) and isinstance(found[0], exp.Limit) else None
