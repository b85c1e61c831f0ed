"""Local time of many instants at once: what `rollup.core.calendar` says of one, over columns, as functions of DuckDB.

Of a zone's file the instants at which its clocks may change are read; what they show from then on is asked of `zoneinfo`.
Behind the last of them a zone's rule repeats every 400 years, as the calendar does.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property, lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from duckdb.sqltypes import BIGINT, INTEGER, VARCHAR
from numpy.typing import NDArray

from rollup.core import zones
from rollup.core.calendar import Duration, zone

Instants = NDArray[np.int64]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 86_400_000
_CYCLE = 146_097 * _DAY
_HORIZON = 4_102_444_800_000
"""2100: from here on every zone follows a rule."""
_YEAR, _MONTH = 366 * 86_400, 30 * 86_400


@dataclass(frozen=True, eq=False)
class _Clocks:
    """What a zone's clocks show up to some year: from `since` on, `shift` milliseconds more than UTC's."""

    since: Instants
    shift: Instants

    @cached_property
    def until(self) -> Instants:
        """What the clocks show at most at the end of each stretch, and of those before it."""
        return np.maximum.accumulate(self.since[1:] + self.shift[:-1])

    @cached_property
    def read_until(self) -> Instants:
        """What the clocks show where the next stretch counts: of a time that comes twice the first is meant."""
        return self.since[1:] + np.maximum(self.shift[:-1], self.shift[1:])

    def breaks(self, width: int) -> Instants:
        """Where each stretch begins, if the clocks change there by what is no multiple of a width; else before all time."""
        if width not in self._breaks:
            odd = np.diff(self.shift, prepend=self.shift[0]) % width != 0
            self._breaks[width] = np.where(odd, self.since, self.since[0])
        return self._breaks[width]

    @cached_property
    def _breaks(self) -> dict[int, Instants]:
        return {}


class Zone:
    """A zone, of instants that are whole milliseconds since 1970."""

    def __init__(self, name: str) -> None:
        self._name = name

    def start(self, instants: Instants, level: Duration) -> Instants:
        """Starts of the buckets that hold instants."""
        clocks, near, back = self._clocks(instants)
        at = np.searchsorted(clocks.since, near, side="right") - 1
        local = near + clocks.shift[at]
        if level.width_ms is not None:
            return np.maximum(instants - local % level.width_ms, clocks.breaks(level.width_ms)[at] + back)
        found = self._first(_floor(local, level) + back)
        # Where the clocks go back over midnight, the day that has begun goes on.
        again = near - clocks.since[at] < _DAY
        if again.any():
            later = self._first(
                _add(_floor(local[again], level), level, 1) + (back if isinstance(back, int) else back[again])
            )
            found[again] = np.where(later <= instants[again], later, found[again])
        return found

    def end(self, starts: Instants, level: Duration, count: int) -> Instants:
        """Ends of the buckets that start at instants, or of `count` buckets from there on."""
        if level.width_ms is not None:
            return self.start(starts + count * level.width_ms, level)
        clocks, near, back = self._clocks(starts)
        local = near + clocks.shift[np.searchsorted(clocks.since, near, side="right") - 1]
        return self._first(_add(_floor(local, level), level, count) + back)

    def instant(self, walls: Instants) -> Instants:
        """The instants at which the clocks show `walls`: of two the first; of none, what they would show unchanged."""
        clocks, near, _ = self._clocks(walls)
        return walls - clocks.shift[np.searchsorted(clocks.read_until, near, side="right")]

    def _first(self, walls: Instants) -> Instants:
        """The first instants at which the clocks show `walls` or a later time."""
        clocks, near, back = self._clocks(walls)
        at = np.searchsorted(clocks.until, near, side="right")
        return np.maximum(clocks.since[at], near - clocks.shift[at]) + back

    def _clocks(self, times: Instants) -> tuple[_Clocks, Instants, Instants | int]:
        """The clocks, times that they know, and how much earlier than the given times these are."""
        if not times.size or int(times.max()) < _HORIZON:
            return self._near, times, 0
        back = np.maximum(times - _HORIZON, 0) // _CYCLE * _CYCLE
        return self._far, times - back, back

    @property
    def clocks(self) -> Mapping[str, Sequence[int]]:
        """What a server needs to read wall clocks as `instant` and days as `start` do, up to the year 2100."""
        near = self._near
        columns = {"since": near.since, "shift": near.shift, "walls": near.read_until, "ends": near.until}
        return {name: column.tolist() for name, column in columns.items()}

    @cached_property
    def _near(self) -> _Clocks:
        return self._made(_HORIZON // 1000 + _YEAR)

    @cached_property
    def _far(self) -> _Clocks:
        return self._made((_HORIZON + _CYCLE) // 1000 + _YEAR)

    def _made(self, limit: int) -> _Clocks:
        place = zone(self._name)
        changes = _changes(zones.content(self._name)) if self._name in zones.names() else []
        at = changes[-1] if changes else limit
        while at < limit:
            after = at + _MONTH
            if _shift(place, at) != _shift(place, after):
                now = _shift(place, at)
                changes.append(at + bisect_left(range(_MONTH), True, key=lambda s: _shift(place, at + s) != now))
            at = after
        first = _shift(place, (changes[0] if changes else 0) - 1)
        since = [-(1 << 62), *(change * 1000 for change in changes)]
        return _Clocks(np.array(since, np.int64), np.array([first, *(_shift(place, at) for at in changes)], np.int64))


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Zone:
    """The zone of an offset or a name."""
    return Zone(name)


def _shift(place: tzinfo, second: int) -> int:
    found = (_EPOCH + timedelta(seconds=second)).astimezone(place).utcoffset()
    assert found is not None
    return found // timedelta(milliseconds=1)


def _changes(content: bytes) -> list[int]:
    """The seconds at which a zone's clocks may change, by its file (RFC 8536), those of years that `datetime` has."""
    counts = struct.Struct(">4s c 15x 6l")
    _, _, utc, standard, leaps, times, types, letters = counts.unpack_from(content)
    second = counts.size + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
    times = counts.unpack_from(content, second)[5]
    found = struct.unpack_from(f">{times}q", content, second + counts.size)
    return [at for at in found if at > -62_000_000_000]


