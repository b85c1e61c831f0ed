"""Whether a topic is the one that the job has read so far, and which topics it has met by a pattern.

One that was deleted and made anew counts its offsets from 0. Once it has more messages than were read of the old one,
nothing but its id tells: the job would go on in the middle of it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

import structlog
from confluent_kafka import KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from rollup.core.errors import StoreError
from rollup.sources.topics.notes import met, note, noted
from rollup.sources.topics.ranges import Topics, logs_of
from rollup.sources.topics.ways import Settings

EVERY = 1.0
"""Seconds between two questions; they take a few thousandths of one."""
_PATIENCE = 5.0
_asked: dict[Path, float] = {}
_NONE = str(Uuid(0, 0))
"""What a broker says that is too old to know of ids, and what is noted of a topic that it has not told of."""


def refuse_others(checkpoint: Path, topics: Sequence[str], settings: Settings) -> None:
    """Raise StoreError when topics are not those that the query of a checkpoint has read, in their order; new ones at the
    end are noted.

    Where the broker does not say which one it is, nothing is known and nothing refused.
    """
    if time.monotonic() < _asked.get(checkpoint, -EVERY) + EVERY:
        return
    gone = noted(checkpoint, len(topics))
    if gone is not None:
        raise StoreError(
            f"{checkpoint} is also that of topic {gone['topic']}, and the source no longer names it",
            hint=f"name {gone['topic']} again, behind the others, or remove {checkpoint} to begin anew",
        )
    known = [_is_same(checkpoint, place, topic, settings) for place, topic in enumerate(topics)]
    if all(known):
        _asked[checkpoint] = time.monotonic()


def say_none(pattern: str, settings: Settings) -> None:
    """Warn when no topic has a name of a pattern; those that are made later are read."""
    names = _client(tuple(settings.items())).list_topics(timeout=_PATIENCE).topics
    if not any(re.fullmatch(pattern, name) for name in names):
        structlog.get_logger("rollup").warning(
            "no topic has such a name yet", pattern=pattern, nearest=get_close_matches(pattern, names, 3, 0.3)
        )


def matched(topics: Topics, checkpoint: Path, batch: int, settings: Settings) -> Topics:
    """The topics of a pattern that the query of a checkpoint has met up to a batch; new ones are noted behind the others.

    A topic keeps its place, also when it is gone: what is stored names partitions by it.
    """
    before, after = logs_of(checkpoint, batch)
    known = met(checkpoint)
    for topic in sorted({*before, *after} - {*known}):
        note(checkpoint, len(known), topic, topic_id(topic, settings) or _NONE)
        known = (*known, topic)
    for topic in sorted(before.keys() - after.keys()):
        structlog.get_logger("rollup").warning("a topic is no longer there", topic=topic, read_to=before[topic])
    return replace(topics, names=known)


def _is_same(checkpoint: Path, place: int, topic: str, settings: Settings) -> bool:
    """Whether a topic is known to be that of a place. Raises StoreError where it is not."""
    known = noted(checkpoint, place)
    if known is not None and known["topic"] != topic:
        raise StoreError(
            f"{checkpoint} is that of topic {known['topic']}, and the source names {topic}",
            hint=f"name {known['topic']} again, or remove {checkpoint} to read {topic} from its start",
        )
    found = topic_id(topic, settings)
    if found is None:
        return False
    if known is None or known["id"] == _NONE:
        note(checkpoint, place, topic, found)
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
