"""What is emitted of a job: every event of lineage and every span, as a server of each receives them."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rollup.hosts.listeners import datasets
from rollup.hosts.listeners.datasets import Dataset
from tests.job.jobs import EVENTS, Job, command, trades_in


class Server:
    """A server on loopback that takes everything, and keeps it: by path, the bodies in the order of their arrival."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.path, dict(self.headers), body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def lineage(self) -> list[dict[str, Any]]:
        """The events of lineage."""
        return [json.loads(body) for path, _, body in self.got if path == "/api/v1/lineage"]

    @property
    def spans(self) -> list[Any]:
        """The spans of all requests."""
        requests = [ExportTraceServiceRequest.FromString(body) for path, _, body in self.got if path == "/v1/traces"]
        return [s for r in requests for each in r.resource_spans for scope in each.scope_spans for s in scope.spans]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def _job(folder: Path, address: str, more: str = "") -> Job:
    telemetry = f'[telemetry]\nlineage = "{address}"\ntraces = "{address}"\nnamespace = "trading"\n{more}'
    return Job(folder, trades_in(folder), more=telemetry)


@pytest.mark.spark
def test_a_run_its_batch_and_a_command_are_emitted(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINEAGE_KEY", "a secret")
    job = _job(tmp_path, server.address, 'lineage_key_env = "LINEAGE_KEY"\n')
    code, said = job.finish("--once")
    assert (code, "telemetry" in said) == (0, False), said
    events = {(each["job"]["name"], each["eventType"]): each for each in server.lineage}
    for job_name in ("app.run", "app.Trades"):
        assert [state for name, state in events if name == job_name] == ["START", "COMPLETE"]
    assert all(headers["Authorization"] == "Bearer a secret" for path, headers, _ in server.got if "lineage" in path)
    assert {each["job"]["namespace"] for each in server.lineage} == {"trading"}

    batch, run = events["app.Trades", "COMPLETE"], events["app.run", "COMPLETE"]
    assert batch["run"]["facets"]["parent"]["run"]["runId"] == run["run"]["runId"]
    assert [(each["namespace"], each["name"]) for each in batch["inputs"]] == [("file", str(tmp_path / "in"))]
    assert batch["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == len(EVENTS)
    # Two seconds are over when the last event has come. A minute is when a later second is over, and so on.
    rows = {Path(each["name"]).name: each["outputFacets"]["outputStatistics"]["rowCount"] for each in batch["outputs"]}
    assert {name: number for name, number in rows.items() if number} == {"TradeAgg_SECONDS": 2, "TradeAgg_MINUTES": 1}
    levels = ("SECONDS", "MINUTES", "HOURS", "DAYS", "MONTHS", "YEARS")
    assert {Path(each["name"]) for each in run["outputs"]} == {
        tmp_path / "tables" / f"TradeAgg_{one}" for one in levels
    }
    assert all(Path(each["name"]).is_dir() for each in (*run["inputs"], *run["outputs"]))
    fields = {each["name"]: each["type"] for each in batch["outputs"][0]["facets"]["schema"]["fields"]}
    assert fields["symbol"] == "string"

    spans = {span.name: span for span in server.spans}
    assert sorted(span.name for span in server.spans) == ["batch", "commit", "run"]
    assert spans["commit"].parent_span_id == spans["batch"].span_id
    told_of = {each.key: each.value.int_value for each in spans["batch"].attributes}
    assert (told_of["rollup.events"], told_of["rollup.dead"]) == (len(EVENTS), 0)
    assert (
        spans["batch"].start_time_unix_nano <= spans["commit"].start_time_unix_nano <= spans["run"].end_time_unix_nano
    )

    server.got.clear()
    assert command("verify", job.path)[0] == 0
    assert [(each["job"]["name"], each["eventType"], len(each["outputs"])) for each in server.lineage] == [
        ("app.verify", "START", 0),
        ("app.verify", "COMPLETE", 0),
    ]
    server.got.clear()
    code, said = command("replay", job.path, "--from", "2018-01-01", "--to", "2018-01-02", "--source", tmp_path / "no")
    assert code == 2
    assert [each["eventType"] for each in server.lineage] == ["START", "FAIL"]
    problem = server.lineage[1]["run"]["facets"]["errorMessage"]["message"]
    assert problem in said
    assert [span.status.message for span in server.spans] == [problem]


@pytest.mark.parametrize("listens", [False, True], ids=["away", "silent"])
@pytest.mark.few("silent")
def test_a_server_that_does_not_answer_is_a_warning_and_changes_nothing(tmp_path: Path, listens: bool) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        job = _job(tmp_path, address)
        code, said = command("maintain", job.path)
    assert code == 0, said
    warnings = said.splitlines()
    assert len(warnings) == 2
    assert all(
        re.match(r"rollup: warning: \[telemetry\] (lineage|traces): \d+ times ", line) and address in line
        for line in warnings
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('lineage = "marquez:5000"', "[telemetry] lineage is 'marquez:5000'"),
        ('lineage_key = "secret"', "[telemetry] has an unknown key `lineage_key` (did you mean `lineage_key_env`?)"),
        ('lineage_key_env = "NOT_SET"', "the name of a variable that is set"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, line: str, said: str) -> None:
    job = Job(tmp_path, {"kind": "json", "path": "in"}, more=f"[telemetry]\n{line}\n")
    code, wrong = command("plan", job.path)
    assert (code, said in wrong) == (2, True), wrong


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"path": "az://box/in"}, [Dataset("az://box", "in")]),
        ({"servers": "a:9092,b:9092", "topic": "t"}, [Dataset("kafka://a:9092", "t")]),
        ({"servers": "a:9092", "topics": ["t", "u"]}, [Dataset("kafka://a:9092", "t"), Dataset("kafka://a:9092", "u")]),
        ({"servers": "a:9092", "topic_pattern": "t.*"}, [Dataset("kafka://a:9092", "t.*")]),
        ({"url": "postgresql://h/db", "table": "x"}, [Dataset("postgres://h:5432", "db.public.x")]),
        ({"url": "sqlite:////data/x.db", "table": "x"}, [Dataset("sqlite://", "/data/x.db.x")]),
        ({"rows_per_second": 3}, []),
    ],
)
def test_data_have_the_names_that_openlineage_gives_them(options: dict[str, Any], named: list[Dataset]) -> None:
    assert list(datasets._given(options)) == named
