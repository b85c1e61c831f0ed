"""Texts whose parts stand in one another, in every language: what people and programs write runs, what is deeper is
refused in a sentence. No reader and no plan meets Python's own limits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rollup.core.errors import RollupError
from rollup.engine.compiling import compiled
from rollup.engine.expressions import All, Any_, Case, Coalesce, Const
from rollup.engine.rows.cycles.running import Batch
from rollup.engine.types import BOOL as BOOL
from rollup.engine.types import LONG
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from rollup.lang.siddhi.statements.app import SiddhiApp
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.plan import plan
from rollup.live import Engine
from rollup.program import compile_app

WRITTEN, TOO_DEEP = 100, 5_000
VALUES = (1, 42, 99, 100)


def epl(condition: str) -> list[int]:
    engine = Engine()
    engine.deploy(f"create schema S(v int); select v from S where {condition}")
    engine.send("S", [{"v": v} for v in VALUES])
    return [row["v"] for heard in engine.heard() for row in heard.new]


def epl_asked(condition: str) -> list[int]:
    engine = Engine()
    engine.deploy("create schema S(v int); create window W#keepall as S; insert into W select * from S")
    engine.send("S", [{"v": v} for v in VALUES])
    return [row["v"] for row in engine.query(f"select v from W where {condition}")]


def siddhi(condition: str) -> list[int]:
    app = SiddhiApp(f"define stream S(v int); from S[{condition.replace('=', '==')}] select v insert into O;")
    app.send("S", [(v,) for v in VALUES])
    return [each.values[0] for each in app.taken()]


def siddhi_asked(condition: str) -> list[int]:
    app = SiddhiApp("define stream S(v int); define table T(v int); from S select v insert into T;")
    app.send("S", [(v,) for v in VALUES])
    return sorted(app.query(f"from T on {condition.replace('=', '==')} select v;")["v"].to_pylist())


def aggregation(condition: str) -> None:
    text = f"define stream S(v int, ts long); define aggregation A from S[{condition.replace('=', '==')}] "
    compile_app(text + "select sum(v) as s aggregate by ts every sec ... day;")


def streamcruncher(condition: str) -> list[int]:
    heard, cruncher = list[int](), Cruncher(0)

    def hear(batch: Batch) -> None:
        heard.extend(row[0] for row in batch.rows)

    cruncher.define("S", {"v": "int", "at": "ts"}, "at")
    cruncher.register(
        f"select v from S (partition store last 9 where {condition}) as w where w.$row_status is new", hear
    )
    for at, v in enumerate(VALUES):
        cruncher.submit("S", [(v, at)], at)
    cruncher.advance(9)
    return heard


def sql(condition: str) -> list[int]:
    session = Session(Model.of({"tables": {"T": {"columns": {"v": "INTEGER"}}}}))
    session.load("T", [(v,) for v in VALUES])
    answer = session.ask(session.prepare(f"select v from T where {condition} order by v"))
    return answer["v"].to_pylist()


def streaming_sql(condition: str) -> None:
    table = {"columns": {"t": "TIMESTAMP", "v": "INTEGER"}, "kind": "stream", "monotonic": {"t": "increasing"}}
    Session(Model.of({"tables": {"S": table}})).prepare(f"select stream v from S where {condition}")


def uql(condition: str) -> None:
    fields = [{"name": "t", "type": "timestamp"}, {"name": "v", "type": "integer64"}]
    catalog = Catalog.of({"schemas": [{"name": "foo", "fields": fields}]})
    plan(f"from foo where {condition} window slice 3 rows aggregate sum(v) as s append s to bar", catalog)


LANGUAGES: list[Callable[[str], list[int] | None]] = [
    epl,
    epl_asked,
    siddhi,
    siddhi_asked,
    aggregation,
    streamcruncher,
    sql,
    streaming_sql,
    uql,
]
SHAPES: dict[str, Callable[[int], str]] = {
    "or": lambda many: " or ".join(f"v = {number}" for number in range(many)),
    "and": lambda many: " and ".join(f"v < {100 + number}" for number in range(many)),
    "parentheses": lambda many: "(" * (many // 2) + "v < 100" + ")" * (many // 2),
    "not": lambda many: "not (" * (many // 4 * 2) + "v < 100" + ")" * (many // 4 * 2),
}
"""What each is true of: all values but 100."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_what_programs_write_runs(language: Callable[[str], list[int] | None], shape: str) -> None:
    assert language(SHAPES[shape](WRITTEN)) in (None, [1, 42, 99])


@pytest.mark.parametrize(
    ("language", "shape"), [*((each, "not") for each in LANGUAGES), (sql, "or"), (streaming_sql, "or")]
)
def test_what_is_too_deep_is_refused_in_a_sentence(language: Callable[[str], list[int] | None], shape: str) -> None:
    with pytest.raises(RollupError, match="nests too deeply"):
        language(SHAPES[shape](TOO_DEEP))


TRUE, FALSE, NULL = (Const(value, BOOL) for value in (True, False, None))


@pytest.mark.parametrize("many", [1, 7, 8, 9, 64, 65, 500])
@pytest.mark.few(2)
def test_long_lists_of_alternatives_are_decided_by_the_first_that_decides(many: int) -> None:
    some = [FALSE] * many
    for place in range(many):
        assert compiled(Any_((*some[:place], TRUE, *some[place + 1 :]), BOOL))((), (), None) is True
    assert compiled(Any_(tuple(some), BOOL))((), (), None) is False
    assert compiled(Any_((NULL, *some), BOOL))((), (), None) is None
    assert compiled(All((NULL, *[TRUE] * many), BOOL))((), (), None) is None
    assert compiled(All((*[TRUE] * many, FALSE), BOOL))((), (), None) is False
    numbers = tuple(Const(number, LONG) for number in range(many))
    for place in (0, many // 2, many - 1):
        branches = tuple((TRUE if at == place else FALSE, number) for at, number in enumerate(numbers))
        assert compiled(Case(branches, Const(-1, LONG), LONG))((), (), None) == place
        nothing = [Const(None, LONG)] * place
        assert compiled(Coalesce((*nothing, *numbers[place:]), LONG))((), (), None) == place
    never = tuple((NULL, number) for number in numbers)
    assert compiled(Case(never, Const(-1, LONG), LONG))((), (), None) == -1