def _floor(local: Instants, level: Duration) -> Instants:
    if level is Duration.DAYS:
        return local - local % _DAY
    return _milliseconds(_dates(local, level))


def _add(local: Instants, level: Duration, count: int) -> Instants:
    return local + count * _DAY if level is Duration.DAYS else _milliseconds(_dates(local, level) + count)


def _dates(local: Instants, level: Duration) -> NDArray[np.datetime64]:
    return local.astype("datetime64[ms]").astype("datetime64[M]" if level is Duration.MONTHS else "datetime64[Y]")


def _milliseconds(dates: NDArray[np.datetime64]) -> Instants:
    return dates.astype("datetime64[ms]").astype(np.int64)


# As functions of DuckDB


def register(database: duckdb.DuckDBPyConnection) -> None:
    """Make `zone_start(time, zone, level)`, `zone_end(start, zone, level, count)` and `zone_instant(wall, zone)` known."""
    functions = ((_start, 1), (_end, 2), (_instant, 0))
    for function, numbers in functions:
        types: list[Any] = [BIGINT, VARCHAR, *[INTEGER] * numbers]
        name: Any = f"zone{function.__name__}"
        database.create_function(name, function, types, BIGINT, type=_ARROW, null_handling=_NULLS)


_ARROW: Any = "arrow"
_NULLS: Any = "special"


def _start(times: Any, names: Any, levels: Any) -> pa.Array:
    level = _only(levels)
    return _in_zones(times, names, lambda zone, at: zone.start(at, Duration(level)))


def _end(times: Any, names: Any, levels: Any, counts: Any) -> pa.Array:
    level, count = _only(levels), _only(counts)
    return _in_zones(times, names, lambda zone, at: zone.end(at, Duration(level), count))


def _instant(times: Any, names: Any) -> pa.Array:
    return _in_zones(times, names, Zone.instant)


def _only(numbers: Any) -> int:
    """A number that is the same in all rows: a plan says it."""
    return numbers[0].as_py()


def _in_zones(times: Any, names: Any, found_in: Callable[[Zone, Instants], Instants]) -> pa.Array:
    absent = None
    if times.null_count or names.null_count:
        absent = times.is_null().to_numpy() | names.is_null().to_numpy()
        times = times.fill_null(0)
    values, places = times.to_numpy(), names.combine_chunks().dictionary_encode()
    known = places.dictionary.to_pylist()
    if len(known) == 1:
        return pa.array(found_in(zone_of(known[0]), values), mask=absent)
    codes, found = places.indices.fill_null(-1).to_numpy(), np.zeros(len(values), np.int64)
    for code, name in enumerate(known):
        rows = codes == code
        found[rows] = found_in(zone_of(name), values[rows])
    return pa.array(found, mask=absent)
