"""Streaming SQL in an app: `INSERT INTO T SELECT STREAM …`, or a lone SELECT STREAM whose rows go where `into` says.

`UPSERT INTO T` and a materialized view give the changes of a table, which are events of a stream like any other; the
blocks that read the table keep it (`rollup.statements.sql_tables`).

Every stream of the app is a stream of the model, with a column `rowtime`, the time of its events, which may only rise: an
event that goes back is refused, and is a dead letter of the job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.closings import PASSED, UNTIL
from rollup.core.errors import PlanError
from rollup.engine.dividing import Need
from rollup.engine.flows.beyond import beyond
from rollup.engine.flows.flow import AT, Relational
from rollup.engine.flows.relate import Relate
from rollup.engine.flows.source import Arrivals, Source
from rollup.engine.state import State
from rollup.lang.calcite.dividing import need_of
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.reader import parse
from rollup.lang.calcite.session import Session, Standing, States
from rollup.lang.calcite.targets import arranged, check_listed, listed
from rollup.lang.sections import Section
from rollup.plan.app import StreamDef
from rollup.plan.dividing import Keys, common
from rollup.statements import sql_names
from rollup.statements.columns import ROWTIME, batch_of, by_place, events_of, stream_of
from rollup.statements.component import ELSEWHERE, Described, Event, Names, Refused, Streams, Taken, refuse_own
from rollup.statements.sql_tables import Tables
from rollup.statements.values import comparable

_SAFE = (exp.AggFunc, exp.Predicate, exp.Connector, exp.Anonymous, exp.TryCast, exp.Floor, exp.Ceil, exp.Dot)
_TABLES = "tables"
"""What the state of a block calls its tables, beside the numbers of its queries."""


class Sql:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The streams behind FROM and JOIN, without views, and those behind INSERT INTO."""
        statements = parse(section.placed)
        own, writes, reads = set[str](), set[str](), set[str]()
        for statement in statements:
            own |= sql_names.defined(statement)
            target = sql_names.target(statement)
            writes |= set() if target is None else {target}
            tables = list(sql_names.read(statement))
            reads |= {table.name for table in tables}
            reads |= {table.name + PASSED for table in tables if table.args.get("version") is not None}
        return Names(frozenset(reads - own), frozenset(writes))

    def compile(self, section: Section, streams: Streams, names: Names) -> SqlBlock:
        """The queries over the streams. Raises SyntaxProblem or PlanError with the place."""
        refuse_own(names, section.into)
        return SqlBlock(section, streams, names)


@dataclass(frozen=True)
class _Query:
    """A standing query, the names that its columns have in the stream that its rows go to, and that stream; `later`: it
    computes with values of events that it took in an earlier step."""

    standing: Standing
    names: tuple[str, ...]
    stream: StreamDef
    later: bool

    def prove(self, arrivals: Mapping[str, Arrivals], engine: Relational) -> None:
        """Raise QueryError where it cannot compute with what arrives, were it all and at an end."""
        if self.later:
            ended = {name: replace(each, ended=True) for name, each in arrivals.items()}
            self.standing.step(self.standing.start(), ended, engine)

    def events(self, output: pa.Table, causes: Sequence[Event], number: int) -> list[Event]:
        """What leaves the query as events of its stream; see `events_of`."""
        return events_of(self.stream, arranged(output, self.names, list(self.stream.attributes)), causes, number)


