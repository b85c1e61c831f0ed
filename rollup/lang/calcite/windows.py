"""Windows in a select: TUMBLE_START and its like, expressions after a GROUP BY, and OVER lowered to frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import duckdb
from sqlglot import exp

from rollup.core.errors import PlanError, said_by_duckdb
from rollup.engine.flows.flow import NUMBER, Column, Node
from rollup.engine.flows.flow import column as flow_column
from rollup.engine.flows.frames import Frames, Keep, Wait
from rollup.engine.flows.grouping import WINDOW
from rollup.lang.calcite.grouping import NO_GROUP, Grouping
from rollup.lang.calcite.semantics import AUXILIARY, refused

if TYPE_CHECKING:
    from rollup.lang.calcite.planning.lowering import Lowering

__all__ = [
    "NO_GROUP",
    "after_group",
    "check_known",
    "framed",
    "frames",
    "in_window",
    "limit_of",
    "of_duckdb",
    "stamp",
]

_FORMS = {
    "TUMBLE": "TUMBLE(rowtime, INTERVAL '1' HOUR)",
    "HOP": "HOP(rowtime, INTERVAL '1' HOUR, INTERVAL '3' HOUR)",
}
MANY_ROWS, ONE_ROW = "More than one row", "an aggregate as MAX(x), or a condition that leaves one row"
"""Of a sub-query that stands for a value, in DuckDB's words, and what would be valid."""
_CURES = (
    ("contain aggregates", "HAVING asks of groups"),
    ("contain window functions", "name it in a sub-query and ask outside"),
    ("No function matches", "CAST(.. AS ..), as CAST(x AS INTEGER)"),
    ("for cast", "CAST(.. AS ..) of a type that can be read so"),
    ("Cannot compare", "CAST(.. AS ..) of one of them"),
    (MANY_ROWS, ONE_ROW),
    ("Subquery returns", "a sub-query of one column"),
    ("Frame starting", "the earlier end first, as BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW"),
    ("Function with name", "the functions are Calcite's; a misprint?"),
)
"""What a refusal in DuckDB's words says, and what would be valid."""
_ALL = (exp.RowNumber, exp.Rank, exp.DenseRank)
_PARTITION = ("NTILE", "PERCENT_RANK", "PERCENTRANK", "CUME_DIST", "CUMEDIST")


# groups


def in_window(aggregate: exp.Expr, group: Grouping) -> exp.Expr:
    """An aggregate's argument may ask for the window of its row."""
    return _auxiliary(aggregate, group, flow_column(WINDOW))


def after_group(
    part: exp.Expr,
    group: Grouping,
    window: Sequence[Column],
    keys: Sequence[Column],
    values: Sequence[Column],
    bits: Sequence[Column],
    said: Callable[[exp.Expr], str],
) -> exp.Expr:
    """An expression over the columns of a group: keys, aggregates and the window in place of what stands for them."""
    root = exp.Paren(this=part.copy())
    table = [(node, values[i]) for i, node in enumerate(group.aggregates)]
    table += [(node, bits[i]) for i, node in enumerate(group.grouping_calls)]
    for node in list(root.walk(bfs=True)):
        if node is root or node.find_ancestor(exp.Paren) is None:
            continue
        found = next((out for known, out in table if known == node), None)
        if found is not None:
            node.replace(flow_column(found.name))
    if window:
        _replace_auxiliary(root, group, flow_column(window[0].name))
    for node in list(root.walk(bfs=True)):
        if node is root:
            continue
        found = next((out for known, out in zip(group.keys, keys, strict=True) if known == node), None)
        if found is not None:
            node.replace(flow_column(found.name))
    made = {c.name for c in (*window, *keys, *values, *bits)}
    wrong = next((node for node in root.find_all(exp.Column) if node.name not in made), None)
    if wrong is not None:
        raise refused(
            wrong, f"{said(wrong)} in the select list is neither grouped nor aggregated", "GROUP BY it, or aggregate it"
        )
    return root.this.pop()


def _auxiliary(node: exp.Expr, group: Grouping, window: exp.Expr) -> exp.Expr:
    root = exp.Paren(this=node.copy())
    _replace_auxiliary(root, group, window)
    return root.this.pop()


