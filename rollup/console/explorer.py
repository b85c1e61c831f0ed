"""What an address of the explorer shows: its view, the questions that it asks, and a chart's columns of the answers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa

from rollup.ask import Asker
from rollup.console.questions import Question, any_of, equals, name, none_of
from rollup.core.calendar import (  # fmt: skip
    Duration,
    bucket_end,
    bucket_start,
    normal_zone,
    parse_timestamp,
    to_local,
)
from rollup.core.errors import QueryError
from rollup.plan.aggregation import TIMESTAMP, Aggregation, Output
from rollup.plan.types import Type
from rollup.retrieval.merging import keys_shown
from rollup.retrieval.questions import bounds

BEFORE = {"period": "the period before", "day": "a day before", "week": "a week before", "year": "a year before"}
"""What a line can be compared with."""
OTHERS = "others"
_LENGTHS = {Duration.DAYS: 86_400_000, Duration.MONTHS: 30 * 86_400_000, Duration.YEARS: 365 * 86_400_000}
_MOST, _TOP = 4000, 8
_EARLIEST, _LATEST = (parse_timestamp(text)[0] for text in ("0001-01-02 00:00:00", "9999-12-30 00:00:00"))


def length(level: Duration) -> int:
    """About how long a bucket of a level is, ms."""
    return level.width_ms or _LENGTHS[level]


@dataclass(frozen=True)
class View:
    """What the explorer shows: a measure of an aggregation over [start, end) (ms), perhaps a line for each value of a key.

    `per` None leaves the level to the range; `width` is that of the chart in pixels.
    """

    aggregation: Aggregation
    measure: Output
    start: int
    end: int
    zone: str
    split: str | None = None
    top: int = _TOP
    where: tuple[tuple[str, str], ...] = ()
    per: Duration | None = None
    before: str | None = None
    width: int = 1000

    @classmethod
    def of(cls, asker: Asker, aggregation: str, given: Mapping[str, str]) -> View:
        """The view of an address. Raises QueryError that names the parameter which is wrong."""
        found = asker.program.aggregations.get(aggregation)
        if found is None:
            raise QueryError(f"there is no aggregation {aggregation!r}", hint=", ".join(asker.program.aggregations))
        zone = normal_zone(given.get("zone") or found.zone)
        keys = keys_shown(found)
        split = _one_of(given, "split", keys)
        start, end = _range(asker, found, zone, given)
        return cls(
            found,
            measures_of(found)[_one_of(given, "measure", measures_of(found)) or next(iter(measures_of(found)))],
            start,
            end,
            zone,
            split,
            _number(given, "top", _TOP, 1, 50),
            tuple((key, given[f"is.{key}"]) for key in keys if given.get(f"is.{key}")),
            _level(found, given),
            _one_of(given, "before", BEFORE),
            _number(given, "width", 1000, 100, 8000),
        )

    @property
    def level(self) -> Duration:
        """The level that is shown: the finest with at most two buckets a pixel."""
        if self.per is not None:
            return self.per
        most = min(2 * self.width, _MOST)
        fitting = (each for each in self.aggregation.levels if (self.end - self.start) / length(each) <= most)
        return next(fitting, self.aggregation.levels[-1])

    @property
    def native(self) -> bool:
        """Whether the buckets are stored ones, not periods of another zone."""
        return self.zone == self.aggregation.zone

    @property
    def words(self) -> str:
        """What stands behind `per`."""
        return self.level.plural if self.native else f"{self.level.plural} in {self.zone}"

    @property
    def conditions(self) -> str:
        """What stands behind `on`."""
        keys = keys_shown(self.aggregation)
        return " and ".join(f"({_is(key, keys[key].type, text)})" for key, text in self.where)

    @property
    def series(self) -> Question:
        """The question of the measure over all keys."""
        columns = (TIMESTAMP, f"merge({name(self.measure.name)}) as value")
        begun = bucket_start(self.start, self.level, self.zone)  # the bucket that the range begins in is shown, too
        return Question(self.aggregation.name, begun, self.end, self.words, columns, self.conditions, (TIMESTAMP,))

    @property
    def ranking(self) -> Question:
        """The question of the values of the key that lines are split by, the largest first."""
        assert self.split is not None
        columns = (name(self.split), self.series.select[1])
        after = f"order by value desc limit {self.top + 1}"
        return replace(self.series, select=columns, group_by=columns[:1], after=after)

    def each(self, values: Sequence[Any]) -> Question:
        """The question of a line for each of some values of that key."""
        assert self.split is not None
        key = name(self.split)
        return replace(
            self.series.where(any_of(self.split, values)),
            select=(TIMESTAMP, key, self.series.select[1]),
            group_by=(TIMESTAMP, key),
        )

    def marked(self, select: Sequence[str], after: str) -> Question:
        """A question of the ledger columns of the shown buckets."""
        return replace(self.series, per=self.level.plural, select=(TIMESTAMP, *select), group_by=(), after=after)

    def link(self, **changes: Any) -> str:
        """The address of this view, with changes; one that is None is left out."""
        now = {
            "measure": self.measure.name, "split": self.split, "top": self.top if self.top != _TOP else None,
            "per": self.per.plural if self.per is not None else None, "before": self.before,
            "zone": None if self.native else self.zone, "from": self.start, "to": self.end,
            **{f"is.{key}": text for key, text in self.where},
        }  # fmt: skip
        return urlencode({key: value for key, value in {**now, **changes}.items() if value is not None})


def measures_of(aggregation: Aggregation) -> dict[str, Output]:
    """The numbers that an answer shows, by name. Raises QueryError where there are none."""
    keys = keys_shown(aggregation)
    found = {each.name: each for each in aggregation.outputs if each.type.numeric and each.name not in keys}
    if not found:
        raise QueryError(f"{aggregation.name} has no column of numbers to draw")
    return found


def _is(key: str, kind: Type, text: str) -> str:
    """The condition of an address that a key has a value, which is a text there."""
    try:
        if kind.numeric:
            return equals(key, (int if kind.integral else Decimal if kind.exact else float)(text))
        if kind is Type.BOOL:
            return equals(key, {"true": True, "false": False}[text.lower()])
    except (ArithmeticError, ValueError, KeyError):
        raise QueryError(f"{text!r} is no value of {key}, which is {kind}") from None
    return equals(key, text)


def _one_of(given: Mapping[str, str], parameter: str, allowed: Sequence[str] | Mapping[str, Any]) -> str | None:
    value = given.get(parameter) or None
    if value is not None and value not in allowed:
        raise QueryError(f"{parameter} is {value!r}", hint=f"one of {', '.join(allowed)}")
    return value


def _number(given: Mapping[str, str], parameter: str, default: int, least: int, most: int) -> int:
    text = given.get(parameter) or str(default)
    if not text.isdecimal() or not least <= int(text[:9]) <= most:
        raise QueryError(f"{parameter} is {text!r}", hint=f"a whole number from {least} to {most}")
    return int(text)


def _level(aggregation: Aggregation, given: Mapping[str, str]) -> Duration | None:
    found = _one_of(given, "per", [level.plural for level in aggregation.levels])
    return None if found is None else Duration.parse(found)


def _range(asker: Asker, aggregation: Aggregation, zone: str, given: Mapping[str, str]) -> tuple[int, int]:
    """The range of an address: `range` as a text of `within`, or `from` and `to`, or all that there is."""
    if text := given.get("range"):
        return bounds([text], zone)
    ends = [_instant(given[each], zone) for each in ("from", "to") if given.get(each)]
    start, end = ends if len(ends) == 2 else whole(asker, aggregation)
    if start >= end:
        raise QueryError("the range ends before it begins", hint="from is before to")
    return max(start, _EARLIEST), min(end, _LATEST)


def _instant(text: str, zone: str) -> int:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 16 else parse_timestamp(text, zone)[0]


def whole(asker: Asker, aggregation: Aggregation) -> tuple[int, int]:
    """The range of all that an aggregation holds, to the finest level's buckets; the last day where it holds nothing."""
    start, end = _EARLIEST, _LATEST
    first = last = 0
    for level in reversed(aggregation.levels):
        ends = [
            Question(aggregation.name, *within, level.plural, (f"{what}({TIMESTAMP}) as at",))
            for what, within in (("min", (start, min(end, first + length(level) * 400) if first else end)),
                                 ("max", (max(start, last), end)))
        ]  # fmt: skip
        found = [asker.query(each.text).to_pylist() for each in ends]
        if not all(found):
            break
        first, last = (rows[0]["at"] for rows in found)
        start, end = first, bucket_end(last, level, aggregation.zone)
    if not last:
        now = time.time_ns() // 1_000_000
        return now - 86_400_000, now
    return start, end


