"""Java of a session is started at once and connected to when it is needed: it takes seconds, in which Python imports.

pyspark starts it too, and waits. Here its own script is run with the settings it would be given, and pyspark is then told
of a Java that is there. Where that cannot be (`spark-submit` has one, a session was made before) pyspark does it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollup.hosts.spark.tasks import daemon, early
from rollup.hosts.spark.watching.processes import end_all
from rollup.jars import spark_home

_BESIDE = f'exec 3<&0; "$0" -m {daemon.__name__} {daemon.EARLY} <&3 3<&- & exec 3<&-; exec "$@"'
"""A shell that begins the daemon of workers and becomes Java's script: so it is a process below Java, whose input is
Java's. (What a shell begins in the background has no input unless it is told.)"""

_USUAL = b"WARNING: Using incubator modules"
"""Spark always asks for one, with or without reason: it is nothing that a user can act on."""


class Launched:
    """A Java that comes up."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process = process
        self._said = said
        """The file in which it says, last of all, where it is to be found."""

    def connect(self) -> None:
        """Wait for it, and make it pyspark's. When it has ended instead, pyspark will start its own, and say why not."""
        while not self._said.exists() and self.process.poll() is None:
            time.sleep(0.01)
        try:
            content = self._said.read_bytes()
        except OSError:
            return
        finally:
            shutil.rmtree(self._said.parent, ignore_errors=True)
        from pyspark import SparkContext

        port, length = struct.unpack_from(">ii", content)
        secret = content[8 : 8 + length].decode()
        told = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(told)
        try:
            SparkContext._ensure_initialized()  # pyright: ignore[reportPrivateUsage]
        finally:
            for name in told:
                del os.environ[name]
        gateway: Any = SparkContext._gateway  # pyright: ignore[reportPrivateUsage]
        gateway.proc = self.process

    def killed(self) -> bool:
        """Whether a signal has ended it, or does in a moment."""
        with suppress(subprocess.TimeoutExpired):
            return self.process.wait(1) < 0
        return False

    def end(self) -> None:
        """End it, and all that it has started."""
        end_all(self.process.pid)
        self.process.wait()
        shutil.rmtree(self._said.parent, ignore_errors=True)


def launch(settings: Mapping[str, str], folder: str | None = None) -> Launched | None:
    """Start the Java of a session with these settings, `folder` for its first word; None where that is not ours to do."""
    home, main = spark_home(), threading.current_thread() is threading.main_thread()
    script = home / "bin" / "spark-submit"
    if not main or "PYSPARK_GATEWAY_PORT" in os.environ or _known_to_python() or not os.access(script, os.X_OK):
        return None
    said = Path(tempfile.mkdtemp(prefix="rollup-java-", dir=folder)) / "connection"
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [str(script), *words, *shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))]
    environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(said)}
    environment["SPARK_HOME"] = str(home)  # otherwise the script starts a Python to find it
    if folder is not None and settings.get("spark.python.daemon.module") == daemon.__name__:
        command = ["sh", "-c", _BESIDE, sys.executable, *command]
        environment[early.PLACE] = str(Path(folder) / "daemon")
        environment.setdefault("PYTHONHASHSEED", "0")  # as pyspark has it for what Java starts
    # Ctrl-C is for Python, which ends Java in order. What is ignored here is so in a child from its first moment on.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # Java ends when this pipe does, so it never outlives Python.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    except OSError:
        shutil.rmtree(said.parent, ignore_errors=True)
        return None  # pyspark will try, and say so
    finally:
        signal.signal(signal.SIGINT, before)
    threading.Thread(target=_tell, args=(process,), daemon=True).start()
    return Launched(process, said)


def _tell(process: subprocess.Popen[bytes]) -> None:
    """Pass on what Java says on standard error, but for the line with which each that Spark starts begins."""
    assert process.stderr is not None
    for line in process.stderr:
        if not line.startswith(_USUAL):
            with suppress(OSError):
                os.write(2, line)


def _known_to_python() -> bool:
    """Whether pyspark has a Java already."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._gateway is not None
