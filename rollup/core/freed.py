"""Memory that is freed and that the C library keeps for later: it is given back now and then, or a long run only grows."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


@cache
def _trim() -> Any:
    """A function of the GNU C library, which others do not have; they keep less."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


def give_back() -> bool:
    """Give back what whole pages of are free, and say whether there were any.

    >>> give_back() in (True, False)
    True
    """
    trim = _trim()
    return trim is not None and bool(trim(0))
