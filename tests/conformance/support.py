"""Writes docs/support.md from the results of a conformance run: `python -m tests.conformance.support`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conformance.compare import Case
from tests.conformance.gaps import GAPS, gap
from tests.conformance.siddhi_runner import load

PAGE = Path(__file__).parents[2] / "docs" / "support.md"
CASES = Path(__file__).parent / "siddhi"
Results = Mapping[str, Mapping[str, bool]]
TOPICS = {
    "buffer": "Buffer: late events, gaps, jumps, too-late events merged or ignored",
    "buffer_errors": "Buffer: what is refused",
    "buffer_random": "Buffer: random event sequences",
    "durations": "Durations: single ones, ranges, lists",
    "durations_errors": "Durations: what is refused",
    "durations_random": "Durations: random event sequences",
    "join": "Requests from a stream (`join … within … per`)",
    "ondemand": "On-demand queries: on, having, group by, order by, limit, offset",
    "ondemand_errors": "On-demand queries: what is refused",
    "per": "`per`: spellings",
    "per_errors": "`per`: what is refused",
    "recovery": "Restart: rebuilt from the tables, or from a snapshot",
    "recovery_random": "Restart: random event sequences",
    "retrieval": "Retrieval of stored and open buckets in one answer",
    "status": "Tables and open buckets after every event",
    "time": "Timestamps, zones, calendar edges",
    "time_errors": "Timestamps: what is refused",
    "types": "Aggregates, types, nulls, keys, filters",
    "types_errors": "Aggregates and types: what is refused",
    "within": "`within`: pairs and patterns",
    "within_errors": "`within`: what is refused",
}


def by_marks(cases: Sequence[Case], stores: Sequence[str]) -> Results:
    """The results of a run in which every test passes: what is not marked passes, what is marked does not."""
    return {case["id"]: {store: gap(case["id"], store) is None for store in stores} for case in cases}


def render(cases: Sequence[Case], results: Results) -> str:
    """The page: topic by store, passed of all, then every gap with its reason."""
    stores = sorted({store for found in results.values() for store in found})
    topics = sorted({case["topic"] for case in cases})
    sources = {case["id"]: str(case["from"]).split()[0] for case in cases}
    lines = [
        "# What is supported",
        "",
        "Generated from a run of the conformance cases by `python -m tests.conformance.support`; do not edit.",
        f"{len(cases)} cases of SiddhiQL incremental aggregation: {_origins(sources)}.",
        "",
        f"| Topic | {' | '.join(stores)} |",
        f"|---|{'---|' * len(stores)}",
        *(
            f"| {TOPICS.get(topic, topic)} | {' | '.join(_cell(cases, results, topic, store) for store in stores)} |"
            for topic in topics
        ),
        f"| **All** | {' | '.join(_cell(cases, results, None, store) for store in stores)} |",
        "",
        "## Gaps",
        "",
    ]
    failed = [case["id"] for case in cases if not all(results[case["id"]].values())]
    return (
        "\n".join([*lines, *(_gap(case, results[case]) for case in failed), *(["None."] if not failed else [])]) + "\n"
    )


def _origins(sources: Mapping[str, str]) -> str:
    words = {
        "document": "from the document",
        "reference": "recorded from the reference engine",
        "ruling": "from rulings",
    }
    counts = {source: list(sources.values()).count(source) for source in words}
    return ", ".join(f"{count} {words[source]}" for source, count in counts.items())


def _cell(cases: Sequence[Case], results: Results, topic: str | None, store: str) -> str:
    found = [results[case["id"]][store] for case in cases if topic in (None, case["topic"])]
    return f"{sum(found)}/{len(found)}"


def _gap(case: str, found: Mapping[str, bool]) -> str:
    where = ", ".join(store for store, passed in sorted(found.items()) if not passed)
    mark = GAPS.get(case)
    return f"* `{case}` on {where}: " + (f"{mark.kind}: {mark.reason}." if mark else "fails without a mark.")


def main() -> None:
    """Render the results of the last run. Exits with a message when it has not covered every case."""
    from tests.conformance.conftest import RESULTS

    cases = load(CASES)
    results: Results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    missing = [case["id"] for case in cases if case["id"] not in results]
    if missing:
        raise SystemExit(f"{len(missing)} cases have no result; run `python -m pytest tests/conformance` first")
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(render(cases, {case["id"]: results[case["id"]] for case in cases}))
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
