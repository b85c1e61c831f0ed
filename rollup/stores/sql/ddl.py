"""The DDL of an aggregation: the templates of `ddl/` with its names, columns and queries filled in.

`table_ddl` gives the tables for any of the four databases, `answer_ddl` what answers inside PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import Duration, offset_ms
from rollup.core.dialects import computable, kept_name, to_sql
from rollup.core.errors import StoreError
from rollup.core.local_columns import zone_of
from rollup.plan.aggregation import COMMIT, EVENTS, KIND, TIME, TIMESTAMP, ZONE, Aggregation, Output, column
from rollup.retrieval.answer import bucket_column, bucket_rows
from rollup.retrieval.questions import open_schema
from rollup.stores.sql.types import check_name, column_type, quoted, type_name

TEMPLATES = Path(__file__).parents[3] / "ddl"
Columns = Mapping[str, pa.DataType]


def template(path: str, **parts: str) -> str:
    """The text of a file below `ddl/` with its {words} filled in. Raises KeyError for a word that is not given."""
    return _filled(_code(path), parts)


def statements(path: str, **parts: str) -> list[str]:
    """The statements of a file below `ddl/` that has no bodies in dollar quotes, each as `template` fills it in.

    What is filled in is never looked at again: neither for words nor for the end of a statement.
    """
    found = (part.strip() for part in f"{_code(path)}\n".split(";\n"))
    return [_filled(part, parts) for part in found if part]


def _code(path: str) -> str:
    text = (TEMPLATES / path).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()


def _filled(text: str, parts: Mapping[str, str]) -> str:
    """Braces around anything but a word are the text's own, as in a pattern."""
    head, *rest = text.split("{")
    found = [head]
    for piece in rest:
        word, brace, tail = piece.partition("}")
        found += [parts[word], tail] if brace and word.isidentifier() else ["{", piece]
    return "".join(found)


@dataclass(frozen=True)
class Tables:
    """The names and columns of an aggregation's tables in one database. Raises StoreError when a name is too long."""

    aggregation: Aggregation
    dialect: str

    def __post_init__(self) -> None:
        for name in (*map(self.aggregation.table, self.aggregation.levels), self.open, self.late, self.commit):
            check_name(name, "the table", self.dialect)
        for name in self.columns(None) if self.dialect != "postgresql" else ():  # which has a digest in a long one
            check_name(name, f"the column of {self.aggregation.name}", self.dialect)

    @property
    def open(self) -> str:
        """The table of open rows."""
        return f"{self.aggregation.name}_OPEN"

    @property
    def late(self) -> str:
        """The ledger of late events."""
        return f"{self.aggregation.name}_LATE"

    @property
    def commit(self) -> str:
        """The table of commit records."""
        return f"{self.aggregation.name}_COMMIT"

    def columns(self, level: Duration | None) -> Columns:
        """The columns of a level's table; None: of the open rows."""
        schema = open_schema(self.aggregation) if level is None else self.aggregation.table_schema
        return dict(zip(schema.names, schema.types, strict=True))

    @cached_property
    def late_columns(self) -> Columns:
        """The columns of the ledger: root bucket, zone, keys, what was done with how many events, in which commit,

        and the start of the bucket at every level, for questions that count late events.
        """
        keys = {key.name: key.type.arrow for key in self.aggregation.keys}
        ends = {KIND: pa.string(), EVENTS: pa.int64(), COMMIT: pa.int64()}
        cut = {bucket_column(level): pa.int64() for level in self.aggregation.levels}
        return {TIMESTAMP: pa.int64(), ZONE: pa.string(), **keys, **ends, **cut}

    @cached_property
    def commit_columns(self) -> Columns:
        """The columns of the commit records."""
        texts = dict.fromkeys(("token", "clocks", "source"), pa.string())
        return {"number": pa.int64(), **texts, "resume": pa.int64(), "written": pa.float64()}

    def all(self) -> Mapping[str, Columns]:
        """Every table with its columns."""
        levels = {self.aggregation.table(level): self.columns(level) for level in self.aggregation.levels}
        return {**levels, self.open: self.columns(None), self.late: self.late_columns, self.commit: self.commit_columns}

    @cached_property
    def own_names(self) -> Mapping[str, str]:
        """The columns by the names that PostgreSQL has for them, which long ones are shortened to."""
        return {kept_name(column): column for columns in self.all().values() for column in columns}

    def type_of(self, name: str, arrow: pa.DataType) -> str:
        """The type of a column as DDL has it."""
        return type_name(
            column_type(arrow, name, name in self.aggregation.identity or name in (KIND, "token")), self.dialect
        )

    def quote(self, name: str) -> str:
        """A name in quotes."""
        return quoted(name, self.dialect)


