"""The drivers of PostgreSQL that programs of node use: pg, its pool, cursors, streams and copies, before both stores."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.trades import APP, events, served

NPM = os.environ.get("ROLLUP_NPM") or shutil.which("npm")
HERE = Path(__file__).parent / "node"
TOTAL = 406 * 3 * 3
"""Three trades a day and symbol at the day of the month, and at its double: 406 is the sum of 1 to 28."""
BOUNDS = ("dates", "numbers", "bigints", "days", "instants", "mixed")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with its packages, in the versions and with the checksums of package-lock.json, fetched by npm."""
    folder = tmp_path_factory.mktemp("node")
    for name in ("package.json", "package-lock.json", "ask.mjs"):
        shutil.copy(HERE / name, folder)
    done = subprocess.run(
        [str(NPM), "ci", "--no-audit", "--no-fund"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "ask.mjs"


@pytest.mark.slow
@pytest.mark.skipif(NPM is None, reason="no npm on the path, and none named by ROLLUP_NPM, to fetch the client with")
@pytest.mark.parametrize("kind", ["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_node_asks_as_it_would_any_postgresql(kind: str, program: Path) -> None:
    with served(kind, APP, lambda job: job.send("Trades", events("2018-01"))) as login:
        said = json.dumps({"database": login["dbname"], **{k: login[k] for k in ("host", "port", "user", "password")}})
        ran = subprocess.run(["node", str(program), said], capture_output=True, text=True, timeout=200, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found: dict[str, Any] = dict(map(json.loads, ran.stdout.splitlines()))
    null, notify = found.pop("null bound"), found.pop("notify")
    assert "a `within` bound is" in null["error"] and notify["code"] == "42501"
    assert "statement timeout" in found.pop("statement timeout")["error"] and found.pop("notice") == 1
    assert found == {
        **{f"{how} {kind}": TOTAL for how in ("within", "named") for kind in BOUNDS},
        **dict.fromkeys(("within one text", "per", "call", "stream", "reset"), TOTAL),
        "values": [{"symbol": "A", "n": 28}, {"symbol": "B", "n": 28}],
        "types": [
            {
                "j": {"a": [1, None]},
                "b": {"type": "Buffer", "data": [0, 255]},
                "t": True,
                "n": "1.50",
                "z": "2018-01-01T00:00:00.000Z",
                "i": str(2**62),
            }
        ],
        "several statements": [["BEGIN"], ["SELECT", {"n": 56}], ["COMMIT"]],
        "cursor": [50, 50, 50, 18],
        "a cursor that is left": 5,
        "declared cursor": 3,
        "copy": f"A,{TOTAL // 3}\nB,{TOTAL * 2 // 3}\n",
        "notifications": "heard",
        "pool": [None, TOTAL] * 6,
        "subscription": 2,
    }
