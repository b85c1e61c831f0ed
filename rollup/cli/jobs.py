"""`rollup jobs path`: the files that come with the package and are for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_ROOT = Path(__file__).parents[2]
_CHECKOUT = {"dashboards": "conf/grafana/dashboards", "alerts": "conf/prometheus", "helm": "conf/helm/rollup"}
"""Where the folders are in a checkout, if not under their own names."""

jobs = typer.Typer(no_args_is_help=True, help="Files for schedulers, clusters and dashboards.")


class Folder(StrEnum):
    """A folder that comes with the package."""

    JOBS = "jobs"
    DDL = "ddl"
    DASHBOARDS = "dashboards"
    ALERTS = "alerts"
    HELM = "helm"


def folder_of(folder: Folder) -> Path:
    """Where a folder is: below `share/rollup` of the installation, or in the checkout that is installed.

    >>> sorted(path.name for path in folder_of(Folder.JOBS).glob("*.py"))
    ['aggregate.py', 'maintain.py', 'recover.py', 'replay.py', 'verify.py']
    """
    from importlib.metadata import PackageNotFoundError, files

    try:
        installed = files("rollup") or []
    except PackageNotFoundError:  # only on the path
        installed = []
    for path in installed:
        if f"share/rollup/{folder}/" in path.as_posix():
            top = Path(str(path.locate())).resolve()
            return next(parent for parent in top.parents if parent.name == folder and parent.parent.name == "rollup")
    return _ROOT / _CHECKOUT.get(folder, folder)


@jobs.command("path")
def path(
    folder: Annotated[Folder, typer.Argument(help="Which files.")] = Folder.JOBS,
) -> None:
    """Print the folder of the files for spark-submit, or of DDL, dashboards, alerts or the Helm chart.

    For example `spark-submit "$(rollup jobs path)/aggregate.py" --conf CONF --once`.
    """
    print(folder_of(folder))
