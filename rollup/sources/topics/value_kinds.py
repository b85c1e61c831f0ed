"""Which options of a source say what the values of its messages are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollup.core.errors import ConfigError
from rollup.core.packages import needed_by
from rollup.sources.base import nulls
from rollup.sources.topics.plain_text import Csv, Text
from rollup.sources.topics.schemas import Alone
from rollup.sources.topics.values import Json, Values

REGISTRY, SETTINGS, SCHEMA_FILE, VALUES = "registry", "registry_settings", "schema_file", "values"
"""The options that say what values are; without one of them they are JSON."""
CSV, TEXT = "csv", "text"
_OF_LINES = ("separator", "null", "fields")


def values_of(stream: str, options: Mapping[str, Any], attributes: Sequence[str] = ()) -> Values:
    """How the values of a topic are read; `attributes` are those that they are to give, in the order of the declaration.
    Raises ConfigError."""
    given = [name for name in (REGISTRY, SCHEMA_FILE, VALUES) if name in options]
    if len(given) > 1:
        raise ConfigError(
            f"[sources.{stream}] has `{given[0]}` and `{given[1]}`", hint="one of them says what values are"
        )
    if SETTINGS in options and REGISTRY not in options:
        raise ConfigError(
            f"[sources.{stream}] has `{SETTINGS}` and no `{REGISTRY}`", hint="they are those of its client"
        )
    of_lines = [name for name in _OF_LINES if name in options]
    if of_lines and options.get(VALUES) != CSV:
        raise ConfigError(f'[sources.{stream}] has `{of_lines[0]}` without `{VALUES} = "{CSV}"`', hint="it is of lines")
    if not given:
        return Json()
    if VALUES in options:
        return _text(stream, options, attributes)
    with needed_by(f"[sources.{stream}] `{given[0]}`", "avro"):
        if SCHEMA_FILE in options:
            return Alone(stream, str(options[SCHEMA_FILE]))
        from rollup.sources.topics import registry
    return registry.Registered(stream, str(options[REGISTRY]), options.get(SETTINGS, {}))


def _text(stream: str, options: Mapping[str, Any], attributes: Sequence[str]) -> Values:
    """Values without names, which attributes have. Raises ConfigError."""
    where, kind = f"[sources.{stream}]", options[VALUES]
    if kind == TEXT:
        if len(attributes) != 1:
            raise ConfigError(
                f'{where} {VALUES} is "{TEXT}", and the stream has {", ".join(attributes)}',
                hint="one attribute is the text; `message` gives the others what stands beside it (key, topic, timestamp, …)",
            )
        return Text(attributes[0])
    separator = options.get("separator", ",")
    if len(separator) != 1 or separator in '"\r\n':
        raise ConfigError(f"{where} separator is {separator!r}", hint="one sign, such as , or ; or a tabulator")
    fields: Sequence[str] = options.get("fields", attributes)
    if twice := [name for at, name in enumerate(fields) if name in fields[:at]]:
        raise ConfigError(f"{where} fields name {twice[0]} twice", hint="each names one place in the line")
    return Csv(fields, separator, nulls(options))
