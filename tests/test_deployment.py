"""The files only a container engine or a monitoring server would read: checked here for form, and for agreement.

No engine runs in the tests, so what can go wrong unseen is a name: a metric, a port, a mounted path. They are compared.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
METRICS = {
    "rollup_events_total": set[str](),
    "rollup_late_events_total": {"aggregation", "policy"},
    "rollup_dead_letters_total": set[str](),
    "rollup_clock_seconds": {"aggregation"},
    "rollup_lag_seconds": {"aggregation"},
    "rollup_open_rows": {"aggregation", "level"},
    "rollup_batch_seconds": set[str](),
    "rollup_commit_seconds": set[str](),
    "rollup_store_rows": {"aggregation", "level"},
    "rollup_store_bytes": {"aggregation", "level"},
}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
DASHBOARD: dict[str, Any] = json.loads((ROOT / "conf/grafana/dashboards/rollup.json").read_text())
ALERTS: dict[str, Any] = yaml.safe_load((ROOT / "conf/prometheus/alerts.yml").read_text())


def _metrics_in(text: str) -> set[str]:
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in re.findall(r"rollup_[a-z_]+", text)}


def _expressions() -> list[str]:
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return panels + [rule["expr"] for group in ALERTS["groups"] for rule in group["rules"]]


def test_the_dashboard_shows_every_metric_and_no_unknown_one() -> None:
    shown = set().union(*(_metrics_in(target["expr"]) for panel in DASHBOARD["panels"] for target in panel["targets"]))
    assert shown == set(METRICS)


def test_alerts_use_only_known_metrics_and_cover_lag_lateness_commits_and_commit_time() -> None:
    used = set().union(*(_metrics_in(rule["expr"]) for group in ALERTS["groups"] for rule in group["rules"]))
    assert used <= set(METRICS)
    assert {"rollup_lag_seconds", "rollup_late_events_total", "rollup_commit_seconds"} <= used


@pytest.mark.parametrize("expression", _expressions())
def test_parentheses_of_an_expression_match_and_its_labels_exist(expression: str) -> None:
    assert all(expression.count(a) == expression.count(b) for a, b in ("()", "[]", "{}"))
    known = {"le", "job"}.union(*(METRICS.get(name, set()) for name in _metrics_in(expression)))
    named = re.findall(r"by \(([^)]*)\)", expression)
    assert {label.strip() for labels in named for label in labels.split(",")} <= known


def test_every_mounted_path_exists_and_every_dependency_is_a_service() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).exists(), f"{name} mounts {source}"
        assert set(service.get("depends_on", [])) <= set(services)


def test_every_published_port_is_on_loopback() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_prometheus_asks_the_port_the_job_publishes() -> None:
    prometheus = yaml.safe_load((ROOT / "conf/prometheus/prometheus.yml").read_text())
    (target,) = prometheus["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert any(published.endswith(f":{port}") for published in COMPOSE["services"][host]["ports"])