def _replace_auxiliary(root: exp.Expr, group: Grouping, window: exp.Expr) -> None:
    for node in list(root.find_all(exp.Anonymous)):
        name = node.name.upper()
        if name not in AUXILIARY:
            continue
        function = name.split("_")[0]
        if group.window is None or group.hops is None or group.window.name.upper() != function:
            raise refused(node, f"{name} needs a {function} in GROUP BY", f"GROUP BY {_FORMS[function]}")
        if len(node.expressions) > 1 and node.expressions != group.window.expressions:
            raise refused(
                node,
                f"Call to auxiliary group function '{name}' must have matching call to group function '{function}' in GROUP BY clause",
                f"the same arguments in both, or only the time in {name}",
            )
        node.replace(stamp(window.copy(), group.hops.width if name.endswith("END") else 0))


def stamp(window: exp.Expr, ahead: int) -> exp.Expr:
    """The time of a window's start in microseconds, so many of them ahead."""
    value = exp.Add(this=window, expression=exp.Literal.number(ahead)) if ahead else window
    return exp.Anonymous(this="make_timestamp", expressions=[value])


def check_known(expr: exp.Expr, node: Node) -> None:
    """Every function of streaming SQL has found its place."""
    for found in expr.find_all(exp.Anonymous):
        if found.name.upper() in (*AUXILIARY, "TUMBLE", "HOP"):
            raise refused(
                found, f"{found.name.upper()} needs a TUMBLE or HOP in GROUP BY", f"GROUP BY {_FORMS['TUMBLE']}"
            )


def of_duckdb(problem: Exception, node: exp.Expr) -> PlanError:
    """A refusal by DuckDB of what was read, in one sentence; of a value, at its place."""
    first = said_by_duckdb(problem).replace(" in DuckDB", "").replace(" when targeting DuckDB", "")
    if isinstance(problem, duckdb.DataError):
        texts = (part.parent for part in node.find_all(exp.Literal) if part.is_string and part.this in first)
        return refused(next(texts, node), first, "a value of the type that it stands beside, or SAFE_CAST(.. AS ..)")
    hints = (hint for said, hint in _CURES if said in first)
    return refused(node, first, next(hints, None))


def limit_of(limit: exp.Expr) -> int:
    """The rows of LIMIT n or FETCH FIRST n ROWS."""
    value = limit.args.get("expression") or limit.args.get("count")
    if not isinstance(value, exp.Literal) or not value.is_int:
        raise refused(limit, "LIMIT needs a whole number", "LIMIT 10")
    return int(value.this)


# OVER


@dataclass(frozen=True)
class _Over:
    """One function over a frame, with its window put together from the WINDOW clause and its own parentheses."""

    function: exp.Expr
    partition: tuple[exp.Expr, ...]
    order: tuple[exp.Ordered, ...]
    spec: exp.WindowSpec | None


def frames(
    lowering: Lowering, node: Node, parts: Sequence[exp.Expr], select: exp.Select
) -> tuple[Node, list[exp.Expr]]:
    """A node with a column for each function over a frame, and the expressions with those columns in their place."""
    named = {w.this.name.lower(): w for w in select.args.get("windows") or []}
    wanted: list[exp.Expr] = []
    for part in parts:
        wanted += [w for w in framed(part) if w not in wanted]
    overs = [_resolved(w, named, lowering, select) for w in wanted]
    exprs = [e for over in overs for e in (*over.partition, *(o.this for o in over.order))]
    node, columns = lowering.extended(node, exprs)
    trees, waits, keeps = list[exp.Expr](), list[Wait](), list[Keep]()
    at = 0
    for over, window in zip(overs, wanted, strict=True):
        partition = columns[at : at + len(over.partition)]
        order = columns[at + len(over.partition) : at + len(over.partition) + len(over.order)]
        at += len(over.partition) + len(over.order)
        tree, wait, keep = _Framing(over, partition, order, window, lowering.said).made()
        trees.append(lowering.ducked(tree, node))
        if wait is not None:
            waits.append(replace(wait, ahead=lowering.ducked(wait.ahead, node) if wait.ahead is not None else None))
        keeps.append(replace(keep, behind=lowering.ducked(keep.behind, node) if keep.behind is not None else None))
    kinds = lowering._types([_typed(tree) for tree in trees], _Numbered(node))  # type: ignore[arg-type]
    values = [lowering.fresh(kind) for kind in kinds]
    made = Frames((node,), (*node.columns, *values), tuple(trees), tuple(waits), tuple(keeps))
    return made, [_with(part, wanted, values) for part in parts]


