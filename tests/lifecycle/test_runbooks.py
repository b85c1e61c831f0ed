"""Every command in docs/runbooks is run, in the order of its page, on stores in the state that the page is about: a
runbook that is read at three in the morning must work as it stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rollup.core.calendar import Duration
from rollup.stores.base import Rewrite
from tests.lifecycle.conftest import NewStore, trades
from tests.lifecycle.filejob import FileJob, Place

BOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
BLOCK = re.compile(r"^```sh (run|fails (\d))\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEEP = "@purge(interval='1 sec', @retentionPeriod(sec='120 sec', min='2 hours')) "


def stores(root: Path, wanted: set[str], new_store: NewStore) -> None:
    """The configurations that pages name."""
    for name in wanted:
        home = root / name
        home.mkdir()
        keep = KEEP if name == "retained" else ""
        place = Place(home, "@OutOfOrder('correct') " + keep, store=new_store()).write()
        events = trades(400)
        for at in range(0, 400, 100):
            place.add(*events[at : at + 100])
        job = FileJob(place.conf).run()
        if name == "damaged":
            start = job.store.snapshot().rows(Duration.HOURS)["AGG_TIMESTAMP"][3].as_py()
            empty = job.aggregation.table_schema.empty_table()
            job.pipeline.rewrite({Duration.HOURS: Rewrite(start, start + 1, empty)})
        if name == "damaged-record":
            job.store.records.path(4).write_text("{")
        if name == "added":
            replace(place, extra=", min(quantity) as least").write()


def commands(page: Path) -> list[tuple[str, int]]:
    """The marked commands of a page and the exit code each should have."""
    return [
        (line, int(code or 0))
        for _, code, text in BLOCK.findall(page.read_text())
        for line in text.splitlines()
        if line.strip()
    ]


PAGES = [page for page in sorted(BOOKS.glob("*.md")) if page.name != "README.md"]


def test_there_are_runbooks_and_each_is_in_the_table_of_contents() -> None:
    contents = (BOOKS / "README.md").read_text()
    assert len(PAGES) == 8 and all(f"({page.name})" in contents for page in PAGES)


ON_POSTGRES = [BOOKS / f"{name}.md" for name in ("change", "retention")]


@pytest.mark.parametrize(
    ("new_store", "page"),
    [
        *(pytest.param("delta", page, id=page.stem) for page in PAGES),
        *(
            pytest.param("postgres", page, id=f"{page.stem}-postgres", marks=pytest.mark.postgres)
            for page in ON_POSTGRES
        ),
    ],
    indirect=["new_store"],
)
@pytest.mark.few(5)
def test_every_command_of_a_runbook_works_as_it_stands(
    page: Path, new_store: NewStore, tmp_path: Path, rollup: Callable[..., tuple[int, str]]
) -> None:
    found = commands(page)
    assert found, "a runbook without a command that is run"
    stores(
        tmp_path,
        {Path(word).stem for line, _ in found for word in shlex.split(line) if word.endswith(".toml")},
        new_store,
    )
    for line, expected in found:
        program, *arguments = shlex.split(line)
        assert program == "rollup"
        placed = [str(tmp_path / Path(a).stem / "rollup.toml") if a.endswith(".toml") else a for a in arguments]
        code, output = rollup(*placed)
        assert code == expected, f"{line}\n{output}"
