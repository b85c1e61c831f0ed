"""Machine code is made once a text: threads and processes share it, and what is on disk is trusted only whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rollup.engine.compiler import cache
from rollup.engine.compiler.compiled import Compiled
from tests.engine.compiler.modes import program

TEXT = "def run(n):\n    s.total += n * s.factor\n"
STRUCTS = {"State": {"total": "int", "factor": "int"}}
CHILD = """
from rollup.engine.compiler import cache
from tests.engine.compiler.test_cache import STRUCTS, TEXT, program

cache.Translation = None  # nothing can be compiled
made = cache.code(program(TEXT, STRUCTS, run=["int"]))
print(len(made.object_code) > 0)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROLLUP_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "_CODES", {})
    return tmp_path / "programs"


def _ran(factor: int) -> int:
    mode = Compiled(program(TEXT, STRUCTS, run=["int"]))
    mode.set("factor", factor)
    mode.call("run", 3)
    return mode.get("total")


def test_programs_that_differ_in_values_of_their_state_share_code(folder: Path) -> None:
    assert (_ran(5), _ran(7)) == (15, 21)
    assert len(list(folder.iterdir())) == 1


def test_another_process_loads_what_this_one_has_compiled(folder: Path) -> None:
    assert _ran(5) == 15
    child = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert child.stdout == "True\n"


def test_a_file_that_was_cut_off_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _ran(5) == 15
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(cache, "_CODES", {})
    assert _ran(6) == 18
    assert len(file.read_bytes()) == len(whole)


def test_without_a_folder_to_write_to_a_program_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLUP_CACHE", "/proc/nothing")
    assert _ran(5) == 15


def test_a_thread_compiles_while_others_work() -> None:
    source = program(TEXT, STRUCTS, run=["int"])
    future = cache.later(source)
    assert future.result() is cache.code(source)


def test_the_checked_build_is_code_of_its_own() -> None:
    source = program(TEXT, STRUCTS, run=["int"])
    assert cache.code(source) is not cache.code(source, checked=True)