class SqlBlock:
    """The standing queries of a text."""

    def __init__(self, section: Section, streams: Streams, names: Names) -> None:
        read = {name: streams[name] for name in sorted(names.reads) if name in streams}
        self._tables = Tables(read)
        self._streams = {name: stream for name, stream in read.items() if stream.table is None}
        for stream in self._streams.values():
            if ROWTIME in {name.lower() for name in stream.attributes}:
                raise PlanError(
                    f"{stream.name} has an attribute {ROWTIME}, which is what SQL calls the time of its events",
                    hint="rename the attribute",
                )
        self._reads = {ELSEWHERE, *self._streams, *self._tables.streams}
        self._session = Session(_model(self._streams, self._tables))
        self._known, self._tumbles, self._needs = streams, False, list[Need | str]()
        self._queries = [*self._prepared(section)]
        self._keys = comparable(self._divided(), streams)

    def _divided(self) -> Keys:
        if self._tables.streams:
            return Keys(reason=f"a row of any key may ask for any row of {', '.join(self._tables.streams)}")
        if len(self._streams) > 1:
            return Keys(reason="it reads several streams")
        return common(self._needs, instants=True, own=True)

    def _prepared(self, section: Section) -> Sequence[_Query]:
        found, statements = list[_Query](), parse(section.placed)
        sql_names.check(statements, self._known)
        for statement in statements:
            target = sql_names.target(statement) or section.into
            if not sql_names.stands(statement):
                self._session.statement(statement)
                continue
            query = statement.expression if isinstance(statement, (exp.Insert, exp.Create)) else statement
            sql_names.check_streams(query, self._tables.streams)
            answer = self._session.query(query)
            if answer.standing is None:
                raise PlanError(
                    "a query in an app reads streams",
                    hint="SELECT STREAM …; `rollup query` and `rollup sql` ask tables",
                )
            if target is None:
                raise PlanError(
                    "where do the rows go?", hint="INSERT INTO T SELECT STREAM …, or @lang('sql', into='T')"
                )
            self._tumbles |= _like_a_rollup(query)
            self._needs.append(need_of(query, {name: tuple(each.attributes) for name, each in self._streams.items()}))
            found.append(self._going(statement, target, answer.standing))
        return found

    def _going(self, statement: exp.Expr, name: str, standing: Standing) -> _Query:
        """A statement with the stream that its rows go to; an INSERT without a list of columns goes by place."""
        _, output, _ = standing.step(standing.start(), {}, self._session.engine)
        names = listed(statement, len(standing.names))
        made = stream_of(name, output.drop_columns([AT]), names or standing.names)
        later = _keeps(standing) and _fallible(statement)
        wanted = self._known.get(name)
        if names and wanted is not None:
            check_listed(statement, list(wanted.attributes), wanted.table or ())
            given = {column.lower(): kind for column, kind in made.attributes.items()}
            attributes = {column: given.get(column.lower(), kind) for column, kind in wanted.attributes.items()}
            return _Query(standing, names, replace(wanted, attributes=attributes), later)
        stream = replace(made, table=()) if isinstance(statement, exp.Create) else by_place(made, self._known)
        return _Query(standing, tuple(stream.attributes), stream, later)

    @property
    def described(self) -> Described:
        remark = ("an aggregation would also answer it: define aggregation … aggregate by … every …",)
        return Described(
            "columns",
            "steps over Arrow",
            f"open windows and what joins can reach{self._tables.described}",
            self._keys,
            remarks=remark if self._tumbles else (),
        )

    @property
    def writes(self) -> Streams:
        """The targets."""
        return {query.stream.name: query.stream for query in self._queries}

    @property
    def stores(self) -> Streams:
        """The tables that it reads; see `rollup.statements.component.Keeping`."""
        return self._tables.streams

    def stored(self, state: State, name: str) -> pa.Table:
        """The rows of a table."""
        return state.held()[_TABLES].tables[name]

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken]:
        """One batch."""
        mine = [event for event in events if event.stream in self._reads]
        if not mine:
            return state, Taken()
        first = 0 if state is None else int(state.scalars["position"])
        held = self._tables.begun() if state is None else state.held()[_TABLES].tables
        queries = [query.standing.start() for query in self._queries] if state is None else _queries(state)
        given, refused, lost = list[Event](), list[Refused](), 0
        for part in self._tables.runs(mine, self._session.catalog):
            held = self._tables.shown(held, part, first, self._session.catalog)
            if any(event.stream not in self._tables.streams for event in part):
                queries, taken = self._ran(queries, part, first, len(given))
                given += taken.events
                refused += taken.refused
                lost += taken.beyond
            first += len(part)
        states = {str(place): State.holding(each, {}) for place, each in enumerate(queries)}
        after = State.holding({**states, _TABLES: State(held)}, {"position": first})
        return after, Taken(sorted(given, key=lambda event: event.key), refused, lost)

    def forgiven(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken, Sequence[str]]:
        """See `rollup.statements.component.Forgiving`."""
        mine = [event for event in events if event.stream in self._reads]
        first = 0 if state is None else int(state.scalars["position"])
        with self._session.engine.forgiving() as found:
            after, taken = self.step(state, events)
        places = [at - first for at in sorted(found.rows) if 0 <= at - first < len(mine)]
        return after, replace(taken, refused=[Refused(mine[at], found.said[0]) for at in places]), found.said

    def _ran(
        self, before: Sequence[States], mine: Sequence[Event], first: int, number: int
    ) -> tuple[list[States], Taken]:
        """Events that lie between two cuts, the first of them at a position; `number`: of what they give."""
        arrivals = {name.lower(): _arrivals(stream, mine, first) for name, stream in self._streams.items()}
        after, given, refused, lost = list[States](), list[Event](), dict[int, Refused](), 0
        for place, query in enumerate(self._queries):
            states, output, worse = query.standing.step(before[place], arrivals, self._session.engine)
            query.prove(arrivals, self._session.engine)
            after.append(states)
            lost += beyond(states.values()) - beyond(before[place].values())
            refused |= {each.at: Refused(mine[each.at - first], each.reason) for each in worse}
            at = output.column(AT).to_pylist()
            causes = [mine[min(position - first, len(mine) - 1)] for position in at]
            given += query.events(output, causes, number + len(given))
        return after, Taken(given, list(refused.values()), lost)


