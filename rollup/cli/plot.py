"""An answer drawn: buckets along the x axis, for each number column and group a line, or a bar where there are few."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from textwrap import shorten
from typing import Any, cast

import pyarrow as pa

from rollup.core.calendar import GMT, to_local, zone
from rollup.core.errors import QueryError
from rollup.core.packages import needed_by

TIMESTAMP = "AGG_TIMESTAMP"
Series = dict[str, tuple[list[datetime], list[float]]]
_SHOWN, _BARS, _TICKS = 8, 48, 12
_MARKERS = "abcdefgh"
_KINDS = (".png", ".svg", ".pdf")


def series(answer: pa.Table, zone_name: str = GMT) -> Series:
    """The lines of an answer, those with the largest values first: x and y of each number column, split by the values of
    its text columns. Times are those of a zone. Raises QueryError where there is nothing to draw."""
    if TIMESTAMP not in answer.schema.names:
        raise QueryError("a plot needs AGG_TIMESTAMP among the selected columns")
    texts = [f.name for f in answer.schema if pa.types.is_string(f.type)]
    numbers = [f.name for f in answer.schema if f.name != TIMESTAMP and _is_number(f.type)]
    if not numbers:
        raise QueryError("a plot needs a column of numbers")
    lines: Series = {}
    for row in sorted(answer.to_pylist(), key=lambda row: row[TIMESTAMP]):
        group = " ".join(str(row[name]) for name in texts)
        for name in numbers:
            if row[name] is not None:
                x, y = lines.setdefault(f"{group} {name}".strip(), ([], []))
                x.append(to_local(row[TIMESTAMP], zone_name))
                y.append(float(row[name]))
    if not lines:
        why = f"has no value in {', '.join(numbers)}" if answer.num_rows else "has no rows"
        raise QueryError(f"there is nothing to draw: the answer {why}", hint="another range, or another `on`")
    return dict(sorted(lines.items(), key=lambda line: -max(map(abs, line[1][1]))))


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def plot(answer: pa.Table, target: str, title: str = "", zone_name: str = GMT) -> None:
    """Draw an answer in the terminal (`-`) or into a file; `title` is the question, as a rule."""
    if target != "-" and Path(target).suffix.lower() not in _KINDS:
        raise QueryError(
            f"{target!r} is no kind of picture", hint=f"'-' for the terminal, or a file {', '.join(_KINDS)}"
        )
    lines = series(answer, zone_name)
    title = shorten(" ".join(title.split()), 100, placeholder=" …")
    (_terminal if target == "-" else _file)(lines, target, title, zone_name)


def value_axis(lines: Series) -> str:
    """The name of the y axis: the number columns that are drawn."""
    return ", ".join(dict.fromkeys(name.rsplit(" ", 1)[-1] for name in lines))


def _split(lines: Series) -> tuple[Series, Series]:
    """The lines that are told apart, and the others."""
    names = list(lines)
    shown = len(names) if len(names) <= _SHOWN else _SHOWN - 1
    return {name: lines[name] for name in names[:shown]}, {name: lines[name] for name in names[shown:]}


def _moments(lines: Series) -> list[datetime]:
    return sorted({moment for x, _ in lines.values() for moment in x})


def _form(moments: Sequence[datetime]) -> str:
    """How times are written: no finer than what tells them apart."""
    if any(moment.second for moment in moments):
        return "%Y-%m-%d %H:%M:%S"
    return "%Y-%m-%d %H:%M" if any(moment.hour or moment.minute for moment in moments) else "%Y-%m-%d"


def _heights(line: tuple[list[datetime], list[float]], moments: Sequence[datetime]) -> list[float]:
    known = dict(zip(*line, strict=True))
    return [known.get(moment, 0.0) for moment in moments]


def _terminal(lines: Series, target: str, title: str, zone_name: str) -> None:
    plotext: Any = import_module("plotext")  # it has no types
    shown, others = _split(lines)
    moments, plain = _moments(shown), not sys.stdout.isatty() or "NO_COLOR" in os.environ
    markers = [*_MARKERS[: len(shown)]] if plain else ["sd"] * len(shown)  # what no colour tells apart, letters do
    plotext.clear_figure()
    if len(moments) * len(shown) <= _BARS:
        labels = [f"{moment:{_form(moments)}}" for moment in moments]
        plotext.multiple_bar(
            labels, [_heights(line, moments) for line in shown.values()], labels=list(shown), marker=markers
        )
    else:
        plotext.date_form("Y-m-d H:M:S")
        for (name, (x, y)), marker in zip(shown.items(), markers, strict=True):
            plotext.plot([f"{moment:%Y-%m-%d %H:%M:%S}" for moment in x], y, label=name, marker=marker)
    plotext.title(shorten(title, 60, placeholder=" …"))  # a longer one is left out without a word
    plotext.xlabel(f"{TIMESTAMP} ({zone_name})")
    plotext.ylabel(value_axis(lines))
    plotext.plot_size(min(100, shutil.get_terminal_size((100, 28)).columns), 28)
    drawn = plotext.build()
    print(plotext.uncolorize(drawn) if plain else drawn)
    if others:
        print(f"({len(others)} more series, with smaller values, are not drawn)")


def _file(lines: Series, target: str, title: str, zone_name: str) -> None:
    with needed_by("a picture", "plot"):
        import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown, others = _split(lines)
    figure, axes = pyplot.subplots(figsize=(10, 5), layout="constrained")
    moments = _moments(shown)
    few = len(moments) * len(shown) <= _BARS
    if few:
        _bars(axes, shown, moments)
    else:
        _lines(axes, shown, others, zone_name)
    if others:
        axes.plot([], [], color="0.75", label=f"{len(others)} others{', not drawn' if few else ''}")
    axes.set(title=title, xlabel=f"{TIMESTAMP} ({zone_name})", ylabel=value_axis(lines))
    axes.title.set_fontsize("small")
    axes.grid(alpha=0.3, axis="y")
    axes.set_axisbelow(True)
    figure.legend(loc="outside right upper", fontsize="small")
    try:
        figure.savefig(target, dpi=120)
    except OSError as problem:
        raise QueryError(f"cannot write {target}: {problem.strerror}", hint="a folder that is there") from None
    finally:
        pyplot.close(figure)


def _bars(axes: Any, shown: Series, moments: Sequence[datetime]) -> None:
    width = 0.8 / len(shown)
    for place, (name, line) in enumerate(shown.items()):
        left = [at - 0.4 + (place + 0.5) * width for at in range(len(moments))]
        axes.bar(left, _heights(line, moments), width, label=name)
    every = -(-len(moments) // _TICKS)
    ticks = range(0, len(moments), every)
    axes.set_xlim(-1, max(len(moments), 4))
    axes.set_xticks(ticks, [f"{moments[at]:{_form(moments)}}" for at in ticks], rotation=30, ha="right")


def _lines(axes: Any, shown: Series, others: Series, zone_name: str) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    for x, y in others.values():
        axes.plot(cast(Any, x), y, color="0.75", linewidth=0.8)
    for name, (x, y) in shown.items():
        axes.plot(cast(Any, x), y, label=name, linewidth=1.4, marker="." if len(x) <= _BARS else "")
    locator = AutoDateLocator(tz=zone(zone_name))
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, tz=zone(zone_name)))
