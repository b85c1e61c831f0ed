"""SQL in which aggregations stand wherever a table may: `SELECT … FROM TradeAgg WITHIN '…' PER 'days' JOIN …`.

Each source becomes a sub-query over the files and open rows of one commit; everything else is DuckDB's own. All sources
of one aggregation in a statement read the same commit.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from weakref import ref

import duckdb
import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.tokenizer_core import Token, TokenType

from rollup.ask_mistakes import about, missing_table
from rollup.core.columns import ColumnEngine, Database, told_apart
from rollup.core.errors import QueryError, RollupError, SyntaxProblem
from rollup.core.periods import may_say
from rollup.lang.sql.place import offset_in, open_quote
from rollup.lang.sql.source import position
from rollup.lang.sql.within import Within, columns_used, rewrite
from rollup.plan.aggregation import TIMESTAMP, Aggregation, column
from rollup.plan.app import Item, Selection
from rollup.retrieval.answer import EXTRA
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import ask_for, bounds, zone_for
from rollup.retrieval.tables import TableReader, Tables
from rollup.stores.base import Snapshot
from rollup.stores.delta.missing import reading

Parameters = Mapping[str, Any] | Sequence[Any] | None
_NAMED = re.compile(
    r'(?:column|named|Referenced \w+) "?([^"\s]+)"? (?:not found|does not exist)|Table with name (\S+) does not'
)
_KEPT = 256


@dataclass(frozen=True)
class _Rewritten:
    """SQL for DuckDB, true of one commit of each aggregation, the parameters it still has, and tables it reads."""

    sql: str
    serials: Mapping[str, int]
    values: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    database: ref[Database]
    """Where the rows that it names are."""


Moment = dict[tuple[str, AsOf | None], Snapshot]
"""The commit of each aggregation that a statement reads."""
LETTERS = "DEAD_LETTERS"
"""The table of the records that could not be used."""


class SqlAsker:
    """Answers statements over the aggregations that `snapshot` opens, and over the `tables` beside them.

    `streams` are names that hold no rows; `letters` reads the dead letters. Functions of times such as `date_trunc` cut
    in `zone`, or in UTC where that is an offset. With `by_rows` the snapshots compute the rows of all sources, so the
    engine of the statement need not read files. May be used by several threads at once.
    """

    def __init__(
        self,
        engine: ColumnEngine,
        aggregations: Mapping[str, Aggregation],
        snapshot: Callable[..., Snapshot],
        tables: Tables | None = None,
        streams: Collection[str] = (),
        letters: Callable[[], pa.Table] | None = None,
        zone: str = "UTC",
        by_rows: bool = False,
    ) -> None:
        self._engine = engine
        self._by_rows = by_rows
        self._zone = "UTC" if zone[:1] in "+-" else zone  # DuckDB knows no bare offsets
        self._letters = letters
        self._aggregations = aggregations
        self._snapshot = snapshot
        self._tables = tables or Tables([])
        self._shown = {name.casefold(): name for name in self._tables}
        self._streams = streams
        self._known: dict[tuple[str, str], _Rewritten] = {}
        engine.set("SET threads = 1")  # several add doubles, and give groups, in an order of chance

    def query(self, sql: str, parameters: Parameters = None, as_of: AsOf | None = None) -> pa.Table:
        """The answer to one SELECT; `parameters` fill `?` and `$1` (a list) or `$name` (a mapping). `as_of` is the commit
        of all sources that say none.

        Raises a RollupError, with the position of what is wrong, before any data is read.
        """
        text, values = _numbered(sql, parameters)
        with self._engine.use():
            return self._asked(sql, text, values, as_of)

    def _asked(self, sql: str, text: str, values: Mapping[str, Any], as_of: AsOf | None) -> pa.Table:
        found = self._rewritten(text, values, as_of)
        self._check(sql, found.sql)
        numbers = dict[TableReader, int]()
        while True:
            try:
                return self._answered(found)
            except duckdb.Error as problem:
                missing = (missing_table(str(problem)) or "").casefold()
                if missing == LETTERS.casefold() and self._letters is not None and LETTERS not in found.tables:
                    found = replace(found, tables={**found.tables, LETTERS: self._letters()})
                    continue
                name = self._shown.get(missing)
                if name is None or name in found.tables:
                    raise self._refused(sql, self._placed(found, problem)) from None
                reader = self._tables.reader(name)
                if reader not in numbers:
                    numbers[reader] = reader.newest()
                found = replace(found, tables={**found.tables, name: reader.rows(name, numbers[reader])})

    def _answered(self, found: _Rewritten) -> pa.Table:
        with reading(lambda: self._files(found)), self._engine.tables(found.tables), self._in_zone():
            answer = _in_utc(self._engine.run(found.sql, found.values or None))
            return answer.rename_columns(told_apart(answer.column_names))

    @contextmanager
    def _in_zone(self) -> Generator[None]:
        """Times of this thread's connection are those of the zone, for the length of a `with`."""
        self._engine.connection.execute("SET TimeZone = ?", [self._zone])
        try:
            yield
        finally:
            self._engine.connection.execute("SET TimeZone = 'UTC'")

    def _files(self, found: _Rewritten) -> list[str]:
        """The files of the commits that a statement was made of."""
        newest = (self._snapshot(name).in_files for name in found.serials)
        return [file for one in newest if one is not None for file in one.all_files()]

    def _placed(self, found: _Rewritten, problem: duckdb.Error) -> duckdb.Error:
        """The same refusal as DuckDB says it with its place, if it refuses the statement and not a value."""
        with self._engine.tables(found.tables):
            try:
                self._engine.connection.execute(f"EXPLAIN {found.sql}", dict(found.values) or None)
            except duckdb.Error as again:
                if str(again).partition("\n")[0] == str(problem).partition("\n")[0]:
                    return again
        return problem

    def _rewritten(self, text: str, values: Mapping[str, Any], as_of: AsOf | None) -> _Rewritten:
        key = (text, repr((sorted(values.items()), as_of)))
        known = self._known.get(key)
        if known is not None and not known.tables and self._holds(known):
            return known
        moment: Moment = {}
        tables: dict[str, pa.Table] = {}

        def source(found: Within) -> exp.Expr:
            return self._source(found, values, moment, tables, as_of)

        try:
            sql = rewrite(text, self._aggregations, source, "duckdb", "duckdb")
        finally:
            for snapshot in moment.values():
                snapshot.close()
        if as_of is not None and not moment:
            raise QueryError("the statement asks no aggregation, so it has no earlier commit", hint="A WITHIN … PER …")
        left = {name: values[name] for name in _parameters(sql) if name in values}
        if len(self._known) > _KEPT:
            self._known.clear()
        filed = {name: one.in_files for (name, earlier), one in moment.items() if earlier is None}
        serials = {name: one.serial for name, one in filed.items() if one is not None}
        made = _Rewritten(sql, serials, left, tables, ref(self._engine.database))
        if len(serials) == len(moment) and not may_say(text):
            self._known[key] = made
        return made

    def _holds(self, known: _Rewritten) -> bool:
        """Whether the commits it was made of are still the newest, and the rows that it names are there."""
        if known.database() is not self._engine.database:
            return False
        newest = {name: self._snapshot(name).in_files for name in known.serials}
        return all(one is not None and one.serial == known.serials[name] for name, one in newest.items())

    def _source(
        self,
        within: Within,
        values: Mapping[str, Any],
        moment: Moment,
        tables: dict[str, pa.Table],
        as_of: AsOf | None,
    ) -> exp.Expr:
        aggregation = self._aggregations[within.aggregation]
        nodes = [node for node in (within.args["start"], within.args.get("end")) if node is not None]
        per = _constant(within.args["per"], values)
        start, end = bounds([_constant(node, values) for node in nodes], zone_for(aggregation, per))
        ask = ask_for(aggregation, start, end, per, _selection(aggregation, within), within.fill)
        earlier = AsOf.said(within.as_of, zone_for(aggregation, per)) if within.as_of else as_of
        place = aggregation.name, earlier
        if place not in moment:
            moment[place] = self._snapshot(aggregation.name) if earlier is None else self._snapshot(*place)
        snapshot = moment[place]
        filed = None if self._by_rows else snapshot.in_files
        if filed is not None:
            return exp.Subquery(this=exp.Var(this=filed.inlined(ask, tables)))
        name = f"rollup_within_{len(tables)}"
        tables[name] = snapshot.answer(ask)
        return exp.to_table(name)

    def _check(self, sql: str, made: str) -> None:
        try:
            statements = self._engine.connection.extract_statements(made)
        except duckdb.Error as problem:
            raise self._refused(sql, problem) from None
        kinds = [statement.type for statement in statements]
        if kinds not in ([duckdb.StatementType.SELECT], [duckdb.StatementType.EXPLAIN]):
            raise QueryError("a question is one SELECT", hint="WITH …, EXPLAIN SELECT … and VALUES are fine, too").at(
                1, 1
            )

    def _refused(self, sql: str, problem: duckdb.Error) -> RollupError:
        """DuckDB's refusal, with its place in the text that was asked; the text it saw is another one."""
        said = str(problem)
        mine = about(sql, said, self._aggregations, list(self._shown.values()), self._streams)
        message, hint = mine or (said.splitlines()[0], _candidate(said))
        error, at = QueryError(message, hint=hint), _place(sql, said)
        if at is None and isinstance(
            problem, (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException)
        ):
            at = 0  # the statement as a whole
        return error if at is None else error.at(*position(sql, at))


