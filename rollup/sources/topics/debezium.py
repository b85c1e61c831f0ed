"""Change events of Debezium: messages that say how a row was (`before`), how it is (`after`), and what was done (`op`).

Each gives up to two records: the row as it is, which comes, and the row as it was, which is taken back. They have a member
more, `SIGN`, that says which of the two they are. So whatever reads records has it without knowing of messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.untyped import pc
from rollup.plan.app import SIGN
from rollup.sources.content.documents import DIGITS
from rollup.sources.topics.values import Unread, texts

_COMES, _GOES = pa.array(["c", "r", "u"]), pa.array(["u", "d"])
NO_CHANGE = "not a change event of Debezium: it has no `op`"
NO_BEFORE = (
    "a change without `before`: nothing tells what to take back "
    "(PostgreSQL: ALTER TABLE … REPLICA IDENTITY FULL; MySQL: binlog_row_image=FULL)"
)
NO_ROW = "no change of a row: its `op` is none of c, r, u and d"
NO_AFTER = "a change without `after`: nothing tells what the row is"
_MEMBERS = ("op", "before", "after")


@dataclass(frozen=True)
class Rows:
    """The rows of some messages: the place of each message, whether its row comes or is taken back, and the records."""

    places: pa.Array
    sign: int
    records: pa.Array


def changes(engine: ColumnEngine, messages: pa.Array | pa.ChunkedArray, exact: bool) -> tuple[list[Rows], list[Unread]]:
    """The rows that messages take back, and those that come; and the messages that say neither, each with the reason.

    `exact`: an attribute needs all digits of a number, which DuckDB cuts to those of a double.
    A message without a value says nothing: it stands behind a delete, for Kafka's own housekeeping.
    """
    array = messages.combine_chunks() if isinstance(messages, pa.ChunkedArray) else messages
    there, known = array.is_valid(), pa.types.is_struct(array.type)
    raw = pa.nulls(len(array), pa.string()) if known else texts(array)[0].combine_chunks()
    op, before, after = _fields(array) if known else _members(engine, raw, exact)
    comes, goes = (pc.fill_null(pc.is_in(op, value_set=ops), False) for ops in (_COMES, _GOES))
    reasons = (
        (pc.and_(there, op.is_null()), NO_CHANGE),
        (pc.and_(there, pc.invert(pc.or_(comes, goes))), NO_ROW),
        (pc.and_(goes, before.is_null()), NO_BEFORE),
        (pc.and_(comes, after.is_null()), NO_AFTER),
    )
    why: dict[int, str] = {}
    for wrong, reason in reasons:
        for place in pc.indices_nonzero(wrong).to_pylist():
            why.setdefault(place, reason)
    bad = pc.is_in(pa.array(np.arange(len(array))), value_set=pa.array(sorted(why), pa.int64()))
    found = list[Rows]()
    for some, sign, rows in ((goes, -1, before), (comes, 1, after)):
        places = pc.indices_nonzero(pc.and_not(some, bad))
        if len(places):
            found.append(Rows(places, sign, _signed(rows.take(places), sign)))
    return found, [Unread(place, reason, raw[place].as_py()) for place, reason in sorted(why.items())]


def _fields(messages: pa.StructArray) -> list[pa.Array]:
    """Of structs, those of their fields; null where there is none."""
    names = [field.name for field in messages.type]
    found = dict(zip(names, messages.flatten(), strict=True))
    op, *rows = (found.get(name, pa.nulls(len(messages))) for name in _MEMBERS)
    none = pa.nulls(len(messages), pa.struct([]))
    return [op.cast(pa.string()), *(each if pa.types.is_struct(each.type) else none for each in rows)]


def _members(engine: ColumnEngine, raw: pa.Array, exact: bool) -> list[pa.Array]:
    """Of documents, those of their members, or of their `payload`'s; rows are documents of their own."""
    digits = DIGITS if exact else "raw"
    bare, wrapped = (f"json_extract({digits}, {[place + name for name in _MEMBERS]})" for place in ("$.", "$.payload."))
    placed = f"SELECT raw, CASE WHEN json_valid(raw) THEN {bare} END AS f FROM change_rows"
    inner = f"SELECT CASE WHEN f[1] IS NULL AND json_valid(raw) THEN {wrapped} ELSE f END AS m FROM ({placed})"
    rows = ", ".join(f"CASE WHEN starts_with(m[{at}], '{{') THEN CAST(m[{at}] AS VARCHAR) END" for at in (2, 3))
    table = engine.run(f"SELECT m[1] ->> '$' AS op, {rows} FROM ({inner})", change_rows=pa.table({"raw": raw}))
    return [column.combine_chunks().cast(pa.string()) for column in table.columns]


def _signed(rows: pa.Array, sign: int) -> pa.Array:
    """Rows with their sign as the first member."""
    if not pa.types.is_struct(rows.type):
        rest = pc.utf8_slice_codeunits(rows, 1)
        return pc.binary_join_element_wise(f'{{"{SIGN}":{sign}', pc.if_else(pc.equal(rest, "}"), "", ","), rest, "")
    own = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
    own[SIGN] = pa.array([sign] * len(rows), pa.int32())
    return pa.StructArray.from_arrays(list(own.values()), list(own))
