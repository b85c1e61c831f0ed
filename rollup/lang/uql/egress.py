"""Columns into rows of text: separator `|`, no header, RFC 4180 quoting, numbers as the tool prints them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.evaluate import plain
from rollup.lang.uql.catalog import Kind
from rollup.lang.uql.plan import Output

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SMALL = 1 << 29
"""Bytes of columns below which the rows of a batch are one text of Arrow's common kind, which holds 2 GiB."""
_QUOTED = r'[|"\r\n]|^ |^\t'


def lines(batch: pa.Table, outputs: Sequence[Output]) -> bytes:
    """The rows of a step's output, each with the end of its line.

    >>> table = pa.table([pa.array([1_000_000]), pa.array([1e6])], names=["a", "b"])
    >>> lines(table, [Output("a", Kind.INTEGER, 0, None), Output("b", Kind.FLOAT, 1, None)])
    b'1000000|1e+06\\n'
    """
    if not batch.num_rows or not outputs:
        return b""
    columns = [_texts(batch, output) for output in outputs]
    small = sum(column.nbytes for column in columns) < _SMALL
    kind, lists = (pa.string(), pa.ListArray) if small else (pa.large_string(), pa.LargeListArray)
    columns = [column.cast(kind) for column in columns]
    joined = pc.binary_join_element_wise(*columns, pa.scalar("|", kind)) if len(columns) > 1 else columns[0]
    all_ = lists.from_arrays(pa.array([0, len(joined)], pa.int32() if small else pa.int64()), joined)
    return pc.binary_join(all_, pa.scalar("\n", kind))[0].as_buffer().to_pybytes() + b"\n"


def _texts(batch: pa.Table, output: Output) -> pa.Array:
    column = _whole(batch.column(output.place))
    if output.text is not None:
        texts = _quoted(_whole(batch.column(output.text)))
    elif output.kind is Kind.TEXT:
        texts = _quoted(column)
    elif output.kind is Kind.FLOAT:
        texts = _floats(column)
    elif output.kind is Kind.SPAN:
        texts = pa.array([None if span is None else span_text(span) for span in column.to_pylist()], pa.string())
    elif output.kind is Kind.TIME:
        texts = pa.array([None if time is None else time_text(time) for time in column.to_pylist()], pa.string())
    else:
        texts = column.cast(pa.string())
    return pc.fill_null(texts, "") if texts.null_count else texts


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return plain(whole if isinstance(whole, pa.Array) else pa.array([], column.type))


def _quoted(texts: pa.Array) -> pa.Array:
    if not _suspect(texts):
        return texts
    special = pc.fill_null(pc.match_substring_regex(texts, _QUOTED), False)
    if not pc.any(special).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), texts)


def _suspect(texts: pa.Array) -> bool:
    """Whether a sign that may have to be quoted stands anywhere: told of all the bytes at once, which is quick."""
    first, last = (texts.offset, texts.offset + len(texts))
    wide = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    buffers = texts.buffers()
    if buffers[2] is None or not len(texts):
        return False
    offsets = np.frombuffer(buffers[1], wide)
    data = bytes(memoryview(buffers[2])[int(offsets[first]) : int(offsets[last])])
    return any(sign in data for sign in (b"|", b'"', b"\r", b"\n", b" ", b"\t"))


def _floats(column: pa.Array) -> pa.Array:
    """Arrow prints the shortest text that reads back; the form with an exponent is our own."""
    values = np.abs(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False))
    with np.errstate(invalid="ignore"):
        simple = ((values >= 1e-4) & (values < 1e6)) | (values == 0)
    texts = column.cast(pa.string())
    rare = np.flatnonzero(~simple)
    if len(rare):
        patch = pa.array([float_text(value) for value in column.take(pa.array(rare)).to_pylist()], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(~simple), patch)
    return texts


def float_text(value: float) -> str:
    """The shortest text that reads back, with an exponent below -4 and above 5.

    >>> [float_text(value) for value in (1.5, 2.0, 1e6, 0.00001, 1234567.5, -math.inf)]
    ['1.5', '2', '1e+06', '1e-05', '1.2345675e+06', '-Inf']
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, _, exponent = f"{value!r}".partition("e")
    power = math.floor(math.log10(abs(value))) if not exponent else int(exponent)
    if not exponent:
        digits = mantissa.lstrip("-").replace(".", "").lstrip("0")
        whole = mantissa.lstrip("-").partition(".")[0].lstrip("0")
        power = len(whole) - 1 if whole else -1 - (len(mantissa.partition(".")[2]) - len(digits))
    if -4 <= power <= 5:
        plain_text = f"{value:.{max(0, 20)}f}" if exponent else mantissa
        return plain_text.removesuffix(".0")
    digits = mantissa.lstrip("-").replace(".", "").strip("0") or "0"
    shown = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{'-' if value < 0 else ''}{shown}e{power:+03d}"


def span_text(microseconds: int) -> str:
    """A span in seconds, with as many decimals as it has.

    >>> span_text(58_750_000), span_text(-1_000_000)
    ('58.75', '-1')
    """
    whole, part = divmod(abs(microseconds), 1_000_000)
    decimals = f".{part:06d}".rstrip("0") if part else ""
    return f"{'-' if microseconds < 0 else ''}{whole}{decimals}"


def time_text(microseconds: int) -> str:
    """An instant that was computed, in UTC.

    >>> time_text(1_500_000)
    '1970-01-01T00:00:01.5Z'
    """
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return ""
    fraction = f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"
