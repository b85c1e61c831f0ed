"""Writes docs/support.md from the results of a conformance run: `python -m tests.conformance.support`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conformance.features import table
from tests.conformance.gaps import GAPS, gap
from tests.conformance.language import Language
from tests.conformance.languages import LANGUAGES
from tests.conformance.results import Results, read

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
_WORDS = {"document": "from the document", "reference": "recorded from the reference engine", "ruling": "from rulings"}


def by_marks() -> Results:
    """The results of a run in which every test passes: what is not marked passes, what is marked does not."""
    return {
        language.name: {
            case: {target: gap(language.name, case, target) is None for target in language.targets}
            for case in language.own
        }
        for language in LANGUAGES.values()
    }


def render(results: Results) -> str:
    """The page: for each language its topics by target, passed of all, then every gap with its reason.

    Raises ValueError naming a case and target that has no result: what did not run is not supported.
    """
    parts = [
        "# What is supported\n",
        "Generated from a run of the conformance cases by `python -m tests.conformance.support`; do not edit.\n"
        "A cell says how many cases pass of those there are.",
    ]
    for language in LANGUAGES.values():
        for case in language.own:
            for target in language.targets:
                if target not in results.get(language.name, {}).get(case, {}):
                    raise ValueError(f"case {case!r} of {language.name} has no result on {target}")
        parts.extend(["", *_section(language, results[language.name])])
    return "\n".join(parts) + "\n"


def _section(language: Language, results: Mapping[str, Mapping[str, bool]]) -> list[str]:
    targets = sorted(language.targets)
    topics = sorted({language.topic(case) for case in language.own.values()})
    failed = [case for case in language.own if not all(results[case].values())]
    return [
        f"## {language.title}",
        "",
        f"{len(language.own)} cases: {_origins(language)}.",
        "",
        f"| Topic | {' | '.join(targets)} |",
        f"|---|{'---|' * len(targets)}",
        *(f"| {language.topics.get(topic, topic)} | {_cells(language, results, topic)} |" for topic in topics),
        f"| **All** | {_cells(language, results, None)} |",
        "",
        "Gaps:" if failed else "No gaps.",
        *(["", *(_gap(language.name, case, results[case]) for case in failed)] if failed else []),
        *table(language.name),
    ]


def _origins(language: Language) -> str:
    origins = [language.origin(case) for case in language.own.values()]
    words = [*_WORDS, *sorted(set(origins) - set(_WORDS))]
    return ", ".join(f"{origins.count(word)} {_WORDS.get(word, word)}" for word in words if word in origins)


def _cells(language: Language, results: Mapping[str, Mapping[str, bool]], topic: str | None) -> str:
    names = [name for name, case in language.own.items() if topic in (None, language.topic(case))]
    return " | ".join(
        f"{sum(results[name][target] for name in names)}/{len(names)}" for target in sorted(language.targets)
    )


def _gap(language: str, case: str, found: Mapping[str, bool]) -> str:
    failed: Sequence[str] = [target for target, passed in sorted(found.items()) if not passed]
    where = "every target" if len(failed) == len(found) > 1 else ", ".join(failed)
    mark = GAPS.get(language, {}).get(case)
    return f"* `{case}` on {where}: " + (f"{mark.kind}: {mark.reason}." if mark else "fails without a mark.")


def main() -> None:
    """Render the results of the last run. Exits with a message when it has not covered every case."""
    try:
        page = render(read())
    except ValueError as problem:
        raise SystemExit(f"{problem}; run `python -m pytest tests/conformance` first") from None
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page)
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
