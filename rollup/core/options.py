"""What a table of options may hold: every key with the check of its value; whatever else is there is refused by name."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from rollup.core.entries import loaded
from rollup.core.errors import ConfigError
from rollup.core.objects import is_object, package_of
from rollup.core.packages import needed_by

Check = Callable[[Any], str | None]
"""Says what a value should be when it is not that, None when it is."""
Known = Mapping[str, Check]


@dataclass(frozen=True)
class Provider:
    """One kind of source, sink or store: the options it takes, those it needs, and what makes it.

    `entry` (`module:name`) is imported when one is made: a configuration is checked without anything of it loaded.
    """

    entry: str
    options: Known
    needed: tuple[str, ...] = ()

    def made(self, *arguments: Any) -> Any:
        """One of this kind. Raises ConfigError where a package is missing that only some kinds need."""
        with needed_by("what the configuration names"):
            return loaded(self.entry)(*arguments)


_Provider = TypeVar("_Provider", bound=Provider)


def text(value: Any) -> str | None:
    """A text that is not empty."""
    return None if isinstance(value, str) and value.strip() else "a text"


def folder(value: Any) -> str | None:
    """A path of this machine; an address would become a folder of that name.

    >>> folder("/data/in"), folder("s3://bucket/in")
    (None, 'a path of this machine, as /data/in; s3:// is not read or written')
    """
    if text(value) is not None:
        return text(value)
    if "\0" in value:
        return "a path of this machine, as /data/in"
    scheme, found, _ = value.partition("://")
    address = found and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum()
    return f"a path of this machine, as /data/in; {scheme}:// is not read or written" if address else None


def place(value: Any) -> str | None:
    """A path of this machine, or the name of a place in an object store or in HDFS.

    >>> place("/data/in"), place("s3://bucket/in"), place("ftp://host/in")
    (None, None, 'a path of this machine, as /data/in, or s3://bucket/…, az://container/…, hdfs://host:port/…; ftp:// is not read or written')
    >>> place("s3:///in")
    'the name of a bucket or host after s3://'
    """
    if not isinstance(value, str) or not is_object(value):
        said = folder(value)
        return said and said.replace("/data/in;", "/data/in, or s3://bucket/…, az://container/…, hdfs://host:port/…;")
    scheme, _, rest = value.partition("://")
    return f"the name of a bucket or host after {scheme}://" if not rest.partition("/")[0] else None


_MISREAD = re.compile(r"%[0-9A-Fa-f]{2}|[][\\^|\x00-\x1f\x7f]")
"""What Delta's library takes for another sign, or cannot read, in the place of a table."""
_MISREAD_BY = {"hdfs_native": re.compile(r"[^A-Za-z0-9._~=+,@/-]")}
"""The same by the package that writes there, where it is more."""


def delta_place(value: Any) -> str | None:
    """A place of Delta tables.

    >>> delta_place("/data/Größen #1"), delta_place("/data/a%20b")
    (None, "a path without '%20', which Delta's library cannot read there; also not [ ] \\\\ ^ | and control characters")
    >>> delta_place("hdfs://host:8020/a b")
    "a path without ' ', which Delta's library cannot read there; in HDFS letters and digits of ASCII and - . _ ~ = + , @ only"
    """
    if said := place(value):
        return said
    package = package_of(value)
    name = value.partition("://")[2].partition("/")[2] if package else value
    if found := _MISREAD_BY.get(package or "", _MISREAD).search(name):
        others = (
            "in HDFS letters and digits of ASCII and - . _ ~ = + , @ only"
            if package in _MISREAD_BY
            else "also not [ ] \\ ^ | and control characters"
        )
        return f"a path without {found[0]!r}, which Delta's library cannot read there; {others}"
    return None


def address(value: Any) -> str | None:
    """The address of a server that speaks HTTP.

    >>> address("https://collector:4318"), address("collector:4318")
    (None, 'an address, as http://host:4318')
    """
    found = isinstance(value, str) and re.fullmatch(r"https?://[^\s/]\S*", value)
    return None if found else "an address, as http://host:4318"


def variable(value: Any) -> str | None:
    """The name of a variable of the environment, which has a secret."""
    return None if isinstance(value, str) and value in os.environ else "the name of a variable that is set"


VARIABLE = "_env"
"""How the name of an option ends whose value is the name of such a variable."""


