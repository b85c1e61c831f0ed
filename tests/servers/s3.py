"""An S3 server for tests: moto's, as a process on the loopback interface, with buckets in memory."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from itertools import count
from typing import Self

from rollup.stores.postgres.server import free_port

SECRET = "of-the-tests-only"
"""The secret key of the tests: wherever it is printed, somebody prints secrets."""


class S3Server:
    """It obeys `If-None-Match: *`, as S3 does; `with S3Server() as server:` or start() and stop()."""

    def __init__(self) -> None:
        self.port = 0
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which a process reaches it."""
        return reached(self.endpoint)

    def start(self) -> Self:
        """Start it and wait until it answers."""
        self.port = free_port()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=1).close()
                return self
            except (OSError, urllib.error.URLError):
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.05)

    def stop(self) -> None:
        """End it; nothing of it stays."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def new_bucket(self) -> str:
        """An empty bucket, as `s3://name`."""
        name = f"bucket-{next(self._numbers)}"
        urllib.request.urlopen(urllib.request.Request(f"{self.endpoint}/{name}", method="PUT"), timeout=10).close()
        return f"s3://{name}"


def reached(endpoint: str) -> dict[str, str]:
    """The variables by which a process reaches an S3 server at an address."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "tests",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ALLOW_HTTP": "true",
    }
