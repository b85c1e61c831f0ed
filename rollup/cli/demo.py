"""`rollup demo`: the main job on the 336,776 flights that left New York in 2013."""
from __future__ import annotations


def demo() -> None:
    """Run the main job on the flights of 2013 and show one month per day."""
    raise NotImplementedError
