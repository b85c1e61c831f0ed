"""Rows of a stream sent to a Kafka topic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa

from rollup.core.errors import ConfigError, StoreError
from rollup.core.json_line import json_line
from rollup.core.packages import needed_by
from rollup.sinks.base import Held

_MOST, _LARGEST = "message.max.bytes", 1_000_000
"""librdkafka's setting, and what it is by default."""
_ASKING = 2.0
"""Seconds for a broker to say whether a topic is there."""
_ROW = "rollup-row"
_AGAIN = "the job's next start sends the batch again"
_LARGER = f"let both take larger ones, the sink by `{_MOST}` in its options, the topic by `max.message.bytes`"
_CURES = {
    "MSG_SIZE_TOO_LARGE": f"{_LARGER}; {_AGAIN}",
    "UNKNOWN_TOPIC_OR_PART": f"make the topic, or mend its name; {_AGAIN}",
    "_UNKNOWN_TOPIC": f"make the topic, or mend its name; {_AGAIN}",
    "_UNKNOWN_PARTITION": f"make the topic, or mend its name; {_AGAIN}",
    "TOPIC_AUTHORIZATION_FAILED": f"let the job write to it; {_AGAIN}",
}
"""What helps against an error that does not pass by itself."""


class KafkaSink:
    """JSON events to a topic, at least once: a batch that comes again is sent again.

    The header `rollup-row` of a message says which row of which line it is (`line/number`, from 1): who must not count one
    twice knows by it what it has had.

    A batch is done when the broker has acknowledged every row. Options: `servers`, `topic`, `timeout` (60, seconds that
    a row may take), `options` (of librdkafka). A table has a `key`, which becomes the key of the message, as JSON. So a
    compacted topic keeps the last row of each.
    """

    tells = False
    filled = False

    def __init__(self, options: Mapping[str, Any]) -> None:
        with needed_by("a kafka sink"):
            from confluent_kafka import KafkaException, Producer
        self.topic: str = options["topic"]
        self.servers: str = options["servers"]
        self._timeout = float(options.get("timeout", 60))
        most = options.get("options", {}).get(_MOST, _LARGEST)
        if not str(most).isdecimal():
            raise ConfigError(
                f"`{_MOST}` of the sink for topic {self.topic} is {most!r}", hint="a whole number of bytes"
            )
        self._most = int(most)
        self._key = tuple(options.get("key", ()))
        self._given_up: StoreError | None = None
        settings = {"enable.idempotence": True, "message.timeout.ms": int(self._timeout * 1000)}
        settings |= {**options.get("options", {}), "bootstrap.servers": self.servers}
        try:
            self.producer: Any = Producer(settings)
        except (KafkaException, TypeError, ValueError) as problem:
            said = problem.args[0].str() if isinstance(problem, KafkaException) else problem
            raise ConfigError(
                f"the options of the sink for topic {self.topic} do not make a producer: {said}",
                hint="they are those of librdkafka",
            ) from None

    @property
    def place(self) -> str:
        """The topic."""
        return f"the topic {self.topic}"

    def held(self, line: str) -> None:
        """What is sent is sent; a topic is not asked for it."""

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Raises StoreError when the broker has not acknowledged every row in time; the batch is then sent again, by
        another sink: this one takes nothing more."""
        if self._given_up is not None:
            raise StoreError(
                f"the sink for topic {self.topic} gave up, and does not take {_which(rows, held)}: {self._given_up.message}",
                hint=self._given_up.hint,
            )
        try:
            self._write(rows, line, held)
        except BaseException as problem:
            self._give_up(problem, _which(rows, held))
            raise

    def _write(self, rows: pa.Table, line: str, held: Held) -> None:
        failed = list[Any]()

        def delivered(problem: Any, _: Any) -> None:
            if problem is not None:
                failed.append(problem)

        first = held.rows - rows.num_rows + 1
        for number, (key, message) in enumerate(self._messages(rows, first), first):
            self._send(key, message, f"{line}/{number}", delivered, failed)
            if failed:
                break
        left = self.producer.flush(self._timeout + 5)
        if failed or left:
            problem = self._problem(failed)
            raise StoreError(
                f"the broker at {self.servers} did not take {_which(rows, held)} for topic {self.topic}: "
                f"{f'{left} of them not acknowledged' if problem is None else problem.str()}",
                hint=_AGAIN if problem is None else _CURES.get(problem.name(), _AGAIN),
            )

    def _problem(self, failed: list[Any]) -> Any:
        """What went wrong first. Where only time ran out it may be that the topic is gone, which the broker says if asked."""
        from confluent_kafka import KafkaException

        problem = failed[0] if failed else None
        if problem is None or problem.name() == "_MSG_TIMED_OUT":
            with suppress(KafkaException):
                return self.producer.list_topics(self.topic, _ASKING).topics[self.topic].error or problem
        return problem

    def _messages(self, rows: pa.Table, first: int) -> list[tuple[bytes | None, bytes]]:
        """Keys and values. One that cannot be sent is an error before any is: each start would send the others again."""
        found = list[tuple[bytes | None, bytes]]()
        for row in rows.to_pylist():
            key = json_line({name: row[name] for name in self._key}).encode() if self._key else None
            found.append((key, json_line(row).encode()))
            if (size := len(found[-1][1]) + len(key or b"")) > self._most:
                raise StoreError(
                    f"row {first + len(found) - 1} for topic {self.topic} makes a message of {size:,} bytes, "
                    f"and the sink sends {self._most:,} at most: none of them was sent",
                    hint=_CURES["MSG_SIZE_TOO_LARGE"],
                )
        return found

    def _send(
        self, key: bytes | None, message: bytes, row: str, delivered: Callable[[Any, Any], None], failed: list[Any]
    ) -> None:
        from confluent_kafka import KafkaException

        while not failed:
            try:
                self.producer.produce(self.topic, message, key, on_delivery=delivered, headers={_ROW: row})
                self.producer.poll(0)
                return
            except BufferError:
                self.producer.poll(0.1)  # its queue is full: room comes with what is acknowledged
            except KafkaException as problem:
                failed.append(problem.args[0])

    def _give_up(self, problem: BaseException, which: str) -> None:
        """Nothing of a batch that failed is sent later, behind one that came after it. Whatever stopped it: where in a
        batch librdkafka is nobody knows then, and what it still holds would answer for the next one."""
        stopped = f"{which} were not sent to the end: {type(problem).__name__}"
        self._given_up = problem if isinstance(problem, StoreError) else StoreError(stopped, hint=_AGAIN)
        self.producer.purge()
        self.producer.flush(1)

    def forget(self, line: str, rows: int) -> bool:
        """What is there stays there."""
        return False


def _which(rows: pa.Table, held: Held) -> str:
    """The rows of a batch, as messages name them: by their place in the line."""
    return f"rows {held.rows - rows.num_rows + 1} to {held.rows}"
