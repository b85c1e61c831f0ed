"""A running query, read into `rollup.lang.streamcruncher.tree`: partitions and alerts by their words, the rest is SQL.

Where a partition stands in `from`, the SQL gets a table of a generated name with the user's alias; where `$row_status`
stands, a comparison of that table's status column. So any select that DuckDB runs may stand around them.
"""

from __future__ import annotations

from sqlglot import exp, parse_one
from sqlglot.errors import ParseError

from rollup.core.errors import SyntaxProblem
from rollup.engine.rows.cycles.relating import AGE, STATUS
from rollup.lang.streamcruncher import tree
from rollup.lang.streamcruncher.cursor import Cursor
from rollup.lang.streamcruncher.read_partition import read_partition

_AFTER_TABLE = (
    "where",
    "group",
    "order",
    "union",
    "minus",
    "except",
    "intersect",
    "on",
    "join",
    "left",
    "right",
    "inner",
)
_CLOSING = ("limit", "having", "when", "correlate", "using")


def read_query(text: str) -> tree.Query:
    """The running query of a text. Raises SyntaxProblem with the place and what may stand there.

    >>> query = read_query("select id from test (partition store last 3) as s where s.$row_status is new;")
    >>> query.chains[0].stream, query.chains[0].parts[0].window.size
    ('test', 3)
    """
    return _Reader(text).query()


