"""A value of a record as its declared type: one rule, whoever takes the record.

Sources of a job read whole columns by `cast`. What takes records one by one (`rollup.Engine`, `rollup try`, the local
host) asks `read`, which sees by itself only what is plain, and asks `cast` for the rest. So a value means the same
everywhere: `12`, `"12"`, `12.0` and `1.2e1` are the whole number 12, 7.5 is none, and a text takes what JSON would write.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from functools import cache, lru_cache
from math import isinf
from typing import Any

import numpy as np

from rollup.core.calendar import GMT, names_zone, parse_timestamp
from rollup.core.json_line import Written, json_line
from rollup.engine.operators import single

NAMES = {
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "object": "VARCHAR",
}
"""The types that records are read as, by DuckDB's names."""
BITS = {"int": 31, "long": 63}
"""Whole numbers are below this power of two, and not below its negative."""
WHOLE = {"double": 53, "float": 24}
"""Up to this power of two such a type has every whole number."""
KEPT = 10**20
"""Whole numbers below it have another type that keeps them; what is greater is a measurement."""
FIRST_YEAR, LAST_YEAR = -62135596800000, 253402300799999
"""Years 1 to 9999: what every store and client can show."""
_YEARS = "TIMESTAMPTZ '0001-01-01 00:00:00+00' AND TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"
_DAY = r"\s*(?:[1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-\d\d-\d\d"
_CLOCK = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?"
"""A day and the time of it, with or without an offset, as ISO 8601 has them."""
_OFFSET = r":[0-9.:]*(Z|[+-][0-9:]+)\s*$"
"""A clock with an offset behind it."""
_INFINITE = r"\s*[+-]?(?i:inf(?:inity)?)\s*"
_EXACT_DOUBLE = "9e15"
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,14})", re.ASCII)
_POINT = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?", re.ASCII)
_DIGITS = re.compile(r"\s*[+-]?\d+\s*", re.ASCII)
_WIDE = Context(prec=80)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Unreadable(ValueError):
    """A value that is none of the type that it is read as."""


def cast(sql: str, kind: str, zone: str = GMT) -> str:
    """SQL of a column engine that reads a text or number as a type, null when it cannot; 1.5 is no integer.

    A text of a `timestamp` without an offset is the local time of a zone.
    """
    read, written = f"TRY_CAST({sql} AS {NAMES.get(kind, kind)})", f"CAST({sql} AS VARCHAR)"
    if kind.startswith("decimal"):
        # DuckDB would round: what stands behind the point, without noughts at the end, must not be more than the scale.
        behind = f"LENGTH(RTRIM(REGEXP_EXTRACT({written}, '\\.([0-9_]*)', 1), '0_'))"
        moved = f"COALESCE(TRY_CAST(REGEXP_EXTRACT({written}, '[eE](.*)$', 1) AS INTEGER), 0)"
        found = f"TRY_CAST({written} AS {kind})"
        # Nearly every text is how the decimal begins as it would be written, and needs no second look.
        plain = f"STARTS_WITH(CAST({found} AS VARCHAR), {written})"
        return f"CASE WHEN {plain} THEN {found} WHEN {behind} - {moved} <= {_digits(kind)[1]} THEN {found} END"
    if kind == "timestamp":
        instant = _instant_of(written, zone)
        since = cast(sql, "long")
        near = f"GREATEST(LEAST({since}, {LAST_YEAR}), {FIRST_YEAR})"
        number = (
            f"CASE WHEN {since} BETWEEN {FIRST_YEAR} AND {LAST_YEAR} THEN CAST(EPOCH_MS({near}) AS TIMESTAMPTZ) END"
        )
        text = f"REGEXP_FULL_MATCH({written}, '{_DAY}{_CLOCK}\\s*') AND {instant} BETWEEN {_YEARS}"
        return f"CASE WHEN {text} THEN {instant} ELSE {number} END"
    if kind == "date":
        return f"CASE WHEN REGEXP_FULL_MATCH({written}, '{_DAY}\\s*') THEN TRY_CAST({written} AS DATE) END"
    if kind in ("double", "float"):
        # A number beyond all of its type is not the infinity that DuckDB makes of it; only the word is.
        word = f"REGEXP_FULL_MATCH({written}, '{_INFINITE}')"
        return f"CASE WHEN ISINF({read}) THEN CASE WHEN {word} THEN {read} END ELSE {read} END"
    if kind in BITS:
        # DuckDB would round. What is no number at all has no fraction, and is null anyway; a double has none from 2^53 on.
        number = f"TRY_CAST({sql} AS DOUBLE)"
        exact = f"COALESCE(TRY_CAST({sql} AS DECIMAL(38, 10)) % 1 = 0, true)"
        whole = f"CASE WHEN ABS({number}) < {_EXACT_DOUBLE} THEN {number} % 1 = 0 ELSE {exact} END"
        # Nearly every text is the number as it would be written, and needs no second look.
        return f"CASE WHEN CAST({read} AS VARCHAR) = CAST({sql} AS VARCHAR) THEN {read} WHEN {whole} THEN {read} END"
    return read


