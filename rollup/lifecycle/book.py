"""The book of an aggregation: what has been decided about it beside its commits, as one small file next to them.

It holds the declaration that the tables were last written under, from when on each later column is complete, up to
when rows have been removed by retention, and what was done by hand. It is written whole and renamed into place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.records import home
from rollup.conf import Conf
from rollup.core.calendar import Duration
from rollup.core.errors import StoreError, not_done
from rollup.core.objects import replace_durably

_NAME = "book.json"
_HISTORY = 100


@dataclass(frozen=True)
class Page:
    """The book's content.

    * `valid` has, for each column added later, the instant (ms) from which buckets are complete.
    * `ended` has, for each dropped column, the instant up to which they are.
    * `purged` has, for each level by name, the AGG_TIMESTAMP below which rows may be gone.
    * `history` is what was done, oldest first.
    """

    declaration: Mapping[str, Any] | None = None
    valid: Mapping[str, int] = field(default_factory=dict[str, int])
    ended: Mapping[str, int] = field(default_factory=dict[str, int])
    purged: Mapping[str, int] = field(default_factory=dict[str, int])
    history: tuple[Mapping[str, Any], ...] = ()

    def purged_before(self, level: Duration) -> int:
        """The AGG_TIMESTAMP below which rows of a level may be gone."""
        return self.purged.get(level.name, -(2**63))


class Book:
    """Reads and writes the page of one aggregation.

    >>> import tempfile
    >>> book = Book(Path(tempfile.mkdtemp()))
    >>> book.note("purge", levels="SECONDS")
    >>> [entry["what"] for entry in book.page().history]
    ['purge']
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, conf: Conf, name: str) -> Book:
        """The book of an aggregation of a configuration."""
        return cls(folder(conf, name))

    def page(self) -> Page:
        """What it says now; an empty page when there is none. Raises StoreError when it is damaged."""
        path = self.folder / _NAME
        try:
            raw = unsealed(path.read_bytes(), [each.name for each in fields(Page)])
            plain = {name: raw.get(name, {}) for name in ("valid", "ended", "purged")}
            return Page(raw.get("declaration"), **plain, history=tuple(raw.get("history", ())))
        except FileNotFoundError:
            return Page()
        except OSError as problem:
            raise not_done(f"cannot read {path}", problem) from None
        except (ValueError, TypeError, AttributeError) as problem:
            hint = (
                "remove it: the declaration is then taken as it stands, and what retention removed is no longer known"
            )
            raise StoreError(f"{path} is damaged: {problem}", hint=hint) from None

    def write(self, page: Page) -> None:
        """Put a page in the place of the old one. Raises StoreError."""
        content = sealed(asdict(replace(page, history=page.history[-_HISTORY:])), indent=1)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            replace_durably(self.folder / _NAME, content)
        except OSError as problem:
            raise StoreError(f"cannot write {self.folder / _NAME}: {problem.strerror}") from None

    def note(self, what: str, **details: Any) -> None:
        """Add to the history."""
        page = self.page()
        entry = {"what": what, "at": int(time.time() * 1000), **details}
        self.write(replace(page, history=(*page.history, entry)))


def folder(conf: Conf, name: str) -> Path:
    """Where the book, the lease and waiting replays of an aggregation are; with Delta, beside its commit records."""
    return home(conf.tables, name)
