"""An answer drawn: buckets along the x axis, one line a number column and group."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import import_module
from textwrap import shorten
from typing import Any, cast

import pyarrow as pa

from rollup.core.errors import QueryError

TIMESTAMP = "AGG_TIMESTAMP"
_TIME = f"{TIMESTAMP} (UTC)"
Series = dict[str, tuple[list[datetime], list[float]]]


def series(answer: pa.Table) -> Series:
    """The lines of an answer: x and y of each number column, split by the values of its text columns."""
    if TIMESTAMP not in answer.schema.names:
        raise QueryError("a plot needs AGG_TIMESTAMP among the selected columns")
    texts = [f.name for f in answer.schema if pa.types.is_string(f.type)]
    numbers = [
        f.name
        for f in answer.schema
        if f.name != TIMESTAMP and (pa.types.is_integer(f.type) or pa.types.is_floating(f.type))
    ]
    if not numbers:
        raise QueryError("a plot needs a column of numbers")
    lines: Series = {}
    for row in sorted(answer.to_pylist(), key=lambda row: row[TIMESTAMP]):
        group = " ".join(str(row[name]) for name in texts)
        for name in numbers:
            if row[name] is not None:
                x, y = lines.setdefault(f"{group} {name}".strip(), ([], []))
                x.append(datetime.fromtimestamp(row[TIMESTAMP] / 1000, UTC))
                y.append(float(row[name]))
    return lines


def plot(answer: pa.Table, target: str, title: str = "") -> None:
    """Draw an answer in the terminal (`-`) or into a PNG file; `title` is the question, as a rule."""
    lines = series(answer)
    title = shorten(" ".join(title.split()), 100, placeholder=" …")
    if target == "-":
        _terminal(lines, title)
    else:
        _png(lines, target, title)


def value_axis(lines: Series) -> str:
    """The name of the y axis: the number columns that are drawn."""
    return ", ".join(dict.fromkeys(name.rsplit(" ", 1)[-1] for name in lines))


def _terminal(lines: Series, title: str) -> None:
    plotext: Any = import_module("plotext")  # it has no types
    plotext.clear_figure()
    plotext.date_form("Y-m-d H:M:S")
    for name, (x, y) in lines.items():
        plotext.plot([f"{moment:%Y-%m-%d %H:%M:%S}" for moment in x], y, label=name)
    plotext.title(shorten(title, 60, placeholder=" …"))  # a longer one is left out without a word
    plotext.xlabel(_TIME)
    plotext.ylabel(value_axis(lines))
    plotext.plot_size(100, 28)
    plotext.show()


def _png(lines: Series, target: str, title: str) -> None:
    try:
        import matplotlib
    except ImportError:
        raise QueryError("a PNG needs the package matplotlib", hint="pip install 'rollup[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(10, 5), layout="constrained")
    for name, (x, y) in lines.items():
        axes.plot(cast(Any, x), y, label=name, linewidth=1.4)
    axes.set(title=title, xlabel=_TIME, ylabel=value_axis(lines))
    axes.title.set_fontsize("small")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", fontsize="small", ncols=max(1, len(lines) // 12))
    figure.autofmt_xdate()
    figure.savefig(target, dpi=120)
    pyplot.close(figure)
