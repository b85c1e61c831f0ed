"""The source that options of a configuration describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollup.core.errors import ConfigError
from rollup.plan.app import StreamDef
from rollup.sources.base import Source
from rollup.sources.kinds import KINDS


def source(stream: StreamDef, options: Mapping[str, Any]) -> Source:
    """The source of a stream. Raises ConfigError."""
    kind = options.get("kind", "")
    if kind not in KINDS:
        raise ConfigError(f"[sources.{stream.name}]: unknown kind {kind!r}", hint=f"one of {', '.join(sorted(KINDS))}")
    return KINDS[kind].made(stream, options)
