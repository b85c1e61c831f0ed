"""A real Kafka broker for tests and live benchmarks: one KRaft node as a Java process on the loopback interface."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rollup.jars import jars
from rollup.java import java
from rollup.stores.postgres.server import free_port

_PROPERTIES = """
process.roles=broker,controller
node.id=1
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:{controller}
log.dirs={base}/logs
auto.create.topics.enable=false
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
"""

_CLUSTER_ID = "cm9sbHVwLXRlc3Qtbm9kZQ"  # any 16 bytes, in URL-safe base 64


class KafkaBroker:
    """Kafka 4.1 on a free loopback port, up in a few seconds; `with KafkaBroker() as broker:` or start() and stop()."""

    def __init__(self, *, heap_mb: int = 512, more: str = "", users: Sequence[str] = ()) -> None:
        """`more` are further properties, where {port} and {controller} are those of its own listeners; `users` as `kafka-storage --add-scram` has them."""
        self.base = Path(tempfile.mkdtemp(prefix="rollup-kafka-"))
        self.port = 0
        self._controller = 0
        self._heap = f"-Xmx{heap_mb}m"
        self._more, self._users = more, users
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The value of `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> Self:
        """Start the broker and wait until it answers; starting a running one does nothing."""
        if self.pid is None:
            if not (self.base / "logs").exists():
                self._format()
            self._process = self._java("kafka.Kafka", str(self._config))
            self._wait()
        return self

    def stop(self) -> None:
        """End the broker cleanly; its topics stay for the next start."""
        self._end(signal.SIGTERM)

    def kill9(self) -> None:
        """End the broker as a crash does; what it had acknowledged is still there at the next start."""
        self._end(signal.SIGKILL)

    def restart(self) -> Self:
        """Stop if it runs, then start on the same port with the same topics."""
        self.stop()
        return self.start()

    def remove(self) -> None:
        """Stop for good and delete the data; nothing in it is worth a clean end."""
        self.kill9()
        shutil.rmtree(self.base, ignore_errors=True)

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic; KafkaException when there is one of this name."""
        admin = self._admin()  # kept in a variable: the request dies with its client
        admin.create_topics([NewTopic(name, partitions, 1)])[name].result(timeout=30)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; KafkaException when there is none of this name."""
        admin = self._admin()
        admin.delete_topics([name])[name].result(timeout=30)

    def new_topic(self, partitions: int = 1) -> str:
        """Make a topic with a name of its own; returns the name. One a test keeps tests apart."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        self.create_topic(name, partitions)
        return name

    def producer(self, **settings: str | int) -> Producer:
        """A producer for this broker; `settings` are librdkafka's, with `_` for `.`.

        It keeps the order also of what it has to send again, as it does to a topic that has just been made: tests look for messages
        by their time.
        """
        own = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True}
        return Producer(own | {k.replace("_", "."): v for k, v in settings.items()})

    def produce(
        self, topic: str, values: Iterable[str | bytes], *, partition: int | None = None, timestamp: int | None = None
    ) -> None:
        """Send the values, in order, stamped now or with a time (ms), and wait until the broker has acknowledged all."""
        producer = self.producer()
        failed: list[str] = []
        where = {
            name: value for name, value in (("partition", partition), ("timestamp", timestamp)) if value is not None
        }
        for value in values:
            producer.produce(topic, value, on_delivery=lambda e, _: failed.append(str(e)) if e else None, **where)
            producer.poll(0)
        left = producer.flush(30)
        if left or failed:
            raise RuntimeError(f"{left} messages not acknowledged, {len(failed)} refused: {failed[:1]}")

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def _config(self) -> Path:
        return self.base / "server.properties"

    @property
    def _output(self) -> Path:
        return self.base / "output.log"

    def _format(self) -> None:
        self.port, self._controller = free_port(), free_port()
        properties = _PROPERTIES.format(port=self.port, controller=self._controller, base=self.base)
        more = self._more.replace("{port}", str(self.port)).replace("{controller}", str(self._controller))
        self._config.write_text(properties + more)
        users = [word for user in self._users for word in ("--add-scram", user)]
        made = self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(self._config), *users)
        if made.wait(timeout=60) != 0:
            raise RuntimeError(f"Kafka's storage could not be formatted: {self._output_end()}")

    def _java(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        classes = os.pathsep.join(str(jar) for jar in jars("kafka-broker"))
        # Serial collector and the first compiler only: on two cores a short-lived broker starts in half the time.
        options = [self._heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={self.base}"]
        options.append("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        with self._output.open("ab") as output:
            return subprocess.Popen(
                [str(java()), *options, "-cp", classes, main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.base,
                start_new_session=True,
            )

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def _wait(self, seconds: float = 60.0) -> None:
        admin, deadline = self._admin(), time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.pid is None:
                raise RuntimeError(f"Kafka ended at once: {self._output_end()}")
            try:
                admin.list_topics(timeout=1)
                return
            except KafkaException:
                time.sleep(0.1)
        self.kill9()
        raise RuntimeError(f"Kafka did not answer within {seconds:.0f} s: {self._output_end()}")

    def _end(self, sign: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(sign)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _output_end(self) -> str:
        return " | ".join(self._output.read_text(errors="replace").strip().splitlines()[-5:])
