"""What a container engine would make of Dockerfile and docker-compose.yml, by hand: a folder with the image's files, and
a service's command as a process with the service's own environment.

Container paths become paths below the folder, and names of services become addresses of this machine. What needs an
engine or the network (packages of the distribution, a user) is listed and left out.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
_OUTSIDE = ("apt-get", "rm", "useradd")


class Image:
    """The image's file system below `root`, made by the Dockerfile's COPY and RUN lines."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / "site-packages"
        self.workdir = Path("/")
        self.volumes: list[str] = []
        self.entrypoint: list[str] = []
        self._ignored = (ROOT / ".dockerignore").read_text().split()

    def build(self) -> Image:
        """Apply every line in order."""
        text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
        for line in text.splitlines():
            word, _, rest = line.strip().partition(" ")
            if word and not word.startswith("#"):
                getattr(self, f"_{word.lower()}")(rest.strip())
        return self

    def at(self, path: str | Path) -> Path:
        """Where a path of the container is."""
        return self.root / str(self.workdir / path).lstrip("/")

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """What a process of the container sees: nothing of ours but where Java and its libraries are."""
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "ROLLUP_CACHE") if name in os.environ}
        home = {"HOME": os.environ.get("HOME", "/")} if "ROLLUP_CACHE" not in kept else {}
        return {**kept, **home, "PYTHONPATH": str(self.site), **more}

    def _from(self, image: str) -> None:
        assert image.startswith("python:3.")

    def _workdir(self, path: str) -> None:
        self.workdir = Path(path)
        self.at("").mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = rest.split()
        for source in sources:
            place = self.at(target)
            into = place / source if target.endswith("/") else place
            into.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=self._ignore)
            else:
                shutil.copy(ROOT / source, into)

    def _ignore(self, _: str, names: list[str]) -> set[str]:
        return {name for name in names for part in self._ignored if fnmatch.fnmatch(name, part.rpartition("/")[2])}

    def _run(self, rest: str) -> None:
        for part in rest.split("&&"):
            words = shlex.split(part)
            if words[:2] == ["pip", "install"]:
                self._pip(words[-1])
            elif words[:2] == ["python", "-m"]:
                subprocess.run(
                    [sys.executable, *words[1:]], cwd=self.at(""), env=self.environment({}), check=True, timeout=300
                )
            elif words[0] == "install":
                self.at(words[-1]).mkdir(parents=True)
            else:
                assert words[0] in _OUTSIDE, f"what is `{part.strip()}`?"

    def _pip(self, what: str) -> None:
        """The package from the copied files alone; what it depends on is in this Python already."""
        assert what.startswith(".")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--root-user-action", "ignore", "--target", str(self.site), "."]
        subprocess.run(command, cwd=self.at(""), check=True, timeout=300)

    def _user(self, name: str) -> None:
        assert name != "root"

    def _volume(self, path: str) -> None:
        self.volumes.append(path)

    def _entrypoint(self, words: str) -> None:
        self.entrypoint = yaml.safe_load(words)

    def _cmd(self, words: str) -> None:
        assert yaml.safe_load(words)


def interpolated(value: Any, environment: Mapping[str, str]) -> Any:
    """A value of the compose file with `${NAME:-default}` put in."""
    if isinstance(value, list):
        return [interpolated(each, environment) for each in value]
    if isinstance(value, dict):
        return {key: interpolated(each, environment) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    return re.sub(r"\$\{(\w+):-([^}]*)\}", lambda found: environment.get(found[1]) or found[2], value)


def service(name: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """A service of the compose file as the engine sees it when the shell's environment is this."""
    return interpolated(COMPOSE["services"][name], environment or {})
