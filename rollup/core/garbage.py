"""Python's search for rings of objects that hold one another, put off while many objects are made that are none."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

AT_A_TIME = 4000
"""After so many events it may be looked for garbage: what is over by then is freed at once, without being looked for."""


@contextmanager
def uncollected() -> Generator[None]:
    """Python looks for garbage whenever some hundred objects more are there, from time to time through all that there are.
    Where a million come, and hold nothing that could be garbage, that takes half of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
