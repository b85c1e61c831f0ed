"""The Java libraries Spark, and the tests' Kafka broker, need beside those pyspark carries.

`jars.xml` names each of them with its version. `resolve` brings them once into a folder of the user's cache through
the Ivy that is among pyspark's own jars, so nothing but Java is needed and a later session starts without the network:

    SparkSession.builder.config("spark.jars", spark_jars_option())

The folder's name holds a digest of `jars.xml`: a changed list is a new folder, and two versions of rollup do not meet.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from rollup.core.cache import cache_root
from rollup.core.errors import ConfigError
from rollup.java import java

Group = Literal["delta", "kafka-source", "kafka-broker"]
"""A configuration of `jars.xml`: the Delta tables, Spark's Kafka source, a whole Kafka broker (tests only)."""

_LIST = Path(__file__).with_name("jars.xml")


def jars_dir(listing: Path = _LIST) -> Path:
    """Where the jars of this version's `jars.xml` are, one folder a group; it may not be there yet."""
    return cache_root() / "jars" / hashlib.sha256(listing.read_bytes()).hexdigest()[:12]


def jars(group: Group) -> list[Path]:
    """The jars of one group, sorted by name; fetched first when they are not there.

    Raises ConfigError when they are not there and cannot be fetched.
    """
    return sorted((resolve() / group).glob("*.jar"))


def spark_jars(*, kafka: bool = True, delta: bool = True) -> list[Path]:
    """What a SparkSession needs: unless told otherwise, the Delta jars and those of the Kafka source."""
    return (jars("delta") if delta else []) + (jars("kafka-source") if kafka else [])


def spark_jars_option(*, kafka: bool = True, delta: bool = True) -> str:
    """The same as the value of the `spark.jars` setting."""
    return ",".join(str(jar) for jar in spark_jars(kafka=kafka, delta=delta))


def resolve(listing: Path = _LIST) -> Path:
    """Bring all jars of a list unless they are there; returns `jars_dir`. About a minute the first time, nothing later."""
    target = jars_dir(listing)
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    # Filled aside and renamed at the end, so that the folder is either whole or not there.
    aside = Path(tempfile.mkdtemp(prefix="resolve-", dir=target.parent))
    try:
        _retrieve(aside, listing)
        if not target.is_dir():
            aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return target


def _retrieve(into: Path, listing: Path) -> None:
    pattern = f"{into}/[conf]/[artifact]-[revision](-[classifier]).[ext]"
    command = [str(java()), "-jar", str(_ivy()), "-warn", "-ivy", str(listing), "-retrieve", pattern]
    ran = subprocess.run([*command, "-cache", str(cache_root() / "ivy")], capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        said = [line.strip(" :\t") for line in (ran.stdout + ran.stderr).splitlines() if "not found" in line]
        raise ConfigError(
            f"the jars of {listing.name} could not be fetched: {'; '.join(said[:3]) or ran.stderr.strip()[-300:]}",
            hint="a Maven repository must be within reach once",
        )


def spark_home() -> Path:
    """The folder of Spark: `SPARK_HOME`, as pyspark takes it, or pyspark's own, which need not be there."""
    spec = importlib.util.find_spec("pyspark")
    return Path(os.environ.get("SPARK_HOME") or (Path(spec.origin).parent if spec and spec.origin else "pyspark"))


def _ivy() -> Path:
    found = sorted(spark_home().glob("jars/ivy-*.jar"))
    if not found:
        raise ConfigError("pyspark with its jars is not installed", hint="pip install 'rollup[spark]'")
    return found[-1]


def main() -> int:
    """`python -m rollup.jars` fetches what is missing and prints the folder."""
    try:
        print(resolve())
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
