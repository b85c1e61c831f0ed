"""Time zones by name, all from one database: the package `tzdata`, whose version is pinned.

Neither the machine's files nor those inside of DuckDB have a say, so buckets and bounds are cut by the same rules.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

import tzdata

VERSION: str = tzdata.IANA_VERSION
"""The database's own name of its version, as `2026a`."""
_FILES = Path(tzdata.__file__).with_name("zoneinfo")


@lru_cache
def names() -> frozenset[str]:
    """The names of all zones."""
    return frozenset(_FILES.with_name("zones").read_text("utf-8").split())


def content(name: str) -> bytes:
    """The file of a zone (RFC 8536)."""
    return (_FILES / name).read_bytes()


def named(name: str) -> ZoneInfo:
    """A zone. Raises KeyError for a name that there is not."""
    if name not in names():
        raise KeyError(name)
    with (_FILES / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)
