"""What a statement shares with others: streams that it hears and feeds, stores, variables, its context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rollup.core.descriptions import descendants
from rollup.engine.expressions import Variable
from rollup.engine.rows.actions import StreamUpdate
from rollup.engine.rows.component import Deployed
from rollup.engine.rows.patterns.algebra import FilterNode, nodes
from rollup.engine.rows.plans import (
    Filter,
    PatternInput,
    Select,
    StoreInput,
    StreamInput,
    TableRow,
    TableTarget,
    Target,
)
from rollup.engine.types import DataType, RowType


def streams_of(plan: object) -> tuple[str, ...]:
    """The streams that a statement reads, those of its sub-queries last; none when it also reads a store."""
    match plan:
        case Select(inputs=(PatternInput(pattern=pattern),), own_inputs=()):
            return tuple(dict.fromkeys(node.stream for node in nodes(pattern.root) if isinstance(node, FilterNode)))
        case Select(inputs=inputs, own_inputs=own):
            streams = [each.filter.stream for each in (*inputs, *own) if isinstance(each, StreamInput)]
            return tuple(dict.fromkeys(streams)) if len(streams) == len(inputs) + len(own) else ()
        case _:
            return ()


def uses_of(deployed: Deployed) -> Iterator[str]:
    """What a statement shares with others: stores, variables, its context; `> S` for a stream that it inserts into or changes,
    `< S` for one that it hears.
    """
    if deployed.context is not None:
        yield f"context {deployed.context}"
    if deployed.store is not None:
        yield deployed.store
    yield from mentioned(deployed.plan)


def mentioned(plan: object) -> Iterator[str]:
    """The same of a part of a statement, or of a context."""
    for part in descendants(plan, (DataType, RowType)):
        match part:
            case StoreInput(store=name) | TableRow(table=name) | TableTarget(table=name):
                yield name
            case Variable(name=name):
                yield f"variable {name}"
            case Target(name=name) | StreamUpdate(stream=name):
                yield f"> {name}"
            case Filter(stream=name) | FilterNode(stream=name):
                yield f"< {name}"
            case _:
                for mark, what in (("> ", "target"), ("", "store"), ("variable ", "variable")):
                    if isinstance(name := getattr(part, what, None), str):
                        yield mark + name


def marked(uses: Iterable[str], mark: str) -> frozenset[str]:
    """Those of a kind, without what marks it."""
    return frozenset(use.removeprefix(mark) for use in uses if use.startswith(mark))
