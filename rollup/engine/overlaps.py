"""How many windows an event may be in at once: each is a row of its own, so more of them would fill the memory."""

from __future__ import annotations

MOST_WINDOWS = 100_000
"""A day of windows that start every second is 86,400."""


def overlap(width: int, every: int) -> str | None:
    """What is to be said of windows of a width that start so often, where an event is in too many of them.

    >>> overlap(width=100_000, every=1)
    >>> overlap(width=3_000_000, every=10)
    'each event would be in 300,000 windows, of 100,000 at most'
    """
    count = -(-width // every)
    return None if count <= MOST_WINDOWS else f"each event would be in {count:,} windows, of {MOST_WINDOWS:,} at most"
