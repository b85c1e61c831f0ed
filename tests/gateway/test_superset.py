"""Apache Superset, driven headlessly over its own API, draws its charts from the endpoint.

Superset is heavy and pins other versions of our libraries, so it stands in an environment of its own, whose Python
ROLLUP_SUPERSET names. What counts is that its parser, its dataset browser and its query builder all pass: it changes
the text it is given (names in capitals, a query around the query) before it sends it.

    python -m venv superset
    superset/bin/pip install apache-superset psycopg2-binary "flask-caching<2.4" rich cachetools
    ROLLUP_SUPERSET=superset/bin/python pytest -m superset

So no target of the Makefile runs it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.gateway.trades import PASSWORD, Serving, configuration, events, folder, host

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.superset]
CONFIG = """
SECRET_KEY = "for the length of one test, and so long because it signs"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db?check_same_thread=false"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = RATELIMIT_ENABLED = False
_CACHE = {{"CACHE_TYPE": "SimpleCache", "CACHE_DEFAULT_TIMEOUT": 60}}
CACHE_CONFIG = DATA_CACHE_CONFIG = FILTER_STATE_CACHE_CONFIG = EXPLORE_FORM_DATA_CACHE_CONFIG = _CACHE
"""


def _superset(python: Path, made: Path, uri: str) -> dict[str, Any]:
    (made / "superset_config.py").write_text(CONFIG.format(folder=made))
    environment = os.environ | {"SUPERSET_CONFIG_PATH": str(made / "superset_config.py"), "FLASK_APP": "superset"}
    program = str(Path(__file__).with_name("superset_client.py"))
    commands = [[str(python.with_name("superset")), "db", "upgrade"], [str(python.with_name("superset")), "init"]]
    done = None
    for command in [*commands, [str(python), program, uri]]:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{command[1:]}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    assert done is not None
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("SEEN "))[5:])


@pytest.mark.timeout(1800)
def test_superset_browses_and_draws() -> None:
    assert "ROLLUP_SUPERSET" in os.environ, "ROLLUP_SUPERSET names no Python that has Apache Superset"
    with folder() as made:
        conf = configuration(made)
        job = host(conf)
        job.send("Trades", events("2018-01"))
        with Serving(conf) as serving:
            place = f"127.0.0.1:{serving.endpoint.port}/rollup"
            uri = f"postgresql+psycopg2://ann:{quote(PASSWORD, safe='')}@{place}"
            seen = _superset(Path(os.environ["ROLLUP_SUPERSET"]), made, uri)
    assert seen["browser"][0] == "TradeAgg" and "TradeAgg_per_days" in seen["browser"]
    assert sorted(row["total"] for row in seen["line chart"]) == [15.0, 18.0, 21.0]
    for name in ("call", "quoted name"):
        assert seen[name] == [{"symbol": "B", "total": 2436.0}, {"symbol": "A", "total": 1218.0}]
        assert [row["total"] for row in seen[f"{name} in SQL Lab"]] == [3.0, 6.0]
    assert seen["clause in SQL Lab"] != 200, "Superset reads the clause now: say so in docs/bi.md"
