"""Many readers at once: threads do not mix answers, and beside a running job every answer is some whole commit.

These are tests of real concurrency, with threads over one reader and a writer with an engine of its own.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from rollup.ask import Asker
from rollup.conf import load
from tests.retrieval.trades import DAY, HOUR, SECOND, START, app, asker, delta_host


def test_eight_clients_get_their_own_answers(trades: Asker) -> None:
    texts = [
        f"from A on k == '{key}' within {START + day * DAY}L, {START + (day + span) * DAY}L per '{per}' select AGG_TIMESTAMP, k, total order by AGG_TIMESTAMP"
        for key in ("a", "b", "none")
        for day in (0, 1, 40)
        for span in (1, 30)
        for per in ("seconds", "hours", "days", "auto")
    ]
    texts += [
        f"select k, sum(total) as t from A within '2018-0{month}-** **:**:**' per 'days' group by k order by k"
        for month in (1, 2, 3)
    ]
    alone: dict[str, pa.Table] = {text: trades.query(text) for text in texts}
    with ThreadPoolExecutor(8) as pool:
        for text, answer in pool.map(lambda text: (text, trades.query(text)), texts * 6):
            assert answer.equals(alone[text]), text


@pytest.mark.slow
def test_readers_of_a_running_job_see_whole_commits_in_order(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app("correct", 1))
    store = host.stores["A"]
    store.compact_after = 4  # type: ignore[attr-defined]
    host.send("S", [("a", 1, START)])
    totals, ended, wrong = {1: 1}, threading.Event(), list[str]()
    allowed = {1}

    def write() -> None:
        at, total = START, 1
        for batch in range(1, 26):
            size = batch % 5 + 1
            allowed.add(total + size)  # before it is visible
            at += 20 * 60 * SECOND
            late = max(START, at - 3 * HOUR)
            host.send("S", [("a", 1, late if n == 0 else at + n * SECOND) for n in range(size)])
            total += size
            totals[batch + 1] = total
            store.maintain(1.0)  # type: ignore[attr-defined]
        ended.set()

    def read(reader: Asker, per: str) -> int:
        last, asked = 0, 0
        while not ended.is_set() or asked < 3:
            answer = reader.query(
                f"from A within {START - DAY}L, {START + 10 * DAY}L per '{per}' select sum(n) as n, sum(total) as t"
            )
            n, t = answer["n"][0].as_py(), answer["t"][0].as_py()
            if n not in allowed or n != t or n < last:
                wrong.append(f"{per}: {n} events, total {t}, after {last}")
            last, asked = n, asked + 1
        return last

    reader = asker(tmp_path)
    with ThreadPoolExecutor(5) as pool:
        reads = [pool.submit(read, reader, per) for per in ("seconds", "hours", "auto", "years")]
        pool.submit(write).result(timeout=120)
        final = [each.result(timeout=60) for each in reads]
    assert not wrong
    assert final == [totals[26]] * 4
    assert (store._path("SECONDS") / "_delta_log").exists()  # type: ignore[attr-defined]


def test_a_reader_sees_the_next_commit_at_once(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    host.send("S", [("a", 1, START)])
    reader = asker(tmp_path)
    text = "from A within '2018-**-** **:**:**' per 'years' select n"
    for count in range(2, 6):
        assert reader.query(text)["n"].to_pylist() == [count - 1]
        host.send("S", [("a", 1, START + count * HOUR)])
    assert reader.query(text)["n"].to_pylist() == [5]


OTHER = """
import shutil, sys
from pathlib import Path
from tests.retrieval.trades import START, HOUR, SECOND, app, delta_host
folder, how, value = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if how != "continue":
    store = delta_host(folder, app()).stores["A"]
    store.forget() if how == "forget" else store.drop()
host = delta_host(folder, app())
for n in range(3):
    host.send("S", [("a", value, START + n * HOUR)])
"""


@pytest.mark.parametrize("how", ["forget", "drop"])
@pytest.mark.few(1)
def test_a_reader_follows_a_store_that_another_process_has_made_anew(tmp_path: Path, how: str) -> None:
    def write(how: str, value: int) -> None:
        command = [sys.executable, "-c", OTHER, str(tmp_path), how, str(value)]
        subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=60)

    questions = [
        f"from A within '2018-**-** **:**:**' per '{per}' select AGG_TIMESTAMP, k, total order by AGG_TIMESTAMP"
        for per in ("seconds", "hours", "years")
    ] + ["select AGG_TIMESTAMP, k, total from A within '2018-**-** **:**:**' per 'hours' order by 1"]
    write("drop", 1)
    reader = asker(tmp_path)
    before = [reader.query(text) for text in questions]
    assert before[1]["total"].to_pylist() == [1, 1, 1]
    write(how, 10)
    fresh = Asker(load(tmp_path / "conf.toml"))
    numbers = reader.store("A").snapshot().number, fresh.store("A").snapshot().number
    after = [reader.query(text) for text in questions]
    assert after == [fresh.query(text) for text in questions]
    assert after != before and numbers[0] == numbers[1]
    assert 10 in after[1]["total"].to_pylist()
