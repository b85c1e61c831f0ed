"""What the lifecycle tests share: a place with a few days of trades, and the command line in this process."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from deltalake import DeltaTable
from typer.testing import CliRunner

from tests.lifecycle.filejob import DELTA, MIDNIGHT, Place

NewStore = Callable[[], str]


def trades(
    number: int, seed: int = 1, start: int = MIDNIGHT, width: int = 200_000_000
) -> list[tuple[str, float, int, int]]:
    """Trades in rising order over `width` ms, with a few late ones among them."""
    drawn = random.Random(seed)
    times = sorted(start + drawn.randrange(width) for _ in range(number))
    for _ in range(number // 50):
        i, j = drawn.randrange(number), drawn.randrange(number)
        times[i], times[j] = times[j], times[i]
    return [(drawn.choice(["A", "B", "C"]), round(drawn.uniform(1, 9), 2), drawn.randrange(100), ts) for ts in times]


EVERY_STORE = pytest.mark.parametrize(
    "new_store",
    [
        "delta",
        pytest.param("postgres", marks=pytest.mark.postgres),
        "sqlite",
        pytest.param("s3", marks=pytest.mark.slow),
    ],
    indirect=True,
)
"""Runs a test on every kind of store; without it tests run on Delta."""

ON_POSTGRES = pytest.mark.parametrize(
    "new_store", ["delta", pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)
"""The same without SQLite, for what takes longer."""


@pytest.fixture
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """Makes the lines of [store] for a store that has nothing yet."""
    kind, number = getattr(request, "param", "delta"), count()

    def make() -> str:
        if kind == "delta":
            return DELTA
        if kind == "s3":
            return f'kind = "delta"\npath = "{request.getfixturevalue("bucket")}/{next(number)}"\n'
        url = f"sqlite:///{tmp_path}/store-{next(number)}.db"
        if kind == "postgres":
            url = request.getfixturevalue("postgres").new_database()
        return f'kind = "sql"\nurl = "{url}"\n'

    return make


@pytest.fixture
def place(tmp_path: Path, new_store: NewStore) -> Place:
    """An app without a life yet; late events are corrected."""
    return Place(tmp_path, "@OutOfOrder('correct') ", store=new_store()).write()


def stored(place: Place, level: str) -> list[dict[str, Any]]:
    """The rows of a level's table with all its columns, as whoever else reads it finds them."""
    if "delta" in place.store:
        return DeltaTable(str(place.conf.tables / f"TradeAgg_{level}")).to_pyarrow_table().to_pylist()
    return [dict(row) for row in execute(place, f'select * from "TradeAgg_{level}"').mappings()]


def execute(place: Place, sql: str) -> Any:
    """Run a statement in the database of a place; its result, read to the end."""
    engine = sa.create_engine(place.conf.store["url"])
    with engine.begin() as connection:
        result = connection.exec_driver_sql(sql)
        found = result.freeze()() if result.returns_rows else None
    engine.dispose()
    return found


def remove_table(place: Place, level: str) -> None:
    """Take a level's table away."""
    if "delta" in place.store:
        (place.conf.tables / f"TradeAgg_{level}").rename(place.conf.tables.parent / "away")
    else:
        cascade = "" if "sqlite" in place.store else " cascade"
        execute(place, f'drop table "TradeAgg_{level}"{cascade}')


@pytest.fixture
def rollup() -> Callable[..., tuple[int, str]]:
    """The command line: exit code and output, errors included."""
    from rollup.cli.main import cli
    from rollup.core.errors import RollupError

    def run(*arguments: object) -> tuple[int, str]:
        found = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        code, said = found.exit_code, found.output
        if (
            found.exc_info is not None
        ):  # its frames hold what a process would let go of at its end, as snapshots that hold locks
            traceback.clear_frames(found.exc_info[2])
        if isinstance(found.exception, RollupError):
            code, said = 2, f"{said}rollup: {found.exception}"
        elif found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        print(f"rollup {' '.join(map(str, arguments))}: {code}\n{said}")  # shown where a test fails
        return code, said

    return run
