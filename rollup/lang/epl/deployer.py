"""Modules of EPL at work: each statement declared, lowered and started; taken back whole when one of them is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rollup.core.errors import PlanError, QueryError
from rollup.core.nesting import nests
from rollup.engine.expressions import Field, unchanging
from rollup.engine.rows.actions import Split, SplitBranch
from rollup.engine.rows.component import Component
from rollup.engine.rows.plans import Filter, StreamInput
from rollup.engine.rows.stores.named import UniqueIndex, WindowStore
from rollup.engine.rows.stores.tables import TableStore
from rollup.engine.types import DataType, RowType
from rollup.lang.epl.annotations import check_annotations, priority_of
from rollup.lang.epl.catalog import Catalog, StoreInfo, VariableInfo, keyable, problem, unknown
from rollup.lang.epl.deployment import Deployed, Deployment
from rollup.lang.epl.lookups import Name
from rollup.lang.epl.lowering.actions import lower_merge, lower_on_select, lower_set, lower_split, lower_update_stream
from rollup.lang.epl.lowering.contexts import check_context, lower_context, seen_as
from rollup.lang.epl.lowering.select import lower_query
from rollup.lang.epl.lowering.streams import columns_of
from rollup.lang.epl.lowering.targets import check_fits, inserting
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.expressions import condition, constant, lower
from rollup.lang.epl.lowering.windows import windows
from rollup.lang.epl.naming import Numbered
from rollup.lang.epl.reader import read_module
from rollup.lang.epl.render import render
from rollup.lang.epl.schemas import check_names, schema
from rollup.lang.epl.scope import Registry, Scope, Source
from rollup.lang.epl.tree import contexts as cx
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm


class Deployer:
    """Deploys modules into a component."""

    def __init__(self, component: Component, second: int = 1000) -> None:
        self.component = component
        self.catalog = Catalog()
        self.catalog.second = second
        self.catalog.environment = component.runner.environment
        self._found = set[Name]()
        self._catalog = self.catalog.noting(self._found)
        self.deployments: dict[str, Deployment] = {}
        self._modules, self._statements = Numbered(), Numbered()
        self._kept: Iterator[str] | None = None
        """The names that the statements of a module had when its snapshot was taken."""
        self.types: dict[str, RowType] = {}
        """The rows of each statement."""

    @nests
    def deploy(
        self, text: str, name: str | None = None, parameters: Mapping[str, Any] | None = None, start: bool = True
    ) -> Deployment:
        """Deploy a module. Raises SyntaxProblem or PlanError; nothing of it runs then."""
        module = read_module(text)
        return self._deployed(
            module, Deployment(self._free_name(name, module), text, module.name, parameters or {}), start
        )

    def restored(self, text: str, name: str, parameters: Mapping[str, Any], names: Sequence[str]) -> Deployment:
        """Deploy a module that ran before, without starting it: its statements keep the names that they had."""
        self._kept = iter(names)
        try:
            return self.deploy(text, name, parameters, start=False)
        finally:
            self._kept = None

    def _deployed(self, module: sm.Module, made: Deployment, start: bool) -> Deployment:
        uses = module.uses if self._kept is None else ()  # one that ran before stays, whatever has gone since
        running = {each.module for each in self.deployments.values()} if uses else ()
        missing = [used for used in uses if used not in running]
        if missing:
            raise PlanError(f"module {missing[0]} is not deployed", hint="deploy it first")
        self._found.clear()
        try:
            for number, statement in enumerate(module.statements):
                self._statement(statement, self._statement_name(made, module, statement, number), made, start)
        except BaseException:
            for undo in reversed(made.undo):
                undo()
            self._statements.clear()
            raise
        made.needs = set(self._found)
        self.deployments[made.name] = made
        return made

    def undeploy(self, name: str) -> None:
        """Stop a module. Raises QueryError while another needs what it declares."""
        if name not in self.deployments:
            raise QueryError(
                f"no module `{name}` is deployed", hint=f"deployed: {', '.join(self.deployments) or 'none'}"
            )
        found = self.deployments[name]
        given = found.given(self.catalog.implied)
        for other in self.deployments.values():
            shared = given & other.needs
            if other is not found and shared:
                what = min(shared)
                raise QueryError(
                    f"`{name}` declares the {what.kind} `{what.name}`, which `{other.name}` needs",
                    hint="undeploy that first",
                )
        for undo in reversed(found.undo):
            undo()
        del self.deployments[name]
        self._modules.clear()
        self._statements.clear()

    def _free_name(self, name: str | None, module: sm.Module) -> str:
        if name is not None and name in self.deployments:
            raise PlanError(f"a module `{name}` is deployed already", hint="undeploy it first")
        wanted = name or module.name or next((s.name for s in module.statements if s.name), None) or "module"
        return self._modules.free(wanted, self.deployments)

    def _statement_name(self, made: Deployment, module: sm.Module, statement: sm.Statement, number: int) -> str:
        wanted = statement.name or (made.name if len(module.statements) == 1 else f"{made.name}-{number + 1}")
        return self._free_statement(wanted, made)

    def _free_statement(self, wanted: str, made: Deployment) -> str:
        """The wanted name or one with a number; of a module that goes on from a snapshot, the one that it had."""
        kept = next(self._kept, None) if self._kept is not None else None
        found = kept or self._statements.free(wanted, self.types, self.component.statements)
        made.names.append(found)
        return found

    # statements

    def _scope(self, statement: sm.Statement, made: Deployment) -> Scope:
        context = None
        if statement.context is not None:
            context = self._catalog.context(statement.context, statement)
            check_context(statement, self.component.contexts[statement.context].context, self._catalog)
        declared = {each.name: each for each in statement.declarations}
        return Scope(self._catalog, (), Registry(), context, {}, declared=declared, parameters=made.parameters)

    def _statement(self, statement: sm.Statement, name: str, made: Deployment, start: bool) -> None:
        check_annotations(statement.annotations, self._catalog.indexes)
        scope = replace(self._scope(statement, made), slots=None)
        body = statement.body
        self.types[name] = RowType(name, {})  # the name is taken, also by what it declares
        made.undo.append(lambda: self.types.pop(name, None) and None)
        try:
            kinds = self._declared(body, name, statement, scope, made, start)
            if kinds is _NOT_DECLARED:
                kinds = self._started(body, name, statement, scope, made, start)
        finally:
            self._implied(made)
        if kinds is not None:
            self.types[name] = kinds
        made.statements.append(Deployed(name, kinds))

    def _started(
        self, body: Any, name: str, statement: sm.Statement, scope: Scope, made: Deployment, start: bool
    ) -> RowType:
        plan: Any
        insert: sm.InsertInto | None = None
        match body:
            case sm.Query():
                plan, insert = lower_query(body, scope), body.insert
            case sm.OnSelect():
                plan, insert = lower_on_select(body, scope), body.query.insert
            case sm.OnMerge() | sm.OnUpdate() | sm.OnDelete():
                plan = lower_merge(body, scope)
            case sm.OnSet():
                plan = lower_set(body, scope)
            case sm.Split():
                plan = lower_split(body, scope)
            case sm.UpdateStream():
                plan = replace(lower_update_stream(body, scope), priority=priority_of(statement.annotations))
            case _:
                raise problem(f"`{type(body).__name__}` is not supported yet", statement)
        if insert is not None and not insert.table:
            plan = self._inserting(plan, insert, scope)
        plan = self._catalog.with_literals(plan)
        self.component.deploy(name, plan, statement.context, start)
        made.undo.append(lambda: self.component.undeploy(name))
        return plan.type

    def _inserting(self, plan: Any, insert: sm.InsertInto, scope: Scope) -> Any:
        select, known = inserting(getattr(plan, "select", plan), insert, scope)
        self._catalog.imply(insert.target, known)
        return replace(plan, select=select) if hasattr(plan, "select") else select

    def _implied(self, made: Deployment) -> None:
        """The streams that a statement has made go with its module, be it refused."""
        for name in self._catalog.fresh:
            made.implies.add(name)
            self._found.add(Name("stream", name))
            made.undo.append(partial(self._forget_type, name))
        self._catalog.fresh.clear()

    def _forget_type(self, name: str) -> None:
        if name in self._catalog.implied:  # a schema may have declared it since
            self._catalog.types.pop(name, None)
            self._catalog.implied.discard(name)

    def _forget_schema(self, name: str, before: RowType | None) -> None:
        """A schema is gone; where an insert that still runs had made the type `before`, that one is back."""
        del self._catalog.types[name], self._catalog.ancestors[name]
        if before is not None and any(name in each.implies for each in self.deployments.values()):
            self._catalog.types[name] = before
            self._catalog.implied.add(name)

    # declarations

    def _declared(
        self, body: Any, name: str, statement: sm.Statement, scope: Scope, made: Deployment, start: bool
    ) -> RowType | None:
        match body:
            case sm.CreateSchema():
                return self._schema(body, made, start)
            case sm.CreateWindow():
                return self._window(body, name, statement, scope, made, start)
            case sm.CreateTable():
                return self._table(body, name, statement, scope, made, start)
            case sm.CreateIndex():
                return self._index(body, scope, made)
            case sm.CreateVariable():
                return self._variable(body, name, scope, made, start)
            case cx.CreateContext():
                return self._context(body, made)
            case sm.CreateExpression():
                return self._expression(body, made)
            case _:
                return _NOT_DECLARED

    def _schema(self, body: sm.CreateSchema, made: Deployment, start: bool) -> None:
        self._catalog.free(body.name, body)
        kinds, parents = schema(body, self._catalog)
        before = self._catalog.types.get(body.name)  # one that an insert has made
        if before is not None and list(before.fields.items()) != list(kinds.fields.items()):
            columns = ", ".join(f"{name} {kind}" for name, kind in before.fields.items())
            what = f"`{body.name}` is the stream of an insert already, with other columns"
            raise problem(what, body, f"create schema {body.name}({columns}), or declare it before the insert")
        self._catalog.types[body.name] = kinds
        self._catalog.inherit(body.name, parents)
        self._catalog.implied.discard(body.name)
        made.gives("stream", body.name, lambda: self._forget_schema(body.name, before))
        for parent in parents:
            self._heard_as(kinds, parent, made, start)
        return None

    def _heard_as(self, kinds: RowType, parent: str, made: Deployment, start: bool) -> None:
        """Every event of a schema is one of the schema that it inherits, too: with the columns of that one."""
        columns = tuple(Field(0, kinds.index[name], kind) for name, kind in self._catalog.types[parent].fields.items())
        trigger, branch = StreamInput(Filter(kinds.name)), SplitBranch(parent, columns, None)
        plan = Split(trigger, kinds, (branch,), every=False, same=True)
        hidden = self._free_statement(f"{kinds.name} is {parent}", made)
        self.component.deploy(hidden, plan, None, start)
        made.undo.append(lambda: self.component.undeploy(hidden))

    def _window(
        self, body: sm.CreateWindow, name: str, statement: sm.Statement, scope: Scope, made: Deployment, start: bool
    ) -> RowType:
        self._catalog.free(body.name, body)
        if not body.views:
            raise problem(f"named window `{body.name}` needs a window", body, "create window W#keepall as …")
        kinds = self._window_type(body, scope)
        inside = replace(scope, sources=(Source(body.type or body.name, kinds),))
        window, held = windows(body.views, body.retain, inside)
        if held is not kinds or window is None:
            raise problem("a named window holds events, not values derived from them", body.views[-1])
        filled, where = None, None
        if body.insert:
            if body.type is None or body.type not in self._catalog.stores:
                raise problem(
                    "`insert` copies the rows of a named window", body, "create window W2#keepall as W insert"
                )
            filled = body.type
            where = condition(body.where, inside) if body.where is not None else None
        self._catalog.stores[body.name] = StoreInfo("window", kinds, statement.context)
        made.gives("stream", body.name, lambda: self._catalog.stores.pop(body.name))
        seen = seen_as(self.component.context(statement.context), body.type, kinds, self._catalog)
        spec = self._catalog.with_literals(WindowStore(kinds, window, filled, where, seen))
        self.component.create_store(body.name, name, spec, statement.context, start)
        made.undo.append(lambda: self.component.undeploy(name))
        return kinds

    def _window_type(self, body: sm.CreateWindow, scope: Scope) -> RowType:
        check_names(body.columns)
        if body.columns:
            return RowType(body.name, {c.name: self._catalog.data_type(c.type) for c in body.columns})
        assert body.type is not None
        model = self._catalog.row_type(body.type, body)
        if not body.items:
            return RowType(body.name, model.fields)
        for item in body.items:
            if not isinstance(item.value, (ex.Star, ex.StreamStar, ex.Reference, ex.Member, ex.Constant)):
                what = f"`{render(item.value)}` is neither a property nor a constant"
                raise problem(what, item, "it says the type of a column; insert into the window computes")
        inside = replace(scope, sources=(Source(body.type, model),))
        columns, names = columns_of(body.items, inside)
        return RowType(body.name, {n: c.type for n, c in zip(names, columns, strict=True)})

    def _table(
        self, body: sm.CreateTable, name: str, statement: sm.Statement, scope: Scope, made: Deployment, start: bool
    ) -> RowType:
        self._catalog.free(body.name, body)
        columns: dict[str, DataType] = {}
        aggregated: dict[str, object] = {}
        check_names(body.columns)
        for column in body.columns:
            if column.aggregation is None:
                assert column.type is not None
                columns[column.name] = self._catalog.data_type(column.type)
            else:
                columns[column.name], aggregated[column.name] = self._aggregated(column, scope)
        kinds = RowType(body.name, columns)
        keys = tuple(column.name for column in body.columns if column.key)
        for column in body.columns:
            if column.key:
                keyable(columns[column.name], column, column.name)
        declared = {each.name: each.aggregation for each in body.columns if each.aggregation is not None}
        self._catalog.stores[body.name] = StoreInfo("table", kinds, statement.context, keys, aggregated, declared)
        made.gives("stream", body.name, lambda: self._catalog.stores.pop(body.name))
        counts = [
            c.name for c in body.columns if c.aggregation and c.aggregation.name.lower() in ("count", "countever")
        ]
        starts = tuple((kinds.index[name], 0) for name in counts)
        spec = TableStore(kinds, tuple(kinds.index[key] for key in keys), tuple(aggregated), starts)
        self.component.create_store(body.name, name, spec, statement.context, start)
        made.undo.append(lambda: self.component.undeploy(name))
        return kinds

    def _aggregated(self, column: sm.TableColumn, scope: Scope) -> tuple[DataType, object]:
        """The type of an aggregated column; its arguments are types, or, with `@type`, properties of that stream."""
        call = column.aggregation
        assert call is not None
        of = next((each.value for each in column.annotations if each.word == "type"), None)
        if isinstance(of, str):
            source = Source(None, self._catalog.row_type(of, column), windowed=True)
        else:
            names = [each.name for each in call.arguments if isinstance(each, ex.Reference)]
            kinds = {name: self._catalog.data_type(sm.TypeName(name, at=call.at)) for name in names}
            source = Source(None, RowType("types", kinds))
        found, _ = collect([call], replace(scope, sources=(source,)), 0, ())
        if not found:
            raise problem(f"`{render(call)}` is no aggregate", column, "count(*), sum(int)")
        return found[0].call.type, found[0].call

    def _index(self, body: sm.CreateIndex, scope: Scope, made: Deployment) -> None:
        info = self._catalog.store(body.store, body)
        if body.name in self._catalog.indexes:
            raise problem(f"index `{body.name}` is declared already", body)
        places: list[int] = []
        for column in body.columns:
            if not isinstance(column.value, ex.Reference) or column.value.name not in info.type.fields:
                raise unknown(f"column of `{body.store}`", render(column.value), info.type.fields, column)
            keyable(info.type.fields[column.value.name], column, column.value.name)
            places.append(info.type.index[column.value.name])
        if body.unique:
            self.component.create_index(body.store, UniqueIndex(body.name, tuple(places)))
            made.undo.append(lambda: self.component.drop_index(body.store, body.name))
        self._catalog.indexes[body.name] = body.store
        made.gives("index", body.name, lambda: self._catalog.indexes.pop(body.name))
        return None

    def _variable(self, body: sm.CreateVariable, name: str, scope: Scope, made: Deployment, start: bool) -> RowType:
        if body.name in self._catalog.variables:
            raise problem(f"variable `{body.name}` is declared already", body)
        kind = self._catalog.data_type(body.type)
        value = constant(body.value, scope, "the first value", kind) if body.value is not None else None
        if body.value is not None:
            check_fits(lower(body.value, scope).type, kind, body.name, body)
        context = scope.context.name if scope.context is not None else None
        literal = body.constant and context is None and _is_literal(body.value, value, scope)
        self._catalog.variables[body.name] = VariableInfo(kind, body.constant, context, value, literal)
        made.gives("variable", body.name, lambda: self._catalog.variables.pop(body.name))
        self.component.create_variable(body.name, name, value, context, start)
        made.undo.append(lambda: self.component.drop_variable(body.name))
        return RowType(body.name, {body.name: kind})

    def _context(self, body: cx.CreateContext, made: Deployment) -> None:
        context, info = lower_context(body, self._catalog)
        context = self._catalog.with_literals(context)
        self._catalog.contexts[body.name] = info
        made.gives("context", body.name, lambda: self._catalog.contexts.pop(body.name))
        self.component.create_context(context)
        made.undo.append(lambda: self.component.drop_context(body.name))
        return None

    def _expression(self, body: sm.CreateExpression, made: Deployment) -> None:
        found = body.declaration
        if found.name in self._catalog.expressions:
            raise problem(f"expression `{found.name}` is declared already", body)
        self._catalog.expressions[found.name] = found
        made.gives("expression", found.name, lambda: self._catalog.expressions.pop(found.name))
        return None


def _is_literal(node: ex.Expression | None, value: Any, scope: Scope) -> bool:
    """Whether a constant is as good as a literal: it is worked out again where its module goes on from a snapshot."""
    return node is not None and isinstance(value, (int, float, str)) and unchanging(lower(node, scope))


_NOT_DECLARED: Any = object()