def table_ddl(aggregation: Aggregation, dialect: str, partitioned: bool = False) -> list[str]:
    """The statements that make an aggregation's tables. `partitioned`: the fine ones by time (PostgreSQL)."""
    tables = Tables(aggregation, dialect)
    folder = "postgres" if dialect == "postgresql" else "generic"
    made = list[str]()
    for level in aggregation.levels:
        by_time = (
            f" partition by range ({tables.quote(TIMESTAMP)})" if partitioned and level <= Duration.MINUTES else ""
        )
        made += statements(
            f"{folder}/level.sql",
            table=tables.quote(aggregation.table(level)),
            columns=_columns(tables, tables.columns(level)),
            index=tables.quote(_index(aggregation.table(level), dialect)),
            identity=", ".join(map(tables.quote, aggregation.identity)),
            partitioning=by_time,
        )
    rest = {"open": tables.open, "late": tables.late, "commit": tables.commit}
    columns = {"open": tables.columns(None), "late": tables.late_columns, "commit": tables.commit_columns}
    parts = {name: tables.quote(table) for name, table in rest.items()}
    parts |= {
        f"{name}_columns": _columns(tables, found, "number" if name == "commit" else "")
        for name, found in columns.items()
    }
    return made + statements(f"{folder}/tables.sql", **parts)


def _columns(tables: Tables, columns: Columns, key: str = "") -> str:
    lines = [f"    {tables.quote(name)} {tables.type_of(name, arrow)}" for name, arrow in columns.items()]
    return ",\n".join([*lines, f"    primary key ({tables.quote(key)})"] if key else lines)


def _index(table: str, dialect: str) -> str:
    """The name of a table's key; a digest where the readable one would be too long."""
    name = f"{table}_KEY"
    try:
        check_name(name, "the index", dialect)
    except StoreError:
        return f"KEY_{sha256(table.encode()).hexdigest()[:20]}"
    return name


# Answers inside PostgreSQL


def answer_ddl(aggregation: Aggregation, schema: str) -> list[str]:
    """The functions and views that answer inside PostgreSQL, in the given schema. Run them in this order."""
    outputs, left_out = answerable(aggregation)
    note = f"{aggregation.name} within … per …, open buckets included; times are milliseconds since 1970"
    if left_out:
        note += f". Sketches cannot be merged here: ask rollup for {', '.join(left_out)}"
    place = quoted(schema, "postgresql")
    columns = [
        (TIMESTAMP, "bigint"),
        *((output.name, output.type.postgres) for output in outputs),
        (TIME, "timestamptz"),
    ]
    names = _parameters([name for name, _ in columns])
    function = template(
        "postgres/answers.sql",
        name=f"{place}.{quoted(aggregation.name, 'postgresql')}",
        schema=place,
        columns=", ".join(f"{quoted(name, 'postgresql')} {kind}" for name, kind in columns),
        query=_levels_query(aggregation, outputs, place),
        comment=_text(note),
        zone=_text(aggregation.zone),
        **names,
    )
    views = [_view(aggregation, level, place, outputs, note) for level in aggregation.levels]
    return [*_zone(aggregation.zone, place), template("postgres/functions.sql", schema=place), function, *views]


def _zone(name: str, place: str) -> list[str]:
    """What the clocks of the zone that cuts the buckets show, for bounds that the server reads: by the same database."""
    if offset_ms(name) is not None:
        return []
    columns = {column: _text(f"{{{','.join(map(str, each))}}}") for column, each in zone_of(name).clocks.items()}
    return [template("postgres/zone.sql", schema=place, zone=quoted(f"rollup_zone {name}", "postgresql"), **columns)]


