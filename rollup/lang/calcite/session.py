"""A session: a model with its tables, views and standing queries, fed with what arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rollup.core.columns import told_apart
from rollup.core.errors import PlanError, QueryError, RollupError, said_by_duckdb
from rollup.core.nesting import nests
from rollup.engine.flows.beyond import carried
from rollup.engine.flows.flow import AT, Flow, Node, Relational, State, empty
from rollup.engine.flows.keyed import last_of
from rollup.engine.flows.source import Arrivals, Punctuation, Refused, Source
from rollup.lang.calcite import windows
from rollup.lang.calcite.asking import rows_of
from rollup.lang.calcite.catalog import FROM, UNTIL, Catalog
from rollup.lang.calcite.model import Model, Table
from rollup.lang.calcite.planning.lowering import Lowering
from rollup.lang.calcite.reader import parse, streaming
from rollup.lang.calcite.semantics import Kind, kind_of_type, refused
from rollup.lang.calcite.targets import arranged, check_listed, listed, nodes_of, tables_read, target_of
from rollup.lang.calcite.translation import duck
from rollup.lang.fitting import say_rounded, say_undeclared
from rollup.plan.reading import cast, is_rounded, is_text

States = dict[str, State]


@dataclass(frozen=True)
class Standing:
    """A query that does not end: its nodes, the names of its columns, and, of an INSERT, the table it goes into; `names`
    are then columns of that table."""

    root: Node
    names: tuple[str, ...]
    target: Table | None = None
    key: tuple[str, ...] = ()

    @property
    def nodes(self) -> dict[str, Node]:
        """Every node by its path, inputs before what reads them."""
        found: dict[str, Node] = {}

        def visit(node: Node, path: str) -> None:
            for place, inner in enumerate(node.inputs):
                visit(inner, f"{path}.{place}")
            found[path] = node

        visit(self.root, "0")
        return found

    @property
    def streams(self) -> set[str]:
        """The streams that it reads."""
        return {node.stream for node in self.nodes.values() if isinstance(node, Source)}

    def start(self) -> States:
        """The states before the first row."""
        return {path: node.start() for path, node in self.nodes.items()}

    def step(
        self, states: States, arrivals: Mapping[str, Arrivals], engine: Relational
    ) -> tuple[States, pa.Table, list[Refused]]:
        """One batch: what leaves, with the position at which it does in `AT`, and what was refused.

        Raises QueryError for a value that the query cannot compute with.
        """
        try:
            with engine.use():
                return self.ran(states, arrivals, engine)
        except (duckdb.DataError, duckdb.InvalidInputException) as problem:
            said = said_by_duckdb(problem)
            cast = "SAFE_CAST(x AS INTEGER) is null where it does not fit"
            raise QueryError(said, hint=windows.ONE_ROW if windows.MANY_ROWS in said else cast) from None

    def ran(
        self, states: States, arrivals: Mapping[str, Arrivals], engine: Relational
    ) -> tuple[States, pa.Table, list[Refused]]:
        """The step, with what DuckDB says of a value as it says it."""
        flows: dict[str, Flow] = {}
        after: States = {}
        refusals: list[Refused] = []
        for path, node in self.nodes.items():
            if isinstance(node, Source):
                after[path], flows[path], worse = node.admit(states[path], _for(node, arrivals, engine))
                refusals += worse
            else:
                inputs, lost = [flows[f"{path}.{place}"] for place in range(len(node.inputs))], engine.lost
                found, flows[path] = node.step(states[path], inputs, engine)
                after[path] = carried(states[path], found, engine.lost - lost)
        rows = flows["0"].rows
        output = rows.select([c.name for c in self.root.columns[: len(self.names)]] + [AT])
        return after, output, list({refusal.at: refusal for refusal in refusals}.values())


def _for(node: Source, arrivals: Mapping[str, Arrivals], engine: Relational) -> Arrivals:
    """What arrived for a source, under its own columns."""
    found = arrivals.get(node.stream)
    ended = any(a.ended for a in arrivals.values())
    if found is None:
        return Arrivals(empty(node.columns, engine), (), ended)
    names = [*(c.name for c in node.columns), AT]
    return replace(found, rows=found.rows.rename_columns(names), ended=ended)


@dataclass
class Answer:
    """What a text gave when it was prepared: a standing query, or the rows of one over tables."""

    standing: Standing | None = None
    relational: exp.Query | None = None
    names: tuple[str, ...] = ()
    before: tuple[Standing, ...] = ()
    """The standing statements before the last one, which fill tables."""
    meeting: bool = False
    """Whether one of them reads, as a table, what another one fills: a row then sees what the rows before it have left."""


@dataclass
class Session:
    """The tables of a model in this process. `now` is CURRENT_TIMESTAMP when nothing else is said."""

    model: Model
    now: datetime | None = None
    engine: Relational = field(default_factory=Relational)

    def __post_init__(self) -> None:
        self.catalog = Catalog(self.model, self.engine)
        self.unkept: list[str] = []
        """Materialized views of what does not stream: who asks a session again and again has them current."""

    def load(self, name: str, rows: Sequence[Any]) -> None:
        """More rows for a stored table."""
        table = self.model.find(name)
        if table is None or not table.table:
            raise PlanError(f"there is no table {name}")
        _check_own(table, None)
        found, wrong = self._rows(table, rows, range(len(rows)))
        if wrong:
            raise PlanError(f"row {wrong[0].at + 1} of {table.name}: {wrong[0].reason}")
        self.catalog.insert(table, found.drop_columns([AT]))

    def _rows(self, table: Table, rows: Sequence[Any], at: Sequence[int]) -> tuple[pa.Table, list[Refused]]:
        """Rows of a table from plain values, read as DuckDB reads them, at their positions; and those that do not fit."""
        wrong, good = list[Refused](), list[tuple[int, Sequence[Any]]]()
        for position, row in zip(at, rows, strict=True):
            values = _listed(table, row)
            if isinstance(values, str):
                wrong.append(Refused(position, values))
            elif halves := [name for (name, _), value in zip(table.columns, values, strict=True) if _half(value)]:
                wrong.append(Refused(position, f"{halves[0]}: {values!r} has half a character, which is no text"))
            else:
                good.append((position, values))
        width = len(table.columns)
        names = [f"c{i}" for i in range(width)]
        texts = [
            pa.array([None if row[i] is None else str(getattr(row[i], "text", row[i])) for _, row in good], pa.string())
            for i in range(width)
        ]
        raw = pa.table([*texts, pa.array([p for p, _ in good], pa.int64())], names=[*names, AT])
        items = [
            exp.alias_(_read(c, kind), name, quoted=True) for c, (name, kind) in zip(names, table.columns, strict=True)
        ]
        found = self.engine.ask(exp.select(*items, exp.column(AT, quoted=True)).from_("input"), input=raw)
        _say_rounded(table, raw, found)
        worse = self._unread(table, raw, found)
        keep = [position not in worse for position in found.column(AT).to_pylist()] if worse else None
        fits = found if keep is None else found.filter(pa.array(keep))
        return fits, wrong + [Refused(position, reason) for position, reason in worse.items()]

    @staticmethod
    def _unread(table: Table, raw: pa.Table, found: pa.Table) -> dict[int, str]:
        """The positions at which a value was there and could not be read, with why."""
        reasons: dict[int, str] = {}
        for i, (name, kind) in enumerate(table.columns):
            if raw.column(i).null_count == found.column(i).null_count:
                continue
            pairs = zip(raw.column(AT).to_pylist(), raw.column(i).to_pylist(), found.column(i).to_pylist(), strict=True)
            for position, text, value in pairs:
                if text is not None and value is None:
                    reasons.setdefault(position, f"{name}: {text!r} is no {kind}")
        return reasons

    def arrivals(
        self,
        name: str,
        rows: Sequence[Any],
        at: Sequence[int],
        said: Sequence[Punctuation] = (),
        ended: bool = False,
    ) -> Arrivals:
        """What arrives of a stream, at positions of the input."""
        table = self.model.find(name)
        if table is None or not table.stream:
            raise PlanError(f"there is no stream {name}")
        found, wrong = self._rows(table, rows, at)
        return Arrivals(found, tuple(said), ended, tuple(wrong))

    # statements

    @nests
    def prepare(self, text: str) -> Answer:
        """Every statement of a text in turn; the last one's answer. Raises SyntaxProblem and PlanError."""
        answer, before, statements = Answer(), list[Standing](), parse(text)
        for statement in statements:
            if answer.relational is not None or (answer.standing is not None and answer.standing.target is None):
                raise refused(statement, "only the last statement may give rows", "INSERT INTO t SELECT STREAM ..")
            before += [answer.standing] if answer.standing is not None else []
            answer = self.statement(statement)
        filled = {each.target.name.lower() for each in (*before, answer.standing) if each and each.target}
        read = {name for statement in statements for name in tables_read(statement)} - self.catalog.fed
        return replace(answer, before=tuple(before), meeting=bool(filled & read))

    def statement(self, statement: exp.Expr) -> Answer:
        """One statement that was read. Raises PlanError with its place, or that of what is wrong in it."""
        try:
            return self._prepared(statement)
        except RollupError as problem:
            place = refused(statement, "")
            raise problem.at(place.line, place.column) from None

    def _prepared(self, statement: exp.Expr) -> Answer:
        if isinstance(statement, exp.Create):
            return self._create(statement)
        if isinstance(statement, (exp.Update, exp.Delete)):
            return self.change(statement)
        if isinstance(statement, exp.Insert):
            return self._insert(statement)
        return self.query(statement)

    def query(self, query: exp.Expr) -> Answer:
        """A select or a set operation."""
        streams = streaming(query)
        originals = _names(query, self.model)
        bound = self.catalog.bound(query, streams)  # type: ignore[arg-type]
        names = tuple(
            told_apart(
                [
                    originals.get(n.lower(), f"EXPR${i}" if n.startswith("_col_") else n)
                    for i, n in enumerate(bound.named_selects)
                ]
            )
        )
        if not streams:
            tree = self.catalog.relational(bound, {}, self.now)
            try:
                self.engine.types(tree)
                self.engine.check(tree)
            except (duckdb.Error, SqlglotError) as problem:
                raise windows.of_duckdb(problem, query) from None
            return Answer(relational=tree, names=names)
        try:
            standing = Standing(Lowering(self.catalog, self.engine, self.now).query(bound).node, names)
            with self.engine.probing():  # what DuckDB refuses, it refuses of no rows too
                standing.ran(standing.start(), {}, self.engine)
        except (duckdb.Error, SqlglotError) as problem:
            raise windows.of_duckdb(problem, query) from None
        return Answer(standing=standing, names=names)

    @nests
    def ask(self, answer: Answer, now: datetime | None = None) -> pa.Table:
        """The rows of a relational query, as of now. Raises QueryError for a value that cannot be computed."""
        if answer.relational is None:
            raise PlanError("a standing query has no rows yet")
        with self.engine.use():
            return rows_of(answer.relational, self.engine).rename_columns(list(answer.names))

    def _create(self, statement: exp.Create) -> Answer:
        if statement.kind != "VIEW" or not isinstance(statement.expression, exp.Query):
            raise refused(
                statement, f"CREATE {statement.kind} is not part of streaming SQL", "CREATE VIEW name AS SELECT .."
            )
        name, columns = target_of(statement).name, [each.name for each in nodes_of(statement)]
        if statement.find(exp.MaterializedProperty) and streaming(statement.expression):
            return self._kept(statement, name)
        self.catalog.bound(statement.expression)
        if statement.find(exp.MaterializedProperty):
            self.unkept.append(name)
        self.catalog.define(name, statement.expression, columns)
        return Answer()

    def _kept(self, statement: exp.Create, name: str) -> Answer:
        """A materialized view of a stream: a table that a standing query fills, row by row as they become final."""
        if self.model.find(name) is not None or self.catalog.defined(name):
            raise refused(statement, f"{name} is already the name of a table or view", "take another name")
        answer = self.query(statement.expression)
        assert answer.standing is not None
        names = listed(statement, len(answer.names)) or answer.names
        table = self._made(name, replace(answer, names=names))
        return Answer(standing=Standing(answer.standing.root, names, table), names=names)

    def change(self, statement: exp.Expr, at: datetime | None = None) -> Answer:
        """UPDATE or DELETE of a table, at once; of a temporal table as of a time."""
        node = statement.this
        table = self.catalog.table(node)
        if not table.table or table.stream:
            verb = statement.key.upper()
            raise refused(
                node, f"{verb} of a stream is not possible: what has arrived stays", "UPDATE and DELETE change tables"
            )
        _check_own(table, node)
        kinds = {name.lower(): kind_of_type(kind) for name, kind in table.columns}
        tree = duck(statement.copy(), lambda column: kinds.get(column.name.lower(), Kind.OTHER), at or self.now)
        tree.this.replace(exp.to_table(self.catalog.stored(table.name)))
        self.engine.strict(True)
        try:
            self.engine.connection.execute(f"EXPLAIN {tree.sql('duckdb')}")  # what does not fit changes nothing
            if table.temporal:
                self._keep_versions(table, tree, at)
            self.engine.connection.execute(tree.sql("duckdb"))
        except (duckdb.Error, SqlglotError) as problem:
            raise windows.of_duckdb(problem, statement) from None
        finally:
            self.engine.strict(False)
        return Answer()

    def _keep_versions(self, table: Table, tree: exp.Expr, at: datetime | None) -> None:
        """The rows that change stay as versions that held until now; the changed ones hold from now on."""
        present = exp.Is(this=exp.column(UNTIL, quoted=True), expression=exp.Null())
        where = tree.args.get("where")
        condition = exp.and_(where.this.copy(), present) if where else present
        moment = exp.cast(
            exp.Literal.string((at or self.now or datetime.now()).isoformat(sep=" ")), "TIMESTAMP", dialect="duckdb"
        )
        stored = self.catalog.stored(table.name)
        columns = [exp.column(name.lower(), quoted=True) for name, _ in table.columns]
        old = exp.select(*columns, exp.column(FROM, quoted=True), moment).from_(stored).where(condition)
        self.engine.connection.execute(exp.Insert(this=exp.to_table(stored), expression=old).sql("duckdb"))
        tree.set("where", exp.Where(this=condition.copy()))
        if isinstance(tree, exp.Update):
            tree.append("expressions", exp.EQ(this=exp.column(FROM, quoted=True), expression=moment.copy()))

    # standing inserts

    def _insert(self, statement: exp.Insert) -> Answer:
        query, target = statement.expression, target_of(statement)
        upsert = statement.args.get("alternative") is not None
        table = self.model.find(target.name)
        if upsert and (table is None or not table.key):
            raise refused(
                target, f"UPSERT needs a primary key; {target.name.upper()} has none", 'key = ["column"] in the model'
            )
        if upsert and table is not None and table.temporal and table.since is None:
            said = f"nothing says since when a row of {table.name} holds, which is temporal"
            raise refused(target, said, 'monotonic = { since = "increasing" } in the model, of a TIMESTAMP column')
        if not isinstance(query, exp.Query):
            raise refused(statement, "INSERT takes a SELECT STREAM", "INSERT INTO t SELECT STREAM ..")
        answer = self.query(query)
        if answer.standing is None:
            raise refused(statement, "a standing INSERT reads a stream", "INSERT INTO t SELECT STREAM ..")
        names = listed(statement, len(answer.names))
        if table is None:
            table = self._made(target.name, replace(answer, names=names or answer.names))
        elif not table.table:
            raise refused(target, f"{table.name} is a stream", "the target of an INSERT is a table")
        _check_own(table, target)
        named = tuple(name for name, _ in table.columns)
        check_listed(statement, named, table.key if upsert else ())
        if not names and len(named) != len(answer.names):
            said = f"{table.name} has {len(named)} columns, the query gives {len(answer.names)}"
            raise refused(statement, said, f"{table.name} ({', '.join(named)}), or a list of those that are given")
        key = tuple(k.lower() for k in table.key) if upsert else ()
        if not upsert:
            self.catalog.feed(table.name, query, names or named)
        return Answer(standing=Standing(answer.standing.root, names or named, table, key), names=named)

    def _made(self, name: str, answer: Answer) -> Table:
        """The target of an INSERT that the model does not name: a table with the columns of the query."""
        assert answer.standing is not None
        kinds = [c.type for c in answer.standing.root.columns]
        table = Table(name, tuple(zip(answer.names, kinds, strict=False)), stream=False, table=True)
        self.model.add(table)
        self.catalog.store(table)
        return table

    def deliver(self, standing: Standing, output: pa.Table) -> None:
        """What a standing INSERT gave goes into its table; of an UPSERT the last row of a key stays, in a temporal table
        as the version that holds from its time on."""
        if standing.target is None or not output.num_rows:
            return
        rows = arranged(output, standing.names, [name.lower() for name, _ in standing.target.columns])
        stored = exp.to_table(self.catalog.stored(standing.target.name))
        if standing.key:
            since = standing.target.since
            key = standing.key if since is None else (*standing.key, since.lower())
            rows = last_of(rows, key)
            pairs = [
                exp.NullSafeEQ(
                    this=exp.column(k, table="n", quoted=True), expression=exp.column(k, table="o", quoted=True)
                )
                for k in key
            ]
            found = exp.Exists(this=exp.select("1").from_("__n AS n").where(exp.and_(*pairs)))
            gone = exp.Delete(this=exp.alias_(stored.copy(), "o", table=True), where=exp.Where(this=found))
            self.engine.connection.register("__n", rows)
            self.engine.connection.execute(gone.sql("duckdb"))
            self.engine.connection.unregister("__n")
        self.catalog.insert(standing.target, rows)


