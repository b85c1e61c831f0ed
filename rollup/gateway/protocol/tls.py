"""The gateway's own end of TLS. Behind it the connection stays on loopback and in plain bytes."""

from __future__ import annotations

import ssl
from pathlib import Path

from rollup.core.errors import ConfigError


def server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A server context of TLS 1.2 or newer from two PEM files; `ConfigError` when they are missing or do not fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(
            f"certificate {certificate} with key {key} cannot be used: {problem}",
            hint="two PEM files that belong together",
        ) from problem
    return context
