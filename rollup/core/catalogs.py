"""Catalogs of Iceberg, opened by the properties that pyiceberg gives them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollup.core.options import VARIABLE, settings, variable, with_secrets

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

TYPES = ("rest", "hive", "glue", "dynamodb", "sql", "bigquery")
_OBJECTS = {
    "s3.endpoint": "AWS_ENDPOINT_URL",
    "s3.region": "AWS_REGION",
    "s3.access-key-id": "AWS_ACCESS_KEY_ID",
    "s3.secret-access-key": "AWS_SECRET_ACCESS_KEY",
    "s3.session-token": "AWS_SESSION_TOKEN",
}
"""The variables by which all of this package reaches S3, and what pyiceberg calls them."""


def properties(value: Any) -> str | None:
    """What is wrong with properties of a catalog, None when nothing is.

    >>> properties({"token_env": "NOT_THERE"})
    'token_env: the name of a variable that is set'
    """
    if found := settings(value):
        return found
    if "type" in value and value["type"] not in TYPES:
        return f"a type of catalog: {', '.join(TYPES)}"
    unset = (name for name, each in value.items() if name.endswith(VARIABLE) and variable(each))
    return next((f"{name}: {variable('')}" for name in unset), None)


def uri(value: Any) -> str | None:
    """What is wrong with the address of a catalog whose type is not given."""
    fits = re.match(r"https?://|thrift://|sqlite|postgresql", str(value))
    return None if fits else "a uri that says which catalog it is (http, thrift, sqlite, postgresql), or a `type`"


def opened(name: str, given: Mapping[str, Any]) -> Catalog:
    """The catalog of a name and properties; one that ends in `_env` names the variable with the value."""
    from pyiceberg.catalog import load_catalog

    objects = {key: os.environ[variable] for key, variable in _OBJECTS.items() if variable in os.environ}
    return load_catalog(name, **{**objects, **with_secrets(given, f"the catalog {name}")})
