"""What `docker compose up` would do, without an engine: the image's files are made by hand, the job's command runs as a
process on them, and the dashboard's questions are answered by what that job says of itself.

Static checks are about what only an engine could get wrong: mounted paths, published ports, names of services.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg2
import pytest
import sqlalchemy as sa
import yaml
from prometheus_client.parser import text_string_to_metric_families

from rollup.stores.postgres.server import USER, free_port
from tests.containers import COMPOSE, ROOT, Image, service
from tests.servers.postgres import PostgresServer, execute

if TYPE_CHECKING:
    from tests.servers.kafka import KafkaBroker

DASHBOARD: dict[str, Any] = json.loads((ROOT / "conf/grafana/dashboards/rollup.json").read_text())
ALERTS: dict[str, Any] = yaml.safe_load((ROOT / "conf/prometheus/alerts.yml").read_text())
CONF = tomllib.loads((ROOT / "conf/docker.toml").read_text())
PASSWORD = "another 'password'"
SHELL = {"ROLLUP_PG_PASSWORD": PASSWORD}
"""The shell that `docker compose up` is typed into."""

_SELECTOR = re.compile(r"(rollup_[a-z_]+)(?:\{([^}]*)\})?")
_LABEL = re.compile(r'(\w+)=~?"([^"]*)"')
Sample = tuple[str, dict[str, str], float]


def queries() -> list[str]:
    """Every question of the dashboard, with the variable that stands for all aggregations, and of the alerts."""
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    lists = [each["query"]["query"] for each in DASHBOARD["templating"]["list"]]
    rules = [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]
    return [query.replace("$aggregation", ".*") for query in (*panels, *lists, *rules)]


def unanswered(query: str, samples: list[Sample]) -> list[str]:
    """The parts of a query that no sample answers, and the labels it groups by or lists that they have not."""
    found: list[str] = []
    for selector in _SELECTOR.finditer(query):
        name, wanted = selector[1], dict(_LABEL.findall(selector[2] or ""))
        grouped = _grouped(query, selector.start())
        matching = [
            has
            for sample, has, _ in samples
            if sample == name and all(re.fullmatch(value, has.get(label, "")) for label, value in wanted.items())
        ]
        found += [name] if not matching else [f"{name} by {label}" for label in sorted(grouped - set(matching[0]))]
    return found


def _grouped(query: str, place: int) -> set[str]:
    """The labels that a selector's sums are grouped by, or that are listed of it: of the parentheses it stands in."""
    found = set(re.findall(r"label_values\(\w+, (\w+)\)", query))
    for group in re.finditer(r"\bby \(([^)]+)\) \(", query[:place]):
        depths = accumulate({"(": 1, ")": -1}.get(sign, 0) for sign in query[group.end() : place])
        if min(depths, default=0) >= 0:  # not closed again
            found |= {label.strip() for label in group[1].split(",")}
    return found


