"""A recorded case on the oracle, in the form of the conformance runner, so that both are compared by the same rules."""

from __future__ import annotations

from typing import Any

from tests.conformance.compare import Case, number
from tests.conformance.siddhi.compare import Rows
from tests.conformance.siddhi.runner import NOW, Runs
from tests.oracle import local_time as time
from tests.oracle.answers import App, Unanswerable
from tests.oracle.event_at_a_time import Oracle, Refused


class OracleRun(Runs):
    """One case in progress on the oracle."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.app = App("\n".join(case["app"]))
        self.app.now = NOW

    def begin(self) -> None:
        self.app.emitted.clear()

    def send(self, stream: str, rows: list[list[Any]]) -> Any:
        refused: list[str] = []
        for row in rows:
            try:
                self.app.send(stream, [number(value) for value in row])
            except (Refused, Unanswerable) as problem:
                refused.append(str(problem))
        return {**self._watched(), **({"error": refused} if refused else {})}

    def _watched(self) -> Any:
        return {
            "emitted": [
                {"stream": stream, "data": row} for stream, row in self.app.emitted if stream in self.case["outputs"]
            ]
        }

    def sleep(self, milliseconds: int) -> Any:
        self.app.now += milliseconds
        for oracle in self.app.oracles.values():
            if oracle.definition.by is None:
                oracle.tick(self.app.now)
        return self._watched()

    def query(self, text: str) -> Any:
        try:
            return {"rows": self.app.query(text)}
        except Unanswerable as problem:
            return {"error": str(problem)}

    def restart(self, how: str) -> Any:
        kept: dict[str, Oracle] = {}
        for name, oracle in self.app.oracles.items():
            survives = any(
                a.name == "store" and a.values.get("type") == "survives" for a in oracle.definition.annotations
            )
            if how == "snapshot" or survives:
                kept[name] = oracle
            if how == "recreate" and survives:
                oracle.rebuild()
        arrivals = self.app.arrivals
        self.app = App("\n".join(self.case["app"]), kept=kept)
        self.app.arrivals = arrivals
        return {}

    def running(self, name: str) -> dict[str, Rows]:
        oracle = self.app.oracles[name]
        return {time.NAMES[level]: _rows(oracle, oracle.running(level)) for level in oracle.levels}

    def tables(self) -> dict[str, Rows]:
        return {
            f"{name}_{time.NAMES[level]}": _rows(oracle, oracle.stored(level))
            for name, oracle in self.app.oracles.items()
            for level in oracle.levels
        }


def _rows(oracle: Oracle, rows: list[dict[str, Any]]) -> Rows:
    names = oracle.columns()
    return Rows(names, [[row[name] for name in names] for row in rows])
