"""TUMBLE and HOP in queries over tables: every row is there at once, so a window is a value that rows are grouped by."""

from __future__ import annotations

from sqlglot import exp

from rollup.engine.flows.grouping import start_of
from rollup.lang.calcite.semantics import interval, refused, time_of_day
from rollup.lang.calcite.windows import stamp

_HOPS = ("HOP", "HOP_START", "HOP_END")
_TUMBLES = ("TUMBLE", "TUMBLE_START", "TUMBLE_END")
_START = exp.column("start", table="hops of the query", quoted=True)


def relational_windows(tree: exp.Expr) -> None:
    """TUMBLE becomes the start of its bucket; HOP joins each row with the starts of the windows that hold it."""
    for select in list(tree.find_all(exp.Select)):
        _hop(select)
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.upper() in _TUMBLES:
            _tumble(node)


def _tumble(node: exp.Anonymous) -> None:
    name = node.name.upper()
    if len(node.expressions) < 2:
        raise refused(node, f"{name} needs its interval in a query over tables")
    size = interval(node.expressions[1])
    align = time_of_day(node.expressions[2]) if len(node.expressions) > 2 else 0
    start = start_of(node.expressions[0], size, align)
    node.replace(_end(start, size) if name.endswith("END") else stamp(start, 0))  # over the very key that is grouped by


def _end(start: exp.Expr, width: int) -> exp.Expr:
    return exp.Add(
        this=stamp(start, 0), expression=exp.Interval(this=exp.Literal.string(str(width)), unit=exp.var("MICROSECOND"))
    )


def _hop(select: exp.Select) -> None:
    calls = [
        each for each in select.find_all(exp.Anonymous) if each.name.upper() in _HOPS and each.parent_select is select
    ]
    if not calls:
        return
    group = select.args.get("group")
    windows = {
        each for each in calls if each.name.upper() == "HOP" and group is not None and each.find_ancestor(exp.Group)
    }
    if len(windows) != 1:
        raise refused(calls[0], f"{calls[0].name.upper()} needs one HOP in GROUP BY", "HOP(t, emit, retain[, time])")
    (window,) = windows
    every, width, align = _read(window)
    given = list(window.expressions)
    for each in calls:
        _placed(each, given, width)
    time = given[0]
    first = exp.Sub(this=start_of(time, every, align + width), expression=exp.Literal.number(width - every))
    last = exp.Add(this=start_of(time, every, align), expression=exp.Literal.number(1))
    starts = exp.Anonymous(this="range", expressions=[exp.Paren(this=first), last, exp.Literal.number(every)])
    rows = exp.select(exp.alias_(exp.Anonymous(this="unnest", expressions=[starts]), "start", quoted=True))
    hops = exp.Lateral(
        this=rows.subquery(), alias=exp.TableAlias(this=exp.to_identifier("hops of the query", quoted=True))
    )
    select.append("joins", exp.Join(this=hops, kind="CROSS"))


def _read(window: exp.Expr) -> tuple[int, int, int]:
    """How often a window begins, how long it is, and from when windows are counted, in microseconds."""
    given = window.expressions
    if not 3 <= len(given) <= 4:
        raise refused(window, f"HOP has {len(given)} arguments", "HOP(t, emit, retain[, time])")
    every, width = interval(given[1]), interval(given[2])
    if every <= 0 or width <= 0:
        raise refused(window, "HOP needs intervals above zero", "as INTERVAL '1' HOUR")
    return every, width, time_of_day(given[3]) if len(given) > 3 else 0


def _placed(node: exp.Anonymous, given: list[exp.Expr], width: int) -> None:
    name = node.name.upper()
    if len(node.expressions) > 1 and node.expressions != given:
        raise refused(
            node,
            f"Call to auxiliary group function '{name}' must have matching call to group function 'HOP' in GROUP BY clause",
        )
    start = _START.copy()
    node.replace(start if name == "HOP" else _end(start, width) if name.endswith("END") else stamp(start, 0))
