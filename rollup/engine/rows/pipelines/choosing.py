"""An event to those of a pipeline whom it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollup.engine.index import FEW, Entry, FilterIndex, Test, both_tests, equal
from rollup.engine.row import Row
from rollup.engine.rows.pipelines.steps import Take

_TRIED = 64
"""So many events may be left before it is asked whether a pipeline pays."""


def nothing(place: int, row: Row) -> bool:
    """For an entry by which one who hears the event hears it once more."""
    return True


def to_those_concerned(index: FilterIndex, takes: Mapping[Entry, Take]) -> Take:
    """An event to all whom it concerns, in the order of `takes`; that is known before the first of them has it."""
    every = [take for take in takes.values() if take is not nothing]
    if all(not entry.equals and entry.test is None for entry in takes):
        return every[0] if len(every) == 1 else _to_all(every)
    if len(takes) <= FEW and not any(entry.equals for entry in takes):
        return _to_those_that_pass([(entry.test, take) for entry, take in takes.items()])
    matches, places = index.matches, {entry: place for place, entry in enumerate(takes)}

    def some(place: int, row: Row) -> bool:
        for entry in sorted(matches(row), key=places.__getitem__):
            takes[entry](place, row)
        return True

    return some


class Counted:
    """How many events a pipeline was for that is not for all, and how many it was not for."""

    def __init__(self) -> None:
        self.taken = self.left = 0

    @property
    def pays(self) -> bool:
        """Whether it costs less than it saves: an event that is left costs more than without a pipeline."""
        return self.left < _TRIED or self.left < self.taken


def to_those_known(index: FilterIndex, takes: Mapping[Entry, Take], counted: Counted) -> Take:
    """An event that concerns these alone; one that concerns others is none for the pipeline."""
    matches, places, known = index.matches, {entry: place for place, entry in enumerate(takes)}, takes.get

    def some(place: int, row: Row) -> bool:
        entries = matches(row)
        if len(entries) == 1:
            take = known(entries[0])
            if take is not None:
                counted.taken += 1
                return take(place, row)
        elif all([entry in places for entry in entries]):
            counted.taken += 1
            for entry in sorted(entries, key=places.__getitem__):
                takes[entry](place, row)
            return True
        counted.left += 1
        return False

    return some


def to_those_within(narrowed: Mapping[int, Any], takes: Mapping[Entry, Take]) -> Take:
    """An event of a partition, which has those `narrowed` values, to all in it whom it concerns, in the order of `takes`."""
    tested = [(_further(entry, narrowed), take) for entry, take in takes.items()]
    if all(test is None for test, _ in tested):
        return tested[0][1] if len(tested) == 1 else _to_all([take for _, take in tested])
    return _to_those_that_pass(tested)


def _further(entry: Entry, narrowed: Mapping[int, Any]) -> Test | None:
    """What an event of the partition has to pass, too."""
    equals = {place: value for place, value in entry.equals.items() if narrowed.get(place, entry) != value}
    return both_tests(_having(equals) if equals else None, entry.test)


def passing(entry: Entry) -> Test | None:
    """Whether an event concerns an entry; None where all do."""
    return both_tests(_having(entry.equals) if entry.equals else None, entry.test)


def _having(equals: Mapping[int, Any]) -> Test:
    """Whether an event has these values."""
    if len(equals) == 1:
        ((place, value),) = equals.items()
        if value == value:
            return lambda row: row.values[place] == value
    return lambda row: equal(row.values, equals)


def unless(guards: Sequence[Test], take: Take) -> Take:
    """An event that passes none of the tests; one that does is none for the pipeline."""
    if len(guards) == 1:
        (guard,) = guards
        return lambda place, row: not guard(row) and take(place, row)
    if len(guards) == 2:
        one, other = guards
        return lambda place, row: not (one(row) or other(row)) and take(place, row)
    return lambda place, row: not any(guard(row) for guard in guards) and take(place, row)


def _to_all(every: Sequence[Take]) -> Take:
    def all_of_them(place: int, row: Row) -> bool:
        for take in every:
            take(place, row)
        return True

    return all_of_them


def _to_those_that_pass(tested: Sequence[tuple[Test | None, Take]]) -> Take:
    """So few are asked one by one sooner than they are found in the index."""
    if len(tested) == 2:
        return _to_either(*tested)

    def some(place: int, row: Row) -> bool:
        for take in [take for test, take in tested if test is None or test(row)]:
            take(place, row)
        return True

    return some


def _to_either(one: tuple[Test | None, Take], other: tuple[Test | None, Take]) -> Take:
    (first, takes_first), (second, takes_second) = one, other

    def some(place: int, row: Row) -> bool:
        passes_first = first is None or first(row)
        passes_second = second is None or second(row)
        if passes_first:
            takes_first(place, row)
        if passes_second:
            takes_second(place, row)
        return True

    return some
