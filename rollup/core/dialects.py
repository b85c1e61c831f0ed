"""One SQL tree, three printers: the few nodes sqlglot does not know, and how DuckDB, PostgreSQL and Spark say them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.expressions.core import Expression
from sqlglot.generator import Generator


class LastBy(Expression, exp.AggFunc):
    """The value, null included, of the row with the greatest (time, arrival); `first=True`: with the smallest."""

    arg_types = {"this": True, "time": True, "arrival": True, "first": False}


class InOrder(Expression, exp.AggFunc):
    """A sum of doubles, or another function of them that depends on their order (`name`), in the order of the values.

    So it is the same bit for bit, whatever order rows are read in. A sum is compensated as Neumaier does it: a second double
    has what rounding leaves out. With `over` it is over all rows of a partition, and plain.
    """

    arg_types = {"this": True, "name": False, "over": False}


class Compensated(Expression, exp.AggFunc):
    """A sum of doubles in whatever order they come, in DuckDB with a second double for what rounding leaves out.

    So 0.1 ten times is 1.0: what we write is summed there. Elsewhere it is a plain sum, of a bucket's one row.
    """

    arg_types = {"this": True}


class Values(Expression, exp.AggFunc):
    """The distinct values of a column that are not null, as a sorted list; null when there is none."""

    arg_types = {"this": True}


class Union(Expression, exp.AggFunc):
    """The distinct elements of a column of lists, as a sorted list; null when there is none."""

    arg_types = {"this": True}


class Counts(Expression, exp.AggFunc):
    """Counts of values, put together; null when there are none."""

    arg_types = {"this": True}


class Size(Expression, exp.Func):
    """The number of elements of a list, 0 for null."""

    arg_types = {"this": True}


class Widened(Expression, exp.Func):
    """A whole number in a type that holds every sum, difference and product of two longs, and sums of any number of them."""

    arg_types = {"this": True}


class Checked(Expression, exp.Func):
    """A whole number of a wider type as one of the type `to`, null where it does not fit.

    Arithmetic is guarded by types alone: what is inside cannot fail, so an optimizer may move it where it likes. DuckDB
    lifts what two expressions share out of a TRY.
    """

    arg_types = {"this": True, "to": True}


class Quotient(Expression, exp.Func):
    """A division of two numbers of the whole type `to`, fraction cut off; null by zero and where it does not fit."""

    arg_types = {"this": True, "expression": True, "to": True}


class Mean(Expression, exp.Func):
    """A sum of decimals by their count, to the digits of the decimal `to`, half of the last one away from zero; null of none."""

    arg_types = {"this": True, "expression": True, "to": True}


class Milliseconds(Expression, exp.Func):
    """An instant as milliseconds since 1970, cut."""

    arg_types = {"this": True}


class Instant(Expression, exp.Func):
    """Milliseconds since 1970 as an instant."""

    arg_types = {"this": True}


class Remainder(Expression, exp.Func):
    """What a division of two doubles leaves; null by zero. PostgreSQL has no such operation."""

    arg_types = {"this": True, "expression": True}


class Rewritten(Expression, exp.Func):
    """A time that is written by the pattern `source`, written by `target`; null of a text that is no such time.

    Only DuckDB reads the patterns.
    """

    arg_types = {"this": True, "target": True, "source": True}


def _duckdb_rewritten(self: Generator, node: Rewritten) -> str:
    return f"STRFTIME({parsed_time(self.sql(node, 'this'), node.args['source'].name)}, {self.sql(node, 'target')})"


def parsed_time(text: str, pattern: str) -> str:
    """DuckDB's SQL for the time of a text by a pattern in its letters, in UTC where that has an offset; null of another text.

    >>> parsed_time("x", "%d.%m.%Y")
    "TRY_STRPTIME(x, '%d.%m.%Y')"
    """
    written = "'" + pattern.replace("'", "''") + "'"
    if "%z" not in pattern:
        return f"TRY_STRPTIME({text}, {written})"
    zoned = f"REGEXP_REPLACE({text}, '(Z|UTC|GMT)$', '+00:00')"
    return f"TIMEZONE('UTC', TRY_STRPTIME({zoned}, {written}))"


MOST_CHARACTERS = 1 << 24
"""No text that is made gets longer: one event must not fill the memory."""
TOO_LONG = f"a text of more than {MOST_CHARACTERS:,} characters"


class Replaced(Expression, exp.Func):
    """The text `this` with `new` in place of each `old`; null where it would be longer than `MOST_CHARACTERS`.

    DuckDB alone computes what events bring. What is asked inside another server is bounded there.
    """

    arg_types = {"this": True, "old": True, "new": True}


class Joined(Expression, exp.Func):
    """Values one after the other as a text, nulls left out; null where it would be longer than `MOST_CHARACTERS`."""

    arg_types = {"expressions": True}
    is_var_len_args = True


def _duckdb_replaced(self: Generator, node: Replaced) -> str:
    """In a lambda, so that no argument is written twice: calls within calls would double each time."""
    parts = ", ".join(f"'{name}': {self.sql(node, name)}" for name in node.arg_types)
    grown = "(LENGTH(p.this) - LENGTH(REPLACE(p.this, p.old, ''))) // GREATEST(LENGTH(p.old), 1)"
    size = f"LENGTH(p.this) + {grown} * (LENGTH(p.new) - LENGTH(p.old))"
    surely = f"LENGTH(p.this) * (1 + LENGTH(p.new)) <= {MOST_CHARACTERS}"
    made = f"CASE WHEN {surely} OR {size} <= {MOST_CHARACTERS} THEN REPLACE(p.this, p.old, p.new) END"
    return f"LIST_TRANSFORM([{{{parts}}}], LAMBDA p: {made})[1]"


def _duckdb_joined(self: Generator, node: Joined) -> str:
    whole = self.func("CONCAT", *node.expressions)
    return f"LIST_TRANSFORM([{whole}], LAMBDA p: CASE WHEN LENGTH(p) <= {MOST_CHARACTERS} THEN p END)[1]"


_UNBOUNDED: dict[Any, Any] = {
    Replaced: lambda self, e: self.func("REPLACE", e.this, e.args["old"], e.args["new"]),
    Joined: lambda self, e: self.func("CONCAT", *e.expressions),
}
"""How other servers write them."""


def too_long(tree: exp.Expr) -> list[exp.Expr]:
    """Under which conditions a text of a tree is too long: a call that is null though it has all that it needs.

    >>> [to_sql(each, "postgres") for each in too_long(Replaced(this=exp.column("a"), old=exp.column("b"), new=exp.column("c")))]
    ['REPLACE(a, b, c) IS NULL AND NOT a IS NULL AND NOT b IS NULL AND NOT c IS NULL']
    """
    return [
        exp.and_(
            node.copy().is_(exp.null()),
            *(each.copy().is_(exp.null()).not_() for each in node.iter_expressions() if isinstance(node, Replaced)),
        )
        for node in tree.find_all(Replaced, Joined)
    ]


class PeriodJoin(exp.Join):
    """Rows with the periods that they lie in, `this`; `start` and `end` are the two comparisons.

    Each lies in one period, which have no gaps between them, or with `sliding` in any number of them.
    """

    arg_types = {"this": True, "start": True, "end": True, "sliding": False}


def _period_join(self: Generator, node: PeriodJoin) -> str:
    return f" JOIN {self.sql(node, 'this')} ON {self.sql(node, 'start')} AND {self.sql(node, 'end')}"


def _duckdb_period_join(self: Generator, node: PeriodJoin) -> str:
    """The nearest start is found by order, a tenth of the time that two comparisons take."""
    if node.args.get("sliding"):
        return _period_join(self, node)
    return f" ASOF JOIN {self.sql(node, 'this')} ON {self.sql(node, 'start')}"


def widened(value: exp.Expr, to: exp.DataType) -> exp.Expr:
    """A number of the whole type `to` in a type in which one operation of two of them cannot fail."""
    return exp.cast(value, exp.DType.BIGINT) if to.this is exp.DType.INT else Widened(this=value)


def not_zero(divisor: exp.Expr) -> exp.Expr:
    """A division by zero is null in every dialect, so that one event with a zero cannot stop a stream."""
    return exp.func("NULLIF", divisor, exp.Literal.number(0))


def _duckdb_last(self: Generator, node: LastBy) -> str:
    name = "ARG_MIN_NULL" if node.args.get("first") else "ARG_MAX_NULL"
    order = exp.Tuple(expressions=[node.args["time"], node.args["arrival"]])
    return self.func(name, node.this, order)


def _order_name(node: InOrder) -> str:
    return str(node.args.get("name") or "SUM")


def _duckdb_in_order(self: Generator, node: InOrder) -> str:
    value, name = self.sql(node, "this"), _order_name(node)
    if node.args.get("over") is None:
        return f"LIST_AGGREGATE(LIST_SORT(LIST({value})), '{'fsum' if name == 'SUM' else name.lower()}')"
    return f"{name}({value} ORDER BY {value}) OVER ({_partition(self, node)})"


def _postgres_in_order(self: Generator, node: InOrder) -> str:
    """A sum of one needs no rounding, and a function that is not called costs nothing: most buckets have one part."""
    if node.args.get("over") is not None:
        return _framed(self, node)
    value, name = self.sql(node, "this"), _order_name(node)
    if name != "SUM":
        return f"{name}({value} ORDER BY {value})"
    return f"CASE WHEN COUNT({value}) < 2 THEN MAX({value}) ELSE ROLLUP_SUM(ARRAY_AGG({value} ORDER BY {value})) END"


def _spark_in_order(self: Generator, node: InOrder) -> str:
    if node.args.get("over") is not None:
        return _framed(self, node)
    return f"AGGREGATE(SORT_ARRAY(COLLECT_LIST({self.sql(node, 'this')})), {_SPARK_FOLDS[_order_name(node)]})"


_SPARK_FOLDS = {
    "SUM": (
        "NAMED_STRUCT('s', CAST(NULL AS DOUBLE), 'e', 0D), (t, x) -> NAMED_STRUCT('s', COALESCE(t.s + x, x), 'e', "
        "COALESCE(t.e + ((t.s - (t.s + x - (t.s + x - t.s))) + (x - (t.s + x - t.s))), 0D)), "
        "t -> IF(ISNAN(t.e), t.s, t.s + t.e)"
    ),
    "STDDEV_POP": (
        "NAMED_STRUCT('n', 0D, 'm', 0D, 's', 0D), (t, x) -> NAMED_STRUCT('n', t.n + 1D, 'm', t.m + (x - t.m) / "
        "(t.n + 1D), 's', t.s + (x - t.m) * (x - (t.m + (x - t.m) / (t.n + 1D)))), t -> SQRT(t.s / NULLIF(t.n, 0D))"
    ),
}
"""How a sorted array is folded, by function."""


def _partition(self: Generator, node: InOrder) -> str:
    names = ", ".join(self.sql(each) for each in node.args["over"])
    return f"PARTITION BY {names}" if names else ""


def _framed(self: Generator, node: InOrder) -> str:
    """A frame of a whole partition that says its order: the way of engines that order no arguments of a window."""
    value, frame = self.sql(node, "this"), "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
    return f"{_order_name(node)}({value}) OVER ({_partition(self, node)} ORDER BY {value} {frame})".replace("( ", "(")


def unordered(tree: exp.Select) -> exp.Select:
    """The same sums in whatever order rows come: for parts whose order is not asked for."""

    def plain(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, InOrder):
            return node
        over = node.args.get("over")
        return (
            Compensated(this=node.this) if over is None else exp.Window(this=exp.Sum(this=node.this), partition_by=over)
        )

    found = tree.transform(plain)
    assert isinstance(found, exp.Select)
    return found


def _postgres_last(self: Generator, node: LastBy) -> str:
    way = "ASC" if node.args.get("first") else "DESC"
    time, arrival, value = (self.sql(node, key) for key in ("time", "arrival", "this"))
    return f"(ARRAY_AGG({value} ORDER BY {time} {way}, {arrival} {way}))[1]"


def _spark_last(self: Generator, node: LastBy) -> str:
    name = "MIN_BY" if node.args.get("first") else "MAX_BY"
    return self.func(name, node.this, exp.func("STRUCT", node.args["time"], node.args["arrival"]))


def _wide_quotient(self: Generator, node: Quotient) -> str:
    to = node.args["to"]
    divided = exp.IntDiv(this=widened(node.this.copy(), to), expression=not_zero(widened(node.expression.copy(), to)))
    return self.sql(Checked(this=divided, to=to.copy()))


def _spark_quotient(self: Generator, node: Quotient) -> str:
    """The least long by -1 is the only quotient that does not fit, and Spark has no division that is wider than longs."""
    if node.args["to"].this is exp.DType.INT:
        return _wide_quotient(self, node)
    whole, divisor = self.sql(exp.paren(node.this)), self.sql(exp.paren(node.expression))
    return f"CASE WHEN {divisor} = -1 THEN TRY_SUBTRACT(0L, {whole}) ELSE {whole} DIV NULLIF({divisor}, 0) END"


def _postgres_checked(self: Generator, node: Checked) -> str:
    """No cast gives null here: what lies beyond a bound is moved onto the number next to it, which becomes null."""
    bits = 31 if node.args["to"].this is exp.DType.INT else 63
    low, high = exp.Literal.number(-(2**bits) - 1), exp.Literal.number(2**bits)
    near = exp.func("GREATEST", exp.func("LEAST", node.this.copy(), high), low)
    within = exp.func("NULLIF", exp.func("NULLIF", near, high.copy()), low.copy())
    return self.sql(exp.cast(within, node.args["to"].copy()))


def _try_cast(self: Generator, node: Checked) -> str:
    return f"TRY_CAST({self.sql(node, 'this')} AS {self.sql(node, 'to')})"


def _scale(node: Mean) -> int:
    return int(node.args["to"].expressions[1].name)


def _duckdb_mean(self: Generator, node: Mean) -> str:
    """A long division of the digits, since DuckDB divides decimals as doubles."""
    total, count = self.sql(node, "this"), f"NULLIF({self.sql(node, 'expression')}, 0)"
    scale, to = _scale(node), self.sql(node, "to")
    digits = f"CAST(REPLACE(CAST(ABS(CAST({total} AS DECIMAL(38, {scale}))) AS VARCHAR), '.', '') AS HUGEINT)"
    rounded = f"{digits} // {count} + CAST({digits} % {count} * 2 >= {count} AS HUGEINT)"
    placed = f"REGEXP_REPLACE(REPEAT('0', {scale + 1}) || CAST({rounded} AS VARCHAR), '([0-9]{{{scale}}})$', '.\\1')"
    return f"CAST(CASE WHEN {total} < 0 THEN '-' ELSE '' END || {placed} AS {to})"


def _postgres_mean(self: Generator, node: Mean) -> str:
    """With so many more digits that rounding twice is rounding once."""
    total, scale = f"CAST({self.sql(node, 'this')} AS DECIMAL(120, {_scale(node) + 25}))", _scale(node)
    return f"CAST(ROUND({total} / NULLIF({self.sql(node, 'expression')}, 0), {scale}) AS {self.sql(node, 'to')})"


def _spark_mean(self: Generator, node: Mean) -> str:
    return f"CAST({self.sql(node, 'this')} / NULLIF({self.sql(node, 'expression')}, 0) AS {self.sql(node, 'to')})"


def _remainder(self: Generator, node: Remainder) -> str:
    return self.sql(exp.Mod(this=exp.paren(node.this), expression=not_zero(node.expression.copy())))


def _duckdb_initcap(self: Generator, node: exp.Initcap) -> str:
    """The first letter of each word large and its others small, where a word is of A to Z and digits: the others stay."""
    parts = f"REGEXP_EXTRACT_ALL({self.sql(node, 'this')}, '[A-Za-z0-9]+|[^A-Za-z0-9]+')"
    word = "CASE WHEN REGEXP_MATCHES(part, '^[A-Za-z0-9]') THEN UPPER(part[1]) || LOWER(part[2:]) ELSE part END"
    return f"ARRAY_TO_STRING(LIST_TRANSFORM({parts}, LAMBDA part : {word}), '')"


_NAME = 63


def kept_name(name: str) -> str:
    """A name as PostgreSQL has it, which cuts off what is beyond 63 bytes: a digest stands for the end of a longer one.

    >>> kept_name("AGG_SUM_" + "x" * 60)
    'AGG_SUM_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx_e87a039186c42a5e'
    """
    content = name.encode()
    if len(content) <= _NAME:
        return name
    return f"{content[: _NAME - 17].decode(errors='ignore')}_{sha256(content).hexdigest()[:16]}"


# A printer is made when it is first used: a question asked of Delta tables needs only DuckDB's.


def _duckdb() -> type[Dialect]:
    """DuckDB, which runs every step and the default retrieval."""
    from sqlglot.dialects.duckdb import DuckDB

    class RollupDuckDB(DuckDB):
        class Generator(DuckDB.Generator):
            TRANSFORMS: dict[Any, Any] = {
                **DuckDB.Generator.TRANSFORMS,
                LastBy: _duckdb_last,
                InOrder: _duckdb_in_order,
                Values: lambda self, e: (
                    f"LIST_SORT(LIST(DISTINCT {self.sql(e, 'this')}) FILTER (WHERE {self.sql(e, 'this')} IS NOT NULL))"
                ),
                Union: lambda self, e: (
                    f"LIST_SORT(LIST_DISTINCT(FLATTEN(LIST({self.sql(e, 'this')}) FILTER (WHERE {self.sql(e, 'this')} IS NOT NULL))))"
                ),
                Counts: lambda self, e: f"ROLLUP_COUNTS_MERGE(LIST({self.sql(e, 'this')}))",
                Compensated: lambda self, e: self.func("FSUM", e.this),
                Size: lambda self, e: f"COALESCE(LEN({self.sql(e, 'this')}), 0)",
                Widened: lambda self, e: f"CAST({self.sql(e, 'this')} AS HUGEINT)",
                Checked: _try_cast,
                Quotient: _wide_quotient,
                Mean: _duckdb_mean,
                Milliseconds: lambda self, e: f"EPOCH_MS(DATE_TRUNC('millisecond', {self.sql(e, 'this')}))",
                Instant: lambda self, e: f"MAKE_TIMESTAMPTZ(1000 * {self.sql(e, 'this')})",
                Remainder: _remainder,
                PeriodJoin: _duckdb_period_join,
                Rewritten: _duckdb_rewritten,
                Replaced: _duckdb_replaced,
                Joined: _duckdb_joined,
                exp.Initcap: _duckdb_initcap,
            }

    return RollupDuckDB


def _postgres() -> type[Dialect]:
    """PostgreSQL; `ddl/postgres/functions.sql` creates the functions that put sums, sets and counts together."""
    from sqlglot.dialects.postgres import Postgres

    class RollupPostgres(Postgres):
        class Generator(Postgres.Generator):
            def identifier_sql(self, expression: exp.Identifier) -> str:
                name = kept_name(expression.name)
                return super().identifier_sql(
                    expression if name == expression.name else exp.to_identifier(name, quoted=True)
                )

            TRANSFORMS: dict[Any, Any] = {
                **Postgres.Generator.TRANSFORMS,
                **_UNBOUNDED,
                LastBy: _postgres_last,
                InOrder: _postgres_in_order,
                Union: lambda self, e: f"ROLLUP_UNION({self.sql(e, 'this')})",
                Counts: lambda self, e: f"ROLLUP_COUNTS({self.sql(e, 'this')})",
                Compensated: lambda self, e: self.func("SUM", e.this),
                Size: lambda self, e: f"COALESCE(CARDINALITY({self.sql(e, 'this')}), 0)",
                Widened: lambda self, e: f"CAST({self.sql(e, 'this')} AS DECIMAL)",
                Checked: _postgres_checked,
                Quotient: _wide_quotient,
                Mean: _postgres_mean,
                Milliseconds: lambda self, e: (
                    f"CAST(FLOOR(EXTRACT(EPOCH FROM {self.sql(e, 'this')}) * 1000) AS BIGINT)"
                ),
                Instant: lambda self, e: f"TO_TIMESTAMP({self.sql(e, 'this')} / 1000.0)",
                Remainder: _remainder,
                PeriodJoin: _period_join,
            }

    return RollupPostgres


def _spark() -> type[Dialect]:
    """Spark SQL, for large ranges and for joins with other DataFrames."""
    from sqlglot.dialects.spark import Spark

    class RollupSpark(Spark):
        class Generator(Spark.Generator):
            TRANSFORMS: dict[Any, Any] = {
                **Spark.Generator.TRANSFORMS,
                **_UNBOUNDED,
                LastBy: _spark_last,
                InOrder: _spark_in_order,
                Union: lambda self, e: f"SORT_ARRAY(ARRAY_DISTINCT(FLATTEN(COLLECT_LIST({self.sql(e, 'this')}))))",
                Compensated: lambda self, e: self.func("SUM", e.this),
                Size: lambda self, e: f"COALESCE(SIZE({self.sql(e, 'this')}), 0)",
                Widened: lambda self, e: f"CAST({self.sql(e, 'this')} AS DECIMAL(38, 0))",
                Checked: _try_cast,
                Quotient: _spark_quotient,
                Mean: _spark_mean,
                Milliseconds: lambda self, e: f"UNIX_MILLIS({self.sql(e, 'this')})",
                Instant: lambda self, e: f"TIMESTAMP_MILLIS({self.sql(e, 'this')})",
                Remainder: _remainder,
                PeriodJoin: _period_join,
            }

    return RollupSpark


_DIALECTS: Mapping[str, Callable[[], type[Dialect]]] = {"duckdb": _duckdb, "postgres": _postgres, "spark": _spark}


@cache
def dialect(name: str) -> type[Dialect]:
    """The printer of a name: `duckdb`, `postgres` or `spark`."""
    return _DIALECTS[name]()


def to_sql(tree: exp.Expr, name: str = "duckdb") -> str:
    """The text of a tree in one of the three dialects.

    >>> to_sql(LastBy(this=exp.column("x"), time=exp.column("t"), arrival=exp.column("a")), "spark")
    'MAX_BY(x, STRUCT(t, a))'
    """
    return tree.sql(dialect=dialect(name), normalize_functions=False)


_SKETCH = ("rollup_hll_", "rollup_kll_", "rollup_topk_", "rollup_counts_")
"""How the functions begin that only our DuckDB has."""
_MODE = "rollup_counts_mode"
"""The one that a PostgreSQL store has too."""


def computable(tree: exp.Expr, dialect: str) -> bool:
    """Whether the server of a dialect has all that a tree needs.

    >>> computable(exp.Anonymous(this="rollup_hll_estimate"), "postgres"), computable(exp.column("rollup_hll_"), "spark")
    (False, True)
    >>> [computable(Counts(this=exp.column("c")), each) for each in ("postgres", "spark")]
    [True, False]
    """
    if dialect == "duckdb":
        return True
    there, named = {_MODE} if dialect == "postgres" else set[str](), tree.find_all(exp.Anonymous)
    if tree.find(Rewritten) or any(name.startswith(_SKETCH) for name in {node.name.lower() for node in named} - there):
        return False
    return tree.find(Remainder if dialect == "postgres" else Counts) is None


def substituted(tree: exp.Expr, values: Mapping[str, str | int]) -> exp.Expr:
    """A copy of a tree with constants in its places."""
    return tree.transform(
        lambda node: exp.convert(values[node.name]) if isinstance(node, exp.Placeholder) else node, copy=True
    )


_EDGE = "\0"


@dataclass(frozen=True)
class Text:
    """The text of a tree, cut at its places: pieces of SQL and, between each two of them, what stands there.

    A piece that is printed is never read again, so nothing in it can be taken for a place.
    """

    pieces: tuple[str, ...]
    places: tuple[str | exp.Literal, ...]
    dialect: str

    @classmethod
    def of(cls, tree: exp.Expr, dialect: str) -> Text:
        """A tree is cut where its places are; a constant that holds the edge itself is one of them."""
        places = list[str | exp.Literal]()

        def edged(node: exp.Expr) -> exp.Expr:
            odd = isinstance(node, exp.Literal) and _EDGE in node.name
            if not odd and not isinstance(node, exp.Placeholder):
                return node
            places.append(node if isinstance(node, exp.Literal) else node.name)
            return exp.Var(this=f"{_EDGE}{len(places) - 1}{_EDGE}")

        parts = to_sql(tree.transform(edged, copy=True), dialect).split(_EDGE)
        return cls(tuple(parts[::2]), tuple(places[int(index)] for index in parts[1::2]), dialect)

    def filled(self, values: Mapping[str, str | int]) -> str:
        """The whole text with values in its places.

        >>> Text.of(exp.column("x").eq(exp.Placeholder(this="start")), "postgres").filled({"start": "it's"})
        "x = 'it''s'"
        """
        nodes = [place if isinstance(place, exp.Literal) else exp.convert(values[place]) for place in self.places]
        found = [to_sql(node, self.dialect) for node in nodes]
        return "".join(part for pair in zip(self.pieces, [*found, ""], strict=True) for part in pair)
