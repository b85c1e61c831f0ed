"""The documentation as a site: every link and anchor leads somewhere, and no page fetches anything from elsewhere.

The pages of commands, Python and metrics are made of the code when the site is built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from rollup.cli.main import cli
from tests.containers import ROOT

_FETCHED = re.compile(r"""<(?:script|img|link)\b[^>]*\b(?:src|href)=["']?(https?://[^"'\s>]+)""")


def test_it_is_built_without_a_warning(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    sources = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) >= len(sources), "a page for each"
    commands = (tmp_path / "site" / "commands" / "index.html").read_text()
    assert [
        name for name in (command.name for command in cli.registered_commands) if f"rollup {name}" not in commands
    ] == []
    assert "Engine.send" in (tmp_path / "site" / "python" / "index.html").read_text()
    assert "rollup_lag_seconds" in (tmp_path / "site" / "metrics" / "index.html").read_text()
    for page in pages:
        text = page.read_text()
        assert not _FETCHED.findall(text), page
        assert "```" not in text, f"{page}: a block is shown as the text it is written in"
