"""pyspark as it is installed, instead of the same out of the zip that Spark puts before it: a zip has no compiled modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def prefer_compiled() -> None:
    """Take Spark's zips off the path of imports when the folder that they lie in is the installed pyspark itself.

    Each process would compile what it imports of them, for a second. Where Spark is another one than what is
    installed, or nothing is, the zips stay.
    """
    zips = [entry for entry in sys.path if entry.endswith(".zip") and Path(entry).parts[-3:-1] == ("python", "lib")]
    homes = {Path(entry).resolve().parents[2] for entry in zips}
    before = list(sys.path)
    sys.path[:] = [entry for entry in before if entry not in zips]
    spark, py4j = importlib.util.find_spec("pyspark"), importlib.util.find_spec("py4j")
    if py4j is None or spark is None or spark.origin is None or homes != {Path(spark.origin).resolve().parent}:
        sys.path[:] = before
