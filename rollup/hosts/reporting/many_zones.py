"""Rows of several zones in one aggregation: each is cut in the zone of its own text, so one day has several rows."""

from __future__ import annotations

from rollup.core.untyped import pc
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.reporting.report import BatchReport
from rollup.plan.aggregation import ZONE

_SHOWN = 5


class ManyZones:
    """Says once of an aggregation for which no zone is declared that its rows have more than one."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def observe(self, report: BatchReport) -> list[str]:
        """The warnings of a batch."""
        found = list[str]()
        for name in report.advances:
            seen = self._seen.setdefault(name, set())
            if len(seen) > 1 or not report.pipelines[name].aggregation.own_zones:
                continue
            seen |= _zones(report.pipelines[name])
            if len(seen) > 1:
                found.append(_warning(name, sorted(seen)))
        return found


def _zones(pipeline: Pipeline) -> set[str]:
    """Of the rows still open: the coarsest of them have all that came lately."""
    return {zone for rows in pipeline.state.open.values() for zone in pc.unique(rows[ZONE]).to_pylist()}


def _warning(name: str, zones: list[str]) -> str:
    shown = ", ".join(zones[:_SHOWN]) + (", …" if len(zones) > _SHOWN else "")
    return (
        f"warning: {name} holds rows of {len(zones)} zones ({shown}): each is cut in the zone of its own text, so one day "
        "may have several rows. `zone = \"Europe/Berlin\"` in the configuration, or @zone('Europe/Berlin') on the stream "
        "or the aggregation, cuts all rows in one zone; AGG_TIMEZONE in a `select` keeps them apart."
    )
