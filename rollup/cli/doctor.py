"""`rollup doctor`: whether this machine, and a configuration on it, have what a job needs; each fault with its cure."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollup.core.errors import ConfigError, RollupError
from rollup.core.objects import ObjectPath
from rollup.core.packages import EXTRAS

if TYPE_CHECKING:
    from rollup.conf import Conf

_SKEW = 2.0
"""Seconds by which a file system's clock may differ from this machine's."""
Check = tuple[str, Callable[[], str]]


def doctor(
    conf: Annotated[Path | None, typer.Argument(help="A configuration to look at, too.")] = None,
) -> None:
    """Look at Python, packages, Java, jars and zones, and at what a configuration needs. Exit code 1: something is wrong."""
    wrong = 0
    for name, look in (*_machine(), *_configured(conf)):
        try:
            print(f"  ok   {name}: {look()}")
        except RollupError as problem:
            wrong += 1
            print(f"WRONG  {name}: {problem}")
        except OSError as problem:
            wrong += 1
            print(f"WRONG  {name}: {problem.filename or ''} {problem.strerror or problem}".replace(":  ", ": "))
    if wrong:
        raise typer.Exit(1)


def _machine() -> Iterator[Check]:
    yield "Python", lambda: sys.version.split()[0]
    yield "packages", _packages
    if find_spec("pyspark"):
        yield "Java", _java
        yield "jars", _jars
    yield "time zones", _zones


def _packages() -> str:
    """Every package of the declaration in a version that fits it; those of extras may be missing."""
    from importlib.metadata import PackageNotFoundError, requires, version

    from packaging.requirements import Requirement

    asked = [Requirement(line) for line in requires("rollup") or ()]
    needed = [each for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})]
    extra = [each for each in asked if each.marker and any(each.marker.evaluate({"extra": name}) for name in EXTRAS)]
    fitting, wrong = 0, list[str]()
    for each in {str(each): each for each in (*needed, *extra)}.values():
        try:
            if each.specifier.contains(found := version(each.name), prereleases=True):
                fitting += 1
            else:
                wrong.append(f"{each.name} is {found}, {each.specifier} is wanted")
        except PackageNotFoundError:
            if each in needed:
                wrong.append(f"{each.name} is missing")
    if wrong:
        raise ConfigError("; ".join(wrong), hint="pip install --upgrade rollup")
    return f"{fitting}, each in a version that fits"


def _java() -> str:
    from rollup.java import java_home, java_version

    home = java_home()
    return f"{java_version(home / 'bin' / 'java')} in {home}"


def _jars() -> str:
    from rollup.jars import jars_dir

    if not jars_dir().is_dir():
        raise ConfigError("the Java libraries have not been fetched", hint="python -m rollup.jars")
    return f"{len(list(jars_dir().rglob('*.jar')))} in {jars_dir()}"


def _zones() -> str:
    from rollup.core.zones import VERSION, names

    return f"{len(names())} of tzdata {VERSION}"


def _configured(path: Path | None) -> Iterator[Check]:
    if path is None:
        return
    from rollup.conf import load

    try:
        conf = load(path)
    except RollupError as problem:
        wrong = problem
        yield "configuration", lambda: _raised(wrong)
        return
    yield "app and configuration", lambda: _ready(conf)
    yield "sources", lambda: _sources(conf)
    if conf.dimensions:
        yield "tables of questions", lambda: _tables(conf)
    for what, folder in (("tables", conf.tables), ("checkpoint", conf.checkpoint)):
        yield what, lambda folder=folder: _writable(folder)
    ports = {"[serve] port": conf.serve.get("port"), "metrics_port": conf.metrics_port}
    for what, port in ports.items():
        if port:
            yield what, lambda port=port: _port(port)


def _raised(problem: RollupError) -> str:
    raise problem


def _ready(conf: Conf) -> str:
    from rollup.lifecycle.readiness import ready

    program = conf.program()
    ready(conf, program)
    return f"{len(program.aggregations)} aggregations, {len(program.streams)} streams, zone {conf.zone}"


def _tables(conf: Conf) -> str:
    from rollup.dimensions import dimensions

    return "; ".join(each.described for each in dimensions(conf, conf.program())) or "none"


def _sources(conf: Conf) -> str:
    from rollup.conf import check
    from rollup.lifecycle.readiness import reach

    program = conf.program()
    check(conf, program)
    reach(conf, program)
    return ", ".join(f"{name} from {conf.sources[name]['kind']}" for name in program.inputs) or "none"


def _writable(folder: Path) -> str:
    """A folder, or the nearest one above it that is there: files can be made in it, and its clock is the machine's."""
    if isinstance(folder, ObjectPath):
        from rollup.checkpoint.records import RecordFolder

        RecordFolder(folder).create()
        return f"{folder} can be written, and refuses a second object of one name"
    there = next(each for each in (folder, *folder.parents) if each.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"nothing can be written in {there}", hint="give the job's user the right to write")
    with tempfile.NamedTemporaryFile(dir=there, prefix=".rollup-doctor-") as file:
        skew = os.stat(file.name).st_mtime - time.time()
    if abs(skew) > _SKEW:
        raise ConfigError(
            f"the clock of the file system of {there} differs by {skew:,.1f} s from this machine's",
            hint="leases and ages go by both: keep clocks with NTP",
        )
    return f"{folder} can be written" if there == folder else f"{folder} will be made in {there}"


def _port(port: int) -> str:
    try:
        with socket.create_server(("127.0.0.1", port)):
            return f"{port} is free"
    except OSError:
        raise ConfigError(f"{port} is taken", hint="by a job or endpoint that runs, or choose another port") from None