@dataclass(frozen=True)
class Chart:
    """Lines over shared instants, and what a reader should know beside them.

    `at`: the starts of the buckets in order, ms. `lines`: a name and a value or None for each. `kind` of a line is
    "value", "others" or "before". `open_from`: the first bucket that events may still change. `corrected`: revisions
    and late events of buckets that were corrected.
    """

    view: View
    at: Sequence[int]
    lines: Sequence[tuple[str, str, Sequence[float | None]]]
    rows: int
    open_from: int | None
    corrected: Mapping[int, tuple[int, int]]
    said: Sequence[str]
    asked: Question

    def plain(self) -> dict[str, Any]:
        """As data for JSON."""
        view = self.view
        return {
            "level": self.view.words, "zone": view.zone, "from": view.start, "to": view.end, "rows": self.rows,
            "measure": view.measure.name, "at": list(self.at), "openFrom": self.open_from,
            "lines": [{"name": title, "kind": kind, "values": list(values)} for title, kind, values in self.lines],
            "corrected": {str(at): each for at, each in self.corrected.items()}, "said": list(self.said),
            "link": view.link(), "step": length(view.level), "siddhi": self.asked.text,
        }  # fmt: skip

    def table(self) -> pa.Table:
        """The answer as columns: when each bucket starts, and a column a line."""
        starts = pa.array(self.at, pa.int64()).cast(pa.timestamp("ms", tz=self.view.zone))
        return pa.table([starts, *(pa.array(values) for _, _, values in self.lines)],
                        names=["time", *(title for title, _, _ in self.lines)])  # fmt: skip

    def command(self, conf: str) -> str:
        """The question on the command line."""
        return f"rollup query {shlex.quote(conf)} {shlex.quote(self.asked.text)}"

    def python(self, conf: str) -> str:
        """The question in Python."""
        return f"import rollup\n\nanswer = rollup.query({conf!r}, {self.asked.text!r})\n"