def _in_utc(answer: pa.Table) -> pa.Table:
    """The same instants, of a type that does not depend on who asks."""
    types = [
        pa.timestamp(each.unit, "UTC") if pa.types.is_timestamp(each) and each.tz else each
        for each in answer.schema.types
    ]
    return answer.cast(pa.schema([field.with_type(each) for field, each in zip(answer.schema, types, strict=True)]))


def _selection(aggregation: Aggregation, within: Within) -> Selection:
    """The columns the statement may read of a source; those that only answer by name when it names them."""
    root = within.root()
    used = columns_used(root, within)
    folded = None if used is None else {name.casefold() for name in used}
    named = {found.name.casefold() for found in root.find_all(exp.Column)}
    names = [TIMESTAMP, *(o.name for o in aggregation.outputs if folded is None or o.name.casefold() in folded)]
    names += [name for name in EXTRA if name.casefold() in named]
    return Selection(tuple(Item(name, column(name)) for name in names))


def _constant(node: exp.Expr, values: Mapping[str, Any]) -> object:
    """The value of a bound: a constant or a parameter."""
    bare = node.unnest()
    if isinstance(bare, exp.Literal):
        text = str(bare.this)
        return text if bare.is_string else int(text) if text.isdigit() else float(text)
    if isinstance(bare, exp.Neg):
        value = _constant(bare.this, values)
        return -value if isinstance(value, (int, float)) else value
    if isinstance(bare, (exp.Parameter, exp.Placeholder)):
        return _given(bare, values)
    raise QueryError(
        "the bounds of WITHIN and its PER are constants or parameters",
        hint="'2018-01-** **:**:**', 1514764800000, $1, $start",
    )


