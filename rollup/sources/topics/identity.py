"""Whether a topic is the one that the job has read so far.

One that was deleted and made anew counts its offsets from 0. Once it has more messages than were read of the old one,
nothing but its id tells: the job would go on in the middle of it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from confluent_kafka import KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.core.errors import StoreError
from rollup.core.objects import replace_durably
from rollup.sources.topics.ways import Settings

NOTE = "rollup-topic.json"
"""Beside the log of the stream's query: the id of the topic."""
EVERY = 1.0
"""Seconds between two questions; they take a few thousandths of one."""
_PATIENCE = 5.0
_asked: dict[Path, float] = {}
_NONE = str(Uuid(0, 0))
"""What a broker says that is too old to know of ids."""


def refuse_others(checkpoint: Path, topics: Sequence[str], settings: Settings) -> None:
    """Raise StoreError when topics are not those that the query of a checkpoint has read, in their order; new ones at the
    end are noted.

    Where the broker does not say which one it is, nothing is known and nothing refused.
    """
    if time.monotonic() < _asked.get(checkpoint, -EVERY) + EVERY:
        return
    gone = _noted(_note(checkpoint, len(topics)))
    if gone is not None:
        raise StoreError(
            f"{checkpoint} is also that of topic {gone['topic']}, and the source no longer names it",
            hint=f"name {gone['topic']} again, behind the others, or remove {checkpoint} to begin anew",
        )
    known = [_is_same(checkpoint, place, topic, settings) for place, topic in enumerate(topics)]
    if all(known):
        _asked[checkpoint] = time.monotonic()


def _note(checkpoint: Path, place: int) -> Path:
    """The file that says which topic a source names at a place."""
    return checkpoint / (NOTE if not place else NOTE.replace(".", f"-{place}."))


def _is_same(checkpoint: Path, place: int, topic: str, settings: Settings) -> bool:
    """Whether a topic is known to be that of a place. Raises StoreError where it is not."""
    found = topic_id(topic, settings)
    if found is None:
        return False
    note = _note(checkpoint, place)
    known = _noted(note)
    if known is None:
        replace_durably(note, sealed({"topic": topic, "id": found}))
    elif known["topic"] != topic:
        raise StoreError(
            f"{checkpoint} is that of topic {known['topic']}, and the source names {topic}",
            hint=f"name {known['topic']} again, or remove {checkpoint} to read {topic} from its start",
        )
    elif known["id"] != found:
        raise StoreError(
            f"topic {topic} was made anew since it was read: its id was {known['id']}, and is {found}",
            hint=anew(checkpoint),
        )
    return True


def anew(checkpoint: Path) -> str:
    """What to do about a topic that was made anew."""
    return (
        f"remove {checkpoint} to read it from its start; what the old one had in open buckets, and the new one has not, "
        "does not come again"
    )


def topic_id(topic: str, settings: Settings) -> str | None:
    """The id that a topic has for as long as it lives; None when the broker does not tell."""
    try:
        told = _client(tuple(settings.items())).describe_topics(TopicCollection([topic]), request_timeout=_PATIENCE)
        found = str(told[topic].result().topic_id)
        return None if found == _NONE else found
    except KafkaException:
        return None


@lru_cache(maxsize=4)
def _client(settings: tuple[tuple[str, str | int | bool], ...]) -> AdminClient:
    return AdminClient(dict(settings))


def _noted(path: Path) -> Mapping[str, str] | None:
    try:
        return unsealed(path.read_bytes(), ["topic", "id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as problem:
        raise StoreError(
            f"{path} is damaged: {problem}", hint="remove it if the topic has not been made anew meanwhile"
        ) from None
