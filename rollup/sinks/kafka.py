"""Rows of a stream sent to a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rollup.core.errors import ConfigError, StoreError
from rollup.core.json_line import json_line


class KafkaSink:
    """JSON events to a topic, at least once: a batch that comes again is sent again.

    A batch is done when the broker has acknowledged every row. Options: `servers`, `topic`, `timeout` (60, seconds that
    a row may take), `options` (of librdkafka), and of a table its `key`, which is then the key of the message, as JSON: a
    topic that is compacted keeps the last row of each.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            from confluent_kafka import Producer
        except ImportError:
            raise ConfigError(
                "a kafka sink needs the package confluent-kafka", hint="pip install confluent-kafka"
            ) from None
        self.topic: str = options["topic"]
        self.servers: str = options["servers"]
        self._timeout = float(options.get("timeout", 60))
        self._key = tuple(options.get("key", ()))
        settings = {"enable.idempotence": True, "message.timeout.ms": int(self._timeout * 1000)}
        self.producer: Any = Producer({**settings, **options.get("options", {}), "bootstrap.servers": self.servers})

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Raises StoreError when the broker has not acknowledged every row in time; the batch is then sent again."""
        failed = list[str]()

        def delivered(problem: Any, _: Any) -> None:
            if problem is not None:
                failed.append(problem.str())

        for row in rows.to_pylist():
            key = json_line({name: row[name] for name in self._key}).encode() if self._key else None
            self._send(key, json_line(row).encode(), delivered, failed)
            if failed:
                break
        left = self.producer.flush(self._timeout + 5)
        if failed or left:
            self._give_up()
            raise StoreError(
                f"the broker at {self.servers} did not take the rows of batch {batch} for topic {self.topic}: "
                f"{failed[0] if failed else f'{left} of them not acknowledged'}",
                hint="the job's next start sends the batch again",
            )

    def _send(
        self, key: bytes | None, message: bytes, delivered: Callable[[Any, Any], None], failed: list[str]
    ) -> None:
        from confluent_kafka import KafkaException

        while not failed:
            try:
                self.producer.produce(self.topic, message, key, on_delivery=delivered)
                self.producer.poll(0)
                return
            except BufferError:
                self.producer.poll(0.1)  # its queue is full: room comes with what is acknowledged
            except KafkaException as problem:
                failed.append(problem.args[0].str())

    def _give_up(self) -> None:
        """Nothing of a batch that failed is sent later, behind one that came after it."""
        self.producer.purge()
        self.producer.flush(1)

    def forget(self, query: str, batch: int) -> None:
        """What is sent stays sent."""
