"""Records of every kind a source may meet, drawn by chance: values at the limits of every type, of the wrong type, garbage.

Each comes with the event that it must be, when it is one beyond doubt.
"""

from __future__ import annotations

import csv
import io
import json
import math
import random
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

APP = """define stream S (s string, b bool, i int, l long, f float, d double, ts long);
define aggregation A from S select s, count() as n, max(l) as top, min(d) as low, b as lastb, i as lasti, f as lastf
group by s aggregate by ts every sec ... year;
"""
NAMES = ("s", "b", "i", "l", "f", "d", "ts")
_TEXTS = [
    "",
    "a",
    "NULL",
    "\\N",
    "null",
    "żółć 雪 🎈",
    "it's",
    'say "x"',
    "a,b",
    "\t",
    " x ",
    "\u2028",
    "\ufffd",
    "e\u0301",
    "{}",
    "0",
]
_INTS = [0, 1, -1, 2**31 - 1, -(2**31)]
_LONGS = [*_INTS, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
_DOUBLES = [0.0, -0.0, 1.5, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e300, 0.1, 1e15, 2.0**53]
_FLOATS = [0.0, 1.5, -2.25, 3.4028234663852886e38, 1.401298464324817e-45, -0.0, 65536.0]
_TIMES = [0, 1, 999, 1000, -1, 1_514_764_800_000, 253_402_300_799_999, -62_135_596_800_000]
_WRONG: list[Any] = [
    "x", "", "1.5", "1e400", "NaN", "Infinity", "-", "0x10", 1.5, 1e300, 2**31, 2**63, -(2**63) - 1, 10**40, True,
    [], [1, "a"], {}, {"a": {"b": 1}}, "9007199254740993.5", "２", "1_000", "\x00", "a\x00b",
]  # fmt: skip


@dataclass(frozen=True)
class Record:
    """A record's attributes as a producer would have them; `sure` when they are an event beyond doubt."""

    values: dict[str, Any]
    sure: bool


def good(chance: random.Random) -> dict[str, Any]:
    """Values that fit; some attributes are null, which a record may leave out."""
    made: dict[str, Any] = {
        "s": chance.choice(_TEXTS) if chance.random() < 0.7 else f"k{chance.randrange(50)}",
        "b": chance.random() < 0.5,
        "i": chance.choice(_INTS),
        "l": chance.choice(_LONGS),
        "f": chance.choice(_FLOATS),
        "d": chance.choice(_DOUBLES),
    }
    if chance.random() < 0.2:
        made[chance.choice(NAMES[:-1])] = None
    made["ts"] = chance.choice(_TIMES) if chance.random() < 0.3 else 1_514_764_800_000 + chance.randrange(10**9)
    return made


def record(chance: random.Random) -> Record:
    """One in four has something wrong, or something that is only perhaps right."""
    values = good(chance)
    if chance.random() < 0.75:
        return Record(values, True)
    for name in chance.sample(NAMES, chance.randint(1, 3)):
        values[name] = chance.choice(_WRONG)
    return Record(values, False)


def garbage(chance: random.Random) -> bytes:
    """A line that is most likely no record: random bytes, text cut off, numbers and brackets; never a newline."""
    kind = chance.randrange(5)
    if kind == 0:
        found = chance.randbytes(chance.randint(1, 40))
    elif kind == 1:
        whole = json.dumps(good(chance)).encode()
        found = whole[: chance.randrange(1, len(whole))]
    elif kind == 2:
        found = bytearray(json.dumps(good(chance)).encode())
        for _ in range(chance.randint(1, 3)):
            found[chance.randrange(len(found))] = chance.randrange(256)
        found = bytes(found)
    elif kind == 3:
        found = chance.choice(
            [b"[" * 3000, b'{"a":' * 2000, b'{"s":"\\ud800","ts":1}', b"\xef\xbb\xbf{}", b'{"ts":1,"ts":2}', b"\x00"]
        )
    else:
        found = chance.choice([b"null", b"3", b"[]", b'"x"', b"NaN", b"true", b"{}", b"{]", b"\\", b"'"])
    return found.replace(b"\n", b" ").strip(b" \t\r\v\f") or b"."


def json_line(made: Record, chance: random.Random) -> bytes:
    """A record as a line of JSON; what is null may be left out, and any sign may be escaped."""
    values = {name: value for name, value in made.values.items() if value is not None or chance.random() < 0.5}
    return json.dumps(values, ensure_ascii=chance.random() < 0.5).encode()


def csv_text(rows: list[Record]) -> str:
    """Records as CSV after a header; null is \\N."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(NAMES)
    for row in rows:
        writer.writerow(["\\N" if v is None else _csv_field(v) for v in row.values.values()])
    return out.getvalue()


def _csv_field(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else repr(value) if isinstance(value, (int, float)) else json.dumps(value)


def arrow(chance: random.Random, count: int, delta: bool = False) -> pa.Table:
    """Records as a table whose columns have types that a writer may choose, also those that no attribute has.

    `delta`: only types that a Delta table has.
    """
    rows = [good(chance) for _ in range(count)]
    for row in rows:
        row["s"] = None if row["s"] is None else row["s"].replace("\x00", "")
    return pa.table({name: _column(name, [row[name] for row in rows], chance, delta) for name in NAMES})


_EXACT = dict(
    zip(NAMES, (pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.int64()), strict=True)
)
_INSTANTS = [None, 0, 1, -1, 1_514_764_800, 253_402_300_799, -62_135_596_800]
_LISTS: list[Any] = [None, [], [1, None], [2**31 - 1]]
_BYTES: list[Any] = [None, b"", b"7", b"\xff\x00", b"1514764800000"]
_FOREIGN: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [None, -128, 127]),
    (pa.int16(), [None, -(2**15), 2**15 - 1]),
    (pa.float64(), [None, math.nan, math.inf, -math.inf, 1e300, 0.5, -0.0, 2.0**63]),
    (pa.decimal128(38, 10), [None, "1.5", "-" + "9" * 28, "9" * 28 + ".9999999999", "7"]),
    (pa.decimal128(5, 0), [None, "99999", "-1"]),
    (pa.date32(), [None, 0, -719_162, 2_932_896]),
    (pa.timestamp("us", "UTC"), [None, 0, -1, 1_514_764_800_000_999, 253_402_300_799_999_999]),
    (pa.timestamp("us"), [None, 0, -1, 1_514_764_800_000_999]),
    (pa.string(), [None, "", "1", "1e3", "0x10", "true", "2018-01-01", "9" * 30, "NaN"]),
    (pa.binary(), _BYTES),
    (pa.list_(pa.int32()), _LISTS),
    (pa.struct([("a", pa.int64())]), [None, {"a": None}, {"a": 2**63 - 1}]),
    (pa.bool_(), [None, True, False]),
]
_ONLY_PARQUET: list[tuple[pa.DataType, list[Any]]] = [
    (pa.uint8(), [None, 255]),
    (pa.uint32(), [None, 2**32 - 1]),
    (pa.uint64(), [None, 0, 2**63, 2**64 - 1]),
    (pa.float16(), [None, 1.5, math.inf, 65504.0]),
    (pa.timestamp("s"), _INSTANTS),
    (pa.timestamp("ms", "+05:30"), [None, *_TIMES]),
    (pa.timestamp("ns"), [None, 0, -1, 2**62]),
    (pa.time32("ms"), [None, 0, 86_399_999]),
    (pa.time64("us"), [None, 0, 86_399_999_999]),
    (pa.duration("ms"), [None, -1, 2**40]),
    (pa.large_string(), [None, "", "12"]),
    (pa.dictionary(pa.int8(), pa.string()), [None, "a", "12"]),
    (pa.large_binary(), _BYTES),
    (pa.binary(4), [None, b"\xff\x00\x01\x02", b"1234"]),
    (pa.map_(pa.string(), pa.int32()), [None, [], [("a", 1)]]),
    (pa.null(), [None]),
]
"""Types of columns, and values at their limits."""


def _column(name: str, values: list[Any], chance: random.Random, delta: bool) -> pa.Array:
    """An attribute's values, most often as they are; or texts some of which are no numbers; or what another type has."""
    kind = chance.randrange(8)
    if kind == 0 and name not in ("s", "b"):
        texts = [None if v is None else repr(v) for v in values]
        for at in range(0, len(texts), 7):
            texts[at] = chance.choice(["x", "", "1.5e", "--"])
        return pa.array(texts, pa.string())
    if kind == 1 and name == "ts":
        return pa.array(values, pa.timestamp("ms", tz=chance.choice([None, "UTC", "+05:30"])))
    if kind == 2 and name in ("i", "l"):
        return pa.array(values, pa.decimal128(25, 0))
    if kind == 3:
        return _foreign(len(values), chance, delta)
    return pa.array(values, _EXACT[name])


def _foreign(count: int, chance: random.Random, delta: bool) -> pa.Array:
    type_, limits = chance.choice(_FOREIGN if delta else [*_FOREIGN, *_ONLY_PARQUET])
    found = [chance.choice(limits) for _ in range(count)]
    if pa.types.is_decimal(type_):
        return pa.array([None if value is None else Decimal(value) for value in found], type_)
    if pa.types.is_dictionary(type_):
        return pa.array(found, pa.string()).cast(type_)
    return pa.array(found, type_)


def same(found: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether an event has the values of a record; floats bit for bit."""
    return all(_bits(found[name]) == _bits(wanted[name]) for name in NAMES)


def _bits(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("d", value)
    return value
