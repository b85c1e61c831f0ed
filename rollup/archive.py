"""Java's archive of loaded classes for a job, so that a start reads and checks each of them no more.

Spark and Scala are fifteen thousand classes, and to load them is most of what a short `rollup run --once` does.
`python -m rollup.archive`, a step of `make setup`, runs a job over a few events and lets its Java write down what it has
loaded. An archive is of one Java and one folder of jars, which its name stands for; where there is none that fits, Java
starts as ever and says nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rollup.core.cache import cache_root
from rollup.core.errors import ConfigError
from rollup.jars import spark_home
from rollup.java import java_home

QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java without its second compiler.

Over 8 M events from files that compiler takes as much of the processor as the whole job without it. Its code pays only
in a Java that runs on, or that each record goes through. Java gives a single compiler a fifth of the code cache. Each of
Spark's plans adds code, and tasks fail once the cache is full. So the cache has the size that two compilers would have.
"""
MAKING = "ROLLUP_ARCHIVE_TO"
"""The environment variable that names the archive which the Java of a job is to write at its end."""
_OF = "spark"
"""The file in a folder of archives that says which Spark they are of."""
_APP = """define stream S (symbol string, price double, quantity long, timestamp long);
@OutOfOrder('correct')
define aggregation A from S
select symbol, avg(price) as price, sum(quantity) as total, min(price) as low, max(price) as high
group by symbol aggregate by timestamp every sec ... year;
"""
_CONF = """app = "app.siddhi"
checkpoint = "state"
[sources.S]
kind = "json"
path = "in"
max_files_per_batch = 1
[store]
kind = "delta"
path = "tables"
"""
_EVENT = '{{"symbol": "a", "price": 1.5, "quantity": 2, "timestamp": {}}}\n'
_BATCHES = ((1_515_110_450_000, 1_515_110_451_000, 1_515_196_851_000), (1_515_110_449_000,))
"""Times of events, a file each; the last is late."""


def archive() -> Path | None:
    """The archive of this Java and this Spark; None when there is none. Raises ConfigError without Java.

    Java ends on an archive that was cut short, by a full disk or a copy, so its name says how long it is.
    """
    spark = spark_home()
    if not _folder(spark).is_dir():
        return None
    return next((file for file in _folder(spark).glob(f"{_key(spark)}-*.jsa") if file.name == _name(spark, file)), None)


def java_options() -> str:
    """What to tell Java so that it uses the archive; empty when there is none.

    Its own log is told to have nothing but errors: an archive that no longer fits is worth no warning.
    """
    making = os.environ.get(MAKING)
    if making:
        return f"-XX:ArchiveClassesAtExit={making}"
    found = archive()
    if found is None or " " in str(found):
        return ""
    return f"-XX:SharedArchiveFile={found} -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"


def make() -> Path:
    """Make the archive unless it is there; returns its place. Half a minute. Raises ConfigError when Java writes none.

    Those that an older Java or Spark has left in its place go, and those of a Spark that is no longer there.
    """
    found, spark = archive(), spark_home()
    if found is not None:
        return found
    into = _folder(spark)
    into.mkdir(parents=True, exist_ok=True)
    (into / _OF).write_text(str(spark))
    # Written aside and renamed at the end, so that the archive is either whole or not there.
    with tempfile.TemporaryDirectory(prefix="making-", dir=into) as folder:
        aside = Path(folder) / "whole.jsa"
        said = _trained(Path(folder), aside)
        if not aside.is_file():
            raise ConfigError(f"Java wrote no archive of its classes: {said.strip()[-300:]}")
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        made = aside.rename(into / _name(spark, aside))
    _clean(made)
    return made


def _clean(made: Path) -> None:
    for other in made.parent.glob("*.jsa"):
        if other != made:
            other.unlink(missing_ok=True)  # a Java that uses it keeps it
    for folder in made.parent.parent.iterdir():
        of = folder / _OF
        if of.is_file() and not Path(of.read_text()).is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _folder(spark: Path) -> Path:
    return cache_root() / "archives" / _digest(str(spark))


def _key(spark: Path) -> str:
    """What an archive stands for: a Java, and the jars of a Spark."""
    home = java_home()
    release = home / "release"
    of = [str(home), release.read_text() if release.is_file() else "", str(spark)]
    of += sorted(f"{jar.name} {jar.stat().st_size}" for jar in os.scandir(spark / "jars") if jar.name.endswith(".jar"))
    return _digest("|".join(of))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _name(spark: Path, file: Path) -> str:
    return f"{_key(spark)}-{file.stat().st_size}.jsa"


def _trained(folder: Path, archive: Path) -> str:
    """Run a short job in a folder, to the end of its Java, which writes the archive; what both of them said.

    Java ends after the job and has its standard error, whose end is waited for.
    """
    (folder / "app.siddhi").write_text(_APP)
    (folder / "job.toml").write_text(_CONF)
    (folder / "in").mkdir()
    for number, times in enumerate(_BATCHES):
        (folder / "in" / f"{number}.json").write_text("".join(_EVENT.format(time) for time in times))
    command = [sys.executable, "-m", "rollup.cli.main", "run", str(folder / "job.toml"), "--once"]
    ran = subprocess.run(
        command, env={**os.environ, MAKING: str(archive)}, capture_output=True, text=True, timeout=600, check=False
    )
    return ran.stderr or ran.stdout


def main() -> int:
    """`python -m rollup.archive` makes the archive and prints its place; without one, jobs only start more slowly."""
    parser = argparse.ArgumentParser(prog="python -m rollup.archive", description=main.__doc__)
    parser.add_argument("--options", action="store_true", help="print what to tell a Java that others start")
    parser.add_argument("--once", action="store_true", help="with --options: a Java of `--once`, over files or tables")
    asked = parser.parse_args()
    try:
        print(" ".join((*([QUICK] if asked.once else []), java_options())) if asked.options else make())
    except (ConfigError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
