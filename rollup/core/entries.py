"""Names of what is imported only when it is needed: `package.module:name`, as in a table of kinds."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def loaded(entry: str) -> Any:
    """What an entry names.

    >>> loaded("rollup.core.options:flag")(1)
    'true or false'
    """
    module, name = entry.split(":")
    return getattr(import_module(module), name)
