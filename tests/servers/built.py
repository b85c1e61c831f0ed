"""Programs in Go for tests, built from their source in Go's module proxy, once into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from rollup.core.cache import cache_root


def built(package: str, version: str) -> Path:
    """The program of a package: `built("helm.sh/helm/v3/cmd/helm", "v3.19.2")`. The first time takes some minutes of two cores."""
    name = package.rpartition("/")[2]
    folder = cache_root() / "go" / f"{name}-{version}"
    if not (folder / name).exists():
        go = shutil.which("go")
        assert go is not None, f"{name} is built by Go, and there is none"
        made = subprocess.run(
            [go, "install", f"{package}@{version}"],
            env={**os.environ, "GOBIN": str(folder)}, capture_output=True, text=True, timeout=1500, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
    return folder / name