def _instant_of(text: str, zone: str) -> str:
    """SQL for the instant of an ISO text, to the microsecond; without an offset its clocks are those of a zone."""
    instant = f"TRY_CAST({text} AS TIMESTAMPTZ)"
    if zone == GMT:
        return instant
    from sqlglot import exp  # types that are plain do without

    from rollup.core import buckets
    from rollup.core.dialects import to_sql

    wall = f"EPOCH_US(TRY_CAST({text} AS TIMESTAMP))"
    rest = f"({wall} % 1000 + 1000) % 1000"
    there = to_sql(buckets.instant(exp.Var(this=f"(({wall} - {rest}) // 1000)"), exp.Literal.string(zone)))
    local = f"MAKE_TIMESTAMPTZ(1000 * ({there}) + {rest})"
    return f"CASE WHEN REGEXP_MATCHES({text}, '{_OFFSET}') THEN {instant} ELSE {local} END"


def read(value: Any, kind: str, zone: str = GMT) -> Any:
    """A value of a record as one of a type (`NAMES`), as the sources of a job read it. Raises Unreadable.

    >>> read("12", "long"), read(1e3, "int"), read(7, "string"), read("yes", "bool")
    (12, 1000, '7', True)
    >>> f"{read('2018-07-05 12:00', 'timestamp', 'Europe/Berlin'):%H:%M %Z}"
    '10:00 UTC'
    >>> read(datetime(2018, 1, 5), "long")
    1515110400000
    """
    if isinstance(value, np.generic):
        value = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value.item()
    if isinstance(value, Written) and isinf(value):
        value = value.text
    match value:
        case None:
            return None
        case bool():
            if kind == "bool":
                return value
        case int() if kind in BITS:
            if -(1 << BITS[kind]) <= value < 1 << BITS[kind]:
                return value
            raise Unreadable(value)
        case int() | float() | Decimal() if kind in ("double", "float"):
            return _double(value, kind)
        case float() if kind in BITS:
            if value.is_integer() and -(1 << BITS[kind]) <= value < 1 << BITS[kind]:
                return int(value)
            raise Unreadable(value)
        case int() | Decimal() if kind.startswith("decimal"):
            return _decimal(Decimal(value), kind)
        case float() if kind.startswith("decimal"):
            return read(value.text if isinstance(value, Written) else repr(value), kind)
        case str() if kind.startswith("decimal") and _POINT.fullmatch(value):
            return _decimal(Decimal(value), kind)
        case str() if kind in ("string", "object") and is_text(value):
            return value
        case str() if kind in BITS and _WHOLE.fullmatch(value):
            return read(int(value), kind)
        case str() if kind == "double" and _POINT.fullmatch(value):
            return float(value)
        case date() if kind == "long":
            return _instant(value) // 1000
        case int() if kind == "timestamp" and FIRST_YEAR <= value <= LAST_YEAR:
            return _EPOCH + timedelta(milliseconds=value)
        case date() if kind == "timestamp":
            return _EPOCH + timedelta(microseconds=_instant(value))
        case date() if kind == "date" and value == value and not isinstance(value, datetime):
            return value
        case str() if kind == "timestamp" and zone != GMT and names_zone(value.strip()) is False:
            return _local(_asked(value, kind), zone)
        case _:
            pass
    return _asked(value, kind)


