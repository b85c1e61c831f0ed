"""The notebook extension: `%load_ext rollup`, then questions in cells that begin with `%%rollup CONF [NAME]`.

    %%rollup trades.toml days
    from TradeAggregation within '2018' per 'days' select AGG_TIMESTAMP, symbol, total

shows a table, and a plot where the answer has times and numbers; `days` is then the answer as an Arrow table.
"""

from __future__ import annotations

import html
import shlex
import sys
from typing import TYPE_CHECKING, Any

from rollup.core.errors import QueryError

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 50
TIMESTAMP = "AGG_TIMESTAMP"


class Shown:
    """An answer as a notebook shows it: the first rows as a table, times in a zone."""

    def __init__(self, answer: pa.Table, zone: str) -> None:
        self.answer, self.zone = answer, zone

    def _repr_html_(self) -> str:
        from rollup.cli.query import cell, columns_of

        names = self.answer.schema.names
        heads = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(cell(name, value))}</td>" for name, value in zip(names, row, strict=True))
            + "</tr>"
            for row in zip(*columns_of(self.answer.slice(0, _ROWS), self.zone), strict=True)
        )
        count = self.answer.num_rows
        more = f"the first {_ROWS} of {count:,} rows" if count > _ROWS else f"{count} row{'' if count == 1 else 's'}"
        timed = f", times in {html.escape(self.zone)}" if TIMESTAMP in names else ""
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table><p>{more}{timed}</p>"

    def __repr__(self) -> str:
        return self.answer.to_string(preview_cols=10)


def asked(shell: Any, line: str, text: str) -> None:
    """The answer to the question of a cell; what is wrong with it is one line, not a traceback."""
    from IPython.display import display

    from rollup.ask import opened
    from rollup.core.errors import RollupError
    from rollup.lifecycle.completeness import remarks

    words = shlex.split(line)
    try:
        if not 1 <= len(words) <= 2 or not all(map(str.isidentifier, words[1:])):
            raise QueryError("a cell begins with `%%rollup CONF [NAME]`", hint="e.g. %%rollup trades.toml days")
        asker = opened(words[0])
        answer = asker.query(text.strip())
        said = remarks(asker, text.strip(), answer)
    except RollupError as problem:
        print(f"rollup: {problem}", file=sys.stderr)
        return
    for remark in said:
        print(f"rollup: {remark}", file=sys.stderr)
    display(Shown(answer, asker.zone))
    if TIMESTAMP in answer.schema.names:
        _drawn(answer, asker.zone, text)
    if len(words) == 2:
        shell.user_ns[words[1]] = answer


def _drawn(answer: pa.Table, zone: str, text: str) -> None:
    """A plot of an answer with numbers, where the library for it is there."""
    import tempfile

    from IPython.display import Image, display

    from rollup.cli.plot import plot

    try:
        with tempfile.NamedTemporaryFile(suffix=".png") as file:
            plot(answer, file.name, text, zone)
            display(Image(file.read()))
    except QueryError:
        return  # nothing to draw, or no library to draw it with: the table is there


def load_ipython_extension(shell: Any) -> None:
    """Make `%%rollup` known to a notebook."""
    shell.register_magic_function(lambda line, text: asked(shell, line, text), "cell", "rollup")
