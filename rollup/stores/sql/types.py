"""What a column of an aggregation is in each database SQLAlchemy knows, and how long a name may be there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, oracle, postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeEngine

from rollup.core.dialects import kept_name
from rollup.core.errors import StoreError
from rollup.plan.aggregation import ZONE

DIALECTS: Mapping[str, Dialect] = {
    "postgresql": postgresql.dialect(paramstyle="named"),  # of others a name has its percent signs twice
    "sqlite": sqlite.dialect(),
    "mysql": mysql.dialect(paramstyle="named"),
    "oracle": oracle.dialect(),
}
_LIMITS = {"postgresql": (63, "bytes"), "mysql": (64, "characters"), "oracle": (30, "bytes")}
_KEY, _TEXT = 255, 4000
_ZERO = "negative zero"


class ExactNumber(sa.types.TypeDecorator[Decimal]):
    """A decimal; text in SQLite, whose exact numbers end at 64 bits."""

    impl = sa.Numeric
    cache_ok = True

    def __init__(self, precision: int, scale: int) -> None:
        super().__init__(precision, scale)
        self.precision, self.scale = precision, scale

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        kind = sa.String(40) if dialect.name == "sqlite" else sa.Numeric(self.precision, self.scale)
        return dialect.type_descriptor(kind)

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        return str(value) if value is not None and dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:
        return None if value is None else Decimal(value)


class AnyDouble(sa.types.UserDefinedType[float]):
    """Any double. SQLite makes null of NaN and 0.0 of -0.0, so there each is a text; in a `key` both zeros are one."""

    cache_ok = True

    def __init__(self, key: bool = False) -> None:
        self.key = key

    def get_col_spec(self, **_: Any) -> str:
        return "DOUBLE PRECISION"

    def bind_processor(self, dialect: Dialect) -> Any:
        if dialect.name != "sqlite":
            return None
        return self._sqlite

    def result_processor(self, dialect: Dialect, coltype: object) -> Any:
        return lambda value: None if value is None else -0.0 if value == _ZERO else float(value)

    def _sqlite(self, value: float | None) -> float | str | None:
        if value is None or (value and not math.isnan(value)):
            return value
        return "NaN" if value else _ZERO if math.copysign(1.0, value) < 0 and not self.key else 0.0


class Instant(sa.types.TypeDecorator[datetime]):
    """An instant as text in ISO form, of UTC, for databases whose times have no zone."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        return None if value is None else value.astimezone(UTC).isoformat()

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)


class JsonList(sa.types.TypeDecorator[list[Any]]):
    """A list as JSON text, decimals as texts in it, for databases without arrays."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: list[Any] | None, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, default=str)

    def process_result_value(self, value: Any, dialect: Dialect) -> list[Any] | None:
        return None if value is None else json.loads(value)


def _text(length: int) -> TypeEngine[Any]:
    """Text that compares by its code points everywhere, as DuckDB and Spark do: case and accents tell groups apart."""
    bounded = sa.String(length)
    return (
        sa.Text()
        .with_variant(sa.Text(collation="C"), "postgresql")
        .with_variant(mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql")
        .with_variant(bounded, "oracle")
    )


_SCALARS: Mapping[pa.DataType, TypeEngine[Any]] = {
    pa.int32(): sa.Integer(),
    pa.int64(): sa.BigInteger(),
    pa.float32(): sa.REAL().with_variant(oracle.BINARY_FLOAT(), "oracle").with_variant(AnyDouble(), "sqlite"),
    pa.float64(): AnyDouble().with_variant(oracle.BINARY_DOUBLE(), "oracle"),
    pa.bool_(): sa.Boolean(),
    pa.string(): _text(_TEXT),
    pa.timestamp("us", "UTC"): sa.DateTime(timezone=True)
    .with_variant(Instant(), "sqlite")
    .with_variant(mysql.DATETIME(fsp=6), "mysql")
    .with_variant(oracle.TIMESTAMP(timezone=True), "oracle"),
    pa.date32(): sa.Date(),
    pa.binary(): sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql"),
}


def column_type(arrow: pa.DataType, name: str, key: bool = False) -> TypeEngine[Any]:
    """The SQLAlchemy type of a column; text of an identity (`key`) is bounded where an index needs that."""
    if pa.types.is_list(arrow):
        inner = postgresql.ARRAY(column_type(arrow.value_type, name))
        return JsonList().with_variant(inner, "postgresql")
    if arrow == pa.string() and key:
        return _text(64 if name == ZONE else _KEY)
    if arrow == pa.float64() and key:
        return AnyDouble(key=True).with_variant(oracle.BINARY_DOUBLE(), "oracle")
    return ExactNumber(arrow.precision, arrow.scale) if pa.types.is_decimal(arrow) else _SCALARS[arrow]


def type_name(kind: TypeEngine[Any], dialect: str) -> str:
    """The type as DDL has it.

    >>> type_name(column_type(pa.list_(pa.int32()), "x"), "postgresql")
    'INTEGER[]'
    """
    return kind.compile(dialect=DIALECTS[dialect])


def quoted(name: str, dialect: str) -> str:
    """A name in the dialect's quotes, so that its case stays."""
    name = kept_name(name) if dialect == "postgresql" else name
    return DIALECTS[dialect].identifier_preparer.quote_identifier(name)


def check_name(name: str, what: str, dialect: str) -> None:
    """Raise StoreError when a name is longer than the database keeps; PostgreSQL would cut it off without a word.

    >>> check_name("TransactionsPerBranch_SECONDS_KEY", "the index", "oracle")
    Traceback (most recent call last):
    rollup.core.errors.StoreError: the index 'TransactionsPerBranch_SECONDS_KEY' has 33 bytes, oracle allows 30 (choose ...)
    """
    limit, unit = _LIMITS.get(dialect, (None, ""))
    if limit is None:
        return
    length = len(name.encode()) if unit == "bytes" else len(name)
    if length > limit:
        raise StoreError(f"{what} {name!r} has {length} {unit}, {dialect} allows {limit}", hint="choose a shorter name")
