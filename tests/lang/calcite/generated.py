"""Random queries without STREAM, of forms that Calcite and rollup both have, over random rows of two tables.

Left out is where docs/queries.md says that the standard is kept and Calcite's own differs: AVG of whole numbers, a
variance of one row, texts of different lengths in one CASE (Calcite pads them), decimals as texts, quotients of decimals
that a set operation cuts; what depends on the
order of rows that no ORDER BY tells; and where Calcite 1.40 is wrong by any reading of SQL: a variance with FILTER counts
squares of rows that the filter drops (and of doubles is only near), a cut text is ordered as if it were whole, months
between two times of one day of the month are one too many, years beyond all dates wrap around, DISTINCT beside grouping sets mixes the sets up, NTH_VALUE over a running frame looks
past it, a sub-query correlated by an inequality is counted for the wrong rows, and a row for which `IN` of nothing is
false is lost although the other side of OR is true.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

TABLES = {
    "Emp": {"id": "INTEGER", "k": "INTEGER", "n": "BIGINT", "d": "DECIMAL(10, 2)", "r": "DOUBLE", "s": "VARCHAR(20)", "b": "BOOLEAN", "dt": "DATE", "ts": "TIMESTAMP"},
    "Dept": {"k": "INTEGER", "name": "VARCHAR(20)", "cap": "BIGINT", "since": "TIMESTAMP"},
}  # fmt: skip
_KINDS = {"INTEGER": "int", "BIGINT": "int", "DECIMAL(10, 2)": "dec", "DOUBLE": "dbl", "VARCHAR(20)": "str", "BOOLEAN": "bool", "DATE": "date", "TIMESTAMP": "ts"}  # fmt: skip
_WORDS = ["ab", "ba", "aab", "Bob", "", "x y", "abc", "Zed"]
_UNITS = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]

Value = int | float | str | bool | None


@dataclass(frozen=True)
class Column:
    """A column that a query may name, and the kind of its values."""

    name: str
    kind: str


class Queries:
    """Rows and queries of one seed."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)

    # rows

    def rows(self, table: str, count: int) -> list[list[Value]]:
        """So many rows; `id` numbers them."""
        kinds = [_KINDS[kind] for kind in TABLES[table].values()]
        rows = [[self._value(kind) for kind in kinds] for _ in range(count)]
        for number, row in enumerate(rows):
            row[0] = number if table == "Emp" else row[0]
        return rows

    def _value(self, kind: str) -> Value:
        pick = self.pick
        if pick.random() < 0.15:
            return None
        moment = datetime(2020, 2, 27) + timedelta(seconds=pick.choice([0, 1, 59, 3600, 86399]) + 3600 * pick.randrange(0, 20000, 7))  # fmt: skip
        match kind:
            case "int":
                return pick.randrange(-3, 6)
            case "dec":
                return f"{pick.randrange(-500, 900) / 100:.2f}"
            case "dbl":
                return pick.choice([-1.5, 0.0, 0.25, 2.0, 3.75, 100.125])
            case "str":
                return pick.choice(_WORDS)
            case "bool":
                return pick.random() < 0.5
            case "date":
                return f"{moment:%Y-%m-%d}"
            case _:
                return f"{moment:%Y-%m-%d %H:%M:%S}"

    # expressions

    def expr(self, kind: str, columns: list[Column], depth: int = 2) -> str:
        """An expression of a kind over columns."""
        own = [c.name for c in columns if c.kind == kind]
        if depth <= 0 or self.pick.random() < 0.25:
            return self.pick.choice(own) if own and self.pick.random() < 0.8 else self.literal(kind)
        sub = lambda k: self.expr(k, columns, depth - 1)  # noqa: E731
        if self.pick.random() < 0.15 and kind != "str":
            return self.pick.choice([
                f"CASE WHEN {sub('bool')} THEN {sub(kind)} ELSE {sub(kind)} END", f"COALESCE({sub(kind)}, {sub(kind)})",
                f"NULLIF({sub(kind)}, {sub(kind)})", f"CASE WHEN {sub('bool')} THEN {sub(kind)} END",
                f"CASE {sub('int')} WHEN 1 THEN {sub(kind)} WHEN 2 THEN {sub(kind)} ELSE {sub(kind)} END",
            ])  # fmt: skip
        return self.pick.choice(getattr(self, f"_{kind}")(sub))()

    def literal(self, kind: str) -> str:
        """A constant."""
        pick = self.pick
        match kind:
            case "int":
                return str(pick.randrange(0, 5))
            case "dec":
                return pick.choice(["0.5", "1.25", "3.0", "10.75"])
            case "dbl":
                return pick.choice(["0.5E0", "2E0", "1.25E1"])
            case "str":
                return f"CAST('{pick.choice(_WORDS)}' AS VARCHAR(20))"
            case "bool":
                return pick.choice(["TRUE", "FALSE"])
            case "date":
                return f"DATE '2020-0{pick.randrange(1, 10)}-15'"
            case _:
                return f"TIMESTAMP '2020-0{pick.randrange(1, 10)}-29 1{pick.randrange(10)}:30:00'"

    def _int(self, sub):  # type: ignore[no-untyped-def]
        pick, unit = self.pick, self.pick.choice(["YEAR", "QUARTER", "MONTH", "DAY", "DOW", "DOY", "WEEK", "EPOCH"])
        return [
            lambda: f"({sub('int')} {pick.choice('+-*')} {sub('int')})",
            lambda: f"({sub('int')} / {pick.choice([2, 3, -4])})",
            lambda: f"MOD({sub('int')}, {pick.choice([2, 3, 5])})",
            lambda: f"ABS({sub('int')})",
            lambda: f"(- {sub('int')})",
            lambda: f"SIGN({sub('int')})",
            lambda: f"CHAR_LENGTH({sub('str')})",
            lambda: f"POSITION({sub('str')} IN {sub('str')})",
            lambda: f"CAST({sub(pick.choice(['dec', 'dbl']))} AS INTEGER)",
            lambda: f"CAST(CAST({sub('int')} AS VARCHAR(20)) AS INTEGER)",
            lambda: f"EXTRACT({unit} FROM {sub(pick.choice(['date', 'ts']))})",
            lambda: f"EXTRACT({pick.choice(['HOUR', 'MINUTE', 'SECOND'])} FROM {sub('ts')})",
            lambda: f"{pick.choice(['YEAR', 'MONTH', 'DAYOFMONTH', 'DAYOFWEEK', 'DAYOFYEAR'])}({sub('date')})",
            lambda: f"TIMESTAMPDIFF({pick.choice(_UNITS[:5])}, {sub('ts')}, {sub('ts')})",
            lambda: f"TIMESTAMPDIFF({pick.choice(_UNITS[3:])}, {sub('date')}, {sub('date')})",
            lambda: f"ASCII({sub('str')})",
            lambda: f"FLOOR({sub('int')})",
        ]

    def _dec(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        return [
            lambda: f"({sub('dec')} {pick.choice('+-')} {sub(pick.choice(['dec', 'int']))})",
            lambda: f"({sub('dec')} * {pick.choice(['2', '0.5', '3'])})",
            lambda: f"({sub('dec')} / {pick.choice(['2', '0.5', '4'])})",
            lambda: f"ABS({sub('dec')})",
            lambda: f"CAST({sub('int')} AS DECIMAL(10, 2))",
            lambda: f"CAST({sub('dec')} AS DECIMAL(8, 1))",
            lambda: f"{pick.choice(['FLOOR', 'CEIL'])}({sub('dec')})",
        ]

    def _dbl(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        return [
            lambda: f"({sub('dbl')} {pick.choice('+-*')} {sub(pick.choice(['dbl', 'int', 'dec']))})",
            lambda: f"({sub('dbl')} / {pick.choice(['2E0', '0.25E0'])})",
            lambda: f"CAST({sub(pick.choice(['int', 'dec']))} AS DOUBLE)",
            lambda: f"SQRT(ABS({sub('dbl')}))",
            lambda: f"POWER({sub('dbl')}, 2)",
            lambda: f"LN(ABS({sub('dbl')}) + 1)",
            lambda: f"{pick.choice(['FLOOR', 'CEIL', 'ABS', 'SIGN'])}({sub('dbl')})",
            lambda: f"{pick.choice(['SIN', 'COS', 'ATAN', 'DEGREES', 'RADIANS', 'CBRT'])}({sub('dbl')})",
        ]

    def _str(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        return [
            lambda: f"({sub('str')} || {sub('str')})",
            lambda: f"{pick.choice(['UPPER', 'LOWER', 'INITCAP'])}({sub('str')})",
            lambda: f"SUBSTRING({sub('str')} FROM {pick.randrange(1, 4)}{pick.choice(['', ' FOR 2'])})",
            lambda: (
                f"TRIM({pick.choice(['BOTH', 'LEADING', 'TRAILING'])} {pick.choice(['', chr(39) + 'a' + chr(39)])} FROM {sub('str')})"
            ),
            lambda: f"OVERLAY({sub('str')} PLACING 'Q' FROM {pick.randrange(1, 3)})",
            lambda: f"REPLACE({sub('str')}, 'a', 'o')",
            lambda: f"CAST({sub(pick.choice(['int', 'bool', 'date', 'ts']))} AS VARCHAR(30))",
            lambda: f"CAST({sub('str')} AS VARCHAR(2))",
            lambda: f"COALESCE({sub('str')}, {sub('str')})",
        ]

    def _bool(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        kind = pick.choice(["int", "int", "dec", "dbl", "str", "date", "ts"])
        return [
            lambda: f"({sub(kind)} {pick.choice(['=', '<>', '<', '<=', '>', '>='])} {sub(kind)})",
            lambda: f"({sub(kind)} {pick.choice(['=', '<>', '<', '<=', '>', '>='])} {sub(kind)})",
            lambda: f"({sub('int')} {pick.choice(['<', '>='])} {sub(pick.choice(['dec', 'dbl']))})",
            lambda: f"({sub('bool')} {pick.choice(['AND', 'OR'])} {sub('bool')})",
            lambda: f"(NOT {sub('bool')})",
            lambda: f"({sub(kind)} IS {pick.choice(['', 'NOT '])}NULL)",
            lambda: f"({sub('bool')} IS {pick.choice(['', 'NOT '])}{pick.choice(['TRUE', 'FALSE', 'UNKNOWN'])})",
            lambda: f"({sub(kind)} {pick.choice(['', 'NOT '])}BETWEEN {sub(kind)} AND {sub(kind)})",
            lambda: f"({sub(kind)} {pick.choice(['', 'NOT '])}IN ({sub(kind)}, {sub(kind)}))",
            lambda: f"({sub(kind)} IS {pick.choice(['', 'NOT '])}DISTINCT FROM {sub(kind)})",
            lambda: f"({sub('str')} {pick.choice(['', 'NOT '])}LIKE '{pick.choice(['a%', '%b', '_a%', '%', 'ab'])}')",
            lambda: f"({sub('str')} SIMILAR TO '{pick.choice(['(a|b)+', '[a-c]*', 'x.y', 'B%'])}')",
        ]

    def _date(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        return [
            lambda: (
                f"({sub('date')} {pick.choice('+-')} INTERVAL '{pick.randrange(1, 40)}' {pick.choice(['DAY', 'MONTH', 'YEAR'])})"
            ),
            lambda: f"CAST({sub('ts')} AS DATE)",
            lambda: f"{pick.choice(['FLOOR', 'CEIL'])}({sub('date')} TO {pick.choice(_UNITS[3:])})",
            lambda: (
                f"TIMESTAMPADD({pick.choice(['DAY', 'WEEK', 'MONTH', 'QUARTER', 'YEAR'])}, MOD({sub('int')}, 99), {sub('date')})"
            ),
        ]

    def _ts(self, sub):  # type: ignore[no-untyped-def]
        pick = self.pick
        return [
            lambda: (
                f"({sub('ts')} {pick.choice('+-')} INTERVAL '{pick.randrange(1, 40)}' {pick.choice([*_UNITS[:4], 'MONTH', 'YEAR'])})"
            ),
            lambda: f"({sub('ts')} {pick.choice('+-')} INTERVAL '1:30' HOUR TO MINUTE)",
            lambda: f"CAST({sub('date')} AS TIMESTAMP)",
            lambda: f"{pick.choice(['FLOOR', 'CEIL'])}({sub('ts')} TO {pick.choice(_UNITS)})",
            lambda: f"TIMESTAMPADD({pick.choice(_UNITS)}, MOD({sub('int')}, 99), {sub('ts')})",
        ]

    # queries

    def query(self) -> str:
        """A query."""
        form = self.pick.choice([
            self._plain, self._plain, self._grouped, self._grouped, self._sets, self._framed, self._framed,
            self._united, self._nested, self._sub, self._ordered, self._with,
        ])  # fmt: skip
        return form()

    def _from(self) -> tuple[str, list[Column]]:
        """A FROM clause and its columns."""
        emp = [Column(f"e.{name}", _KINDS[kind]) for name, kind in TABLES["Emp"].items()]
        dept = [Column(f"p.{name}", _KINDS[kind]) for name, kind in TABLES["Dept"].items()]
        join = self.pick.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        both = self.pick.random() < 0.5 and join in ("JOIN", "LEFT JOIN")
        on = f"e.k = p.k AND {self.expr('bool', emp, 1)}" if both else "e.k = p.k"
        return self.pick.choice([
            ("Emp AS e", emp), ("Emp AS e", emp), (f"Emp AS e {join} Dept AS p ON {on}", emp + dept),
            ("Emp AS e, Dept AS p", emp + dept),
            (f"(SELECT * FROM Emp AS e WHERE {self.expr('bool', emp)}) AS e", emp),
        ])  # fmt: skip

    def _where(self, columns: list[Column]) -> str:
        return f" WHERE {self.expr('bool', columns)}" if self.pick.random() < 0.6 else ""

    def _items(self, columns: list[Column], least: int = 1) -> list[str]:
        return [self.expr(self._kind(), columns) for _ in range(self.pick.randrange(least, 4))]

    def _kind(self) -> str:
        return self.pick.choice(["int", "dec", "dbl", "str", "bool", "date", "ts"])

    def _plain(self) -> str:
        source, columns = self._from()
        distinct = self.pick.choice(["", "", "DISTINCT "])
        return f"SELECT {distinct}{', '.join(self._items(columns))} FROM {source}{self._where(columns)}"

    def _aggregate(self, columns: list[Column]) -> str:
        kind, sub = self._kind(), lambda k: self.expr(k, columns, 1)
        number = self.pick.choice(["int", "dec", "dbl"])
        call = self.pick.choice([
            lambda: "COUNT(*)", lambda: f"COUNT({sub(kind)})", lambda: f"COUNT(DISTINCT {sub(kind)})",
            lambda: f"SUM({sub(number)})", lambda: f"{self.pick.choice(['MIN', 'MAX'])}({sub(kind if kind != 'bool' else 'int')})",
            lambda: f"AVG(CAST({sub(number)} AS DOUBLE))", lambda: f"SUM(DISTINCT {sub('int')})",
            lambda: f"{self.pick.choice(['EVERY', 'SOME'])}({sub('bool')})",
            lambda: f"VAR_POP(CAST({sub('int')} AS DOUBLE))",
            lambda: f"{self.pick.choice(['BIT_AND', 'BIT_OR', 'BIT_XOR'])}({sub('int')})",
        ])()  # fmt: skip
        filtered = self.pick.random() < 0.2 and "_POP" not in call
        return f"{call} FILTER (WHERE {sub('bool')})" if filtered else call

    def _grouped(self) -> str:
        source, columns = self._from()
        keys = [c.name for c in self.pick.sample(columns, self.pick.randrange(0, 3))]
        if self.pick.random() < 0.4:
            keys.append(self.expr(self.pick.choice(["int", "date", "str"]), columns, 1))
        keys = [key for key in keys if "e." in key or "p." in key]
        aggregates = [self._aggregate(columns) for _ in range(self.pick.randrange(1, 4))]
        items = ", ".join([*keys, *aggregates])
        group = f" GROUP BY {', '.join(keys)}" if keys else ""
        having = f" HAVING {self._aggregate_condition(columns)}" if self.pick.random() < 0.4 else ""
        return f"SELECT {items} FROM {source}{self._where(columns)}{group}{having}"

    def _aggregate_condition(self, columns: list[Column]) -> str:
        sub = self.expr("int", columns, 1)
        return self.pick.choice(["COUNT(*) > 1", f"SUM({sub}) > 2", f"MIN({sub}) < 2 OR COUNT(*) > 3", f"MAX({sub}) IS NOT NULL"])  # fmt: skip

    def _sets(self) -> str:
        source, columns = "Emp AS e", [Column(f"e.{name}", _KINDS[kind]) for name, kind in TABLES["Emp"].items()]
        one, two = (c.name for c in self.pick.sample(columns, 2))
        group = self.pick.choice([
            f"GROUPING SETS (({one}, {two}), ({one}))", f"ROLLUP({one}, {two})", f"CUBE({one}, {two})",
            f"{one}, ROLLUP({two})", f"GROUPING SETS (({one}), ({two}))", f"GROUPING SETS (({one}, {two}), ({two}), ())",
        ])  # fmt: skip
        item = self.pick.choice([f"GROUPING({one})", f"GROUPING({one}, {two})", f"GROUPING_ID({two}, {one})", "GROUP_ID()", f"CASE WHEN GROUPING({two}) = 1 THEN 1 ELSE 0 END"])  # fmt: skip
        having = self.pick.choice(["", "", f" HAVING GROUPING({one}) = 0", " HAVING COUNT(*) > 1"])
        aggregate = self._aggregate(columns)
        aggregate = "COUNT(*)" if "DISTINCT" in aggregate else aggregate
        return f"SELECT {one}, {two}, {item}, {aggregate} FROM {source} WHERE e.id >= 0 GROUP BY {group}{having}"

    def _framed(self) -> str:
        columns = [Column(f"e.{name}", _KINDS[kind]) for name, kind in TABLES["Emp"].items()]
        partition = self.pick.choice(["", f"PARTITION BY {self.pick.choice(['e.k', 'e.s', 'e.b', 'MOD(e.id, 3)'])} "])
        items = ", ".join(self._over(columns, partition) for _ in range(self.pick.randrange(1, 3)))
        return f"SELECT e.id, {items} FROM Emp AS e{self._where(columns)}"

    def _over(self, columns: list[Column], partition: str) -> str:
        pick, kind = self.pick, self._kind()
        sub, number = self.expr(kind, columns, 1), self.expr(pick.choice(["int", "dbl"]), columns, 1)
        total = f"ORDER BY {pick.choice(['e.n, ', 'e.d DESC, ', 'e.s, ', ''])}e.id"
        calls = [f"SUM({number})", "COUNT(*)", f"COUNT({sub})", f"MIN({number})", f"MAX({number})", f"AVG(CAST({number} AS DOUBLE))"]  # fmt: skip
        bounds = pick.choice(["ROWS 2 PRECEDING", "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING", "ROWS UNBOUNDED PRECEDING", ""])  # fmt: skip
        ranges = pick.choice(["RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING", "RANGE 2 PRECEDING", "RANGE UNBOUNDED PRECEDING", "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING", ""])  # fmt: skip
        return pick.choice([
            lambda: f"{pick.choice(calls)} OVER ({partition}{total} {bounds})",
            lambda: f"{pick.choice(calls)} OVER ({partition}ORDER BY e.id {ranges})",
            lambda: f"{pick.choice(calls)} OVER ({partition}ORDER BY e.k)",
            lambda: f"{pick.choice(calls)} OVER ({partition.strip()})",
            lambda: f"{pick.choice(['ROW_NUMBER', 'RANK', 'DENSE_RANK'])}() OVER ({partition}{total})",
            lambda: f"{pick.choice(['RANK', 'DENSE_RANK'])}() OVER ({partition}ORDER BY {pick.choice(['e.n', 'e.s DESC', 'e.d'])})",
            lambda: f"{pick.choice(['LAG', 'LEAD'])}({sub}) OVER ({partition}{total})",
            lambda: f"{pick.choice(['LAG', 'LEAD'])}(e.n, {pick.randrange(0, 3)}, 7) OVER ({partition}{total})",
            lambda: f"{pick.choice(['FIRST_VALUE', 'LAST_VALUE'])}({sub}) OVER ({partition}{total} {bounds})",
            lambda: f"NTH_VALUE(e.n, 2) OVER ({partition}{total} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
            lambda: f"NTILE(3) OVER ({partition}{total})",
        ])()  # fmt: skip

    def _united(self) -> str:
        (one, left), (two, right) = self._from(), self._from()
        kinds = [self._kind() for _ in range(self.pick.randrange(1, 3))]
        sides = [
            f"SELECT {', '.join(self._of(kind, columns) for kind in kinds)} FROM {source}{self._where(columns)}"
            for source, columns in ((one, left), (two, right))
        ]
        how = self.pick.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        return f" {how} ".join(sides)

    def _of(self, kind: str, columns: list[Column]) -> str:
        return next(x for x in iter(lambda: self.expr(kind, columns, 1), "") if kind != "dec" or "/" not in x)

    def _nested(self) -> str:
        source, columns = self._from()
        inner = f"SELECT e.k AS k, COUNT(*) AS c, SUM(e.n) AS t FROM {source}{self._where(columns)} GROUP BY e.k"
        outer = [Column("q.k", "int"), Column("q.c", "int"), Column("q.t", "int")]
        join = self.pick.choice(["", " LEFT JOIN Dept AS p ON q.k = p.k", " JOIN Dept AS p ON q.k = p.k"])
        more = [Column("p.name", "str"), Column("p.cap", "int")] if join else []
        return f"SELECT {', '.join(self._items(outer + more))} FROM ({inner}) AS q{join}{self._where(outer + more)}"

    def _sub(self) -> str:
        columns = [Column(f"e.{name}", _KINDS[kind]) for name, kind in TABLES["Emp"].items()]
        condition = self.pick.choice([
            "e.k IN (SELECT p.k FROM Dept AS p)", "e.k IN (SELECT p.k FROM Dept AS p WHERE p.cap > 0)", "e.k NOT IN (SELECT p.k FROM Dept AS p WHERE p.k IS NOT NULL)",
            "EXISTS (SELECT 1 FROM Dept AS p WHERE p.k = e.k)", "NOT EXISTS (SELECT 1 FROM Dept AS p WHERE p.k = e.k AND p.cap > 1)",
            "e.n > (SELECT MIN(p.cap) FROM Dept AS p)", "e.n >= (SELECT AVG(CAST(p.cap AS DOUBLE)) FROM Dept AS p WHERE p.k = e.k)",
            "(e.k, e.s) IN (SELECT p.k, p.name FROM Dept AS p)", "e.n > ALL (SELECT p.cap FROM Dept AS p WHERE p.cap < 2)",
            "e.n = SOME (SELECT p.cap FROM Dept AS p)", "e.k NOT IN (SELECT p.k FROM Dept AS p)",
        ])  # fmt: skip
        scalar = self.pick.choice(["", ", (SELECT MAX(p.name) FROM Dept AS p WHERE p.k = e.k)", ", (SELECT COUNT(*) FROM Dept AS p WHERE p.k = e.k)"])  # fmt: skip
        return f"SELECT e.id{scalar} FROM Emp AS e WHERE {condition} {self.pick.choice(['AND', 'OR'])} {self.expr('bool', columns)}"

    def _ordered(self) -> str:
        source, columns = "Emp AS e", [Column(f"e.{name}", _KINDS[kind]) for name, kind in TABLES["Emp"].items()]
        way = self.pick.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
        limit = self.pick.choice(["", " LIMIT 5", " OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY", " OFFSET 3 ROWS"])
        order = self.pick.choice([f"{self.pick.choice(columns).name}{way}", f"2{way}", f"x{way}"])
        item = next(x for x in iter(lambda: self.expr(self._kind(), columns), "") if "AS VARCHAR(2)" not in x)
        return f"SELECT e.id, {item} AS x FROM {source}{self._where(columns)} ORDER BY {order}, 1{limit}"

    def _with(self) -> str:
        source, columns = self._from()
        where = self._where(columns)
        return (
            f"WITH q AS (SELECT e.k AS k, {self._aggregate(columns)} AS a FROM {source}{where} GROUP BY e.k) "
            f"SELECT a.k, b.a FROM q AS a JOIN q AS b ON a.k = b.k"
        )
