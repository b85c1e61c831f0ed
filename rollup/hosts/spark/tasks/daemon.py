"""What Java starts in the place of pyspark's own daemon: it loads what tasks need once, and forks workers that have it.

pyspark's daemon loads nothing before it forks, as a process of several threads must not be forked and a library may
start some. So each worker of a job imports Arrow, pandas, DuckDB and us for itself, in a second of its first batch.
Ours looks whether there is still one thread, and is pyspark's where there is not.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from importlib import import_module

from rollup.hosts.spark.compiled import prefer_compiled

_ALONE = {
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "_RJEM_MALLOC_CONF": "background_thread:false",
}
"""What keeps numpy, Arrow and delta-rs from starting threads when they are loaded; no task multiplies matrices."""
PRELOADED = ("pandas", "pyspark.worker", "rollup.hosts.spark.tasks.task")
"""What a worker imports for its first task, and all that these import."""


def main() -> None:
    """Serve as pyspark's daemon does: standard output is told the port."""
    prefer_compiled()
    os.environ.update(_ALONE)
    for name in PRELOADED:
        import_module(name)
    if _threads() != 1:
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
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
