"""The engine in this process: statements deployed, events sent, time moved, results heard and asked for.

>>> from rollup.live import Engine
>>> engine = Engine()
>>> _ = engine.deploy('''
...     create schema Withdrawal(account string, amount double);
...     @name('total') select account, sum(amount) as total from Withdrawal#length(2) group by account;
... ''')
>>> heard = []
>>> engine.listen("total", lambda new, old: heard.extend(new))
>>> engine.send("Withdrawal", {"account": "a", "amount": 5.0})
>>> engine.send("Withdrawal", [{"account": "a", "amount": 1.0}, {"account": "b", "amount": 2.0}])
>>> [(row["account"], row["total"]) for row in heard]
[('a', 5.0), ('a', 6.0), ('b', 2.0), ('a', 1.0)]

A table of events is run over columns where the statement allows it (`engine.plan()` says which do, and why not), and a
listener may get tables too:

>>> import pyarrow as pa
>>> tables = []
>>> engine.listen_arrow(tables.append)
>>> engine.send("Withdrawal", pa.table({"account": ["c", "c"], "amount": [1.0, 2.0]}))
>>> [(each.statement[0].as_py(), each.rows.num_rows) for each in tables]
[('total', 4)]
>>> [(each.statement, each.executor) for each in engine.plan()]
[('total', 'columns')]
"""

from rollup.engine.columns.running.placing import Placed
from rollup.live.engine import Engine
from rollup.live.events import converted
from rollup.live.hearing import Arrived, Heard, shown

__all__ = ["Arrived", "Engine", "Heard", "Placed", "converted", "shown"]
