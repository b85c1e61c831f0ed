"""UQL: a query whose kinds do not fit is refused with its place; one that is planned has an answer to every row."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import RollupError
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.plan import plan
from rollup.lang.uql.run import run
from rollup.lang.uql.semantics import FUNCTIONS
from tests.profiles import examples

FIELDS = {"k": "text", "i": "integer64", "d": "float64", "b": "boolean", "t": "timestamp"}
TABLE = {"name": "foo", "format": "csv", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
CATALOG = Catalog.of({"schemas": [TABLE]})
ROWS = b"a,3,2.5,true,2020-01-01 00:00:00\n,,,,\nx,0,0.0,false,2020-01-01 00:00:05\ny,9223372036854775807,1e308,,1969-01-01 00:00:00\n"
field = st.sampled_from([*FIELDS])
operand = st.sampled_from([*FIELDS, "3", "0", "2.5", "'x'", "true"])
conditions = st.one_of(
    st.builds("{} {} {}".format, operand, st.sampled_from(["=", ">", "and", "or"]), operand),
    st.builds("{} {} {} > {}".format, operand, st.sampled_from("+-*/%"), operand, operand),
    st.sampled_from(["b", "not b", "i / 0 = 1", "i * i > 0", "d * d > d"]),
)
windows = st.one_of(
    st.sampled_from(["slice 2 rows", "slice 5 seconds based on t"]),
    st.builds("slice 5 rows based on {}".format, field),
    st.builds("session begin when {} end when {}".format, conditions, conditions),
)
queries = st.builds(
    "from foo group by {} where {} window {} aggregate {}({}) as a append a {} {} as x to out".format,
    field, conditions, windows, st.sampled_from([*FUNCTIONS]), field, st.sampled_from("+-*/%="), st.sampled_from(["a", "3", "0"]),
)  # fmt: skip


@given(queries)
@examples(30)
def test_what_is_planned_answers_every_row(query: str) -> None:
    try:
        plans = plan(query, CATALOG)
    except RollupError as refused:
        assert refused.message
        assert refused.line is not None
        return
    for _ in run(plans, io.BytesIO(ROWS), io.BytesIO()):
        pass
