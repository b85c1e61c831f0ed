"""Every benchmark for a moment, to prove that it runs: `make bench-smoke`. No figure of it means anything."""

from __future__ import annotations

import subprocess
import sys
import time

BENCHMARKS = {
    "cascade": ["--smoke"],
    "cold": ["--smoke", "--only", "run"],
    "gateway": ["--questions", "50", "--answers", "3"],
    "postgres_commit": ["--smoke"],
}
"""What runs in a minute; `retrieval`, `live`, `scale` and `soak` take longer and have targets of their own."""


def main() -> None:
    """Run each; exit code 1 when one fails."""
    failed: list[str] = []
    for name, words in BENCHMARKS.items():
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", *words], capture_output=True, text=True, check=False
        )
        print(f"{name}: {'ran' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
            failed.append(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
