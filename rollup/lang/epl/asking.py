"""Fire-and-forget requests: select, insert, update and delete over named windows and tables, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rollup.core.descriptions import descendants
from rollup.core.nesting import nests
from rollup.engine.compiling import compiled, compiled_row, predicate
from rollup.engine.row import Row, Rows
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.plans import Select, StoreInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.types import RowType
from rollup.lang.epl.catalog import StoreInfo, problem, unknown
from rollup.lang.epl.deployer import Deployer
from rollup.lang.epl.lowering.select import lower_query
from rollup.lang.epl.lowering.streams import columns_of
from rollup.lang.epl.lowering.targets import assigned, fitting, name_of, placed, target_of
from rollup.lang.epl.lowering.values.expressions import condition, lower
from rollup.lang.epl.reader import read_request
from rollup.lang.epl.scope import Registry, Scope, Source
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import FilterSource, Stream

Answer = tuple[RowType, list[Row]]


@nests
def ask(deployer: Deployer, text: str, parameters: Mapping[str, Any] | Sequence[Any] = ()) -> Answer:
    """The answer to a request: its rows; of an update or delete of a window, the rows concerned.

    Raises SyntaxProblem, PlanError, or QueryError where a unique index forbids a change.
    """
    request = read_request(text)
    return _Asking(deployer, request, parameters).answer()


class _Asking:
    def __init__(self, deployer: Deployer, request: sm.Ask, parameters: Mapping[str, Any] | Sequence[Any]) -> None:
        self.component, self.catalog = deployer.component, deployer.catalog
        self.request, self.parameters = request, _by_name(request, parameters)
        context = self.catalog.context(request.context, request) if request.context is not None else None
        declared = {each.name: each for each in request.declarations}
        self.scope = Scope(
            self.catalog, (), Registry(), context, no_aggregates="here", declared=declared, parameters=self.parameters
        )

    def answer(self) -> Answer:
        """The answer."""
        body = self.request.request
        match body:
            case sm.Query() if not body.streams:
                return self._insert_row(body)
            case sm.Query():
                return self._select(body)
            case sm.AskInsert():
                return self._insert(body)
            case sm.AskUpdate():
                return self._update(body)
            case sm.AskDelete():
                return self._delete(body)

    def _select(self, body: sm.Query) -> Answer:
        for stream in (*body.streams, *(join.stream for join in body.joins)):
            source = stream.source
            if not isinstance(source, FilterSource):
                raise problem("a request reads named windows and tables, not patterns", stream)
            if source.type not in self.catalog.stores and source.type in self.catalog.types:
                raise problem(f"a request cannot read the stream `{source.type}`", stream, "a named window or a table")
        if body.insert is not None:
            raise problem(
                "a request inserts what it says itself", body.insert, "insert into W select 1 as a, or values (1)"
            )
        if body.output is not None:
            raise problem("a request is answered once and has no output clause", body.output)
        if body.joins or len(body.streams) > 1:
            body = _named(body)
        names = self._stores_in(body)
        context = next((c for name in names if (c := self.component.context_of(name)) is not None), None)
        scope = self.scope
        if scope.context is None and context is not None:
            scope = replace(scope, context=self.catalog.contexts[context])
        plan = lower_query(body, scope)
        return plan.type, self._rows(plan, context)

    def _rows(self, plan: Select, context: str | None) -> list[Row]:
        root = self.component.root
        if context is None:
            return _Once("request", plan, root, (0, 0)).answer()
        partitions = list(self.component.contexts[context].partitions.values())
        if self.scope.context is not None:
            return [row for each in partitions for row in _Once("request", plan, each, (0, 0)).answer()]
        return _Everywhere(plan, partitions or [root], root).answer()

    def _stores_in(self, body: sm.Query) -> list[str]:
        sources = [stream.source for stream in (*body.streams, *(join.stream for join in body.joins))]
        names = [source.type for source in sources if isinstance(source, FilterSource)]
        for name, source in zip(names, sources, strict=True):
            self.catalog.row_type(name, source)
        return names

    # changes

    def _row(self, values: Sequence[Any]) -> Row:
        return self.component.runner.row(values)

    def _into(self, name: str, rows: Sequence[Row]) -> None:
        stores = self.component.every(name)
        if self.component.context_of(name) is not None:
            raise problem(f"`{name}` is in a context: a request cannot say which partition", self.request)
        self.component.runner.later(lambda: stores[0].change(rows) and None)

    def _insert(self, body: sm.AskInsert) -> Answer:
        info = self.catalog.store(body.insert.target, body.insert)
        rows: list[Row] = []
        for given in body.rows:
            names = list(body.insert.columns) or list(info.type.fields)[: len(given)]  # the last may be left out
            if len(given) != len(names):
                raise problem(f"a row of {len(given)} values for {len(names)} columns", body)
            values = [lower(each, self.scope) for each in given]
            made = RowType(body.insert.target, dict(zip(names, (v.type for v in values), strict=True)))
            target, known = target_of(replace(body.insert, columns=tuple(names)), made, self.scope)
            columns = placed(values, target, known)
            rows.append(self._row(compiled_row(columns)((), (), self.component.runner.environment)))
        self._into(body.insert.target, rows)
        return info.type, rows if info.kind == "window" else []

    def _insert_row(self, body: sm.Query) -> Answer:
        if body.insert is None:
            raise problem("a select needs its from clause", body)
        columns, names = columns_of(body.items, self.scope)
        made = RowType(body.insert.target, {n: c.type for n, c in zip(names, columns, strict=True)})
        self.catalog.store(body.insert.target, body.insert)
        target, known = target_of(body.insert, made, self.scope)
        row = self._row(compiled_row(placed(columns, target, known))((), (), self.component.runner.environment))
        self._into(body.insert.target, [row])
        return known, [row] if self.catalog.stores[body.insert.target].kind == "window" else []

    def _scope_of(self, store: sm.Store) -> tuple[StoreInfo, Scope]:
        """A store that is to be changed, and the names that are known of it."""
        info = self.catalog.store(store.name, store)
        self.scope.registry.outer = 1
        held = Source(store.alias or store.name, info.type, stream=store.name)
        return info, replace(self.scope, sources=(held,))

    def _found(
        self, store: sm.Store, info: StoreInfo, where: ex.Expression | None, scope: Scope
    ) -> list[tuple[Any, _Once, list[Row]]]:
        """Each partition of a store, what answers in it, and its rows that pass.

        What else is asked for with them has been lowered before.
        """
        test = condition(where, scope) if where is not None else None
        plan = Select(
            (StoreInput(store.name, follow=False),), info.type, _identity(info.type, scope), where=test,
            lookups=tuple(scope.registry.lookups), own_inputs=tuple(scope.registry.own_inputs),
        )  # fmt: skip
        found: list[tuple[Any, _Once, list[Row]]] = []
        passes = predicate(test)
        for each in self.component.every(store.name):
            once = _Once("request", plan, each.partition, (0, 0))
            rows = [row for row in each.asked(where is not None) if passes((row,), (), once.environment)]
            found.append((each, once, rows))
        return found

    def _update(self, body: sm.AskUpdate) -> Answer:
        info, scope = self._scope_of(body.store)
        initial = Source("initial", info.type, hidden=True)
        inside = replace(scope, sources=(*scope.sources, initial))
        sets: list[tuple[int, Any]] = []
        for each in body.assignments:
            target, value = assigned(each, inside)
            name = name_of(target)
            if name not in info.type.fields:
                raise unknown(f"column of `{body.store.name}`", name, info.type.fields, each)
            if name in info.aggregated:
                raise problem(f"`{name}` is an aggregate, which nobody sets", each, "into table")
            value = fitting(value, info.type.fields[name], name, each)
            sets.append((info.type.index[name], compiled(value)))
        answer: list[Row] = []
        for store, once, rows in self._found(body.store, info, body.where, scope):
            updates: list[tuple[Row, dict[int, Any]]] = []
            for row in rows:
                values = list(row.values)
                for place, value in sets:
                    values[place] = value((Row(row.id, tuple(values)), row), (), once.environment)
                updates.append((row, dict(enumerate(values))))
            self.component.runner.later(lambda store=store, updates=updates: store.change((), updates) and None)
            answer += [Row(row.id, tuple(values[place] for place in range(len(row.values)))) for row, values in updates]
        return info.type, answer if info.kind == "window" else []

    def _delete(self, body: sm.AskDelete) -> Answer:
        info, scope = self._scope_of(body.store)
        answer: list[Row] = []
        for store, _, rows in self._found(body.store, info, body.where, scope):
            self.component.runner.later(lambda store=store, rows=rows: store.change((), (), rows) and None)
            answer += rows
        return info.type, answer if info.kind == "window" else []


def _named(body: sm.Query) -> sm.Query:
    """A join whose stores are called by their own names where it gives them none."""

    def named(stream: Stream) -> Stream:
        source = stream.source
        return replace(stream, alias=source.type) if not stream.alias and isinstance(source, FilterSource) else stream

    joins = tuple(replace(join, stream=named(join.stream)) for join in body.joins)
    return replace(body, streams=tuple(named(stream) for stream in body.streams), joins=joins)


def _identity(kinds: RowType, scope: Scope) -> Any:
    from rollup.engine.rows.selects.projecting import Projection

    return Projection(tuple(scope.field(0, name) for name in kinds.fields), whole=True)


class _Once(SelectInstance):
    """A select that is answered from what stores hold now, and never started."""

    asked = True

    @property
    def _filtered(self) -> bool:
        return self.plan.where is not None

    def held(self, number: int) -> Sequence[Row]:
        """Of a store what a request finds."""
        state = self.inputs[number]
        if not isinstance(state.spec, StoreInput):
            return super().held(number)
        return state.passing(self.store(state.spec.store).asked(self._filtered))

    def answer(self) -> list[Row]:
        """The rows."""
        join = self._join
        rows = join.all(lambda number: self.held(number)) if join is not None else [(row,) for row in self.held(0)]
        passing = self._passing(list(rows))
        changes = self.kind.update(passing, ())
        return self.finished([change.out for change in changes.new])


class _Everywhere(_Once):
    """The same over all partitions of a context at once."""

    def __init__(self, plan: Select, partitions: Sequence[Partition], root: Partition) -> None:
        self._partitions = partitions
        super().__init__("request", plan, partitions[0], (0, 0))

    def held(self, number: int) -> Sequence[Row]:
        """The rows of every partition."""
        state = self.inputs[number]
        assert isinstance(state.spec, StoreInput)
        name = state.spec.store
        return state.passing([row for store in self.component.every(name) for row in store.asked(self._filtered)])


def _by_name(request: sm.Ask, given: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    """Parameters by their names; those without one by their order."""
    if isinstance(given, Mapping):
        return given
    found = list(_parameters(request))
    if len(found) != len(given):
        raise problem(f"{len(found)} parameter(s) and {len(given)} value(s)", request)
    return {_key(each): value for each, value in zip(found, given, strict=True)}


def _parameters(node: Any) -> list[ex.Parameter]:
    return [each for each in descendants(node) if isinstance(each, ex.Parameter)]


def _key(parameter: ex.Parameter) -> str:
    return parameter.name or f"@{parameter.at.line}:{parameter.at.column}"

    def held_for(self, number: int, by_key: ByKey, r: Rows) -> Sequence[Row]:
        """A key is one of a partition."""
        return self.held(number)
