"""Retrieval beside ClickHouse and Spark SQL: p50 and p99 in milliseconds, cold and warm, 1 and 8 clients.

``python -m benchmarks.retrieval`` asks the questions of ``benchmarks.questions`` of stores with about 10 million
second-level rows; ``--rows 1000000 10000000 100000000`` shows what the cost follows: the answer or the history.
Each engine runs in a process of its own. Every answer is checked for its number of rows.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.common import Line, emit, machine, run_module
from benchmarks.questions import questions, store_events

BENCH = "retrieval"
MODULES = {
    "rollup": "benchmarks.ours_retrieval",
    "clickhouse": "benchmarks.peers.clickhouse_retrieval",
    "spark sql": "benchmarks.peers.spark_retrieval",
}
AIMS = {"spark sql": 20.0}  # times faster than
SPARK_RUNS = 20  # a question takes Spark up to a second, so two hundred of each would take an hour


def ask(engine: str, rows: int, runs: int, clients: list[int], cold_runs: int) -> list[Line]:
    """All lines of one engine: warm for each number of clients, then every question in fresh processes."""
    few = min(runs, SPARK_RUNS) if engine == "spark sql" else runs
    lines = run_module(MODULES[engine], "--rows", rows, "--runs", few, "--clients", *clients, timeout=7200)
    if any("error" in line for line in lines):
        return lines
    for name in questions(rows):
        for _ in range(cold_runs):
            lines += run_module(MODULES[engine], "--rows", rows, "--cold", name)
    return lines


def figures(lines: list[Line]) -> dict[tuple[str, str, int], float]:
    """Milliseconds by question, temperature and clients: p50 when warm, the best of the fresh processes when cold."""
    found: dict[tuple[str, str, int], float] = {}
    for line in lines:
        if line.get("unit") == "ms" and "temperature" in line:
            key = (line["what"], line["temperature"], line["clients"])
            found[key] = min(line["value"], found.get(key, line["value"]))
    return found


def ratios(rows: int, ours: list[Line], peer: str, theirs: list[Line]) -> None:
    """Print their time divided by ours for every question: above 1 we are faster."""
    mine = figures(ours)
    for (name, temperature, clients), milliseconds in figures(theirs).items():
        own = mine.get((name, temperature, clients))
        if own is not None:
            emit(
                BENCH, f"{peer} / ours: {name}", milliseconds / own, "ratio", temperature=temperature, peer=peer,
                ratio=milliseconds / own, clients=clients, store_rows=rows,
                **({"aim": AIMS[peer]} if peer in AIMS and temperature == "hot" else {}),
            )  # fmt: skip


def compare(rows: int, engines: list[str], runs: int, clients: list[int], cold_runs: int) -> bool:
    """Ask every engine at one scale; whether all of them answered."""
    store_events(rows)
    lines = {engine: ask(engine, rows, runs, clients, cold_runs) for engine in engines}
    for peer in engines:
        if peer != "rollup" and "rollup" in lines:
            ratios(rows, lines["rollup"], peer, lines[peer])
    return not any("error" in line for found in lines.values() for line in found)


def main() -> int:
    """Command line; exit code 1 when an engine failed or answered wrongly."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one million rows, few runs: proves that it runs")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--cold-runs", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=list(MODULES), default=list(MODULES))
    options = parser.parse_args()
    machine(BENCH)
    if options.smoke:
        return 0 if compare(1_000_000, [name for name in options.engines if name != "spark sql"], 10, [1], 0) else 1
    worked = [compare(rows, options.engines, options.runs, options.clients, options.cold_runs) for rows in options.rows]
    return 0 if all(worked) else 1


if __name__ == "__main__":
    sys.exit(main())
