"""What Java starts in the place of pyspark's own daemon: it loads what tasks need once, and forks workers that have it.

pyspark's daemon loads nothing before it forks, as a process of several threads must not be forked and a library may
start some. So each worker of a job imports Arrow, DuckDB and us for itself, in a second of its first batch. Ours looks
whether there is still one thread, and is pyspark's where there is not. Begun `EARLY` it has loaded when Java asks.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from rollup.hosts.spark.compiled import prefer_compiled
from rollup.hosts.spark.tasks.early import Early, handed_over

EARLY = "early"
"""The word that begins one beside Java, see `rollup.hosts.spark.tasks.early`."""
_ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "_RJEM_MALLOC_CONF": "background_thread:false",
}
"""What keeps numpy, Arrow and delta-rs from starting threads when they are loaded; no task multiplies matrices."""
_PRELOADED = ("numpy.ma", "pyspark.worker", "rollup.hosts.spark.tasks.task")
"""What a worker imports for its first task, and all that these import. (Arrow loads numpy's masked arrays when it first
looks at an array.)"""


def main() -> None:
    """Serve as pyspark's daemon does: standard output is told the port."""
    if sys.argv[1:] == [EARLY]:
        _early()
        return
    prefer_compiled()
    if handed_over():
        return
    load()
    if _threads() != 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    _serve()


def _early() -> None:
    """Load, and serve when Java's own hands over; what goes wrong here goes wrong there too, and is said there."""
    try:
        early = Early()
    except OSError:  # its place has too long a name
        return
    load()
    asked = early.take_over() if _threads() == 1 else None
    if asked is not None:
        with asked:
            _serve()


def load() -> None:
    """Import what a worker needs for its first task."""
    os.environ.update(_ALONE)
    _spare_pandas()
    for name in _PRELOADED:
        import_module(name)


def _spare_pandas() -> None:
    """Let Arrow find no pandas: it looks for it before it makes its first array, to know a frame when it sees one.

    That is a third of what a worker would load. Tasks have no frames; who asks Arrow for one still gets it.
    """
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden:
    """What finds modules, as if pandas were not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def _serve() -> None:
    from pyspark import daemon

    # What is there lives for ever: no worker looks at it for garbage, and so none takes a copy of its own.
    gc.freeze()
    atexit.register(gc.unfreeze)
    daemon.manager()


def _threads() -> int:
    """How many threads this process has; more than one where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 2


if __name__ == "__main__":
    main()
