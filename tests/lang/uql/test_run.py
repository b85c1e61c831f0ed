"""A whole run: bytes in, bytes out, the summary and the exit code; wall clock windows; memory that does not grow."""

from __future__ import annotations

import io
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from rollup.lang.uql.catalog import Catalog
from rollup.lang.uql.ingress import Bad
from rollup.lang.uql.plan import plan
from rollup.lang.uql.run import Summary, complete, run

FIELDS = [
    {"name": "x", "type": "integer64"},
    {"name": "t", "type": "timestamp", "usage": "time"},
    {"name": "c", "type": "text"},
]
DOCUMENT = {"schemas": [{"name": "foo", "fields": FIELDS}]}
ROWS = (
    b"1|2030-01-01T17:00:01-07:00|a\nabc|2030-01-01T17:00:02-07:00|a\n"
    b"2|2030-01-01T17:00:04-07:00|a\n4|2030-01-01T17:00:14-07:00|a\n8|2030-01-01T17:00:03-07:00|a\n"
)


def _run(query: str, data: bytes) -> tuple[bytes, list[Bad], Summary]:
    sink = io.BytesIO()
    *bad, summary = run(plan(query, Catalog.of(DOCUMENT)), io.BytesIO(data), sink)
    assert isinstance(summary, Summary)
    return sink.getvalue(), [row for row in bad if isinstance(row, Bad)], summary


def test_a_run_counts_rows_bad_ones_and_late_ones_and_keeps_all_others() -> None:
    query = "from foo window slice 10 seconds based on t aggregate sum(x) as s, count() as n append s, n to bar"
    out, bad, summary = _run(query, ROWS)
    assert out == b"3|2\n12|2\n"  # the late 8 is in the oldest window still open
    assert bad == [Bad(2, "x: 'abc' is not integer64")]
    assert (summary.rows, summary.bad, summary.late) == (5, 1, 1)
    assert "1 late rows, in the oldest window still open" in summary.sentences()


def test_a_sum_beyond_64_bits_is_an_empty_field_and_counted() -> None:
    row = f"{2**63 - 1}|2030-01-01T17:00:01-07:00|a\n".encode()
    out, _, summary = _run(
        "from foo window slice 2 rows aggregate sum(x) as s, avg(x) as a append s, a to bar", row * 2
    )
    assert out == b"|9.223372036854776e+18\n"
    assert summary.beyond == 1


def test_a_chain_reads_what_the_query_before_it_writes_times_with_their_text() -> None:
    query = (
        "from foo window slice 10 seconds based on t aggregate sum(x) as s, last(t) as e append s, e to bar "
        "from bar window slice 1 minutes based on e aggregate count() as n, first(e) as f append n, f to baz"
    )
    out, _, _ = _run(query, ROWS)
    assert out == b"2|2030-01-01T17:00:04-07:00\n"


def test_a_chain_whose_table_the_catalog_has_otherwise_is_refused() -> None:
    tables = [*DOCUMENT["schemas"], {"name": "bar", "fields": [{"name": "s", "type": "text"}]}]
    query = "from foo window slice 1 rows aggregate sum(x) as s append s to bar from bar window slice 1 rows aggregate count() as n append n to z"
    with pytest.raises(Exception, match=r"bar of the catalog has \(s text\), the query before gives \(s integer\)"):
        plan(query, Catalog.of({"schemas": tables}))


def test_windows_of_the_wall_clock_close_while_nothing_arrives() -> None:
    said: queue.Queue[bytes] = queue.Queue()

    class Sink(io.BytesIO):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            if data:
                said.put(bytes(data))
            return len(data)

    reading, writing = os.pipe()
    plans = plan("from foo window slice 200 milliseconds aggregate sum(x) as s append s to bar", Catalog.of(DOCUMENT))
    with os.fdopen(reading, "rb") as source:
        thread = threading.Thread(target=lambda: list(run(plans, source, Sink())))
        thread.start()
        os.write(writing, b"7|2030-01-01T17:00:01-07:00|a\n")
        assert said.get(timeout=60) == b"7\n"  # the input is still open
        os.write(writing, b"9|2030-01-01T17:00:01-07:00|a\n")
        assert said.get(timeout=60) == b"9\n"
        os.close(writing)
        thread.join(timeout=60)
        assert not thread.is_alive()


@pytest.mark.long
def test_memory_does_not_grow_with_the_input() -> None:
    class Rows(io.RawIOBase):
        """A million and a half rows, made when they are read."""

        left = 150

        def readinto1(self, buffer: memoryview, /) -> int:
            self.left -= 1
            base = 1_900_000_000 + (150 - self.left) * 100
            text = "".join(f"{i}|{_text(base + i // 100)}|k{i % 50}\n" for i in range(10_000)) if self.left >= 0 else ""
            buffer[: len(text)] = text.encode()
            return len(text)

    def _text(second: int) -> str:
        return f"2030-03-{1 + second % 86400 // 3600:02d}T{second // 60 % 24:02d}:{second % 60:02d}:00Z"

    query = "from foo group by c window slice 10 rows aggregate count() as n, distinctcount(x) as d append n, d to bar"
    sink = io.BytesIO()
    before: list[int] = []
    for event in run(plan(query, Catalog.of(DOCUMENT)), Rows(), sink):
        before.append(pa.total_allocated_bytes())
        assert isinstance(event, Summary) and event.rows == 1_500_000
    assert pa.total_allocated_bytes() < 64 << 20


def test_records_are_not_cut_inside_quotes() -> None:
    assert complete(b'1|"a\nb"\n2|"c\n') == len(b'1|"a\nb"\n')
    assert complete(b"1|a\n2") == 4
    assert complete(b'"open\n') == 0


def _rollup(folder: Path, *words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    (folder / "catalog.json").write_text(json.dumps(DOCUMENT))
    command = [sys.executable, "-m", "rollup.cli.main", "uql", "--catalog", "catalog.json", *words]
    return subprocess.run(command, cwd=folder, input=data, capture_output=True, timeout=120, check=False)


def test_the_command_writes_results_to_stdout_and_all_else_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "query.uql").write_text("from foo window slice 2 rows aggregate sum(x) as s append s to bar")
    ran = _rollup(tmp_path, "query.uql", data=ROWS)
    assert (ran.returncode, ran.stdout) == (1, b"3\n12\n")
    assert b"line 2 is set aside: x: 'abc' is not integer64" in ran.stderr
    assert b"5 rows read; 1 rows set aside" in ran.stderr


def test_the_command_refuses_a_wrong_query_in_one_line(tmp_path: Path) -> None:
    ran = _rollup(
        tmp_path, "from foo where zz > 1 window slice 2 rows aggregate sum(x) as s append s to bar", data=ROWS
    )
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr == b"rollup: line 1, column 16: unknown name: zz (known here: x, t, c)\n"


def test_the_plan_is_the_operators_of_the_document_in_their_order(tmp_path: Path) -> None:
    query = "from foo where x < 9 window slice 2 rows aggregate sum(x) as s where s > 1 append s, s * 2 as d where d < 99 to bar"
    ran = _rollup(tmp_path, "--plan", query)
    words = [line.split()[0] for line in ran.stdout.decode().splitlines()]
    assert words == ["ingress", "filter", "window", "aggregate", "filter", "project", "filter", "egress"]
    assert b"egress     bar (s integer, d integer)" in ran.stdout
