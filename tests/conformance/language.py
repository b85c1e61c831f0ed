"""What a language brings to the conformance suite: a folder of cases, the targets they run on, and words for the page."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pytest

from tests.conformance.compare import Case

HERE = Path(__file__).parent
FURTHER = "ROLLUP_CASES"
"""The environment variable that names a folder with more cases, in folders by language as here."""


@dataclass(frozen=True)
class Target:
    """A place that cases run on: a store, a host, an executor.

    `run` takes a case from its beginning to its end, raises Mismatch at the first answer that differs, and returns how
    many answers it compared: a run that compared none is no pass. It gets the test's request for fixtures (`tmp_path`,
    `postgres`, `spark`). `marks` are pytest's, by name; a target with marks needs a server. On a `costly` one a case
    of each topic runs in `make test`, and all of them in `make crash`.
    """

    run: Callable[[Case, pytest.FixtureRequest], int]
    marks: tuple[str, ...] = ()
    costly: bool = False


def topic_of(case: Case) -> str:
    """The recorded topic of a case."""
    return str(case["topic"])


def origin_of(case: Case) -> str:
    """Where a case's answer comes from: `document`, `reference` (the engine) or `ruling`."""
    return str(case.get("from", "reference")).split()[0]


@dataclass(frozen=True)
class Language:
    """A language: `name` is that of its folder; `title` and `topics` (words for a topic) stand on the support page."""

    name: str
    title: str
    targets: Mapping[str, Target]
    topic: Callable[[Case], str] = topic_of
    topics: Mapping[str, str] = field(default_factory=dict)
    origin: Callable[[Case], str] = origin_of

    @property
    def own(self) -> Mapping[str, Case]:
        """The project's cases of this language, by name."""
        return load(HERE / self.name)

    @property
    def samples(self) -> frozenset[str]:
        """One of the project's cases of each topic: of them the one of middle length."""
        topics: dict[str, list[str]] = {}
        for name, case in sorted(self.own.items(), key=lambda item: (len(json.dumps(item[1])), item[0])):
            topics.setdefault(self.topic(case), []).append(name)
        return frozenset(names[len(names) // 2] for names in topics.values())

    @property
    def further(self) -> Mapping[str, Case]:
        """The cases of the folder that ROLLUP_CASES names; they run, and are not on the support page."""
        folder = os.environ.get(FURTHER)
        return load(Path(folder) / self.name) if folder else {}


def name_of(case: Case) -> str:
    """The name of a case, the same in every recording: its `id`, or its `name`."""
    return str(case.get("id") or case["name"])


@lru_cache(maxsize=32)
def load(folder: Path) -> Mapping[str, Case]:
    """Every case of a folder, by name; raises ValueError where two have one name."""
    found: dict[str, Case] = {}
    for path in sorted(folder.glob("*.json")):
        case: Case = json.loads(path.read_text())
        if name_of(case) in found:
            raise ValueError(f"{folder}: two cases are called {name_of(case)!r}, the second in {path.name}")
        found[name_of(case)] = case
    return found
