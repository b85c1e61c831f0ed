"""Cases that do not pass, each with kind and reason. A mark whose case starts to pass fails the test: take it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["contradicts ruling", "not yet", "never"]


@dataclass(frozen=True)
class Gap:
    """Why a case cannot pass, and on which targets (None: on all)."""

    kind: Kind
    reason: str
    targets: tuple[str, ...] | None = None

    def holds(self, target: str) -> bool:
        """Whether the mark is about a target."""
        return self.targets is None or target in self.targets


GAPS: Mapping[str, Mapping[str, Gap]] = {
    "siddhi": {
        "agg_negative_epoch": Gap(
            "contradicts ruling",
            "the recorded answer puts -1.5 s into second -1, because the reference's clock starts at -1; "
            "times before 1970 work (ruling 9), so the event belongs to second -2",
        ),
        "per_values": Gap(
            "contradicts ruling",
            "the engine has no weeks and refuses them; here they are put together from days. `per_words` has the rest",
        ),
    },
}
"""By language, then by case."""


def gap(language: str, case: str, target: str) -> Gap | None:
    """The mark of a case on a target, None when it must pass."""
    found = GAPS.get(language, {}).get(case)
    return found if found is not None and found.holds(target) else None
