"""Five questions in five languages: every query of the page is run over its events, and its rows are the page's answer.

The languages are run in this process as the command line runs them; the same events are written in the form of each.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.main import cli
from tests.docs.markdown import blocks

PAGE = Path(__file__).parents[2] / "docs" / "five-languages.md"
BLOCKS = {block.title: block.text for block in blocks(PAGE) if block.title}
LANGUAGES = ("siddhi", "epl", "sql", "uql", "cruncher")
QUESTIONS = ("totals", "average", "five", "then", "absence")
Row = dict[str, str]


def table(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def value(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def instant(at: str) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(at))


def fields(event: Row) -> dict[str, object]:
    own = {name: value(text) for name, text in event.items() if name not in ("at", "stream")}
    return {name: int(each) if name == "id" else each for name, each in own.items()}  # type: ignore[call-overload]


def lines(events: list[Row]) -> Iterator[str]:
    """For `rollup try`."""
    for event in events:
        at = int(event["at"])
        sent = {"stream": event["stream"], "rowtime": at, **fields(event)} if event["stream"] else {}
        yield json.dumps({**sent, "at": at})


def rows(events: list[Row]) -> Iterator[str]:
    """For `rollup sql`."""
    for event in events:
        if event["stream"]:
            time = instant(event["at"]).strftime("%Y-%m-%d %H:%M:%S")
            yield json.dumps({"stream": event["stream"], "row": [time, *fields(event).values()]})


def records(events: list[Row]) -> Iterator[str]:
    """For `rollup uql`; events of two streams are told apart by a last field."""
    several = len({event["stream"] for event in events if event["stream"]}) > 1
    for event in events:
        if event["stream"]:
            time = instant(event["at"]).strftime("%Y-%m-%dT%H:%M:%SZ")
            yield "|".join([time, *map(str, fields(event).values()), *([event["stream"]] if several else [])])


def printed(tmp_path: Path, words: list[str], given: Iterator[str]) -> str:
    ran = CliRunner().invoke(cli, [str(word) for word in words], input="\n".join(given) + "\n")
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def answered(question: str, language: str, tmp_path: Path) -> list[list[object]]:
    """The rows of a query, in the order in which they come."""
    events = table(BLOCKS[f"{question}.events"])
    file = tmp_path / f"{question}.{language}"
    file.write_text(BLOCKS.get(f"definitions.{language}", "") + BLOCKS[f"{question}.{language}"])
    for name in ("model.toml", "catalog.json"):
        (tmp_path / name).write_text(BLOCKS[name])
    if language == "sql":
        shown = printed(tmp_path, ["sql", "--schema", str(tmp_path / "model.toml"), str(file)], rows(events))
        return [list(json.loads(line).values()) for line in shown.splitlines()]
    if language == "uql":
        shown = printed(tmp_path, ["uql", "--catalog", str(tmp_path / "catalog.json"), str(file)], records(events))
        return [[value(each) for each in line.split("|")] for line in shown.splitlines()]
    shown = printed(tmp_path, ["try", str(file)], lines(events))
    return [list(row.values()) for line in shown.splitlines() for row in json.loads(line)["insert"]]


def test_the_page_has_every_question_in_every_language() -> None:
    assert {f"{question}.{language}" for question in QUESTIONS for language in LANGUAGES} <= BLOCKS.keys()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_query_answers_as_the_page_says(question: str, language: str, tmp_path: Path) -> None:
    own = BLOCKS.get(f"{question}.{language}.answer")
    wanted = [[value(each) for each in row.values()] for row in table(own or BLOCKS[f"{question}.answer"])]
    got = answered(question, language, tmp_path)
    assert sorted(str([value(str(each)) for each in row]) for row in got) == sorted(str(row) for row in wanted)


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_of_its_own_is_another_one(question: str) -> None:
    for language in LANGUAGES:
        assert BLOCKS.get(f"{question}.{language}.answer") != BLOCKS[f"{question}.answer"]