@dataclass(frozen=True)
class Running:
    """The job of the compose file as it runs here; `database` is the address of the one that it writes."""

    image: Image
    process: subprocess.Popen[str]
    metrics: str
    database: str

    def samples(self) -> list[Sample]:
        """What the job says of itself now; nothing before it listens."""
        try:
            with urllib.request.urlopen(self.metrics, timeout=5) as answer:
                families = list(text_string_to_metric_families(answer.read().decode()))
        except OSError:
            return []
        return [(each.name, dict(each.labels), each.value) for family in families for each in family.samples]

    def wait_for(self, name: str, least: float, seconds: float = 180) -> None:
        """Wait until a metric, summed over its labels, has reached a value."""
        deadline = time.monotonic() + seconds
        while (value := sum(value for sample, _, value in self.samples() if sample == name)) < least:
            assert self.process.poll() is None, f"the job has ended with {self.process.returncode}"
            assert time.monotonic() < deadline, f"{name} is {value} after {seconds} s"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(tmp_path_factory.mktemp("image")).build()


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The database of the service `postgres`, with user and password from its environment."""
    given = service("postgres", SHELL)["environment"]
    assert given["POSTGRES_USER"] == USER, "the server of the tests has this one user"
    server = PostgresServer().start()
    try:
        execute(server.dsn, f"create database {given['POSTGRES_DB']}")
        connection = psycopg2.connect(server.dsn)
        with connection, connection.cursor() as cursor:
            cursor.execute(f"alter role {USER} password %s", (given["POSTGRES_PASSWORD"],))
        connection.close()
        url = sa.URL.create(
            "postgresql", USER, given["POSTGRES_PASSWORD"], "127.0.0.1", server.port, given["POSTGRES_DB"]
        )
        yield url.render_as_string(hide_password=False)
    finally:
        server.remove()


@pytest.fixture(scope="module")
def running(image: Image, kafka: KafkaBroker, database: str) -> Iterator[Running]:
    """The job, with the volumes, the environment and the command of its service."""
    command = service("topics")["command"]
    kafka.create_topic(command[command.index("--topic") + 1], int(command[command.index("--partitions") + 1]))
    job, port = service("job", SHELL), free_port()
    _mount(image, job, kafka.bootstrap, str(sa.make_url(database).port), port)
    words = [*image.entrypoint, *job["command"]]
    assert words[:4] == ["tini", "--", "rollup", "run"]
    process = subprocess.Popen(
        [sys.executable, str(image.site / "bin" / "rollup"), "run", str(image.at(words[4]))],
        cwd=image.at(""),
        env=image.environment(job["environment"]),
        stdin=subprocess.DEVNULL,
        stdout=(image.root / "output").open("w"),
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield Running(image, process, f"http://127.0.0.1:{port}/metrics", database)
    finally:
        process.kill()
        process.wait()


def _mount(image: Image, job: dict[str, Any], kafka: str, postgres: str, metrics: int) -> None:
    """The service's volumes: named ones are folders that the image made; the configuration has addresses of here."""
    for volume in job["volumes"]:
        source, target, *how = volume.split(":")
        if source in COMPOSE["volumes"]:
            assert image.at(target).is_dir(), f"{target} is not in the image, so its volume would belong to root"
            continue
        assert how == ["ro"]
        image.at(target).mkdir(parents=True, exist_ok=True)
        for file in (ROOT / source).glob("*.*"):
            text = file.read_text().replace('"/', f'"{image.root}/').replace("postgres:5432", f"127.0.0.1:{postgres}")
            text = text.replace("kafka:19092", kafka).replace('"0.0.0.0"', '"127.0.0.1"')
            (image.at(target) / file.name).write_text(
                text.replace(f"port = {CONF['metrics']['port']}", f"port = {metrics}")
            )


def _events(numbers: range) -> list[str]:
    """A trade a second of two symbols; every tenth is twenty seconds late."""
    return [
        json.dumps({
            "symbol": "AB"[number % 2],
            "price": 10.0,
            "quantity": 1,
            "timestamp": 1_700_000_000_000 + number * 1000 - (20_000 if number % 10 == 9 else 0),
        })
        for number in numbers
    ]  # fmt: skip


# the image


def test_the_image_has_all_that_the_package_reads_and_runs_from_its_own_files(image: Image) -> None:
    code = "import rollup.stores.sql.ddl as ddl; print(ddl.__file__, len(ddl.template('postgres/functions.sql', schema='s')) > 0)"
    ran = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=image.at(""), env=image.environment({}), capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == [str(image.site / "rollup/stores/sql/ddl.py"), "True"]


def test_what_the_job_writes_is_on_a_volume_that_belongs_to_its_user(image: Image) -> None:
    targets = [Path(volume.split(":")[1]) for volume in service("job")["volumes"] if not volume.endswith(":ro")]
    assert any(Path(CONF["checkpoint"]).is_relative_to(target) for target in targets)
    assert {str(target) for target in targets} <= set(image.volumes)
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.search(r"install -d -o rollup -g rollup /data\b", dockerfile)
    assert "\nUSER rollup\n" in dockerfile