def _check_own(table: Table, node: exp.Expr | None) -> None:
    """Raises PlanError for a table that is only read."""
    if table.rows is not None:
        raise refused(
            node, f"{table.name} is stored elsewhere: it is read and not changed", "INSERT into a table of its own"
        )


def _listed(table: Table, row: Any) -> Sequence[Any] | str:
    """The values of a row in the order of the columns, from a list or by name; or why it is no row of the table."""
    if isinstance(row, Mapping):
        values = {str(key).lower(): value for key, value in row.items()}
        for key in row:
            if table.column(str(key)) is None:
                say_undeclared(table.name, str(key), tuple(name for name, _ in table.columns))
        return [values.get(name.lower()) for name, _ in table.columns]
    if not isinstance(row, Sequence) or isinstance(row, str):
        return f"{row!r} is no row: a list of values, or an object by the names of columns"
    return row if len(row) == len(table.columns) else f"{len(row)} values, {len(table.columns)} expected"


def _read(column: str, kind: str) -> exp.Expr:
    """A text as a type: no number is rounded to a whole one, and an offset of a time counts; the clock is that of UTC."""
    to = exp.DataType.build(kind, dialect="duckdb")
    plain = f"TRY_CAST({column} AS {kind})"
    if to.is_type(*exp.DataType.INTEGER_TYPES):
        plain = f"TRY_CAST({cast(column, 'long')} AS {kind})"
    elif to.is_type(exp.DType.DOUBLE, exp.DType.FLOAT):
        plain = cast(column, _FLOATING[to.this])
    elif to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ):
        offset = f"REGEXP_MATCHES({column}, ':\\d\\d(\\.\\d+)?\\s*[+-]\\d\\d(:?\\d\\d)?\\s*$')"
        plain = f"CASE WHEN {offset} THEN TIMEZONE('UTC', TRY_CAST({column} AS TIMESTAMPTZ)) ELSE {plain} END"
    return exp.maybe_parse(plain, dialect="duckdb")


_FLOATING = {exp.DType.DOUBLE: "double", exp.DType.FLOAT: "float"}


def _say_rounded(table: Table, raw: pa.Table, found: pa.Table) -> None:
    """Say once of a column that whole numbers are too great for it."""
    for i, (name, _) in enumerate(table.columns):
        kind = found.column(i).type
        if pa.types.is_floating(kind):
            pairs = zip(raw.column(i).to_pylist(), found.column(i).to_pylist(), strict=True)
            if any(is_rounded(text, value) for text, value in pairs if text is not None):
                say_rounded(table.name, name, "double" if kind == pa.float64() else "float")


def _half(value: Any) -> bool:
    return isinstance(value, str) and not is_text(value)


def _names(query: exp.Expr, model: Model) -> dict[str, str]:
    """The names of columns as they were first written, by their lower case: in the model, then in the query."""
    found: dict[str, str] = {}
    for item in query.find_all(exp.Alias, exp.TableAlias):
        for part in [item.args.get("alias"), *(item.args.get("columns") or [])]:
            if isinstance(part, exp.Identifier):
                found.setdefault(part.name.lower(), part.name)
    for table in model.tables:
        for name, _ in table.columns:
            found.setdefault(name.lower(), name)
    return found
