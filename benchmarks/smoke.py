"""Every benchmark for a moment, to prove that it runs: `make bench-smoke`. No figure of it means anything."""

from __future__ import annotations

import subprocess
import sys
import time

BENCHMARKS = ("cascade", "retrieval", "gateway")


def main() -> None:
    """Run each with `--smoke`; exit code 1 when one fails."""
    failed: list[str] = []
    for name in BENCHMARKS:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", f"benchmarks.{name}", "--smoke"], capture_output=True, text=True, check=False
        )
        print(f"{name}: {'ran' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - began:.0f} s", flush=True)
        if done.returncode != 0:
            print(done.stdout[-2000:], done.stderr[-2000:], sep="\n")
            failed.append(name)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
