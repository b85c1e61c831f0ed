"""Which options of a source say what the values of its messages are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollup.core.errors import ConfigError
from rollup.core.packages import needed_by
from rollup.sources.topics.schemas import Alone
from rollup.sources.topics.values import Json, Values

REGISTRY, SETTINGS, SCHEMA_FILE = "registry", "registry_settings", "schema_file"
"""The options that say what values are; without one of them they are JSON."""


def values_of(stream: str, options: Mapping[str, Any]) -> Values:
    """How the values of a topic are read. Raises ConfigError."""
    given = [name for name in (REGISTRY, SCHEMA_FILE) if name in options]
    if len(given) > 1:
        raise ConfigError(
            f"[sources.{stream}] has `{REGISTRY}` and `{SCHEMA_FILE}`", hint="one of them says what values are"
        )
    if SETTINGS in options and REGISTRY not in options:
        raise ConfigError(
            f"[sources.{stream}] has `{SETTINGS}` and no `{REGISTRY}`", hint="they are those of its client"
        )
    if not given:
        return Json()
    with needed_by(f"[sources.{stream}] `{given[0]}`", "avro"):
        if SCHEMA_FILE in options:
            return Alone(stream, str(options[SCHEMA_FILE]))
        from rollup.sources.topics import registry
    return registry.Registered(stream, str(options[REGISTRY]), options.get(SETTINGS, {}))
