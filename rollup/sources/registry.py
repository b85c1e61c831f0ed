"""The kinds of sources a configuration may name. A new one is its file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rollup.core.errors import ConfigError
from rollup.plan.app import StreamDef
from rollup.sources.base import Source
from rollup.sources.delta import Delta
from rollup.sources.files import Files
from rollup.sources.kafka import Kafka
from rollup.sources.rate import Rate

KINDS: Mapping[str, Callable[[StreamDef, Mapping[str, Any]], Source]] = {
    "parquet": Files,
    "csv": Files,
    "json": Files,
    "kafka": Kafka,
    "delta": Delta,
    "rate": Rate,
}


def source(stream: StreamDef, options: Mapping[str, Any]) -> Source:
    """The source that options of a configuration describe. Raises ConfigError."""
    kind = options.get("kind", "")
    if kind not in KINDS:
        raise ConfigError(f"[sources.{stream.name}]: unknown kind {kind!r}", hint=f"one of {', '.join(sorted(KINDS))}")
    return KINDS[kind](stream, options)