def with_secrets(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Options with what the variables have that some name. Raises ConfigError for one that is not set.

    >>> with_secrets({"uri": "http://host", "token_env": "NOT_THERE"}, "[sources.S]")
    Traceback (most recent call last):
    rollup.core.errors.ConfigError: [sources.S]: no variable NOT_THERE is set (token_env)
    """
    found = dict[str, Any]()
    for name, value in given.items():
        if not name.endswith(VARIABLE):
            found[name] = value
        elif (secret := os.environ.get(str(value))) is None:
            raise ConfigError(f"{where}: no variable {value} is set ({name})")
        else:
            found[name.removesuffix(VARIABLE)] = secret
    return found


def any_text(value: Any) -> str | None:
    """A text, which may be empty."""
    return None if isinstance(value, str) else "a text"


def text_or_texts(value: Any) -> str | None:
    """A text, which may be empty, or a list of them.

    >>> text_or_texts(""), text_or_texts(["", "NA"]), text_or_texts(0)
    (None, None, 'a text, or a list of texts, e.g. ["", "NA"]')
    """
    fits = isinstance(value, str) or names(value) is None
    return None if fits else 'a text, or a list of texts, e.g. ["", "NA"]'


def flag(value: Any) -> str | None:
    """True or false."""
    return None if isinstance(value, bool) else "true or false"


def whole(least: int, most: int = 2**63 - 1) -> Check:
    """A whole number of a range.

    >>> whole(1)("many"), whole(1)(True), whole(1)(3)
    ('a whole number from 1', 'a whole number from 1', None)
    """

    def check(value: Any) -> str | None:
        fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
        upper = "" if most == 2**63 - 1 else f" to {most}"
        return None if fits else f"a whole number from {least}{upper}"

    return check


def elsewhere(value: Any) -> str | None:
    """Anything: whoever acts on it checks it, and can say more."""
    return None


def one_of(*words: str) -> Check:
    """One of some words."""
    return lambda value: None if value in words else f"one of {', '.join(words)}"


def encoding(value: Any) -> str | None:
    """The name of an encoding of texts.

    >>> encoding("cp1252"), encoding("latin one")
    (None, 'the name of an encoding, as "utf-16" or "cp1252"')
    """
    try:
        "".encode(str(value))
    except (LookupError, ValueError):
        return 'the name of an encoding, as "utf-16" or "cp1252"'
    return None


def settings(value: Any) -> str | None:
    """A table whose values are texts, numbers, true or false."""
    fits = isinstance(value, Mapping) and all(isinstance(each, str | int | float) for each in value.values())
    return None if fits else 'a table of settings, e.g. { "name.of.a.setting" = "value" }'


def url(value: Any) -> str | None:
    """The URL of a database; a file of SQLite has its path in it."""
    return text(value)


_SQLITE = re.compile(r"((?:jdbc:sqlite:|sqlite(?:\+\w+)?:///))(?!:memory:|file:)(.+)")
"""The URL of a database that is a file, and the file's path."""


def beside(url: str, base: Path) -> str:
    """The URL of a database, of one that is a file with the path in it made absolute.

    >>> beside("sqlite:///t.db", Path("/conf")), beside("postgresql://h/d", Path("/conf"))
    ('sqlite:////conf/t.db', 'postgresql://h/d')
    """
    return _SQLITE.sub(lambda found: f"{found[1]}{base / found[2]}", url)


def texts(value: Any) -> str | None:
    """A table whose values are texts."""
    fits = isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    return None if fits else 'a table of texts, e.g. { attribute = "column" }'


def names(value: Any) -> str | None:
    """A list of texts.

    >>> names(["a"]), names("a")
    (None, 'a list of names, e.g. ["name"]')
    """
    fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return None if fits else 'a list of names, e.g. ["name"]'


def table(where: str, given: Any) -> Mapping[str, Any]:
    """A table as it is given. Raises ConfigError for anything else."""
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} is {given!r}", hint="a table of options is expected here")
    return given


def refuse_unknown(where: str, given: Mapping[str, Any], known: Known) -> None:
    """Raise ConfigError for the first key that is not known, and for the first value that does not fit its key.

    >>> refuse_unknown("[metrics]", {"prot": 1}, {"port": whole(0)})
    Traceback (most recent call last):
    rollup.core.errors.ConfigError: [metrics] has an unknown key `prot` (did you mean `port`?)
    """
    for key, value in given.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean `{close[0]}`?" if close else f"known: {', '.join(known)}"
            raise ConfigError(f"{where} has an unknown key `{key}`", hint=hint)
        wanted = known[key](value)
        if wanted is not None:
            raise ConfigError(f"{where} {key} is {value!r}", hint=wanted)


def provider(where: str, given: Mapping[str, Any], kinds: Mapping[str, _Provider]) -> _Provider:
    """What a table's `kind` names. Raises ConfigError.

    >>> provider("[sinks.Out]", {"kind": "fils"}, {"files": Provider("rollup.sinks.files:Files", {})})
    Traceback (most recent call last):
    rollup.core.errors.ConfigError: [sinks.Out] has the unknown kind 'fils' (did you mean 'files'?)
    """
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in kinds:
        said = "lacks `kind`" if kind is None else f"has the unknown kind {kind!r}"
        close = difflib.get_close_matches(str(kind), kinds, 1)
        raise ConfigError(
            f"{where} {said}", hint=f"did you mean {close[0]!r}?" if close else f"one of {', '.join(kinds)}"
        )
    return kinds[kind]


def complete(where: str, given: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Raise ConfigError for the first option that is needed and not there."""
    for key in needed:
        if key not in given:
            hint = f"a {given['kind']} needs {', '.join(f'`{one}`' for one in needed)}"
            raise ConfigError(f"{where} lacks `{key}`", hint=hint)


def kind_of(where: str, given: Mapping[str, Any], kinds: Mapping[str, Provider]) -> None:
    """Check a table whose keys depend on its `kind`. Raises ConfigError."""
    found = provider(where, given, kinds)
    refuse_unknown(where, given, {"kind": text, **found.options})
    complete(where, given, found.needed)
