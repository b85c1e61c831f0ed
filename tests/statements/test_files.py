"""Files of statements beside an app: each is a block of its own, whatever the app ends with and the file holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rollup.conf import load
from rollup.core.errors import RollupError

APP = """define stream S (k string, n long, ts long);
define aggregation A from S select k, count() as events group by k aggregate by ts every sec, min"""
CONF = """app = "app.siddhi"
checkpoint = "state"
statements = [{}]
[sources.S]
kind = "json"
path = "in"
[store]
kind = "delta"
path = "tables"
"""


def _statements(folder: Path, end: str, name: str, text: str) -> list[str]:
    (folder / "app.siddhi").write_text(APP + end)
    (folder / name).write_text(text)
    (folder / "job.toml").write_text(CONF.format(json.dumps(name)))
    statements = load(folder / "job.toml").program().statements
    return [part.section.text for part in statements.parts] if statements is not None else []


@pytest.mark.parametrize("end", ["", ";", ";\n-- the end; of it", " -- the end", "; /* a; b */ ", ";\n\n"])
def test_the_file_is_a_block_whatever_the_app_ends_with(tmp_path: Path, end: str) -> None:
    text = "@name('Rise') select k, '}' as brace from S /* } */"
    assert [each.strip() for each in _statements(tmp_path, end, "rise.epl", text)] == [text]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("rise.epl", "select k from S;\n } select 5", r"line 2, column 2: rise.epl: `}` closes nothing"),
        ("rise.epl", "select k from S {", r"rise.epl: a `{`, a text or a comment is not closed"),
        ("it's.epl", "select k from S", r"it's.epl.* has a quote"),
        ('"}.epl', "select k from S", r"has a quote"),
    ],
)
def test_what_would_end_the_block_is_refused_at_its_place(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(RollupError, match=said):
        _statements(tmp_path, ";", name, text)
