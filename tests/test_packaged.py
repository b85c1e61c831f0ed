"""What comes with the package for other programs: in the wheel, and the Helm chart as Helm renders it.

Helm is built from its source, pinned, once into the user's cache: some minutes of two cores.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollup.cli.jobs import Folder, folder_of
from rollup.conf import load
from tests.servers.built import built

ROOT = Path(__file__).parents[1]
CHART = folder_of(Folder.HELM)
HELM = "v3.19.2"
HOSTILE = "-- {{ .Values.image }} ' \" <&> \\n\n---\nkind: Secret\n\ttab: \u00fc\u2028{% x %}\n"


def run(*words: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """A command to its end."""
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=1500, **more)


@pytest.mark.parametrize("folder", Folder)
def test_each_folder_has_files(folder: Folder) -> None:
    shown = run(sys.executable, "-m", "rollup.cli.main", "jobs", "path", folder, cwd=ROOT)
    assert shown.returncode == 0, shown.stderr
    assert any(path.is_file() for path in Path(shown.stdout.strip()).iterdir())


def test_what_is_under_way_has_a_folder_where_the_configuration_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job.toml"
    path.write_text('app = "a"\ncheckpoint = "s3://b/c"\n[store]\nkind = "delta"\npath = "s3://b/t"\n')
    assert load(path).local == tmp_path
    monkeypatch.setenv("ROLLUP_LOCAL", str(tmp_path / "scratch"))
    assert load(path).local == tmp_path / "scratch"


@pytest.mark.slow
def test_the_wheel_brings_every_file(tmp_path: Path) -> None:
    """A wheel, installed into an environment of its own: 40 s."""
    built = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv").returncode == 0
    python = tmp_path / "venv" / "bin" / "python"
    put = run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel)
    assert put.returncode == 0, put.stderr
    (site,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
    (site / "what_it_needs.pth").write_text(sysconfig.get_path("purelib"))
    for folder in Folder:
        shown = run(python, "-m", "rollup.cli.main", "jobs", "path", folder, cwd=tmp_path)
        place = Path(shown.stdout.strip())
        assert place.is_relative_to(tmp_path), shown.stderr
        ours = folder_of(folder)
        files = [
            path.relative_to(ours) for path in ours.rglob("*") if path.is_file() and "__pycache__" not in path.parts
        ]
        wanted = [path for path in files if folder is not Folder.ALERTS or path.name == "alerts.yml"]
        assert wanted
        assert [path for path in wanted if (place / path).read_bytes() != (ours / path).read_bytes()] == []


@pytest.fixture(scope="module")
def helm() -> Path:
    """Helm's program."""
    return built("helm.sh/helm/v3/cmd/helm", HELM)


def _rendered(helm: Path, folder: Path, values: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    path = folder / "values.yaml"
    path.write_text(json.dumps(values))  # YAML has all of JSON
    return run(helm, "template", "trades", CHART, "--namespace", "streams", "--values", path)


FILES = {
    "job.toml": (ROOT / "conf/docker.toml").read_text(),
    "trades.siddhi": (ROOT / "conf/trades.siddhi").read_text(),
    "odd.epl": HOSTILE,
}
ALL = {
    "files": FILES,
    "secrets": ["keys"],
    "env": {"AWS_REGION": "eu-central-1", "ODD": 'a "b": {c}'},
    "claim": "tables",
    "serve": {"enabled": True},
    "job": {"metricsPort": 9400, "patience": 40},
    "serviceAccount": "writer",
    "imagePullSecrets": ["pull"],
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "podAnnotations": {"x/y": "z"},
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("values", [{"files": FILES}, ALL], ids=["plain", "all"])
def test_what_helm_renders_is_what_kubernetes_takes(helm: Path, tmp_path: Path, values: dict[str, Any]) -> None:
    shown = _rendered(helm, tmp_path, values)
    assert shown.returncode == 0, shown.stderr
    rendered = tmp_path / "rendered.yaml"
    rendered.write_text(shown.stdout)
    for version in ("1.30", "1.36"):
        checked = run(sys.executable, "-m", "kubernetes_validate", "--strict", "-k", version, rendered)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    objects = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(shown.stdout)}
    serving = (
        {("Deployment", "trades-rollup-serve"), ("Service", "trades-rollup-serve")} if "serve" in values else set()
    )
    assert objects.keys() == {("ConfigMap", "trades-rollup"), ("Deployment", "trades-rollup")} | serving
    assert objects["ConfigMap", "trades-rollup"]["data"] == FILES

    job = objects["Deployment", "trades-rollup"]["spec"]
    assert (job["replicas"], job["strategy"]) == (1, {"type": "Recreate"})
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    patience = values.get("job", {}).get("patience", 15)
    assert container["args"] == ["run", "/conf/job.toml", "--json-logs", "--patience", str(patience)]
    assert pod["terminationGracePeriodSeconds"] > patience
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts["files"] == "/conf"
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    if values is ALL:
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert ports == {"metrics": tomllib.loads(FILES["job.toml"])["metrics"]["port"]}
        assert {"name": "ODD", "value": ALL["env"]["ODD"]} in container["env"]
        service, serve = (objects[kind, "trades-rollup-serve"]["spec"] for kind in ("Service", "Deployment"))
        labels = serve["template"]["metadata"]["labels"]
        assert service["selector"].items() <= labels.items()
        assert not service["selector"].items() <= job["template"]["metadata"]["labels"].items()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"files": FILES, "replicas": 2}, "replicas"),
        ({"files": FILES, "conf": "other.toml"}, 'files has no "other.toml"'),
        ({}, "minProperties"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(helm: Path, tmp_path: Path, values: dict[str, Any], said: str) -> None:
    shown = _rendered(helm, tmp_path, values)
    assert shown.returncode != 0
    assert said in shown.stderr
