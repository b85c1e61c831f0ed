"""What statements need of a key so that each of its values may be a shard of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

Need = Mapping[str, tuple[str, ...] | None]
"""For a statement, by stream, the attributes whose values make a group; None: an event stands for itself."""


def from_outside(needs: Iterable[Need | str], arriving: Collection[str], made: Collection[str]) -> Iterator[Need | str]:
    """What statements need of the events that come from outside; a text is the reason why one cannot be divided.

    `arriving` are the streams that may come from outside, `made` those that statements insert into. What they insert
    stays where it was made, so only a statement that looks at one event alone may read it.

    >>> list(from_outside([{"S": ("k",), "T": None}], {"S"}, {"T"}))
    [{'S': ('k',)}]
    >>> list(from_outside([{"T": ("k",)}], {"S"}, {"T"}))
    ['T is made by one statement and grouped by another']
    """
    for found in needs:
        if isinstance(found, str):
            yield found
            return
        inside = [stream for stream, names in found.items() if stream in made and names is not None]
        if inside:
            yield f"{inside[0]} is made by one statement and grouped by another"
            return
        yield {stream: names for stream, names in found.items() if stream in arriving}
