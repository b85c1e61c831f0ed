"""A server that goes away while a job runs: it is said with its address, once, and again when it is away again."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rollup.core.errors import RollupError, SourceError
from rollup.hosts.spark.watching.servers import Servers
from rollup.sources.kafka import Kafka
from tests.job.jobs import Job
from tests.job.model_spark import ModelSpark

GONE = Exception(
    "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: listNodes"
)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def looks(servers: Servers, message: str) -> list[str]:
    servers._next = 0.0  # pyright: ignore[reportPrivateUsage]
    query: Any = SimpleNamespace(name="Trades", status={"message": message})
    return list(servers.look([query]))


def test_a_broker_that_is_away_is_said_once_until_it_is_back(tmp_path: Path) -> None:
    port = free_port()
    job = Job(tmp_path, {"kind": "kafka", "servers": f"127.0.0.1:{port}", "topic": "t"})
    stream = job.conf.program().streams["Trades"]
    servers = Servers({"Trades": Kafka(stream, job.conf.sources["Trades"])})
    asking = "Getting offsets from KafkaV2[Subscribe[t]]"
    assert looks(servers, "Waiting for next trigger") == []
    (said,) = looks(servers, asking)
    assert f"no broker can be reached (127.0.0.1:{port}" in said
    assert looks(servers, asking) == []
    with socket.create_server(("127.0.0.1", port)):
        assert looks(servers, asking) == []
    assert len(looks(servers, asking)) == 1


def test_a_job_that_ends_because_its_broker_is_gone_names_the_address(tmp_path: Path) -> None:
    port = free_port()
    host = Job(tmp_path, {"kind": "kafka", "servers": f"127.0.0.1:{port}", "topic": "t"}).host(ModelSpark())  # type: ignore[arg-type]
    ended = host._told(GONE, "Trades")  # pyright: ignore[reportPrivateUsage]
    assert isinstance(ended, SourceError) and f"127.0.0.1:{port}" in str(ended)
    batch = Exception("Traceback (most recent call last):\nrollup.core.errors.StoreError: the table is gone")
    assert not isinstance(host._told(batch, "Trades"), SourceError)  # pyright: ignore[reportPrivateUsage]
    with socket.create_server(("127.0.0.1", port)):
        assert not isinstance(host._told(GONE, "Trades"), RollupError)  # pyright: ignore[reportPrivateUsage]
