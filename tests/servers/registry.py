"""A real schema registry for tests: Apicurio's, which speaks as Confluent's does, as a process on the loopback interface.

`python -m tests.servers.registry` fetches and unpacks it, so that no test waits for that.
"""

from __future__ import annotations

import json
import subprocess
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient

from rollup.jars import resolve
from rollup.java import java
from rollup.stores.postgres.server import free_port

_LIST = Path(__file__).with_name("registry.xml")


def unpacked() -> Path:
    """The folder of the server, fetched and unpacked first when it is not there."""
    packed = next((resolve(_LIST) / "schema-registry").glob("*.tar.gz"))
    target = packed.with_name("server")
    if not target.is_dir():
        aside = Path(tempfile.mkdtemp(prefix="server-", dir=packed.parent))
        with tarfile.open(packed) as archive:
            archive.extractall(aside, filter="data")
        if not target.is_dir():
            aside.rename(target)
    return target


class SchemaRegistry:
    """Up in some 15 seconds, with schemas in memory; `with SchemaRegistry() as server:`."""

    def __init__(self) -> None:
        self.port = 0
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What clients are given."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def __enter__(self) -> Self:
        folder, self.port = unpacked(), free_port()
        own = [
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self.port}",
        ]
        (program,) = folder.glob("*runner.jar")
        self._process = subprocess.Popen(
            [str(java()), *own, "-jar", str(program)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 90
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/subjects", timeout=2).close()
                return self
            except (OSError, urllib.error.URLError):
                assert self._process.poll() is None, "the registry has ended"
                assert time.monotonic() < until, "the registry does not answer"
                time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def subject(self) -> str:
        """A name that no other test has."""
        return f"subject-{next(self._numbers)}"

    def register(self, schema: Any, kind: str = "AVRO", referring: Sequence[tuple[str, str]] = ()) -> int:
        """The number of a schema (a document of JSON, or a text), which may refer to subjects by names of types."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        referred = [SchemaReference(name, subject, 1) for name, subject in referring]
        return self.registered(self.subject(), Schema(text, kind, referred))

    def registered(self, subject: str, schema: Schema) -> int:
        """The number of a schema under a subject."""
        return SchemaRegistryClient({"url": self.url}).register_schema(subject, schema)


if __name__ == "__main__":
    unpacked()
