"""Commands that change a store, killed before each of their side effects, given again, and then the job goes on.

`python -m tests.lifecycle.killed_commands FOLDER [--most N] [--only NAME] [--store KIND]` prints a JSON line a command and store: before
how many side effects it was killed, and what was then not as after a command that nothing interrupted. A side effect is
a file written, renamed, linked or removed, a folder made, a statement that changes a database, a transaction's end.
Forks of one process that has imported everything: a case costs its work only.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import sqlalchemy as sa
from sqlalchemy import event

from rollup.lifecycle.states import changed_statements
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.delta.store import DeltaStore
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark
from tests.lifecycle.conftest import remove_table, trades
from tests.lifecycle.filejob import APP, DELTA, FileJob, Place
from tests.lifecycle.opened import everything
from tests.lifecycle.test_retake import CASTS

CORRECT = "@OutOfOrder('correct') "
PURGE = (
    "@purge(enable='true', interval='1 hour', @retentionPeriod(sec='120 sec', min='24 hours', hours='all', "
    "days='all', months='all', years='all'))\n"
)
_CHANGES = {"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree"}
_NEVER = 1_000_000
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


@dataclass(frozen=True)
class Command:
    """A command of the command line; what is done to the store before it, and how the app reads then."""

    words: tuple[str, ...]
    before: Callable[[Place], None] = lambda place: None
    annotations: str = CORRECT
    app: str = APP
    stores: tuple[str, ...] = ("delta", "sqlite")
    job: Callable[[Place, str], None] | None = None
    """Another job than that of four files: up to the command ("begin"), and behind it ("finish")."""


def letters(place: Place, how: str) -> None:
    """A job whose records and statements refuse some events, each then mended; behind it one file more."""
    cast, columns = ("SAFE_CAST", {}) if how == "finish" else ("CAST", {"columns": {"v": "w"}})
    number = len(list((place.root / "in").glob("*"))) if how == "finish" else 0
    (place.root / "in").mkdir(exist_ok=True)
    rows = [{"k": k, "v": n, "w": w, "ts": n * 1000} for n, (k, w) in enumerate(["11", "x2", "3?", "44", "x5"])]
    (place.root / "in" / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "json", "path": str(place.root / "in"), **columns}
    job = Job(place.root, source, app=CASTS.format(cast=cast), streams=("S",), name="rollup.toml")
    job.run(ModelSpark())  # type: ignore[arg-type]
    if how == "begin":
        Job(
            place.root,
            {**source, "columns": {}},
            app=CASTS.format(cast="SAFE_CAST"),
            streams=("S",),
            name="rollup.toml",
        )
        assert len(changed_statements(job.conf, job.conf.program(), accept=True)) == 2
        assert len(job.letters()) > 3


def answers_of(place: Place) -> Any:
    """What a job of letters has: sums, what left by sinks in any order, and its letters."""
    told = {
        name: sorted(
            (row["k"] for file in (place.root / name).rglob("*.parquet") for row in pq.read_table(file).to_pylist()),
            key=str,
        )
        for name in ("told", "big")
    }
    kept = sorted(row["position"] for row in DeadLetters(place.conf.tables).read().to_pylist())
    return {"rows": answers(place.conf, "k, s, n", "minutes", "A"), "told": told, "letters": kept}


def damage_newest(place: Place) -> None:
    """Flip a bit of the newest commit record."""
    path = max((place.root / "tables" / "_rollup" / "TradeAgg").glob("commit-*.json"))
    path.write_bytes(path.read_bytes().replace(b"versions", b"versionz"))


def damage_database(place: Place) -> None:
    """Make the newest commit record of a database unreadable."""
    engine = sa.create_engine(place.conf.store["url"])
    with engine.begin() as connection:
        connection.exec_driver_sql("update \"TradeAgg_COMMIT\" set clocks = '{'")
    engine.dispose()


def remove_three(place: Place) -> None:
    """Take tables of a database away that can be made anew."""
    for table in ("HOURS", "LATE", "YEARS"):
        remove_table(place, table)


COMMANDS = {
    "change": Command(
        ("change", "--accept"),
        app=APP.replace("max(price) as high,", "max(price) as high, min(quantity) as least,").replace(
            "from Trades", "from Trades[quantity > 10]"
        ),
    ),
    "recover to a commit": Command(("recover", "--to-commit", "3"), damage_newest, stores=("delta",)),
    "recover the records": Command(("recover", "--rebuild"), damage_newest, stores=("delta",)),
    "recover a database": Command(("recover", "--rebuild"), damage_database, stores=("sqlite",)),
    "recover tables of a database": Command(
        ("recover", "--rebuild"),
        remove_three,
        stores=("sqlite",),
    ),
    "recover open rows": Command(
        ("recover", "--rebuild"), lambda place: remove_table(place, "OPEN"), stores=("sqlite",)
    ),
    "recover what is whole": Command(("recover", "--rebuild", "--aggregation", "TradeAgg")),
    "recover a table": Command(("recover", "--rebuild"), lambda place: remove_table(place, "HOURS")),
    "maintain": Command(("maintain",), annotations=CORRECT + PURGE),
    "replay": Command(("replay", "--from", "2018-01-01", "--to", "2018-01-02")),
    "dead": Command(("dead", "--retake"), stores=("delta",), job=letters),
}


class Dying:
    """Ends this process before the n-th side effect below a folder."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = str(folder)
        self.left = number

    def count(self) -> None:
        """One side effect is about to be."""
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Watch from now on."""
        sys.addaudithook(self._audit)
        event.listen(sa.Engine, "before_cursor_execute", self._statement)
        event.listen(sa.Engine, "commit", lambda _: self.count())

    def _audit(self, what: str, given: tuple[Any, ...]) -> None:
        if what == "open" and not (isinstance(given[2], int) and given[2] & _WRITES):
            return
        if (what == "open" or what in _CHANGES) and str(given[0]).startswith(self.folder):
            self.count()

    def _statement(self, connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.split(maxsplit=1)[0].lower() not in ("select", "pragma", "begin"):
            self.count()


def forked(action: Callable[[], None]) -> int:
    """Run something in a fork; how it ended, as `os.waitstatus_to_exitcode` has it."""
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            action()
        except BaseException:
            traceback.print_exc()
            os._exit(70)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def given(words: tuple[str, ...], place: Place) -> None:
    """Give a command, in this process."""
    from rollup.cli.main import cli

    with contextlib.suppress(SystemExit):
        cli([words[0], str(place.conf.path), *words[1:]], standalone_mode=False)


def placed(root: Path, store: str) -> Place:
    """A place with a store that has nothing yet."""
    lines = DELTA if store == "delta" else f'kind = "sql"\nurl = "sqlite:///{root}/store.db"\n'
    return Place(root, CORRECT, store=lines)


def begin(place: Place, command: Command) -> None:
    """A job takes four files of five; then the app is the command's."""
    shutil.rmtree(place.root, ignore_errors=True)
    place.root.mkdir(parents=True)
    if command.job is not None:
        return command.job(place, "begin")
    place.write()
    events = trades(300)
    for at in range(0, 240, 60):
        place.add(*events[at : at + 60])
        FileJob(place.conf).run()
    (place.root / "app.siddhi").write_text(command.app.format(annotations=command.annotations, extra=""))
    command.before(place)
    (place.root / "later").mkdir()
    replace(place, files=4, root=place.root / "later").write().add(*events[240:])


