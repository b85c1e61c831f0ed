"""Aggregate functions of the user's own: a catalog names a file of Python for each, which is loaded when a query is planned.

The file defines `start()`, `enter(state, x)` and `value(state)`; the state is plain values. Nulls do not enter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from rollup.core.errors import ConfigError, QueryError
from rollup.engine.aggregates.known import custom
from rollup.lang.uql.catalog import Catalog, Extension
from rollup.lang.uql.semantics import ANY, FUNCTIONS, TYPES, Function

_WORDS = ("start", "enter", "value")


def functions(catalog: Catalog) -> Mapping[str, Function]:
    """The aggregate functions that queries over a catalog may name. Raises ConfigError for a file that has none."""
    own = [each for each in catalog.functions if each.file is not None or each.name not in FUNCTIONS]
    return {**FUNCTIONS, **{extension.name: _function(extension, extension.file) for extension in own}}


def _function(extension: Extension, file: Path | None) -> Function:
    where = f"{extension.name} of the catalog's functions"
    if file is None:
        raise ConfigError(f"{where} names no file", hint='"file": "name.py", beside the catalog')
    if extension.name in FUNCTIONS:
        raise ConfigError(f"{where} is one already", hint="another name")
    aggregate = custom(extension.name, _loaded(extension.name, file))
    kind = TYPES[extension.kind]
    return Function(replace(aggregate, result=lambda types: kind), lambda argument: extension.kind, ANY)


def _loaded(name: str, file: Path) -> Mapping[str, Callable[..., Any]]:
    """The three functions of a file."""
    spec = spec_from_file_location(f"uql_{name}", file)
    where = f"{name} of the catalog's functions: {file}"
    if spec is None or spec.loader is None:
        raise ConfigError(f"{where} is no file of Python", hint="a file that ends in .py")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # the file is the user's, so is whatever it raises
        raise ConfigError(f"{where} cannot be loaded: {type(problem).__name__}: {problem}") from None
    missing = [word for word in _WORDS if not callable(getattr(module, word, None))]
    if missing:
        raise ConfigError(
            f"{where} does not define {', '.join(missing)}", hint="start(), enter(state, x), value(state)"
        )
    return {word: _told(name, getattr(module, word)) for word in _WORDS}


def _told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its failures told as the aggregate's."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as problem:  # whatever the user's function raises
            said = f"{type(problem).__name__}: {problem}"
            raise QueryError(f"the aggregate {name} failed in {function.__name__}: {said}") from None

    return call
