"""Statements, requests and modules: one method a rule of the grammar."""

from __future__ import annotations

from typing import Any

from lark import Token, v_args
from lark.tree import Meta

from rollup.core.errors import SyntaxProblem
from rollup.lang.epl.reading.clause import Clause, clauses, others
from rollup.lang.epl.reading.expressions import Parts, has, nodes, place, problem_at, token
from rollup.lang.epl.reading.queries import ReadQueries
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.node import Position
from rollup.lang.epl.tree.streams import Annotation, Contained, FilterSource, Stream, View


class ReadStatements(ReadQueries):
    """The grammar's parts "on …", "create …", "fire and forget", and the module."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    # module, statement, request

    def module(self, meta: Meta, parts: Parts) -> sm.Module:
        name = next((part for part in parts if isinstance(part, str) and not isinstance(part, Token)), None)
        uses = tuple(part.value for part in parts if isinstance(part, Clause) and part.name == "uses")
        return sm.Module(tuple(part for part in parts if isinstance(part, sm.Statement)), name, uses, at=place(meta))

    def uses(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("uses", parts[0])

    def import_(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("import", str(parts[0]))

    def statement(self, meta: Meta, parts: Parts) -> sm.Statement:
        annotations = tuple(part for part in parts if isinstance(part, Annotation))
        declarations = tuple(part for part in parts if isinstance(part, sm.Declaration))
        text = self._text[meta.start_pos : meta.end_pos]
        context = clauses(parts).get("context")
        return sm.Statement(parts[-1], annotations, context, declarations, text, at=place(meta))

    def context_choice(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("context", parts[0])

    def declaration(self, meta: Meta, parts: Parts) -> sm.Declaration:
        return sm.Declaration(parts[1], parts[-1], at=place(meta))

    def declared(self, meta: Meta, parts: Parts) -> ex.Expression:
        return parts[0]

    def alias_declaration(self, meta: Meta, parts: Parts) -> sm.Declaration:
        return sm.Declaration(parts[1], nodes(parts)[-1], alias=True, at=place(meta))

    def ask(self, meta: Meta, parts: Parts) -> sm.Ask:
        declarations = tuple(part for part in parts if isinstance(part, sm.Declaration))
        return sm.Ask(others(parts)[-1], clauses(parts).get("context"), declarations, at=place(meta))

    def ask_query(self, meta: Meta, parts: Parts) -> sm.Query:
        return parts[0]

    def ask_insert(self, meta: Meta, parts: Parts) -> sm.Query:
        found = clauses(parts)
        return sm.Query(found["items"], insert=found.get("insert"), distinct=has(parts, "DISTINCT"), at=place(meta))

    def ask_values(self, meta: Meta, parts: Parts) -> sm.AskInsert:
        target, columns, *rows = parts
        for row in rows:
            if columns is not None and len(row) != len(columns):
                raise problem_at(f"a row of {len(row)} values for {len(columns)} columns", meta, "as many as columns")
        insert = sm.InsertInto(target, columns or (), at=place(meta))
        return sm.AskInsert(insert, tuple(rows), at=place(meta))

    def row(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ...]:
        return tuple(parts)

    def ask_update(self, meta: Meta, parts: Parts) -> sm.AskUpdate:
        found = clauses(parts)
        return sm.AskUpdate(others(parts)[0], found["assignments"], found.get("where"), at=place(meta))

    def ask_delete(self, meta: Meta, parts: Parts) -> sm.AskDelete:
        return sm.AskDelete(others(parts)[0], clauses(parts).get("where"), at=place(meta))

    # on …

    def on_statement(self, meta: Meta, parts: Parts) -> sm.Body:
        trigger, (kind, value) = parts[0], parts[1]
        return kind(trigger, *value, at=place(meta))

    def stream_name(self, meta: Meta, parts: Parts) -> sm.Store:
        return sm.Store(parts[0], clauses(parts).get("alias"), at=place(meta))

    def from_store(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("store", parts[0])

    def from_routed(self, meta: Meta, parts: Parts) -> Clause:
        if isinstance(parts[0], sm.Store):
            return Clause("store", parts[0])
        contained = tuple(part for part in parts if isinstance(part, Contained))
        return Clause("contained", (contained, clauses(parts).get("alias")))

    def on_select(self, meta: Meta, parts: Parts) -> Clause:
        return _on_select(clauses(parts), has(parts, "DISTINCT"), has(parts, "AND_DELETE"), meta)

    def routed(self, meta: Meta, parts: Parts) -> tuple[dict[str, Any], bool, bool, Position]:
        return clauses(parts), has(parts, "DISTINCT"), has(parts, "AND_DELETE"), place(meta)

    def split_output(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("all", has(parts, "ALL"))

    def on_insert(self, meta: Meta, parts: Parts) -> Clause:
        routed = [part for part in parts if not isinstance(part, Clause)]
        found, distinct, delete, _ = routed[0]
        if "store" in found and len(routed) == 1:
            return _on_select(found, distinct, delete, meta)
        for _, _, deletes, at in routed:
            if deletes:
                hint = "on S insert into T select and delete … from W"
                raise SyntaxProblem("a split stream deletes nothing", line=at.line, column=at.column, hint=hint)
        if len(routed) == 1 and "all" in clauses(parts):
            message = "one insert has nothing to choose from"
            raise SyntaxProblem(message, line=meta.line, column=meta.column, hint="leave `output` out")
        branches = tuple(_branch(clause, at) for clause, _, _, at in routed)
        return Clause(sm.Split, (branches, clauses(parts).get("all", False)))  # pyright: ignore[reportArgumentType]

    def on_delete(self, meta: Meta, parts: Parts) -> Clause:
        return _on(sm.OnDelete, others(parts)[0], clauses(parts).get("where"))

    def on_update(self, meta: Meta, parts: Parts) -> Clause:
        found = clauses(parts)
        return _on(sm.OnUpdate, others(parts)[0], found["assignments"], found.get("where"))

    def on_merge(self, meta: Meta, parts: Parts) -> Clause:
        store, *cases = others(parts)
        always = isinstance(cases[0], sm.MergeInsert)
        if always:
            cases = [sm.MergeCase(False, None, (cases[0],), at=cases[0].at)]
        return _on(sm.OnMerge, store, tuple(cases), clauses(parts).get("where"), always)

    def when_matched(self, meta: Meta, parts: Parts) -> sm.MergeCase:
        return sm.MergeCase(True, clauses(parts).get("and"), tuple(others(parts)), at=place(meta))

    def when_not_matched(self, meta: Meta, parts: Parts) -> sm.MergeCase:
        actions = tuple(others(parts))
        if not all(isinstance(action, sm.MergeInsert) for action in actions):
            raise problem_at("`when not matched` has no row to update or delete", meta, "then insert")
        return sm.MergeCase(False, clauses(parts).get("and"), actions, at=place(meta))

    def merge_insert(self, meta: Meta, parts: Parts) -> sm.MergeInsert:
        target, columns = parts[0], parts[1]
        found = clauses(parts)
        return sm.MergeInsert(found["items"], target, columns or (), found.get("where"), at=place(meta))

    def merge_update(self, meta: Meta, parts: Parts) -> sm.MergeUpdate:
        found = clauses(parts)
        return sm.MergeUpdate(found["assignments"], found.get("where"), at=place(meta))

    def merge_delete(self, meta: Meta, parts: Parts) -> sm.MergeDelete:
        return sm.MergeDelete(clauses(parts).get("where"), at=place(meta))

    def on_set(self, meta: Meta, parts: Parts) -> Clause:
        return _on(sm.OnSet, clauses(parts)["assignments"])

    def assignments(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("assignments", tuple(parts))

    def assignment(self, meta: Meta, parts: Parts) -> sm.Assignment:
        return sm.Assignment(parts[0], parts[1], at=place(meta))

    def assignment_call(self, meta: Meta, parts: Parts) -> sm.Assignment:
        if not isinstance(parts[0], ex.Call):
            raise problem_at("an assignment needs its value", meta, "column = value, or column.reset()")
        return sm.Assignment(parts[0], at=place(meta))

    def update_stream(self, meta: Meta, parts: Parts) -> sm.UpdateStream:
        if token(parts, "SELECTOR") != "istream":
            raise problem_at("only the insert stream can be updated", meta, "update istream")
        found = clauses(parts)
        name = others(parts)[0]
        return sm.UpdateStream(name, found.get("alias"), found["assignments"], found.get("where"), at=place(meta))

    # create …

    def column(self, meta: Meta, parts: Parts) -> sm.Column:
        return sm.Column(parts[0], parts[1], at=place(meta))

    def type_name(self, meta: Meta, parts: Parts) -> sm.TypeName:
        dimensions = sum(isinstance(part, Token) for part in parts)
        return sm.TypeName(parts[0], dimensions, at=place(meta))

    def create_schema(self, meta: Meta, parts: Parts) -> sm.CreateSchema:
        kind, name, *rest = parts
        columns = tuple(part for part in rest if isinstance(part, sm.Column))
        options = tuple(part for part in rest if isinstance(part, tuple))
        return sm.CreateSchema(name, columns, kind, options=options, at=place(meta))

    def create_variant_schema(self, meta: Meta, parts: Parts) -> sm.CreateSchema:
        kind, name, types, *options = parts
        if (kind or "").lower() != "variant":
            hint = "create schema name (column type, …), or create variant schema name as type, …"
            raise problem_at(f"`{name}` has no columns: a schema of a class is not supported", meta, hint)
        return sm.CreateSchema(name, (), "variant", types, tuple(options), at=place(meta))

    def schema_types(self, meta: Meta, parts: Parts) -> tuple[str, ...]:
        return tuple(parts) or ("*",)

    def schema_option(self, meta: Meta, parts: Parts) -> tuple[str, tuple[str, ...]]:
        return str(parts[0]).lower(), parts[1]

    def create_window(self, meta: Meta, parts: Parts) -> sm.CreateWindow:
        found = clauses(parts)
        retain = token(parts, "RETAIN")
        items, model = found.get("model", ((), None))
        return sm.CreateWindow(
            parts[0],
            tuple(part for part in parts if isinstance(part, View)),
            None if retain is None else "union" if retain.endswith("union") else "intersection",
            model,
            items,
            found.get("columns", ()),
            "insert" in found,
            found.get("insert"),
            at=place(meta),
        )

    def window_select(self, meta: Meta, parts: Parts) -> Any:
        return Clause("model", (clauses(parts)["items"], parts[1]))

    def window_columns(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("columns", tuple(parts))

    def window_type(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("model", ((), parts[0]))

    def window_insert(self, meta: Meta, parts: Parts) -> Clause:
        return Clause("insert", clauses(parts).get("where"))

    def create_table(self, meta: Meta, parts: Parts) -> sm.CreateTable:
        return sm.CreateTable(parts[0], tuple(parts[1:]), at=place(meta))

    def stored_column(self, meta: Meta, parts: Parts) -> sm.TableColumn:
        annotations = tuple(part for part in parts if isinstance(part, Annotation))
        return sm.TableColumn(
            parts[0], parts[1], key=has(parts, "PRIMARY_KEY"), annotations=annotations, at=place(meta)
        )

    def aggregated_column(self, meta: Meta, parts: Parts) -> sm.TableColumn:
        annotations = tuple(part for part in parts if isinstance(part, Annotation))
        if has(parts, "PRIMARY_KEY"):
            raise problem_at(f"`{parts[0]}` is an aggregation and cannot be a key", meta, "name type primary key")
        return sm.TableColumn(parts[0], aggregation=parts[1], annotations=annotations, at=place(meta))

    def create_index(self, meta: Meta, parts: Parts) -> sm.CreateIndex:
        name, store, *columns = (part for part in parts if part is not None and not isinstance(part, Token))
        return sm.CreateIndex(name, store, tuple(columns), has(parts, "UNIQUE"), at=place(meta))

    def index_column(self, meta: Meta, parts: Parts) -> sm.IndexColumn:
        kind = (parts[1] or "hash").lower()
        if kind not in ("hash", "btree"):
            raise problem_at(f"unknown kind of index `{kind}`", meta, "hash, btree")
        return sm.IndexColumn(parts[0], kind, at=place(meta))

    def create_variable(self, meta: Meta, parts: Parts) -> sm.CreateVariable:
        kind, name, value = parts[-3:]
        return sm.CreateVariable(kind, name, value, has(parts, "CONSTANT"), at=place(meta))

    def create_expression(self, meta: Meta, parts: Parts) -> sm.CreateExpression:
        return sm.CreateExpression(parts[0], at=place(meta))


def _on_select(found: dict[str, Any], distinct: bool, delete: bool, meta: Meta) -> Clause:
    if "store" not in found:
        raise problem_at("on … select needs the window or table it reads", meta, "on … select … from Window")
    kept = {n: found[n] for n in ("insert", "where", "group_by", "having", "order_by", "limit") if n in found}
    store: sm.Store = found["store"]
    source = FilterSource(store.name, at=store.at)
    stream = Stream(source, alias=store.alias, at=store.at)
    query = sm.Query(found["items"], (stream,), distinct=distinct, at=place(meta), **kept)
    return _on(sm.OnSelect, query, store, delete)


def _branch(found: dict[str, Any], at: Position) -> sm.Branch:
    extra = sorted(set(found) & {"store", "group_by", "having", "order_by", "limit"})
    if extra:
        words = ", ".join("from" if name == "store" else name.replace("_", " ") for name in extra)
        raise SyntaxProblem(
            f"a branch of a split stream has no {words}", line=at.line, column=at.column, hint="select … where …"
        )
    contained, alias = found.get("contained", ((), None))
    return sm.Branch(found["insert"], found["items"], found.get("where"), contained, alias, at=at)


def _on(kind: type[Any], *values: Any) -> Clause:
    return Clause(kind, values)  # pyright: ignore[reportArgumentType]  # unpacked by on_statement at once


v_args(meta=True)(ReadStatements)  # in place: as a decorator it would hide the type of the class
