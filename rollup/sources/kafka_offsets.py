"""Where a Kafka topic begins, where it ends, and which offset stands at an instant: asked of the broker.

The client is the one that Spark's Kafka source brings, in Spark's own Java, so it reads the same security settings.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rollup.core.errors import StoreError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_LEAST = 1 << 31
"""The lowest instant that is asked for, in January 1970: Java takes a smaller number from Python as an int."""


class Topic:
    """Offsets of a topic by partition. Made by `topic`."""

    def __init__(self, jvm: Any, consumer: Any, settings: Any, name: str) -> None:
        self.name = name
        self._jvm = jvm
        self._consumer = consumer
        self._settings = settings
        make = jvm.org.apache.kafka.common.TopicPartition
        self._partitions = [make(name, found.partition()) for found in consumer.partitionsFor(name)]

    def begin(self) -> dict[int, int]:
        """The first offset that is still there."""
        return {p.partition(): int(offset) for p, offset in self._consumer.beginningOffsets(self._partitions).items()}

    def end(self) -> dict[int, int]:
        """The offset after the last message."""
        return {p.partition(): int(offset) for p, offset in self._consumer.endOffsets(self._partitions).items()}

    def at(self, instant: int) -> dict[int, tuple[int, int]]:
        """Offset and timestamp of the first message stamped at or after an instant (ms); without those that have none."""
        asked = self._jvm.java.util.HashMap()
        for partition in self._partitions:
            asked.put(partition, max(instant, _LEAST))
        found = self._consumer.offsetsForTimes(asked).items()
        return {p.partition(): (int(one.offset()), int(one.timestamp())) for p, one in found if one is not None}

    def oldest(self) -> dict[int, tuple[int, int]]:
        """Offset and timestamp of the first message that is still there; without empty partitions."""
        return self.at(_LEAST)

    def kept_since(self) -> int | None:
        """The instant (ms) from which on the topic's settings let retention remove nothing; None when it is not known.

        It is not where size decides, where keys do, or where the settings may not be read.
        """
        from py4j.protocol import Py4JJavaError

        config = self._jvm.org.apache.kafka.common.config
        resource = config.ConfigResource(getattr(config, "ConfigResource$Type").TOPIC, self.name)
        admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(self._settings)
        try:
            found = admin.describeConfigs([resource]).all().get().get(resource)
            policy, size, age = (found.get(n).value() for n in ("cleanup.policy", "retention.bytes", "retention.ms"))
        except Py4JJavaError:
            return None
        finally:
            admin.close()
        return int(time.time() * 1000) - int(age) if (policy, size) == ("delete", "-1") and int(age) >= 0 else None


@contextmanager
def topic(spark: SparkSession, options: Mapping[str, Any]) -> Generator[Topic]:
    """The topic of a Kafka source's options. Raises StoreError when the broker does not answer or has no such topic."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    settings = jvm.java.util.HashMap()
    given = {n.removeprefix("kafka."): v for n, v in options.get("options", {}).items() if n.startswith("kafka.")}
    plain = {"bootstrap.servers": options["servers"], "key.deserializer": _BYTES, "value.deserializer": _BYTES}
    for name, value in {"default.api.timeout.ms": "30000", **given, **plain}.items():
        settings.put(name, str(value))
    consumer = None
    try:
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
        found = Topic(jvm, consumer, settings, options["topic"])
        if not found.end():
            raise StoreError(f"the broker at {options['servers']} has no topic {options['topic']}")
        yield found
    except Py4JJavaError as problem:
        said = str(problem.java_exception.getMessage())
        raise StoreError(
            f"the broker at {options['servers']} does not tell offsets of {options['topic']}: {said}"
        ) from None
    finally:
        if consumer is not None:
            consumer.close()
