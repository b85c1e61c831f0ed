"""The languages of the suite. A new one is a folder of cases with a runner, and one line here."""

from __future__ import annotations

import os
from pathlib import Path

from tests.conformance.calcite.targets import CALCITE
from tests.conformance.epl.targets import EPL
from tests.conformance.language import FURTHER, Language
from tests.conformance.siddhi.queries import QUERIES
from tests.conformance.siddhi.targets import SIDDHI
from tests.conformance.streamcruncher.targets import STREAMCRUNCHER
from tests.conformance.uql.targets import UQL

LANGUAGES: dict[str, Language] = {
    language.name: language
    for language in (
        SIDDHI,
        QUERIES,
        UQL,
        CALCITE,
        STREAMCRUNCHER,
        EPL,
    )
}  # fmt: skip  # one language a line


def further_folders() -> tuple[list[str], list[str]]:
    """The folders under ROLLUP_CASES that are run, and those that are of no language here.

    Raises ValueError where the folder is missing or holds cases of no language: a run of nothing must not pass.
    """
    if FURTHER not in os.environ:
        return [], []
    root = Path(os.environ[FURTHER])
    folders = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    known = [name for name in folders if LANGUAGES.get(name) and LANGUAGES[name].further]
    if not known:
        raise ValueError(
            f"{FURTHER}={root}: no folder there holds cases of a language of this suite ({', '.join(LANGUAGES)})"
        )
    return known, [name for name in folders if name not in known]
