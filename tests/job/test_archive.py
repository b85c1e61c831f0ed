"""Java's archive of classes is a gift and never a condition: with a wrong one Java starts as ever and says nothing."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rollup import archive
from rollup.core.errors import ConfigError
from rollup.java import java

_MAIN = "org.apache.ivy.Main"


def _run(options: str, jar: Path) -> tuple[int, str, str]:
    """A small program of one of Spark's jars."""
    command = [str(java()), *options.split(), "-cp", str(jar), _MAIN, "-version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar with a program that says its version."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    (found,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    return Path(shutil.copy(found, tmp_path / "program.jar"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this test's own."""
    monkeypatch.setenv("ROLLUP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(archive.MAKING, raising=False)


@pytest.fixture
def made(jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of the small program, in the place of a job's."""

    def of_the_program(folder: Path, into: Path) -> str:
        return _run(f"-XX:ArchiveClassesAtExit={into}", jar)[2]

    monkeypatch.setattr(archive, "_trained", of_the_program)
    return archive.make()


def test_without_an_archive_java_is_told_nothing() -> None:
    assert archive.java_options() == ""


def test_an_archive_that_fits_is_used_and_changes_nothing_else(made: Path, jar: Path) -> None:
    options = archive.java_options()
    assert str(made) in options and archive.make() == made
    assert _run(options, jar) == _run("", jar)
    shared = _run(f"{options} -Xlog:class+load", jar)[1]
    assert f"{_MAIN} source: shared objects file (top)" in shared


def test_a_java_that_others_start_is_told_on_its_command_line(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ["--options"], ["--options", "--once"]:
        monkeypatch.setattr(sys, "argv", ["archive", *words])
        assert archive.main() == 0
    told, once = capsys.readouterr().out.splitlines()
    assert str(made) in told and once == f"{archive.QUICK} {told}"


def test_a_quick_java_has_as_much_room_for_compiled_code_as_any() -> None:
    """Spark compiles each plan; a Java whose room is full fails the tasks of the next."""
    assert _code_room(archive.QUICK) >= _code_room("")


def _code_room(options: str) -> int:
    command = [str(java()), *options.split(), "-XX:+PrintFlagsFinal", "-version"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(next(line.split()[3] for line in told.splitlines() if "ReservedCodeCacheSize" in line))


def _of_other_jars(made: Path, jar: Path) -> None:
    with jar.open("ab") as changed:
        changed.write(b"\0")


def _of_another_java(made: Path, jar: Path) -> None:
    whole = made.read_bytes()
    made.chmod(0o600)
    made.write_bytes(b"\0" * 512 + whole[512:])


def _cut(made: Path, jar: Path) -> None:
    made.chmod(0o600)
    with made.open("r+b") as whole:
        whole.truncate(made.stat().st_size // 2)


@pytest.mark.parametrize("spoil", [_of_other_jars, _of_another_java, _cut])
def test_an_archive_that_does_not_fit_changes_nothing_and_is_not_spoken_of(
    made: Path, jar: Path, spoil: Callable[[Path, Path], None]
) -> None:
    without = _run("", jar)
    spoil(made, jar)
    assert _run(archive.java_options(), jar) == without


def _spark(folder: Path) -> Path:
    """What of a Spark an archive is of."""
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / "core.jar").write_bytes(b"1")
    return folder


def _more_bytes(spark: Path, home: Path) -> None:
    (spark / "jars" / "core.jar").write_bytes(b"22")


def _one_more_jar(spark: Path, home: Path) -> None:
    (spark / "jars" / "more.jar").write_bytes(b"")


def _another_release(spark: Path, home: Path) -> None:
    (home / "release").write_text("2")


@pytest.mark.parametrize("change", [_more_bytes, _one_more_jar, _another_release])
def test_an_archive_is_of_one_java_and_one_list_of_jars_and_the_next_takes_its_place(
    tmp_path: Path, jar: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, Path], None]
) -> None:
    spark, home = _spark(tmp_path / "spark"), tmp_path / "java"
    home.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(spark))
    monkeypatch.setattr(archive, "java_home", lambda: home)
    monkeypatch.setattr(archive, "_trained", lambda folder, into: into.write_bytes(b"classes"))
    before = archive.make()
    assert archive.make() == before == archive.archive()
    change(spark, home)
    assert archive.archive() is None and archive.java_options() == ""
    after = archive.make()
    assert after != before and not before.exists() and archive.archive() == after


def test_archives_of_a_spark_that_is_gone_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_trained", lambda folder, into: into.write_bytes(b"classes"))
    made = list[Path]()
    for name in ("a", "b"):
        monkeypatch.setenv("SPARK_HOME", str(_spark(tmp_path / name)))
        made.append(archive.make())
    shutil.rmtree(tmp_path / "a")
    monkeypatch.setenv("SPARK_HOME", str(_spark(tmp_path / "c")))
    made.append(archive.make())
    assert [one.exists() for one in made] == [False, True, True]


def test_where_java_writes_no_archive_that_is_an_error_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "_APP", "define nothing")
    with pytest.raises(ConfigError, match=r"app.siddhi, line 1"):
        archive.make()
    assert [
        file for file in (tmp_path / "cache" / "archives").rglob("*") if file.is_file() and file.name != "spark"
    ] == []
