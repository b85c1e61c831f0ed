"""Annotations of tables, windows, triggers, queries and partitions: what they ask for, and what is refused by name.

Those of streams are checked where the rollups read the app (`rollup.plan.annotations`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rollup.core.errors import PlanError
from rollup.engine.rows.deliveries.partitions import Purge
from rollup.engine.types import RowType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements.kinds import keyable
from rollup.plan.annotations import DOCUMENTATION, check_app, check_query, check_stream
from rollup.plan.app import Annotation
from rollup.plan.retention import enabled, period

_OF_TABLES = ("primarykey", "index")
_OF_THREADS = "synchronized"
"""Of a query: a single thread at a time is in it, as is always so here."""


def check_alone(app: tree.App) -> None:
    """Raise PlanError for what an app that is no part of a job says of its streams, or of the whole, in vain."""
    check_app([_plain(given) for given in app.annotations], ())
    for made in app.statements:
        if isinstance(made, tree.Definition) and made.kind == "stream":
            check_stream(made.name, _own(made.annotations))


def check_definition(made: tree.Definition) -> None:
    """Raise PlanError for an annotation of a table, window or trigger that is not acted on."""
    known = (*DOCUMENTATION, *(_OF_TABLES if made.kind == "table" else ()))
    for given in _own(made.annotations):
        if made.kind != "stream" and given.name.lower() not in known:
            kept = "its rows are kept in the state of the statements; leave it out"
            cure = kept if given.name.lower() in ("store", "cache") else f"known of a {made.kind}: @{', @'.join(known)}"
            raise given.refuse(f"@{given.name} of {made.kind} {made.name} is not acted on", cure)


def check_queries(annotations: tuple[tree.Annotation, ...]) -> None:
    """Raise PlanError for an annotation of a query that is not acted on."""
    check_query(given for given in _own(annotations) if given.name.lower() != _OF_THREADS)


def check_names(app: tree.App) -> None:
    """Raise PlanError where two queries have one name, `@info(name='q')`, or a partition that of what stands beside it."""
    parts = [s for s in app.statements if isinstance(s, tree.Query | tree.Partition)]
    _check_apart([query for part in parts for query in (part.queries if isinstance(part, tree.Partition) else (part,))])
    _check_apart(parts)


def _check_apart(parts: Sequence[tree.Query | tree.Partition]) -> None:
    named = dict[str, tree.Query | tree.Partition]()
    for part in parts:
        for given in (_plain(each) for each in part.annotations if each.name.lower() == "info"):
            name = given.values.get("name")
            if name is None or (other := named.setdefault(name, part)) is part:
                continue
            partitions = [isinstance(each, tree.Partition) for each in (other, part)].count(True)
            kinds = ("two queries", "a query and a partition", "two partitions")[partitions]
            raise given.refuse(f"{kinds} are called {name!r}", "a name each, or none")


def _own(annotations: tuple[tree.Annotation, ...]) -> list[Annotation]:
    """Those that are not about the whole app."""
    return [_plain(given) for given in annotations if not given.name.startswith("app:")]


def _plain(given: tree.Annotation) -> Annotation:
    return Annotation(given.name, dict(given.values), tuple(map(_plain, given.nested)), *given.place)


def purge(made: tree.Partition) -> Purge | None:
    """`@purge(enable='true', interval='5 sec', idle.period='1 min')` of a partition. Raises PlanError."""
    found = None
    for given in _own(made.annotations):
        if given.name.lower() in DOCUMENTATION:
            continue
        if given.name.lower() != "purge":
            known = ", @".join(("purge", *DOCUMENTATION))
            raise given.refuse(f"@{given.name} of a partition is not acted on", f"known of a partition: @{known}")
        if set(given.values) - {"enable"} != {"interval", "idle.period"}:
            raise given.refuse(
                "@purge of a partition says how often keys are looked at, and how long one may be idle",
                "@purge(enable='true', interval='5 sec', idle.period='1 min')",
            )
        if enabled(given):
            found = Purge(*(_length(given, given.values[name]) for name in ("interval", "idle.period")))
            _check_waits(given, found.idle, made.queries)
    return found


def _check_waits(given: Annotation, idle: int, queries: Sequence[tree.Query]) -> None:
    """Refuse an idle time in which a key goes that a query still waits for: what it waits for would never come."""
    for query in queries:
        absent = sum(_absences(query.input.steps)) if isinstance(query.input, tree.Pattern) else 0
        wait = max(absent, (query.rate and query.rate.span) or 0)
        if wait > idle:
            raise given.refuse(
                f"a query of the partition waits for {_seconds(wait)}, and a key that is idle for {_seconds(idle)} goes with "
                "what it waits for",
                f"idle.period='{_seconds(2 * wait)}', or anything that is not shorter than the wait",
            )


def _absences(steps: Sequence[tree.Step]) -> Iterator[int]:
    """How long elements of a pattern wait for no event."""
    for step in steps:
        match step:
            case tree.Basic():
                if step.absent and step.span is not None:
                    yield step.span
            case tree.Logical():
                yield from _absences((step.left, step.right))
            case tree.Every():
                yield from _absences((step.step,))
            case tree.Group():
                yield from _absences(step.steps)


def _seconds(span: int) -> str:
    return f"{span} ms" if span % 1000 else f"{span // 1000} sec"


def _length(given: Annotation, text: str) -> int:
    length = period(given, text)
    if length is None:
        raise given.refuse("@purge of a partition takes lengths of time", "idle.period='1 min'")
    return length


def primary_key(made: tree.Definition, rows: RowType) -> tuple[int, ...]:
    """The places of the columns that tell a table's rows apart. Raises PlanError for keys and indexes that cannot be."""
    keys = _naming(made, "PrimaryKey", rows)
    if len(keys) > 1:
        raise PlanError(f"{made.name} has two @PrimaryKey", hint="@PrimaryKey('a', 'b')").at(*keys[1].place)
    indexes = _naming(made, "Index", rows)
    for place, given in enumerate(indexes):
        if len(given.values) > 1 or given.values in [each.values for each in indexes[:place]]:
            raise PlanError("an @Index is of one attribute, and there is one of each").at(*given.place)
    return tuple(rows.index[column] for given in keys for _, column in given.values)


def _naming(made: tree.Definition, name: str, rows: RowType) -> list[tree.Annotation]:
    """The annotations of that name; what they name must be attributes."""
    found = [given for given in made.annotations if given.name.lower() == name.lower()]
    for given in found:
        for column in [column for _, column in given.values] or [""]:
            if column not in rows.index:
                raise PlanError(f"@{name} names {column!r}, which {made.name} has not").at(*given.place)
            keyable(rows.fields[column], given, column)
    return found