def finished(place: Place, command: Command, answer: Path) -> None:
    """Take the last file, and note what every level answers."""
    if command.job is not None:
        command.job(place, "finish")
        answer.write_text(json.dumps(answers_of(place)))
        return
    for path in (place.root / "later" / "incoming").iterdir():
        path.rename(place.root / "incoming" / path.name)
    job = FileJob(place.conf, accept=False).run()
    sizes = job.store.snapshot().sizes()
    found = everything(place.conf.path)
    rows = {level.plural: sizes[level].rows for level in job.aggregation.levels} if place.store != DELTA else {}
    answer.write_text(json.dumps({"answers": found, "rows": rows, "purged": dict(job.book.page().purged)}))


def case(folder: Path, kept: Path, place: Place, command: Command, number: int) -> tuple[int, Any]:
    """A command killed before a side effect, given again; how it ended first, and what is there."""
    words = command.words
    shutil.rmtree(place.root)
    shutil.copytree(kept, place.root)

    def first() -> None:
        dying = Dying(place.root, number)
        dying.install()
        given(words, place)
        if number == _NEVER:
            (folder / "count").write_text(str(number - dying.left))

    ended, answer = forked(first), folder / "answer.json"
    answer.unlink(missing_ok=True)
    if ended == -signal.SIGKILL:
        again = forked(lambda: given(words, place))
        if again:
            return ended, f"given again it ended with {again}"
    assert forked(lambda: finished(place, command, answer)) == 0, (words, number)
    return ended, json.loads(answer.read_text())


def cases(folder: Path, name: str, store: str, most: int | None) -> dict[str, Any]:
    """A command on a store, killed everywhere or at so many places."""
    command, place, kept = COMMANDS[name], folder / "place", folder / "kept"
    found = placed(place, store)
    assert forked(lambda: begin(found, command)) == 0
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(place, kept)
    code, wanted = case(folder, kept, found, command, _NEVER)
    assert code == 0, name
    count, differ, number, killed = int((folder / "count").read_text()), list[int](), 0, 0
    step = 1 if most is None else max(1, -(-count // most))
    while number < count:
        code, result = case(folder, kept, found, command, number)
        killed += code == -signal.SIGKILL
        if code not in (0, -signal.SIGKILL) or result != wanted:
            differ.append(number)
        number += step
    return {"command": name, "store": store, "effects": count, "killed": killed, "differ": differ}


def warm(folder: Path, stores: tuple[str, ...], chosen: list[str]) -> None:
    """Import here what a case imports on its way; no thread survives a fork."""
    names = folder / "modules.json"

    def work() -> None:
        for store in stores:
            place = placed(folder / "warm", store)
            begin(place, COMMANDS["maintain"])
            for words in {COMMANDS[name].words: None for name in chosen}:
                with contextlib.suppress(Exception):
                    given(words, place)
            finished(place, COMMANDS["maintain"], folder / "warm.json")
        if "dead" in chosen:
            begin(place := placed(folder / "warm", "delta"), COMMANDS["dead"])
            given(COMMANDS["dead"].words, place)
        names.write_text(json.dumps(sorted(sys.modules)))

    assert forked(work) == 0
    for name in json.loads(names.read_text()):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int)
    parser.add_argument("--only", choices=sorted(COMMANDS))
    parser.add_argument("--store", choices=("delta", "sqlite"))
    options = parser.parse_args()
    DeltaStore.compact_after = 2
    options.folder.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    stores = ("delta", "sqlite") if options.store is None else (options.store,)
    chosen = [name for name in COMMANDS if options.only in (None, name)]
    warm(options.folder, stores, chosen)
    for name in chosen:
        for store in [each for each in COMMANDS[name].stores if each in stores]:
            print(json.dumps(cases(options.folder, name, store, options.most)), flush=True)


if __name__ == "__main__":
    main()