def chart(asker: Asker, view: View) -> Chart:
    """The chart of a view. Raises a RollupError when a question of it is refused."""
    said = list[str]()
    found = dict[tuple[str, str], dict[int, float | None]]()
    rows, asked = 0, view.series

    def read(
        question: Question, title: Callable[[dict[str, Any]], str], kind: str, shift: Callable[[int], int]
    ) -> None:
        nonlocal rows
        for row in asker.query(question.text).to_pylist():
            rows += 1
            found.setdefault((title(row), kind), {})[shift(row[TIMESTAMP])] = _drawn(row["value"])

    def stays(at: int) -> int:
        return at

    if view.split is None:
        read(view.series, lambda _: view.measure.name, "value", stays)
        if view.before is not None:
            earlier = _earlier(view)
            forward = _forward(view)
            before = rows
            read(earlier.series, lambda _: BEFORE[view.before or ""], "before", forward)
            if rows == before:
                said.append(f"nothing is stored of {BEFORE[view.before]}")
    else:
        split = view.split
        ranked = [row[split] for row in asker.query(view.ranking.text).to_pylist()]
        values, more = ranked[: view.top], len(ranked) > view.top
        if values:
            found |= {(_shown(value), "value"): {} for value in values}
            asked = view.each(values)
            read(asked, lambda row: _shown(row[split]), "value", stays)
        if more:
            read(view.series.where(none_of(split, values)), lambda _: OTHERS, "others", stays)
        if view.before is not None:
            said.append("a comparison is of one line: choose no key to split by")
    instants = sorted({at for line in found.values() for at in line})
    lines = [(title, kind, [line.get(at) for at in instants]) for (title, kind), line in found.items()]
    if not instants:
        first, last = (f"{to_local(at, view.zone):%Y-%m-%d %H:%M}" for at in whole(asker, view.aggregation))
        said.append(f"there is nothing in this range; {view.aggregation.name} goes from {first} to {last}")
    open_from, corrected = (_open_from(asker, view), _corrected(asker, view)) if view.native else (None, {})
    if not view.native:
        said.append(
            f"which buckets are open is not told of periods in {view.zone}, only of buckets in {view.aggregation.zone}"
        )
    return Chart(view, instants, lines, rows, open_from, corrected, said, asked)


def _shown(value: Any) -> str:
    return "(null)" if value is None else str(value)


def _drawn(value: Any) -> float | None:
    """A value as a line has it: a decimal as the double near it, which no eye can tell apart."""
    return float(value) if isinstance(value, Decimal) else value


def _open_from(asker: Asker, view: View) -> int | None:
    question = view.marked((), f"having AGG_FINAL == false order by {TIMESTAMP} limit 1")
    rows = asker.query(question.text).to_pylist()
    return rows[0][TIMESTAMP] if rows else None


def _corrected(asker: Asker, view: View) -> dict[int, tuple[int, int]]:
    """Revisions and corrected events of the buckets that late events have corrected."""
    select = ("AGG_REVISION as revision", "AGG_LATE_CORRECTED as events")
    found = dict[int, tuple[int, int]]()
    for row in asker.query(view.marked(select, "having revision > 0").text).to_pylist():
        revision, events = found.get(row[TIMESTAMP], (0, 0))
        found[row[TIMESTAMP]] = max(revision, row["revision"]), events + row["events"]
    return found


def _earlier(view: View) -> View:
    """The view of the time that a view is compared with."""
    start, end = (_moved(view, at, -1) for at in (view.start, view.end))
    return replace(view, start=start, end=end, per=view.level, before=None)


def _forward(view: View) -> Callable[[int], int]:
    """Where a bucket of the earlier time lies in the later one: on the same bucket of the local calendar."""
    return lambda at: bucket_start(_moved(view, at, 1), view.level, view.zone)


def _moved(view: View, at: int, by: int) -> int:
    """An instant so many days or years on, at the same time of the local clock."""
    import pendulum

    if view.before == "period":
        return at + by * (view.end - view.start)
    moved = pendulum.instance(to_local(at, view.zone)).add(**{f"{view.before}s": by})
    return moved.int_timestamp * 1000 + moved.microsecond // 1000
