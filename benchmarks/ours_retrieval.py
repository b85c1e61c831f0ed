"""Our answers to the retrieval questions, through the library, from a Delta store that our job made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from benchmarks.common import cache_dir, emit
from benchmarks.ours import ours_open, ours_query, run_job, run_maintain, write_conf
from benchmarks.questions import Question, siddhi_text, store_events
from benchmarks.timing import BENCH, main


class Rollup:
    """Our side."""

    name = "rollup"

    def prepare(self, rows: int) -> Path:
        """Run our job over the events, then `rollup maintain`, unless the store is there; the configuration file."""
        folder = cache_dir() / f"rollup-year-{rows}"
        conf = folder / "bench.toml"
        if not (folder / "maintained").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            events = store_events(rows)
            seconds = run_job(write_conf(folder, events.files), folder / "metrics.jsonl")
            emit(BENCH, "store loaded", seconds, "s", peer=self.name, store_rows=events.events)
            emit(BENCH, "store maintained", run_maintain(conf), "s", peer=self.name, store_rows=events.events)
            (folder / "maintained").touch()
        return conf

    def open(self, folder: Path) -> Any:
        """The store of that configuration file."""
        return ours_open(folder)

    def ask(self, store: Any, question: Question) -> int:
        """The whole answer as an Arrow table."""
        return int(ours_query(store, siddhi_text(question)).num_rows)


if __name__ == "__main__":
    main(Rollup())