def _local(utc: datetime, zone: str) -> datetime:
    """The instant at which the clocks of a zone show what those of UTC show at another."""
    milliseconds, _ = parse_timestamp(f"{utc:%Y-%m-%d %H:%M:%S}.{utc.microsecond // 1000:03}".rjust(23, "0"), zone)
    if not FIRST_YEAR <= milliseconds <= LAST_YEAR:
        raise Unreadable(utc)
    return _EPOCH + timedelta(milliseconds=milliseconds, microseconds=utc.microsecond % 1000)


def is_rounded(value: Any, found: Any) -> bool:
    """Whether a whole number of a record is another one as it was read.

    >>> is_rounded(2**53 + 1, 2.0**53), is_rounded(2**53, 2.0**53), is_rounded("7.5", 7.5), is_rounded("16777217", 16777216.0)
    (True, False, False, True)
    >>> is_rounded(Decimal("1e300"), 1e300), is_rounded(Decimal("0.1"), 0.1)
    (False, False)
    """
    if type(found) is not float or not 1 << WHOLE["float"] <= abs(found) < KEPT:
        return False
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return _DIGITS.fullmatch(value) is not None and Decimal(value) != found
    whole = value.to_integral_value() if isinstance(value, Decimal) else value
    return isinstance(value, int | Decimal) and value == whole and value != found


def rounded(stream: str, name: str, kind: str) -> str:
    """What is to be said of a field that has whole numbers of which its type does not have all."""
    return (
        f"stream {stream}: {name} is a {kind} and has whole numbers beyond 2^{WHOLE[kind]}, of which a {kind} lacks most: "
        f"last digits may be lost. Declare {name} as long, or beyond 2^63 as decimal(20, 0), to keep them"
    )


def is_text(value: str) -> bool:
    """Whether a text can be stored and sent: JSON may hold halves of characters, which nothing else can.

    >>> is_text("Zoë"), is_text("\\ud800")
    (True, False)
    """
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def _double(value: float | Decimal, kind: str) -> float:
    try:
        found = float(value)
    except (OverflowError, ValueError):  # the second of a signaling NaN
        raise Unreadable(value) from None
    read = single(found) if kind == "float" else found
    if isinf(read) and not isinf(value):
        raise Unreadable(value)
    return read


def _instant(value: date) -> int:
    """A date or time as microseconds; without a zone it is that of UTC, as in a Parquet file."""
    if value != value:  # pandas' NaT is a time that is none
        raise Unreadable(value)
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    passed = aware - _EPOCH
    return passed // timedelta(microseconds=1)


@cache
def _digits(kind: str) -> tuple[int, int]:
    """Precision and scale of a decimal."""
    precision, scale = kind[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _decimal(value: Decimal, kind: str) -> Decimal:
    precision, scale = _digits(kind)
    if value.is_finite() and (value == 0 or value.adjusted() < precision - scale):
        found = value.quantize(Decimal(1).scaleb(-scale), context=_WIDE)
        if found == value:
            return found or abs(found)
    raise Unreadable(value)


@lru_cache(maxsize=1 << 12)
def _text_read(text: str, kind: str) -> Any:
    with _LOCK:
        row = _connection().execute(_query(kind), [text]).fetchone()
    return None if row is None else row[0]


_LOCK = threading.Lock()


@cache
def _connection() -> Any:
    import duckdb  # the plain values of an engine do without

    made = duckdb.connect()
    made.execute("SET TimeZone = 'UTC'")
    return made


@cache
def _query(kind: str) -> str:
    return f"SELECT {cast('found', kind)} FROM (SELECT json_extract_string($1, '$') AS found)"


def _asked(value: Any, kind: str) -> Any:
    """What the sources make of a value, of which JSON is written and read."""
    if isinstance(value, date):
        value = str(value)
    if not isinstance(value, (str, bool, int, float, list, tuple, Mapping)):
        raise Unreadable(value)
    try:
        text = json_line(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        raise Unreadable(value) from None
    found = _text_read(text, kind)
    if found is None:
        raise Unreadable(value)
    return found