def answerable(aggregation: Aggregation) -> tuple[tuple[Output, ...], tuple[str, ...]]:
    """The outputs PostgreSQL can compute, and the names of those it cannot, because they read a sketch."""
    inside = tuple(o for o in aggregation.outputs if computable(o.final, "postgres"))
    return inside, tuple(o.name for o in aggregation.outputs if o not in inside)


def relation(alias: str, query: str) -> str:
    """A relation of a question as a part of its `with` clause; relations are not quoted in a question's text."""
    return f"{alias} as not materialized ({query})"


def stored_relations(
    tables: Tables, levels: Mapping[str, Duration], place: Callable[[str], str], late: bool = False
) -> list[str]:
    """The relations of stored rows, by their level, and of the open ones, with `late` of late events as well.

    `place` gives a table's quoted name.
    """
    found = {**{alias: tables.aggregation.table(level) for alias, level in levels.items()}, "open": tables.open}
    found |= {"late": tables.late} if late else {}
    return [relation(alias, f"select * from {place(table)}") for alias, table in found.items()]


def view_name(aggregation: Aggregation, level: Duration) -> str:
    """The view of a level: `TradeAgg_per_days`."""
    return f"{aggregation.name}_per_{level.plural}"


def _parameters(taken: list[str]) -> dict[str, str]:
    """Names of the parameters, which must differ from those of the columns."""

    def free(name: str) -> str:
        return free(name + "_") if name in taken else quoted(name, "postgresql")

    return {name: free(name) for name in ("start", "end", "per", "within")}


def _levels_query(aggregation: Aggregation, outputs: tuple[Output, ...], place: str) -> str:
    levels = f"array[{', '.join(str(int(level)) for level in aggregation.levels)}]"
    columns = _typed(outputs)
    queries = list[str]()
    for level in aggregation.levels:
        rows = _rows(aggregation, level, place, *(exp.Parameter(this=exp.Literal.number(n)) for n in (1, 2)))
        asked = f"{place}.rollup_per($3, {levels}, $1, $2) = {int(level)}"
        queries.append(f"select {columns} from ({rows}) as b where {asked}")
    return "\nunion all\n".join(queries)


def _view(aggregation: Aggregation, level: Duration, place: str, outputs: tuple[Output, ...], note: str) -> str:
    name = view_name(aggregation, level)
    check_name(name, "the view", "postgresql")
    always = (exp.cast(exp.Literal.string(str(bound)), "BIGINT") for bound in (-(2**63), 2**63 - 1))
    rows = _rows(aggregation, level, place, *always)
    return template(
        "postgres/view.sql",
        view=f"{place}.{quoted(name, 'postgresql')}",
        query=f"select {_typed(with_keys(aggregation, outputs))} from ({rows}) as b",
        comment=_text(f"{note}; per {level.plural}"),
    )


def with_keys(aggregation: Aggregation, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
    """Outputs behind the group keys that are not among them."""
    keys = (Output(key.name, key.type, column(key.name)) for key in aggregation.keys)
    return (*(key for key in keys if key.name not in {output.name for output in outputs}), *outputs)


def _typed(outputs: tuple[Output, ...]) -> str:
    columns = ((quoted(output.name, "postgresql"), output.type.postgres) for output in outputs)
    casts = (f"cast({name} as {kind}) as {name}" for name, kind in columns)
    start = quoted(TIMESTAMP, "postgresql")
    return ", ".join([start, *casts, f"to_timestamp({start} / 1000.0) as {quoted(TIME, 'postgresql')}"])


def _rows(aggregation: Aggregation, level: Duration, place: str, start: exp.Expr, end: exp.Expr) -> str:
    """The buckets of a level with keys and outputs, from `start` to before `end`."""
    closed, opened = (_place(place, name) for name in (aggregation.table(level), f"{aggregation.name}_OPEN"))
    outputs = with_keys(aggregation, answerable(aggregation)[0])
    return to_sql(bucket_rows(aggregation, level, outputs, closed, opened, start, end), "postgres")


def _place(schema: str, name: str) -> str:
    return f"{schema}.{quoted(name, 'postgresql')}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
