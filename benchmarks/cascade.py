"""The main job beside its peers: events/s over sec…year at 100 and 10,000 keys, one after the other.

``python -m benchmarks.cascade`` (``--smoke`` for a tiny run that only proves it works). The last lines are the
ratios: ours, hot, against the best hot rate of each peer; and ours with start-up against theirs with start-up.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.common import (
    Events,
    Line,
    bench_events,
    emit,
    event_files,
    machine,
    run_module,
    scratch,
    skipped,
    value_of,
)

BENCH = "cascade"
KEYS = (100, 10_000)
# The goals of each comparison; bare DuckDB keeps nothing up to date, so it is a yardstick and not a rival.
AIMS = {"siddhi": 10.0, "clickhouse": 1.0, "clickhouse tuned": 1.0, "duckdb": 0.4, "duckdb writing Parquet": None}


def siddhi(events: Events) -> list[Line]:
    """The reference engine; its own short lengths for a full run."""
    length = ["--events", events.events] if events.events < 1_000_000 else []
    return run_module("benchmarks.peers.siddhi", "--keys", events.keys, *length)


def clickhouse(events: Events) -> list[Line]:
    """ClickHouse's materialized views, settings as they come."""
    return run_module("benchmarks.peers.clickhouse", "--keys", events.keys, "--events", events.events)


def clickhouse_tuned(events: Events) -> list[Line]:
    """ClickHouse's materialized views, in parallel."""
    return run_module("benchmarks.peers.clickhouse", "--keys", events.keys, "--events", events.events, "--tuned")


def duckdb(events: Events) -> list[Line]:
    """Bare DuckDB, nothing written."""
    return run_module("benchmarks.peers.duckdb_bare", "--keys", events.keys, "--events", events.events)


def duckdb_writing(events: Events) -> list[Line]:
    """Bare DuckDB, every level written as Parquet."""
    return run_module("benchmarks.peers.duckdb_bare", "--keys", events.keys, "--events", events.events, "--write")


PEERS: dict[str, Callable[[Events], list[Line]]] = {
    "siddhi": siddhi,
    "clickhouse": clickhouse,
    "clickhouse tuned": clickhouse_tuned,
    "duckdb": duckdb,
    "duckdb writing Parquet": duckdb_writing,
}


def ours(events: Events, batch_files: int) -> dict[str, Any] | None:
    """Run our job and print its two rates; None when it failed, which is printed too.

    At least two batches, so that one of them is hot; at most `batch_files` files each.
    """
    from benchmarks.ours import OursFailed, run_cascade

    try:
        with scratch("cascade") as folder:
            found = run_cascade(events.files, events.keys, folder, max(1, min(batch_files, len(events.files) // 2)))
    except (OursFailed, OSError) as error:
        print_failure(str(error))
        return None
    shared = {"peer": "rollup", "keys": events.keys, "events": found["events"], "batches": found["batches"]}
    emit(BENCH, "sec…year into Delta", found["hot_rate"], "events/s", temperature="hot", **shared)
    emit(BENCH, "sec…year into Delta", found["total_rate"], "events/s", temperature="cold", **shared)
    if found["events"] != events.events:
        print_failure(f"our job read {found['events']} of {events.events} events")
        return None
    return found


def print_failure(reason: str) -> None:
    """Print that our side failed, as a JSON line."""
    emit(BENCH, "rollup", None, "events/s", error=reason)


def ratios(events: Events, found: dict[str, Any], peers: dict[str, list[Line]]) -> None:
    """Print ours divided by each peer's, hot against hot and with start-up against with start-up."""
    for temperature, mine in (("hot", found["hot_rate"]), ("cold", found["total_rate"])):
        for peer, lines in peers.items():
            theirs = value_of(lines, temperature)
            if mine is None or theirs is None:
                continue
            emit(
                BENCH, f"ours / {peer}", mine / theirs, "ratio", temperature=temperature, peer=peer,
                ratio=mine / theirs, aim=AIMS[peer], keys=events.keys,
            )  # fmt: skip


def same_counts(events: Events, peers: dict[str, list[Line]]) -> bool:
    """Whether every peer that read the files counted all events and the same sum of quantities."""
    found = {(line["counted"], line["total"]) for lines in peers.values() for line in lines if "counted" in line}
    if len(found) <= 1 and all(count == events.events for count, _ in found):
        return True
    emit(BENCH, "peers disagree", None, "events", error=f"counts and sums {sorted(found)}", keys=events.keys)
    return False


def compare(keys: int, count: int, names: list[str], batch_files: int, with_ours: bool) -> bool:
    """One comparison at one number of keys; whether everything that was not skipped worked."""
    events = event_files(keys, count)
    peers = {name: PEERS[name](events) for name in names}
    found = ours(events, batch_files) if with_ours else None
    if found is not None:
        ratios(events, found, peers)
    elif not with_ours:
        skipped(BENCH, "rollup", "--peers-only was given")
    worked = not any("error" in line for lines in peers.values() for line in lines)
    return same_counts(events, peers) and worked and (found is not None or not with_ours)


def main() -> int:
    """Command line; exit code 1 when any side failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="200,000 events: proves that it runs")
    parser.add_argument("--keys", type=int, nargs="+", default=KEYS)
    parser.add_argument("--events", type=int, help="instead of ROLLUP_BENCH_EVENTS or 20 million")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--batch-files", type=int, default=10, help="files of a million events in a batch of ours")
    parser.add_argument("--peers-only", action="store_true", help="leave our own side out")
    options = parser.parse_args()
    machine(BENCH)
    count = options.events or bench_events(options.smoke)
    keys = options.keys[:1] if options.smoke else options.keys
    worked = [compare(each, count, options.peers, options.batch_files, not options.peers_only) for each in keys]
    return 0 if all(worked) else 1


if __name__ == "__main__":
    sys.exit(main())
