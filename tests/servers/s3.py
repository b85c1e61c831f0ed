"""S3 servers for tests, each a process on the loopback interface: moto's for `make test`, and a real one for `make crash`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from rollup.stores.postgres.server import free_port
from tests.servers.built import built
from tests.servers.served import Served

SECRET = "of-the-tests-only"
"""The secret key of the tests: wherever it is printed, somebody prints secrets."""
_USER = "tests"
_REGION = "us-east-1"


class S3Server(Served):
    """It obeys `If-None-Match: *`, as S3 does; `with Moto() as server:` or start() and stop()."""

    @abstractmethod
    def command(self, folder: Path) -> list[str]:
        """What runs it on its port, with all that it keeps in a folder."""

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
        folder = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="rollup-s3-")))
        self._process = subprocess.Popen(
            self.command(folder), env={**os.environ, "ROOT_ACCESS_KEY": _USER, "ROOT_SECRET_KEY": SECRET},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 30
        while True:
            try:
                urllib.request.urlopen(self.endpoint, timeout=1).close()
                return self
            except urllib.error.HTTPError:
                return self  # it wants to know who asks
            except OSError:
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.05)

    def new_bucket(self) -> str:
        """An empty bucket, as `s3://name`."""
        name = f"bucket-{next(self._numbers)}"
        client = boto3.client(
            "s3", endpoint_url=self.endpoint, region_name=_REGION, aws_access_key_id=_USER, aws_secret_access_key=SECRET
        )
        client.create_bucket(Bucket=name)
        return f"s3://{name}"


class Moto(S3Server):
    """Part of moto, in Python: up in a second, buckets in memory, one request at a time."""

    def command(self, folder: Path) -> list[str]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]


class Versity(S3Server):
    """Versity's gateway, with objects as files of a folder.

    Of the real servers that Go's proxy brings it is the smallest, and it looks at the condition of a put and makes the
    object in one step. The version is one whose own tests hold that against racing clients.
    """

    def command(self, folder: Path) -> list[str]:
        program = built("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
        return [
            str(program),
            "--quiet",
            "--keep-alive",
            "--port",
            f"127.0.0.1:{self.port}",
            "--region",
            _REGION,
            "posix",
            str(folder),
        ]


S3_SERVERS: Mapping[str, type[S3Server]] = {"moto": Moto, "versitygw": Versity}
"""Tests of object stores run on each of them; those of the first are quick."""


def reached(endpoint: str) -> dict[str, str]:
    """The variables by which a process reaches an S3 server at an address."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": _USER,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ALLOW_HTTP": "true",
    }


def signed(method: str, address: str, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    """The headers of a request with its signature, for who has changed it on its way."""
    request = AWSRequest(method, address, headers, body)
    S3SigV4Auth(Credentials(_USER, SECRET), "s3", _REGION).add_auth(request)
    return dict(request.headers)