def framed(part: exp.Expr) -> list[exp.Expr]:
    """The functions over frames in an expression, but for those of its sub-queries."""
    return [window for window in part.find_all(exp.Window) if window.find_ancestor(exp.Select) is None]


class _Numbered:
    """A node as the windows see it: with the number of the row."""

    def __init__(self, node: Node) -> None:
        self.columns = (*node.columns, Column(NUMBER, "BIGINT"))


def _typed(tree: exp.Expr) -> exp.Expr:
    return tree.copy()


def _with(part: exp.Expr, wanted: Sequence[exp.Expr], values: Sequence[Column]) -> exp.Expr:
    root = exp.Paren(this=part.copy())
    for found in framed(root):
        found.replace(flow_column(values[list(wanted).index(found)].name))
    return root.this.pop()


def _resolved(window: exp.Expr, named: dict[str, exp.Expr], lowering: Lowering, select: exp.Select) -> _Over:
    partition = tuple(window.args.get("partition_by") or ())
    order = window.args.get("order")
    spec = window.args.get("spec")
    alias = window.args.get("alias")
    if alias is not None:
        base = named.get(alias.name.lower())
        if base is None:
            raise refused(window, f"unknown window {alias.name}", f"known: {', '.join(named) or 'none'}")
        found = _resolved(base, named, lowering, select)
        scope = lowering.scope
        rename = lambda e: lowering.renamed(e, scope)  # noqa: E731
        partition = partition or tuple(rename(p) for p in found.partition)
        base_order = tuple(
            exp.Ordered(this=rename(o.this), desc=o.args.get("desc"), nulls_first=o.args.get("nulls_first"))
            for o in found.order
        )
        return _Over(window.this, partition, tuple(order.expressions) if order else base_order, spec or found.spec)
    return _Over(window.this, partition, tuple(order.expressions) if order else (), spec)


