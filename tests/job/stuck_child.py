"""`rollup run`, stuck at a point: `python -m tests.job.stuck_child POINT HOW CONF …`.

What it is stuck in: `sleep` hears signals, `loop` is Python that goes on, `held` is one call that keeps all other Python
from running, as a compiled function of a user's may.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from rollup.stores import faults

HOWS = {
    "sleep": lambda: time.sleep(600),
    "loop": lambda: [None for _ in iter(int, 1)],
    "held": lambda: sum(range(10**14)),
}


def main() -> None:
    """Run it; a file beside the configuration says when it is stuck."""
    where, how, conf = sys.argv[1:4]

    def stuck(name: str) -> None:
        if name == where:
            Path(conf).with_name("stuck").touch()
            HOWS[how]()

    point = faults.point
    for module in [module for name, module in sys.modules.items() if name.startswith("rollup")]:
        for name, value in vars(module).items():
            if value is point:
                setattr(module, name, stuck)
    faults.point = stuck
    sys.argv = ["rollup", "run", *sys.argv[3:]]
    from rollup.cli.main import app

    app()


if __name__ == "__main__":
    main()
