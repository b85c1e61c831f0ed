"""`spark-submit jobs/maintain.py CONF …`: `rollup maintain` for schedulers; the same arguments, the same exit codes."""

from __future__ import annotations

from rollup.cli.submit import submitted

if __name__ == "__main__":
    submitted("maintain", spark=False)
