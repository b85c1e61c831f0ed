"""The filter index: which statements, partitions and waiting patterns an event concerns.

A filter is a conjunction. Its equalities with known values (constants, or what a partial match has bound) are hash
look-ups; below them a range of one field, or one range for each way of an `or`, is found by its bounds. So the cost of
an event does not grow with the filters that do not match it; what else a filter says is tested only for those that were
found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Protocol

from rollup.engine.ranges import Bounds, Intervals
from rollup.engine.row import NAN, Row, comparable
from rollup.engine.timers import Order

Test = Callable[[Row], bool]
"""Whether a row passes."""


def both_tests(one: Test | None, other: Test | None) -> Test | None:
    """One test after the other; None: every row passes."""
    if one is None or other is None:
        return one or other
    return lambda row: one(row) and other(row)


def equal(values: Sequence[Any] | Mapping[int, Any], equals: Mapping[int, Any]) -> bool:
    """Whether values are, at some places, the same keys as others.

    >>> equal((1, float("nan")), {1: float("nan")}), equal((1, 2.0), {0: 2})
    (True, False)
    """
    return comparable([values[place] for place in equals]) == comparable(list(equals.values()))


class Receiver(Protocol):
    """Who gets the events that pass a filter."""

    order: Order

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event, and all of its inputs that it concerns, in the order in which their entries were added."""
        ...


Interval = tuple[int, Any, Any]
"""A field's place, the least and the greatest value that it may have; None: no bound."""


FEW = 4
"""So many conditions are tested sooner than their ranges are looked up."""
Place = tuple[Order, int]
"""Where an entry stands among those that an event concerns: by its receiver, then as it was added."""


@dataclass(eq=False)
class Entry:
    """A filter in the index: `equals` by place of the field, then `test`; the events go to `receiver`'s `input`.

    An event that passes is in one of the `ways`, where there are any. Entries with the very same `test` say the same.
    """

    receiver: Receiver
    input: int
    equals: Mapping[int, Any] = field(default_factory=dict[int, Any])
    test: Callable[[Row], bool] | None = None
    number: int = 0
    ways: tuple[Interval, ...] = ()
    inputs: tuple[int, ...] = field(init=False)
    """Its input, as its receiver is told of it."""
    place: Place = field(init=False)
    key: tuple[tuple[int, ...], Any] | None = None
    """Where its known values stand, and these as keys; None where there are none, or before it is added."""

    def __post_init__(self) -> None:
        self.inputs = (self.input,)


class FilterIndex:
    """The filters over the events of one stream.

    >>> class Log:
    ...     order = (0, 0)
    ...     def receive(self, inputs, row): ...
    >>> index = FilterIndex()
    >>> one, two = Entry(Log(), 0, {0: "IBM"}), Entry(Log(), 1, {}, lambda row: row.values[1] > 10, ways=((1, 10, None),))
    >>> index.add(one); index.add(two)
    >>> [entry.input for entry in index.matches(Row(1, ("IBM", 20)))], len(list(index.matches(Row(2, ("A", 1)))))
    ([0, 1], 0)
    """

    def __init__(self) -> None:
        self.number = 0
        """The number of the newest entry."""
        self._entries = 0
        self._lookups: dict[tuple[int, ...], dict[Any, Bucket]] = {}
        self._others = Bucket()

    def __len__(self) -> int:
        """How many entries."""
        return self._entries

    @property
    def entries(self) -> list[Entry]:
        """All of them, in the order in which an event that concerned every one would be told to them."""
        buckets = [self._others, *(bucket for lookup in self._lookups.values() for bucket in lookup.values())]
        found = [entry for bucket in buckets for family in bucket.families.values() for entry in family.entries]
        return sorted(found, key=_PLACE)

    def add(self, entry: Entry) -> None:
        """Events that pass from now on."""
        self.number += 1
        self._entries += 1
        entry.number = self.number
        entry.place = entry.receiver.order, self.number
        if not entry.equals:
            self._others.add(entry)
            return
        places, values = entry.key = _key(entry.equals)
        lookup = self._lookups.setdefault(places, {})
        bucket = lookup.get(values)
        if bucket is None:
            bucket = lookup[values] = Bucket()
        bucket.add(entry)

    def renew(self, entry: Entry, input: int) -> None:
        """An entry that is there goes on as another input, as one that is added now."""
        self.number += 1
        entry.input, entry.inputs, entry.number = input, (input,), self.number
        entry.place = entry.receiver.order, self.number

    def remove(self, entry: Entry) -> None:
        """Events no longer; an entry that is not there is no error, since a partial match may end twice at once."""
        if not entry.equals:
            self._entries -= self._others.remove(entry)
            return
        if entry.key is None:
            return
        places, values = entry.key
        found = self._lookups.get(places, {})
        bucket = found.get(values)
        if bucket is not None:
            self._entries -= bucket.remove(entry)
            if not bucket.families:
                del found[values]
                if not found:
                    del self._lookups[places]

    def matches(self, row: Row) -> list[Entry]:
        """The entries that an event concerns: by deployment and partition, then as they were added."""
        values, buckets = row.values, [self._others]
        found: list[Entry] = []
        for places, lookup in self._lookups.items():
            if len(places) == 1:
                wanted = values[places[0]]
                bucket = lookup.get(wanted if wanted == wanted else NAN) if wanted is not None else None
            else:
                wanted = tuple([value if (value := values[place]) == value else NAN for place in places])
                bucket = lookup.get(wanted) if None not in wanted else None
            if bucket is not None:
                buckets.append(bucket)
        for bucket in buckets:
            for family in bucket.families.values() if bucket.few else bucket.found(values):
                if (test := family.test) is None or test(row):
                    found += family.entries
        if len(found) > 1:
            found.sort(key=_PLACE)
        return found


