"""`as of commit 17`, `as of '2026-11-29 12:00:00'`: the commit that a question reads where it is not the newest."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rollup.core.calendar import GMT, parse_timestamp
from rollup.core.errors import QueryError, RollupError

_COMMIT = re.compile(r"(?:commit\s+)?(\d{1,18})", re.IGNORECASE)
HINT = "as of commit 17, or as of '2026-11-29 12:00:00'"


@dataclass(frozen=True)
class AsOf:
    """A commit by its number, or the newest one that was made by an instant (ms since 1970)."""

    commit: int | None = None
    instant: int | None = None

    @classmethod
    def said(cls, text: str, zone: str = GMT) -> AsOf:
        """What a text names; a time without a zone is in `zone`. Raises QueryError.

        >>> AsOf.said("commit 17"), AsOf.said("1970-01-01 00:00:01")
        (AsOf(commit=17, instant=None), AsOf(commit=None, instant=1000))
        """
        found = _COMMIT.fullmatch(text.strip())
        if found is not None:
            return cls(commit=int(found[1]))
        try:
            return cls(instant=parse_timestamp(text, zone)[0])
        except RollupError as problem:
            raise QueryError(f"`as of` takes a commit or a time: {problem.message}", hint=HINT) from None
