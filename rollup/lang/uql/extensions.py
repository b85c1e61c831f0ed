"""Aggregate functions of the user's own: a catalog names a file of Python for each, which is loaded when a query is planned.

The file defines `start()`, `enter(state, x)` and `value(state)`; the state is plain values. Nulls do not enter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

from rollup.core.errors import ConfigError, QueryError
from rollup.engine.aggregates.known import custom
from rollup.lang.uql.catalog import Catalog, Extension
from rollup.lang.uql.semantics import ANY, FUNCTIONS, TYPES, Function

_WORDS = ("start", "enter", "value")


def functions(catalog: Catalog) -> Mapping[str, Function]:
    """The aggregate functions that queries over a catalog may name. Raises ConfigError for a file that has none."""
    return {**FUNCTIONS, **{extension.name: _function(extension) for extension in catalog.functions}}


def _function(extension: Extension) -> Function:
    if extension.name in FUNCTIONS:
        raise ConfigError(f"{extension.name} of the catalog's functions is one already", hint="another name")
    aggregate = custom(extension.name, _loaded(extension))
    kind = TYPES[extension.kind]
    return Function(replace(aggregate, result=lambda types: kind), lambda argument: extension.kind, ANY)


def _loaded(extension: Extension) -> Mapping[str, Callable[..., Any]]:
    """The three functions of a file."""
    spec = spec_from_file_location(f"uql_{extension.name}", extension.file)
    where = f"{extension.name} of the catalog's functions: {extension.file}"
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
    return {word: _told(extension.name, getattr(module, word)) for word in _WORDS}


def _told(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its failures told as the aggregate's."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as problem:  # whatever the user's function raises
            said = f"{type(problem).__name__}: {problem}"
            raise QueryError(f"the aggregate {name} failed in {function.__name__}: {said}") from None

    return call