# the job


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.slow
def test_the_job_answers_every_question_of_the_dashboard_and_of_the_alerts(
    running: Running, kafka: KafkaBroker
) -> None:
    kafka.produce(CONF["sources"]["TradeStream"]["topic"], _events(range(60)), partition=0)
    running.wait_for("rollup_events_total", 60)
    running.wait_for("rollup_late_events_total", 1)
    samples = running.samples()
    assert {query: unanswered(query, samples) for query in queries() if unanswered(query, samples)} == {}
    (stored,) = execute(running.database, 'select sum("AGG_EVENTS") from "TradeAggregation_SECONDS"')
    assert int(str(stored[0])) > 40
    assert any(running.image.at(CONF["checkpoint"]).iterdir())
    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(60) == 0, (running.image.root / "output").read_text()[-2000:]


def test_a_question_about_what_nothing_emits_is_found() -> None:
    samples: list[Sample] = [("rollup_events_total", {"stream": "S"}, 1.0)]
    assert unanswered("sum(rate(rollup_events_total[5m]))", samples) == []
    assert unanswered("sum by (zone) (rate(rollup_events_total[5m]))", samples) == ["rollup_events_total by zone"]
    assert unanswered('rollup_events_total{stream=~"T"}', samples) == ["rollup_events_total"]
    assert unanswered("rollup_store_rows", samples) == ["rollup_store_rows"]
    samples.append(("rollup_late", {"zone": "UTC"}, 1.0))
    assert (
        unanswered("sum by (zone) (rate(rollup_late[5m])) > scalar(sum(rate(rollup_events_total[5m])))", samples) == []
    )
    assert unanswered("sum by (zone) ((rollup_late) + rollup_events_total)", samples) == ["rollup_events_total by zone"]


# names that only an engine reads


@pytest.mark.parametrize("expression", queries())
def test_parentheses_of_an_expression_match(expression: str) -> None:
    assert all(expression.count(a) == expression.count(b) for a, b in ("()", "[]", "{}"))


def test_alerts_cover_lag_lateness_commits_and_commit_time() -> None:
    used = " ".join(rule["expr"] for group in ALERTS["groups"] for rule in group["rules"])
    assert all(name in used for name in ("rollup_lag_seconds", "rollup_late_events", "rollup_commit_seconds"))


def test_every_mounted_path_exists_and_every_dependency_is_a_service() -> None:
    services = COMPOSE["services"]
    for name, each in services.items():
        for volume in each.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).exists(), f"{name} mounts {source}"
        assert set(each.get("depends_on", [])) <= set(services)


def test_what_runs_before_a_commit_comes_from_here() -> None:
    found = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    assert {each["repo"] for each in found["repos"]} == {"local"}
    hooks = {each["id"]: each for part in found["repos"] for each in part["hooks"]}
    assert {each["language"] for each in hooks.values()} == {"system", "pygrep"}
    subject = re.compile(hooks["subject"]["entry"])
    assert subject.search("x" * 73 + "\n") and not subject.search("x" * 72 + "\n\n" + "y" * 90)


def test_every_published_port_is_on_loopback() -> None:
    ports = [port for each in COMPOSE["services"].values() for port in each.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_prometheus_asks_the_port_on_which_the_job_listens_for_other_containers() -> None:
    prometheus = yaml.safe_load((ROOT / "conf/prometheus/prometheus.yml").read_text())
    (target,) = prometheus["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert COMPOSE["services"][host]["command"][1].endswith("/${ROLLUP_CONF:-docker.toml}")
    assert (CONF["metrics"]["host"], CONF["metrics"]["port"]) == ("0.0.0.0", int(port))
    assert any(published.endswith(f":{port}") for published in COMPOSE["services"][host]["ports"])


def test_the_job_finds_the_servers_under_the_names_and_ports_of_their_services() -> None:
    broker = CONF["sources"]["TradeStream"]["servers"]
    assert f"INSIDE://{broker}" in COMPOSE["services"]["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    url, given = sa.make_url(CONF["store"]["url"]), service("postgres")["environment"]
    assert (url.host, url.port) == ("postgres", 5432)
    assert (url.username, url.database, url.password) == (given["POSTGRES_USER"], given["POSTGRES_DB"], None)
    assert service("job", SHELL)["environment"]["PGPASSWORD"] == PASSWORD
    assert service("job")["environment"]["PGPASSWORD"] == given["POSTGRES_PASSWORD"]
    command = service("topics")["command"]
    assert command[command.index("--topic") + 1] == CONF["sources"]["TradeStream"]["topic"]
