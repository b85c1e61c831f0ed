"""`[storage]` of a configuration: how an object store is reached, in the variables that its libraries read.

A secret is named by the variable that has it. So nothing of it is in a file of ours, in a setting of Spark's or on its
pages: this process and those that it starts have it in their environment, as the ecosystem of each store does it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from rollup.core.copies import LIMIT
from rollup.core.errors import ConfigError
from rollup.core.objects import package_of
from rollup.core.options import Known, refuse_unknown, text, whole
from rollup.core.packages import needed_by

_PLAIN = {
    "endpoint": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
    "profile": "AWS_PROFILE",
    "account": "AZURE_STORAGE_ACCOUNT_NAME",
}
_SECRET = {
    "access_key_id_env": "AWS_ACCESS_KEY_ID",
    "secret_access_key_env": "AWS_SECRET_ACCESS_KEY",
    "session_token_env": "AWS_SESSION_TOKEN",
    "account_key_env": "AZURE_STORAGE_ACCOUNT_KEY",
    "sas_token_env": "AZURE_STORAGE_SAS_TOKEN",
}
_KNOWN: Known = {**dict.fromkeys((*_PLAIN, *_SECRET), text), "cache_mb": whole(1)}


def checked(where: str, given: Mapping[str, Any]) -> dict[str, str]:
    """The variables that a table says. Raises ConfigError for a key that is unknown, and for a secret in clear text."""
    for name in _SECRET:
        if (clear := name.removesuffix("_env")) in given:
            raise ConfigError(
                f"{where} has `{clear}`: no secret stands in a configuration",
                hint=f'{name} = "NAME", a variable that has it',
            )
    refuse_unknown(where, given, _KNOWN)
    found = {variable: given[name] for name, variable in _PLAIN.items() if name in given}
    for name, variable in _SECRET.items():
        if name in given:
            if given[name] not in os.environ:
                raise ConfigError(f"{where} {name} names {given[name]}, a variable that is not set")
            found[variable] = os.environ[given[name]]
    if "cache_mb" in given:
        found[LIMIT] = str(given["cache_mb"])
    return found


def use(variables: Mapping[str, str], names: Iterable[str]) -> None:
    """Let this process, and those that it starts, reach what has some names. Raises ConfigError without a library."""
    for name in names:
        package = package_of(name)
        with needed_by(name):
            if package is not None and find_spec(package) is None:
                raise ModuleNotFoundError(name=package)
    os.environ.update(variables)
    if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        os.environ["AWS_ALLOW_HTTP"] = "true"
