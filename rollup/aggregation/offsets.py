"""Times that are texts, of which some have an offset and others none: those without one are of UTC by guess, said once."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from rollup.core.calendar import names_zone


class MixedOffsets(UserWarning):
    """Some times of a stream have an offset and others have none."""


class Offsets:
    """What times of each stream were seen to have."""

    def __init__(self) -> None:
        self._seen = defaultdict[str, set[bool]](set)

    def observe(self, stream: str, found: Iterable[bool]) -> list[str]:
        """What is to be said, after times of a stream that have an offset (True) or none (False).

        >>> offsets = Offsets()
        >>> [len(offsets.observe("S", found)) for found in ([True], [True, False], [False])]
        [0, 1, 0]
        """
        seen = self._seen[stream]
        told = len(seen) > 1
        seen.update(found)
        return [self._said(stream)] if len(seen) > 1 and not told else []

    def take(self, stream: str, time: Any) -> None:
        """Warn, in this process, after the time of one event."""
        named = names_zone(time) if isinstance(time, str) else None
        if named is not None:
            self.warn(stream, [named])

    def warn(self, stream: str, found: Iterable[bool]) -> None:
        """As `observe`, as a warning of Python."""
        for said in self.observe(stream, found):
            warnings.warn(said, MixedOffsets, stacklevel=3)

    def _said(self, stream: str) -> str:
        return (
            f"stream {stream}: some times have an offset and others have none; those without are read as UTC. Write Z or an "
            "offset behind each. Or declare the zone of those without: @zone('Europe/Berlin') on the stream, or "
            '`zone = "Europe/Berlin"` in the configuration of a job'
        )
