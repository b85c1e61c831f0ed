"""rollup: time rollups of a stream, seconds to years, from one declaration.

>>> import rollup
>>> program = rollup.parse("define stream S (v int, ts long); define aggregation A from S select sum(v) as s aggregate by ts every sec ... day;")
>>> [level.plural for level in program.aggregations["A"].levels]
['seconds', 'minutes', 'hours', 'days']
"""

from __future__ import annotations

from rollup.ask import opened as open
from rollup.ask import query
from rollup.conf import Conf, load
from rollup.errors import RollupError
from rollup.hosts.spark_read import read, register_functions
from rollup.program import Program
from rollup.program import compile_app as parse

__all__ = ["Conf", "Program", "RollupError", "load", "open", "parse", "query", "read", "register_functions"]
