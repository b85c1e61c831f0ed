"""Which way the messages of a topic take: the tasks read them with librdkafka, or Spark does and hands them over.

Tasks read four times as many. Users write settings of Spark's Kafka source, which are those of Kafka's own client in
Java. One that a task's client has not, not even in another form (a key store of Java's, Kerberos), must not be lost:
then Spark reads that topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollup.sources.topics.security import PREFIXES, secured

Settings = Mapping[str, str | int | bool]
"""Settings of librdkafka."""
READ = "read"
TASKS, SPARK = "tasks", "spark"
_PREFIX = "kafka."
_OWN: Settings = {
    "group.id": "spark-kafka-source-tasks",  # as Spark's own begin, which an administrator may have allowed
    # Offsets are Spark's; no group is joined, nothing is committed.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "enable.partition.eof": True,
    "check.crcs": True,
    # What is asked for is there. A fetch beyond the end of the last range must not keep the next batch waiting.
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 2,
    "fetch.error.backoff.ms": 100,
    "queued.max.messages.kbytes": 16_384,
    "receive.message.max.bytes": 2_147_483_647,
    "reconnect.backoff.max.ms": 1_000,
    "enable.metrics.push": False,
    "log_level": 0,
}
_SAME = frozenset({"client.id", "client.rack", "group.id", "isolation.level", "check.crcs"})
"""Settings that both clients have."""
_IDLE = frozenset(
    {
        "fetch.min.bytes",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "fetch.max.wait.ms",
        "receive.buffer.bytes",
        "send.buffer.bytes",
        "request.timeout.ms",
        "default.api.timeout.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "connections.max.idle.ms",
        "socket.connection.setup.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "max.poll.records",
        "max.poll.interval.ms",
        "session.timeout.ms",
        "heartbeat.interval.ms",
    }
)
"""Settings that decide nothing about which messages are read, but how quickly Java's client gives up and how much it takes
at once; where they have a namesake its limits are others."""
_PLANNING = frozenset(
    {
        "startingoffsets",
        "startingtimestamp",
        "startingoffsetsbytimestamp",
        "startingoffsetsbytimestampstrategy",
        "maxoffsetspertrigger",
        "minoffsetspertrigger",
        "maxtriggerdelay",
        "minpartitions",
        "maxrecordsperpartition",
        "fetchoffset.numretries",
        "fetchoffset.retryintervalms",
        "kafkaconsumer.polltimeoutms",
        "includeheaders",
    }
)
"""Options of Spark's source by which it chooses offsets, as before, and those that only its own reading has."""


@dataclass(frozen=True)
class Way:
    """With which settings tasks read a topic, or None where Spark does, and why."""

    settings: Settings | None
    reason: str = ""

    @property
    def described(self) -> str:
        """For people.

        >>> Way(None, "`read` says so").described
        'Spark reads the messages: `read` says so'
        """
        return "tasks read the messages" if self.settings is not None else f"Spark reads the messages: {self.reason}"


def way(options: Mapping[str, Any]) -> Way:
    """How a topic is read, by the options of its source.

    >>> way({"servers": "a:9", "options": {"kafka.ssl.keystore.location": "k.jks"}}).reason
    'tasks cannot take its option kafka.ssl.keystore.location'
    """
    if options.get(READ) == SPARK:
        return Way(None, f'`{READ} = "{SPARK}"`')
    found: dict[str, str | int | bool] = {**_OWN, "bootstrap.servers": options["servers"]}
    given = {name.lower(): (name, value) for name, value in options.get("options", {}).items()}
    for name, (written, value) in given.items():
        translated = {} if name.startswith(PREFIXES) else _translated(name, value)
        if translated is None:
            return _by_spark(written)
        found |= translated
    security = secured({name: str(value) for name, (_, value) in given.items() if name.startswith(PREFIXES)})
    return _by_spark(given[security][0]) if isinstance(security, str) else Way({**found, **security})


def _by_spark(option: str) -> Way:
    return Way(None, f"tasks cannot take its option {option}")


def _translated(name: str, value: str | int | float) -> Settings | None:
    """An option as settings of librdkafka; None when it has no equal."""
    said = str(value).lower()
    if name in _PLANNING or (name, said) == ("failondataloss", "true"):
        return {}
    if name == "groupidprefix":
        return {"group.id": f"{value}-tasks"}
    own = name.removeprefix(_PREFIX)
    if own == name or own in _IDLE:
        return {} if own in _IDLE and own != name else None
    return {own: said if isinstance(value, bool) else str(value)} if own in _SAME else None
