"""rollup: time rollups of a stream, seconds to years, from one declaration.

>>> import rollup
>>> program = rollup.parse("define stream S (v int, ts long); define aggregation A from S select sum(v) as s aggregate by ts every sec ... day;")
>>> [level.plural for level in program.aggregations["A"].levels]
['seconds', 'minutes', 'hours', 'days']

A name is loaded when it is first used: the command line's help needs none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from rollup.ask import opened as open
    from rollup.ask import query
    from rollup.conf import Conf, load
    from rollup.core.errors import RollupError
    from rollup.hosts.spark.read import read, register_functions
    from rollup.live import Engine
    from rollup.program import Program
    from rollup.program import compile_app as parse

__all__ = [
    "Conf", "Engine", "Program", "RollupError", "__version__", "load", "open", "parse", "query", "read",
    "register_functions",
]  # fmt: skip

_PLACES = {
    "Conf": ("rollup.conf", "Conf"),
    "Engine": ("rollup.live", "Engine"),
    "Program": ("rollup.program", "Program"),
    "RollupError": ("rollup.core.errors", "RollupError"),
    "load": ("rollup.conf", "load"),
    "load_ipython_extension": ("rollup.notebook", "load_ipython_extension"),
    "open": ("rollup.ask", "opened"),
    "parse": ("rollup.program", "compile_app"),
    "query": ("rollup.ask", "query"),
    "read": ("rollup.hosts.spark.read", "read"),
    "register_functions": ("rollup.hosts.spark.read", "register_functions"),
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rollup")
    if name not in _PLACES:
        raise AttributeError(f"module 'rollup' has no attribute {name!r}")
    module, attribute = _PLACES[name]
    found = getattr(import_module(module), attribute)
    globals()[name] = found
    return found