class Family:
    """Entries with one test, which an event is asked once."""

    __slots__ = ("entries", "test", "ways")

    def __init__(self, entry: Entry) -> None:
        self.test, self.ways = entry.test, entry.ways
        self.entries = {entry: None}


class Bucket:
    """Entries that no equality tells apart, or that share them all; once their tests are not few, by their ways."""

    __slots__ = ("_between", "_one_sided", "_plain", "families", "few")

    def __init__(self) -> None:
        self.families: dict[Test | None, Family] = {}
        self.few = True
        """Whether all are tested sooner than looked up."""
        self._plain: dict[Family, None] | None = None
        """Those without ways; None while nobody is looked up by them."""
        self._one_sided: dict[tuple[int, bool, bool], Bounds] = {}
        self._between: dict[tuple[int, bool], Intervals] = {}

    def add(self, entry: Entry) -> None:
        """One more."""
        known = self.families.get(entry.test)
        if known is not None:
            known.entries[entry] = None
            return
        family = self.families[entry.test] = Family(entry)
        if self._plain is not None:
            self._look_up(family)
        elif entry.ways and len(self.families) > FEW:
            self._plain = {}
            for each in self.families.values():
                self._look_up(each)
        self._count()

    def _count(self) -> None:
        self.few = self._plain is None or len(self.families) <= FEW

    def _look_up(self, family: Family) -> None:
        """From now on a family is found by its ways."""
        if not family.ways and self._plain is not None:
            self._plain[family] = None
        for number, (place, low, high) in enumerate(family.ways):
            text = isinstance(high if low is None else low, str)
            if low is None or high is None:
                bounds = self._one_sided.setdefault((place, text, high is None), Bounds(high is None))
                bounds.add(high if low is None else low, family)
            else:
                self._between.setdefault((place, text), Intervals()).add(low, high, (family, number))

    def remove(self, entry: Entry) -> bool:
        """One less; whether it was there."""
        family = self.families.get(entry.test)
        if family is None or entry not in family.entries:
            return False
        del family.entries[entry]
        if family.entries:
            return True
        del self.families[entry.test]
        if self._plain is not None:
            self._forget(self._plain, family)
            self._count()
        return True

    def _forget(self, plain: dict[Family, None], family: Family) -> None:
        """A family without entries is no longer found."""
        plain.pop(family, None)
        for number, (place, low, high) in enumerate(family.ways):
            text = isinstance(high if low is None else low, str)
            if low is None or high is None:
                self._one_sided[place, text, high is None].remove(high if low is None else low, family)
            else:
                self._between[place, text].remove((family, number))

    def found(self, values: Sequence[Any]) -> Iterable[Family]:
        """Those that an event may pass, by its values."""
        found = dict(self._plain or ())
        for (place, text, _), bounds in self._one_sided.items():
            if _fits(value := values[place], text):
                found.update(dict.fromkeys(bounds.holding(value)))
        for (place, text), intervals in self._between.items():
            if _fits(value := values[place], text):
                found.update((family, None) for family, _ in intervals.holding(value))
        return found


_PLACE = attrgetter("place")


def _key(equals: Mapping[int, Any]) -> tuple[tuple[int, ...], Any]:
    """Where the values stand, and the values as keys: one alone, several as a tuple."""
    if len(equals) == 1:
        ((place, value),) = equals.items()
        return (place,), comparable(value)
    places = tuple(sorted(equals))
    return places, tuple(comparable(equals[place]) for place in places)


def _fits(value: Any, text: bool) -> bool:
    """Whether a value can be compared with the bounds: numbers that are some, or texts."""
    return isinstance(value, str) if text else value is not None and not isinstance(value, str) and value == value
