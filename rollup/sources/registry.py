"""The source that options of a configuration describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollup.core.options import provider
from rollup.plan.app import StreamDef
from rollup.sources.base import Source
from rollup.sources.kinds import KINDS


def source(stream: StreamDef, options: Mapping[str, Any]) -> Source:
    """The source of a stream. Raises ConfigError."""
    return provider(f"[sources.{stream.name}]", options, KINDS).made(stream, options)