class _Framing:
    """One function over a frame: DuckDB's tree, what a row waits for, and which rows are kept."""

    def __init__(
        self, over: _Over, partition: Sequence[Column], order: Sequence[Column], window: exp.Expr,
        said: Callable[[exp.Expr], str],
    ) -> None:  # fmt: skip
        self.over, self.partition, self.order, self.window, self.said = over, partition, order, window, said
        self.moving = next((c for c in partition if c.monotone), None)
        lead = order[0] if order else None
        falls = bool(over.order[0].args.get("desc")) if over.order else False
        self.lead = lead if lead is not None and lead.monotone and lead.monotone.rising != falls else None
        kind = type(over.function).__name__.upper()
        name = over.function.name.upper() if isinstance(over.function, exp.Anonymous) else kind
        self.ranking = isinstance(over.function, _ALL)
        self.whole = name in _PARTITION
        self.skips = isinstance(over.function, exp.IgnoreNulls)
        self.shift = _shift(over.function.this if self.skips else over.function)

    def made(self) -> tuple[exp.Expr, Wait | None, Keep]:
        """The tree, the wait (None: final at once) and what is kept."""
        if self.whole or ((self.order or self.ranking) and self.lead is None):
            return self._tree(self.over.spec, self._trees()), self._partition_wait(), self._partition_keep()
        if not self.order:
            return self._running()
        ties = self._arrival()
        if self.shift is not None:
            tree = self._tree(None, self._trees(ties))
            if self.skips:  # how many rows it looks over the rows must tell
                return tree, self._partition_wait() if self.shift > 0 else self._wait(), self._partition_keep()
            return tree, self._wait(), self._keep()
        return self._tree(self.over.spec, self._trees(ties)), self._wait(), self._keep()

    def _running(self) -> tuple[exp.Expr, Wait | None, Keep]:
        """Without ORDER BY a stream's window is the running total by arrival."""
        spec = exp.WindowSpec(kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW")
        return self._tree(spec, [exp.Ordered(this=flow_column(NUMBER))]), None, self._partition_keep()

    def _arrival(self) -> bool:
        """Whether rows of one time are taken in the order of arrival: by rows, and by time alone."""
        rows = self.over.spec is not None and str(self.over.spec.args.get("kind")).upper() == "ROWS"
        by_rows = rows or isinstance(self.over.function, exp.RowNumber) or self.shift is not None
        return by_rows and len(self.order) == 1

    def _trees(self, ties: bool = False) -> list[exp.Expr]:
        trees: list[exp.Expr] = [
            exp.Ordered(this=flow_column(c.name), desc=bool(o.args.get("desc")), nulls_first=o.args.get("nulls_first"))
            for c, o in zip(self.order, self.over.order, strict=True)
        ]
        return [*trees, exp.Ordered(this=flow_column(NUMBER))] if ties else trees

    def _tree(self, spec: exp.Expr | None, order: Sequence[exp.Expr]) -> exp.Expr:
        partition = [flow_column(c.name) for c in self.partition]
        made = exp.Order(expressions=list(order)) if order else None
        return exp.Window(
            this=self.over.function.copy(),
            partition_by=partition,
            order=made,
            spec=spec.copy() if spec else None,
            over="OVER",
        )

    def _partition_wait(self) -> Wait:
        if self.moving is None:
            what = "ORDER BY" if self.order else "PARTITION BY"
            why, cure = (
                f"{what} has no monotonic expression",
                "ORDER BY rowtime, or PARTITION BY FLOOR(rowtime TO HOUR)",
            )
            if self.lead is not None:
                why = "it asks rows to come without end, and PARTITION BY has no monotonic expression"
                cure = "an end as INTERVAL '1' HOUR FOLLOWING, or PARTITION BY FLOOR(rowtime TO HOUR)"
            raise refused(self.window, f"a row of {self.said(self.over.function)} OVER is never final: {why}", cure)
        return Wait(self.moving)

    def _partition_keep(self) -> Keep:
        return Keep(self.moving)

    def _wait(self) -> Wait | None:
        assert self.lead is not None
        spec = self.over.spec
        kind = str(spec.args.get("kind")).upper() if spec else "RANGE"
        end, side = self._end(spec)
        monotone = self.lead.monotone
        sorted_ = monotone is None or monotone.ordered
        at_once = sorted_ and monotone is not None and monotone.strict
        if self.shift is None and end == "UNBOUNDED" and side == "FOLLOWING":
            return self._partition_wait()
        rows = _count(end) if kind == "ROWS" and side == "FOLLOWING" and isinstance(end, exp.Expr) else 0
        rows = rows if self.shift is None else max(self.shift, 0)
        if self.shift is not None or kind == "ROWS" or isinstance(self.over.function, exp.RowNumber):
            settled = sorted_ and (len(self.order) == 1 or at_once)
            if settled and not rows:
                return None
            return Wait(None if settled else self.lead, None, rows, tuple(flow_column(c.name) for c in self.partition))
        if side == "FOLLOWING" and isinstance(end, exp.Expr):
            return Wait(self.lead, end.copy())
        if side == "PRECEDING" and isinstance(end, exp.Expr) and sorted_:
            return None
        return None if at_once else Wait(self.lead)

    @staticmethod
    def _end(spec: exp.WindowSpec | None) -> tuple[str | exp.Expr, str]:
        if spec is None or not spec.args.get("end"):
            return "CURRENT ROW", ""
        return spec.args["end"], str(spec.args.get("end_side") or "").upper()

    def _keep(self) -> Keep:
        spec = self.over.spec
        kind = str(spec.args.get("kind")).upper() if spec else "RANGE"
        start = spec.args.get("start") if spec else "UNBOUNDED"
        side = str(spec.args.get("start_side") or "").upper() if spec else "PRECEDING"
        partition = tuple(flow_column(c.name) for c in self.partition)
        if self.shift is not None:
            return Keep(rows=max(-self.shift, 0), partition=partition)
        if start == "UNBOUNDED" or self.ranking:
            return self._partition_keep()
        if kind == "ROWS":
            return Keep(
                rows=_count(start) if isinstance(start, exp.Expr) and side == "PRECEDING" else 0, partition=partition
            )
        behind = start.copy() if isinstance(start, exp.Expr) and side == "PRECEDING" else None
        return Keep(self.lead, behind)


def _shift(function: exp.Expr) -> int | None:
    """How many rows LEAD looks ahead, or, below zero, LAG back; None for other functions."""
    if not isinstance(function, (exp.Lag, exp.Lead)):
        return None
    offset = function.args.get("offset")
    rows = 1 if offset is None else _count(offset)
    return rows if isinstance(function, exp.Lead) else -rows


def _count(node: exp.Expr | str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string:
        return int(node.this)
    raise refused(node if isinstance(node, exp.Expr) else None, "ROWS needs a number of rows", "as ROWS 2 PRECEDING")
