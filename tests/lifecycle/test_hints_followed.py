"""Each refusal is followed word for word: the test takes the command out of the message, as a user does, and gives it.

A command that refuses in its turn is followed too. In the end the job has every event once, counted by plain Python.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable

import pytest

import rollup as package
from rollup.core.calendar import Duration
from rollup.core.errors import RollupError
from tests.lifecycle.conftest import remove_table
from tests.lifecycle.filejob import APP, FileJob, Place
from tests.lifecycle.test_damaged_files import files, flip
from tests.lifecycle.test_recover_faults import Cli, begun, finish, record

QUOTED = re.compile(r"`rollup ([^`]+)`")
ADDED = re.compile(r"(?<![`\w-])--(?:rebuild|repair)\b(?![^`(]*`)")
"""An option that a message adds to the command before it."""
RANGE = ("--from", "2018-01-01", "--to", "2018-02-01")
"""What a user gives to a replay that is named without a range: all there is."""


def commands(said: str, place: Place) -> list[list[str]]:
    """The commands of a message, in its order; one that is named alone gets what it cannot do without."""
    found = list[list[str]]()
    said = " ".join(said.split())  # the command line wraps what it says
    for words in QUOTED.findall(said):
        name, *rest = [str(place.conf.path) if word == "CONF" else word for word in shlex.split(words)]
        if name in ("run", "query", "status", "serve"):
            continue
        rest = rest or [str(place.conf.path)]
        found.append([name, *rest, *(RANGE if name == "replay" and "--from" not in rest else ())])
    if found and (more := ADDED.findall(QUOTED.sub("", said))):
        found.append([*found[0], more[0]])
    return found


def starts(place: Place) -> str | None:
    """What a job's start is refused with."""
    try:
        FileJob(place.conf)
    except RollupError as problem:
        return str(problem)
    return None


def right(place: Place, rollup: Cli) -> bool:
    return starts(place) is None and rollup("verify", place.conf.path, "--raw")[0] == 0


def follow(said: str, place: Place, rollup: Cli, given: list[str]) -> bool:
    """Give what a message names, until a job starts and its tables are those of the raw events; whether it came to that."""
    for command in commands(said, place):
        words = " ".join(command).replace(str(place.conf.path), "CONF")
        if words in given:
            continue
        given.append(words)
        _, answer = rollup(*command)
        if right(place, rollup) or follow(answer, place, rollup, given):
            return True
    refusal = starts(place)
    return (
        refusal is not None
        and refusal not in given
        and not given.append(refusal)
        and follow(refusal, place, rollup, given)
    )


def damaged_record(place: Place) -> None:
    record(place, 4).write_text("{")


def no_records(place: Place) -> None:
    for file in record(place, 4).parent.glob("commit-*.json"):
        file.unlink()


def damaged_open_rows(place: Place) -> None:
    for file in record(place, 4).parent.glob("open-*"):
        file.write_bytes(file.read_bytes()[:-9] + b"nonsense.")


def damaged_file(level: Duration) -> Callable[[Place], None]:
    return lambda place: flip(files(place, level)[0]) and None


def lost_table(level: str) -> Callable[[Place], None]:
    return lambda place: remove_table(place, level)


def damaged_log(place: Place) -> None:
    newest = sorted((place.conf.tables / "TradeAgg_HOURS" / "_delta_log").glob("*.json"))[-1]
    newest.write_text("{")


def another_filter(place: Place) -> None:
    text = APP.format(annotations=place.annotations, extra="").replace("from Trades\n", "from Trades[quantity >= 0]\n")
    (place.root / "app.siddhi").write_text(text)


FAULTS: dict[str, Callable[[Place], None]] = {
    "the newest record is damaged": damaged_record,
    "open rows are damaged": damaged_open_rows,
    "a file of the finest table is damaged": damaged_file(Duration.SECONDS),
    "a file of a coarser table is damaged": damaged_file(Duration.HOURS),
    "a coarser table is gone": lost_table("MINUTES"),
    "the finest table is gone": lost_table("SECONDS"),
    "the log of a table is damaged": damaged_log,
    "the declaration means something else": another_filter,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.few(3)
def test_who_does_what_the_messages_say_has_every_event_once(fault: str, place: Place, rollup: Cli) -> None:
    events, given = begun(place), list[str]()
    FAULTS[fault](place)
    said = starts(place) or rollup("verify", place.conf.path)[1]
    assert commands(said, place), f"names no command: {said}"
    assert follow(said, place, rollup, given), (said, given)
    finish(place, events, 400)
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    wanted = Counter[str]()
    for symbol, _, quantity, _ in events:
        wanted[symbol] += quantity
    found = package.query(
        place.conf, "from TradeAgg within 0L, 4102444800000L per 'years' select symbol, total"
    ).to_pylist()
    assert {row["symbol"]: row["total"] for row in found} == dict(wanted), given


def test_a_job_does_not_start_over_tables_without_a_record_until_that_is_said(place: Place, rollup: Cli) -> None:
    """What was open is lost then, so nobody may begin without a word: readers refuse it too."""
    begun(place)
    no_records(place)
    said = starts(place)
    assert said is not None and "which says what of them is committed, has no commit" in said
    assert commands(said, place) == [["recover", str(place.conf.path), "--rebuild"]]
    assert list(record(place, 4).parent.glob("commit-*.json")) == [], "looking makes nothing"
    code, output = rollup(*commands(said, place)[0])
    assert code == 0 and "lost: what was still open at seconds" in output
    assert starts(place) is None
