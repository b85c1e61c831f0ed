"""The Tab key, as a real bash presses it: the script that `--show-completion` prints, sourced, and its function called."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PRESS = """
eval "$(rollup --show-completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_rollup_completion rollup
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("rollup re", {"replay", "recover"}),
        ("rollup replay --fr", {"--from"}),
        ("rollup query trades.toml --form", {"--format"}),
        ("rollup quarrel", {""}),
    ],
)
def test_tab_completes_commands_and_options(tmp_path: Path, typed: str, offered: set[str]) -> None:
    command = tmp_path / "rollup"
    command.write_text(f"#!{sys.executable}\nfrom rollup.cli.main import app\napp()\n")
    command.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["bash", "-c", _PRESS.format(words=typed)],
        env={**environment, "SHELL": "/bin/bash"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert set(ran.stdout.splitlines()) == offered
