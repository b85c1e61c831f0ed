"""Where rollup keeps what it can make again: jars, Ivy's own files, the tables of parsers."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """The folder of everything rollup caches: `ROLLUP_CACHE`, or `rollup` in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ROLLUP_CACHE") or Path(base) / "rollup")
