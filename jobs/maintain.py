"""`spark-submit jobs/maintain.py CONF …`: `rollup maintain` for schedulers; the same arguments, the same exit codes."""

from __future__ import annotations

import sys

from rollup.cli.main import app

if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--conf"]
    sys.argv = [sys.argv[0], "maintain", *arguments]
    app()