def _given(node: exp.Expr, values: Mapping[str, Any]) -> object:
    name = node.this.name if isinstance(node.this, exp.Expr) else str(node.this)
    if name not in values:
        raise QueryError(
            f"parameter {_shown(name)} has no value", hint=f"given are {', '.join(map(_shown, values)) or 'none'}"
        )
    value = values[name]
    return int(value.timestamp() * 1000) if isinstance(value, datetime) and value.tzinfo is not None else value


def _shown(name: str) -> str:
    return f"${name[1:]}" if re.fullmatch(r"p\d+", name) else f"${name}"


# Parameters: `?` and `$1` are named, so that some of them may vanish with the bounds they stand in.


def _tokens(sql: str) -> list[Token]:
    try:
        return DuckDB().tokenize(sql)
    except Exception as problem:  # an open quote or comment; whatever the tokenizer raises means the same
        line, col = position(sql, open_quote(sql) or 0)
        raise SyntaxProblem(
            "the query has an open quote or comment", line=line, column=col, hint="it begins here and is never closed"
        ) from problem


def _numbered(sql: str, parameters: Parameters) -> tuple[str, Mapping[str, Any]]:
    if parameters is None or isinstance(parameters, Mapping):
        values: dict[str, Any] = dict(parameters or {})
    else:
        values = {f"p{index + 1}": value for index, value in enumerate(parameters)}
    tokens, places, count = _tokens(sql), list[tuple[int, int, str]](), 0
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?":
            count += 1
            places.append((token.start, token.end + 1, f"$p{count}"))
        elif (
            token.token_type == TokenType.PARAMETER
            and after is not None
            and after.text.isdigit()
            and after.start == token.end + 1
        ):
            places.append((token.start, after.end + 1, f"$p{after.text}"))
    for start, end, name in reversed(places):
        sql = sql[:start] + name + sql[end:]
    return sql, values


def _parameters(sql: str) -> set[str]:
    tokens = _tokens(sql)
    return {after.text for token, after in itertools.pairwise(tokens) if token.token_type == TokenType.PARAMETER}


def _candidate(said: str) -> str | None:
    """What DuckDB proposes instead, if it does."""
    lines = (line.strip() for line in said.splitlines())
    return next((one for one in lines if one.startswith(("Candidate", "Did you mean")) and "open of" not in one), None)


def _place(sql: str, message: str) -> int | None:
    """Where in the text DuckDB's complaint is about; for what it says without a place, the name it complains about."""
    named = _NAMED.search(message)
    if named is not None:
        name = next(group for group in named.groups() if group).strip('"!').rsplit(".", 1)[-1]
        at = re.search(rf"\b{re.escape(name)}\b", sql, re.IGNORECASE)
        if at is not None:
            return at.start()
    return offset_in(sql, message)
