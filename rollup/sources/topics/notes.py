"""The topics that a stream's query has met, each by its place among them: notes beside the query's log.

A note keeps a topic's place, by which its partitions are numbered in all that is stored, and the id that the broker gave it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.core.errors import StoreError
from rollup.core.objects import replace_durably
from rollup.sources.topics.ranges import PATTERN, TOPICS

NOTE = "rollup-topic.json"
"""The name of the first topic's note; that of the topic at place 1 is `rollup-topic-1.json`."""


def note(checkpoint: Path, place: int, topic: str, number: str) -> None:
    """Write down which topic is at a place, and its id."""
    replace_durably(_file(checkpoint, place), sealed({"topic": topic, "id": number}))


def noted(checkpoint: Path, place: int) -> Mapping[str, str] | None:
    """The name (`topic`) and `id` of the topic at a place. Raises StoreError where the note is damaged."""
    path = _file(checkpoint, place)
    try:
        return unsealed(path.read_bytes(), ["topic", "id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(
            f"{path} is damaged: {problem}", hint="remove it if the topic has not been made anew meanwhile"
        ) from None


def met(checkpoint: Path) -> tuple[str, ...]:
    """The names of all topics, in the order of their places."""
    found = list[str]()
    while (one := noted(checkpoint, len(found))) is not None:
        found.append(one["topic"])
    return tuple(found)


def with_topics(options: Mapping[str, Any], checkpoint: Path) -> Mapping[str, Any]:
    """The options of a source, in which the topics that it has met stand for its pattern."""
    names = met(checkpoint) if PATTERN in options else ()
    return {**{name: value for name, value in options.items() if name != PATTERN}, TOPICS: names} if names else options


def _file(checkpoint: Path, place: int) -> Path:
    return checkpoint / (NOTE if not place else NOTE.replace(".", f"-{place}."))