class _Reader:
    def __init__(self, text: str) -> None:
        self._cursor = Cursor(text)
        self._chains: list[tree.Chain] = []
        self._alert: tree.Alert | None = None
        self._words: list[str] = []
        self._tables: dict[str, str] = {}
        self._asked: set[str] = set()
        self._first: int | None = None

    def query(self) -> tree.Query:
        """The whole query."""
        while self._cursor.peek() and self._cursor.peek() != ";":
            self._part()
        self._cursor.take(";")
        if self._cursor.peek():
            raise self._cursor.problem("the end of the query")
        if not self._chains:
            raise SyntaxProblem("the query has no partition", line=1, column=1, hint="from stream (partition store …)")
        return tree.Query(tuple(self._chains), self._alert, self._select())

    def _part(self) -> None:
        """One word of the SQL, or one of the parts that are not SQL."""
        cursor = self._cursor
        if cursor.kind() == "NAME" and cursor.peek(1) == "(" and cursor.peek(2) == "partition":
            self._words.append(self._chain())
        elif cursor.peek() == "self" and cursor.peek(1) == "#":
            self._words.append(self._self())
        elif cursor.peek() == "alert" and cursor.peek(2) == ".":
            self._words.append(self._read_alert())
        elif cursor.kind() == "STATUS" or (cursor.peek(1) == "." and cursor.kind(2) == "STATUS"):
            self._words.append(self._status())
        elif cursor.peek() == "first" and self._words and self._words[-1].lower() == "select":
            cursor.next()
            self._first = cursor.number("a number of rows")
        else:
            self._words.append({"minus": "except"}.get(cursor.peek(), cursor.said()))
            cursor.next()

    def _chain(self) -> str:
        made = self._read_chain(f"p{len(self._chains)}")
        self._chains.append(made)
        self._known(made.alias, made.table)
        return f'{made.table} AS "{made.alias}"'

    def _known(self, alias: str, table: str) -> None:
        if alias in self._tables:
            raise self._cursor.refuse(f"two tables are called {alias!r}", "give one of them an alias")
        self._tables[alias] = table

    def _read_chain(self, table: str) -> tree.Chain:
        cursor, place = self._cursor, self._cursor.place
        stream = cursor.name("a stream")
        parts = [read_partition(cursor, False)]
        while (cursor.peek() == "(" and cursor.peek(1) == "partition") or cursor.take("to"):
            parts.append(read_partition(cursor, True))
        alias = self._alias() or stream
        correlate = None
        if cursor.take("correlate"):
            cursor.expect("on")
            correlate = cursor.name("a column")
        return tree.Chain(stream, tuple(parts), alias, table, place, correlate)

    def _alias(self) -> str | None:
        cursor = self._cursor
        if cursor.take("as"):
            return cursor.name("an alias")
        free = cursor.kind() == "NAME" and cursor.peek() not in (*_AFTER_TABLE, *_CLOSING)
        return cursor.name("an alias") if free else None

    def _self(self) -> str:
        cursor = self._cursor
        cursor.expect("self", "#")
        of = cursor.name("the alias of a partition")
        if of not in self._tables:
            known = ", ".join(self._tables) or "none yet"
            raise cursor.refuse(f"self#{of}: no partition is called {of!r}", f"known are {known}")
        alias = self._alias()
        if alias is None:
            raise cursor.problem("an alias")
        self._known(alias, self._tables[of])
        return f'{self._tables[of]} AS "{alias}"'

    def _status(self) -> str:
        cursor, alias = self._cursor, None
        if cursor.kind() != "STATUS":
            alias = cursor.name("an alias")
            cursor.expect(".")
        if cursor.peek() != "$row_status":
            raise cursor.refuse(f"unknown word {cursor.said()}", "did you mean $row_status?")
        if alias is None:
            alias = next(iter(self._tables), "")
        if alias not in self._tables:
            raise cursor.refuse(f"no partition is called {alias!r}", f"known are {', '.join(self._tables)}")
        cursor.next()
        cursor.expect("is")
        test = ">= 0" if cursor.take("not", "dead") else "= 1" if cursor.take("new") else "= -1"
        if test == "= -1":
            cursor.expect("dead")
        self._asked.add(alias)
        return f'"{alias}".{STATUS} {test}'

    def _read_alert(self) -> str:
        cursor, place = self._cursor, self._cursor.place
        cursor.expect("alert")
        columns = [self._alert_column()]
        while cursor.take(","):
            columns.append(self._alert_column())
        cursor.expect("using")
        self._chains.append(self._read_chain(f"p{len(self._chains)}"))
        while cursor.take(","):
            self._chains.append(self._read_chain(f"p{len(self._chains)}"))
        if len(self._chains) < 2:
            raise cursor.refuse("an alert needs at least two partitions after `using`", "using a …, b … when …")
        cursor.expect("when")
        patterns = [self._present()]
        while cursor.take("or"):
            patterns.append(self._present())
        self._alert = tree.Alert(tuple(columns), tuple(patterns), "alerts", place)
        self._known("alert", "alerts")
        self._asked.add("alert")
        return "alerts AS alert"

    def _alert_column(self) -> tuple[str, str, str]:
        cursor = self._cursor
        alias = cursor.name("the alias of a partition")
        cursor.expect(".")
        column = cursor.name("a column")
        cursor.expect("as")
        return alias, column, cursor.name("a name")

    def _present(self) -> tree.Present:
        cursor, place = self._cursor, self._cursor.place
        cursor.expect("present", "(")
        present, absent = list[str](), list[str]()
        while True:
            (absent if cursor.take("not") else present).append(cursor.name("the alias of a partition"))
            if not cursor.take("and"):
                break
        cursor.expect(")")
        if not present or len(present) + len(absent) < 2:
            raise SyntaxProblem(
                "present names at least two partitions, one of them without `not`", line=place[0], column=place[1],
                hint="present(a and b), present(a and not b)",
            )  # fmt: skip
        return tree.Present(tuple(present), tuple(absent), place)

    def _select(self) -> exp.Expr:
        try:
            select = parse_one(" ".join(self._words), dialect="duckdb")
        except ParseError as problem:
            first = problem.errors[0] if problem.errors else {}
            raise SyntaxProblem(
                f"the select is not SQL: {first.get('description')} near {first.get('highlight')!r}"
            ) from None
        if any(each.args.get("recursive") for each in select.find_all(exp.With)):
            raise SyntaxProblem(
                "the select is recursive, so it may have no end", hint="with … as (select …), without recursive"
            )
        for table in select.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier):
                said = f"the select reads {table.this.sql('duckdb')}, which is no partition and no table"
                raise SyntaxProblem(said, hint="partitions of streams, and in scripts tables that they create")
        for scope in list(select.find_all(exp.Select)):
            self._completed(scope)
        if self._first is not None and isinstance(select, exp.Query):
            select = select.limit(self._first)
        return select

    def _completed(self, select: exp.Select) -> None:
        """A partition of which no status is asked shows what is in it; rows without an order come by their age."""
        aliases = [t.alias for t in select.find_all(exp.Table) if t.parent_select is select and t.alias in self._tables]
        outer = any(join.side for join in select.args.get("joins") or [])
        for alias in aliases:
            if alias not in self._asked:
                shown = exp.GTE(this=_column(alias, STATUS), expression=exp.Literal.number(0))
                if outer:  # a condition behind the join would take out the rows that have no partner
                    self._inside(select, alias, shown)
                else:
                    select.where(shown, copy=False)
        for each in select.expressions if aliases else ():
            self._without_status(each, aliases)
        plain = not (select.args.get("group") or select.args.get("distinct") or select.find(exp.AggFunc))
        if plain and aliases and select.parent is None:
            for alias in aliases:
                select.order_by(_column(alias, AGE), copy=False)

    @staticmethod
    def _inside(select: exp.Select, alias: str, shown: exp.Expr) -> None:
        """A table of the select with a condition of its own."""
        table = next(t for t in select.find_all(exp.Table) if t.alias == alias and t.parent_select is select)
        name = exp.to_identifier(alias, quoted=True)
        inner = exp.select("*").from_(exp.alias_(exp.to_table(table.name), name.copy(), table=True)).where(shown)
        table.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=name)))

    def _without_status(self, each: exp.Expr, aliases: list[str]) -> None:
        """`*` of a partition is its columns, not what a cycle knows of its rows."""
        star = each.this if isinstance(each, exp.Column) and each.table in aliases else each
        if isinstance(star, exp.Star):
            hidden = [exp.to_identifier(name) for name in (STATUS, AGE)]
            star.set("except_", [*(star.args.get("except_") or []), *hidden])


def _column(alias: str, name: str) -> exp.Column:
    return exp.column(name, table=exp.to_identifier(alias, quoted=True))
