"""A server of Azure's blobs for tests: Azurite, from npm, as a process on the loopback interface with blobs in memory."""

from __future__ import annotations

import base64
import hashlib
import hmac
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Self

from rollup.jars import cache_root
from rollup.stores.postgres.server import free_port

_VERSION = "3.35.0"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, as its documentation says; it is no secret."""


def program() -> Path:
    """The server's program, fetched first when it is not there."""
    folder = cache_root() / f"azurite-{_VERSION}"
    found = folder / "node_modules" / ".bin" / "azurite-blob"
    if not found.exists():
        npm = shutil.which("npm")
        assert npm is not None, "Azurite comes from npm"
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"azurite@{_VERSION}"]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    return found


class AzureServer:
    """`with AzureServer() as server:`; it refuses a second blob of one name, as Azure does."""

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
        return {
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": self.endpoint,
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
        }

    def __enter__(self) -> Self:
        self.port = free_port()
        options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
        self._process = subprocess.Popen(
            [str(program()), *options, "--blobHost", "127.0.0.1", "--blobPort", str(self.port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.endpoint, timeout=1).close()
            except urllib.error.HTTPError:
                return self  # it wants to know who asks
            except OSError:
                assert self._process.poll() is None, "the server has ended"
                assert time.monotonic() < until, "the server does not answer"
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(10)

    def new_container(self) -> str:
        """An empty container, as `az://name`."""
        name = f"container-{next(self._numbers)}"
        now = datetime.now(UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
        headers = {"x-ms-date": now, "x-ms-version": "2021-08-06"}
        named = "".join(f"{key}:{value}\n" for key, value in headers.items())
        signed = "PUT" + "\n" * 12 + f"{named}/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
        digest = hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()
        headers |= {"Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}", "Content-Length": "0"}
        address = f"{self.endpoint}/{_ACCOUNT}/{name}?restype=container"
        urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers), timeout=10).close()
        return f"az://{name}"