def _model(streams: Streams, tables: Tables) -> Model:
    """Streams as such, and tables; a level of an aggregation is also, as of a time, a table of the buckets that had ended by then."""
    levels = {name: each.keys for name, each in streams.items() if each.keys is not None}
    moving = {name + PASSED: UNTIL for name in levels}
    model = Model.of({"tables": {name: _table(each, moving.get(name, ROWTIME)) for name, each in streams.items()}})
    for table in tables.declared({name: _columns(each) for name, each in tables.streams.items()}):
        model.add(table)
    for name, keys in levels.items():
        found = model.find(name)
        if found is not None and name + PASSED in streams:
            model.add(replace(found, key=keys, buckets=True, time=ROWTIME, passed=name + PASSED))
    return model


def _arrivals(stream: StreamDef, mine: Sequence[Event], first: int) -> Arrivals:
    """The events of a stream; those of another shard, which only the one stream of divided queries has, say how far time is."""
    own = [event.stream != ELSEWHERE for event in mine]
    if all(own):
        return Arrivals(batch_of(stream, mine, first, AT))
    nothing = (None,) * len(stream.attributes)
    filled = [
        each if is_own else each._replace(stream=stream.name, values=nothing)
        for each, is_own in zip(mine, own, strict=True)
    ]
    return Arrivals(batch_of(stream, filled, first, AT), own=pa.array(own))


def _table(stream: StreamDef, moving: str) -> Mapping[str, Any]:
    return {
        "kind": "stream",
        "columns": {**_columns(stream), ROWTIME: "TIMESTAMP"},
        "monotonic": {moving: "increasing"},
    }


def _columns(stream: StreamDef) -> Mapping[str, str]:
    return {name: kind.duckdb for name, kind in stream.attributes.items()}


def _keeps(standing: Standing) -> bool:
    """Whether a query keeps rows: whatever does not only read and compute does."""
    return any(not isinstance(node, (Source, Relate)) for node in standing.nodes.values())


def _fallible(query: exp.Expr) -> bool:
    """Whether a query computes anything that may have no answer, beside sums, comparisons and the bounds of windows."""
    return any(not isinstance(node, _SAFE) and node.find(exp.Column) for node in query.find_all(exp.Func, exp.Binary))


def _like_a_rollup(query: exp.Expr) -> bool:
    """Whether a query only groups one stream by windows side by side, as an aggregation does."""
    calls = {call.name.upper() for call in query.find_all(exp.Anonymous)}
    return "TUMBLE" in calls and not list(query.find_all(exp.Join, exp.Window))


def _queries(state: State) -> list[States]:
    return [query.held() for name, query in state.held().items() if name != _TABLES]
