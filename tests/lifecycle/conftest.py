"""What the lifecycle tests share: a place with a few days of trades, and the command line in this process."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.lifecycle.filejob import MIDNIGHT, Place


def trades(
    count: int, seed: int = 1, start: int = MIDNIGHT, width: int = 200_000_000
) -> list[tuple[str, float, int, int]]:
    """Trades in rising order over `width` ms, with a few late ones among them."""
    drawn = random.Random(seed)
    times = sorted(start + drawn.randrange(width) for _ in range(count))
    for _ in range(count // 50):
        i, j = drawn.randrange(count), drawn.randrange(count)
        times[i], times[j] = times[j], times[i]
    return [(drawn.choice(["A", "B", "C"]), round(drawn.uniform(1, 9), 2), drawn.randrange(100), ts) for ts in times]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """An app without a life yet; late events are corrected."""
    return Place(tmp_path, "@OutOfOrder('correct') ").write()


@pytest.fixture
def rollup() -> Callable[..., tuple[int, str]]:
    """The command line: exit code and output, errors included."""
    from rollup.cli.main import cli
    from rollup.errors import RollupError

    def run(*arguments: object) -> tuple[int, str]:
        found = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        if isinstance(found.exception, RollupError):
            return 2, f"{found.output}rollup: {found.exception}"
        if found.exception is not None and not isinstance(found.exception, SystemExit):
            raise found.exception
        return found.exit_code, found.output

    return run
