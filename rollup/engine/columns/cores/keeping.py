"""Rows that are kept as tables, to which a batch adds some."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rollup.engine.columns.evaluate import plain

_PIECES = 64
"""How many pieces rows may consist of before some are put together."""


def behind(held: pa.Table, columns: Sequence[pa.Array]) -> pa.Table:
    """Rows, and behind them those of some columns. Where they are in too many pieces, the last ones become one, so many of these
    that the piece before is longer: a row is copied no more often than the logarithm of their number.

    >>> table = pa.table({"n": [1, 2]})
    >>> behind(table, [pa.array([3])]).column("n").to_pylist()
    [1, 2, 3]
    """
    found = pa.concat_tables([held, pa.table([plain(column) for column in columns], schema=held.schema)])
    lengths = [len(piece) for piece in found.column(0).chunks] if found.num_columns else []
    if len(lengths) <= _PIECES:
        return found
    place, rest = len(lengths) - 1, 0
    while place > 0 and lengths[place - 1] <= rest + lengths[place]:
        rest += lengths[place]
        place -= 1
    begin = sum(lengths[:place])
    return pa.concat_tables([found.slice(0, begin), found.slice(begin).combine_chunks()])
