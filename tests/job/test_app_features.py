"""What an app can say, on the real job; and what a user meets who gets something wrong: one clear line, exit code 2."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.job.contents import contents
from tests.job.jobs import TRADES, Job, answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEVERAL = """define stream Trades (symbol string, price double, quantity long, ts long);
from Trades[price > 1.0] select symbol, price * 2 as doubled, quantity, ts insert into Dear;
from Dear[doubled < 10.0] select symbol, doubled, ts insert into Middling;

define aggregation TradeAgg from Trades select symbol, count() as events
group by symbol aggregate by ts every sec ... day;
define aggregation DearAgg from Dear[quantity != 3] select symbol, sum(doubled) as s, count() as events
group by symbol aggregate by ts every sec, min;
define aggregation MiddlingAgg from Middling select count() as events aggregate by ts every min;
"""


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """JSON lines that appear at once."""
    folder.mkdir(exist_ok=True)
    draft = folder / f".{name}"
    draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
    draft.rename(folder / f"{name}.json")


def trades(numbers: range) -> list[dict[str, Any]]:
    """Prices 0, 1 … 7; a second every ten events."""
    return [
        {"symbol": f"s{i % 2}", "price": float(i % 8), "quantity": i % 5, "ts": 1_600_000_000_000 + i * 100}
        for i in numbers
    ]


@pytest.mark.spark
def test_several_aggregations_and_queries_between_streams_share_one_spark_job_a_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    for number in range(3):
        write(tmp_path / "incoming", f"f{number}", trades(range(number * 40, number * 40 + 40)))
        os.utime(tmp_path / "incoming" / f"f{number}.json", (1_600_000_000 + number,) * 2)
    job = Job(tmp_path, {"kind": "json", "path": "incoming", "max_files_per_batch": 1}, app=SEVERAL)
    host, jobs, numbers = job.host(spark), list[int](), count()
    results = host._batches._tasks.results

    def counted(*arguments: Any) -> Any:
        group = f"batch-{next(numbers)}"  # batches overlap: no two may share a group
        spark.sparkContext.setJobGroup(group, group)
        try:
            return results(*arguments)
        finally:
            jobs.append(len(spark.sparkContext.statusTracker().getJobIdsForGroup(group)))

    host._batches._tasks.results = counted  # type: ignore[method-assign]
    host.run(once=True)
    assert jobs == [1, 1, 1]
    rows = trades(range(120))
    dear = [row for row in rows if row["price"] > 1 and row["quantity"] != 3]
    middling = [row for row in rows if 1 < row["price"] < 5]
    assert sum(n for (n,) in answers(job.conf, "events")) == 120
    assert sum(s for s, _ in answers(job.conf, "s, events", aggregation="DearAgg")) == sum(
        row["price"] * 2 for row in dear
    )
    assert sum(n for (n,) in answers(job.conf, "events", per="minutes", aggregation="MiddlingAgg")) == len(middling)


ASKING = (
    TRADES
    + """
define stream Requests (name string, startTime string, endTime string, perDuration string);
from Requests as b join TradeAgg as a on a.symbol == b.name
within b.startTime, b.endTime per b.perDuration
select b.name as name, a.AGG_TIMESTAMP as at, a.events as events insert into Answers;
"""
)


@pytest.mark.spark
def test_requests_of_a_stream_are_answered_into_files_and_wrong_ones_are_dead_letters(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path / "trades", "f", trades(range(40)))
    (tmp_path / "requests").mkdir()
    sources = [{"kind": "json", "path": "trades"}, {"kind": "json", "path": "requests"}]
    job = Job(
        tmp_path,
        *sources,
        app=ASKING,
        streams=("Trades", "Requests"),
        more='[sinks.Answers]\nkind = "files"\npath = "answers"',
    )
    job.run(spark)
    asked = {
        "name": "s0",
        "startTime": "2020-09-13 12:26:40",
        "endTime": "2020-09-13 12:26:42",
        "perDuration": "seconds",
    }
    write(
        tmp_path / "requests",
        "r",
        [asked, asked | {"perDuration": "weeks"}, asked | {"startTime": "soon"}, asked | {"name": "nobody"}],
    )
    job.run(spark)
    files = list((tmp_path / "answers").glob("*.parquet"))
    found = [row for file in files for row in pq.read_table(file).to_pylist()]
    assert sorted(found, key=lambda row: row["at"]) == [
        {"name": "s0", "at": 1_600_000_000_000 + second * 1000, "events": 5} for second in (0, 1)
    ]
    letters = job.letters()
    assert len(letters) == 2
    assert {letter["stream"] for letter in letters} == {"Requests"}
    assert any("weeks" in letter["reason"] for letter in letters), letters
    assert any("soon" in letter["reason"] for letter in letters), letters


@pytest.mark.spark
def test_a_stream_that_leaves_keeps_the_order_of_its_files_when_one_batch_has_several(
    tmp_path: Path, spark: SparkSession
) -> None:
    for number, name in enumerate("zay"):
        write(tmp_path / "incoming", name, trades(range(number * 10, number * 10 + 10)))
        os.utime(tmp_path / "incoming" / f"{name}.json", (1_600_000_000 + number,) * 2)
    app = TRADES + "from Trades select symbol, ts insert into Seen;"
    more = '[sinks.Seen]\nkind = "files"\npath = "seen"'
    Job(tmp_path, {"kind": "json", "path": "incoming"}, app=app, more=more).run(spark)
    [file] = (tmp_path / "seen").glob("*.parquet")
    assert pq.read_table(file)["ts"].to_pylist() == [row["ts"] for row in trades(range(30))]


@pytest.mark.spark
def test_times_that_cannot_be_read_are_dead_letters_and_the_stream_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    app = TRADES.replace("ts long", "ts string")
    times = [
        "2020-09-13 12:26:40",
        "2020-09-13T12:26:41.5+02:00",
        "yesterday",
        None,
        "2020-02-30 00:00:00",
        "2020-09-13 12:26:40 Mars/Olympus",
    ]
    write(tmp_path / "incoming", "f", [{"symbol": "a", "price": 1.0, "quantity": 1, "ts": ts} for ts in times])
    job = Job(tmp_path, {"kind": "json", "path": "incoming"}, app=app)
    job.run(spark)
    assert sum(n for (n,) in answers(job.conf, "events", per="days")) == 2
    letters = job.letters()
    assert [letter["reason"] for letter in letters] == [
        f"the time is {said}" for said in ("no timestamp", "null", "no timestamp", "no timestamp")
    ]
    assert [letter["position"].rsplit(":", 1)[1] for letter in letters] == ["2", "3", "4", "5"]
    assert "yesterday" in letters[0]["raw"]


@pytest.mark.spark
def test_buckets_of_arrival_time_close_although_nothing_arrives(tmp_path: Path, spark: SparkSession) -> None:
    app = "define stream S (k string); define aggregation A from S select k, count() as events "
    app += "group by k aggregate every sec, min;"
    (tmp_path / "incoming").mkdir()
    job = Job(tmp_path, {"kind": "json", "path": "incoming"}, app=app, streams=("S",))

    def closed() -> bool:
        return job.committed() and len(contents(tmp_path / "tables", job.conf.program())["A_SECONDS"]) == 1

    write(tmp_path / "incoming", "f", [{"k": "a"}, {"k": "a"}])
    job.run_until(spark, closed)
    assert answers(job.conf, "k, events", aggregation="A") == [("a", 2)]


@pytest.mark.spark
def test_a_job_asked_to_stop_in_the_middle_of_a_batch_loses_none(tmp_path: Path, spark: SparkSession) -> None:
    """Stopped as each batch begins: a batch must be done or come again, over and over until all are through."""
    for number in range(6):
        write(tmp_path / "incoming", f"f{number}", trades(range(number * 20, number * 20 + 20)))
    job = Job(tmp_path, {"kind": "json", "path": "incoming", "max_files_per_batch": 1}, top='trigger = "0 seconds"')
    for attempt in range(4):
        host = job.host(spark)
        process, begun = host._batch, list[int]()

        def batch(
            stream: str,
            frame: Any,
            number: int,
            begun: list[int] = begun,
            process: Callable[..., None] = process,
            host: Any = host,
        ) -> None:
            begun.append(number)
            if len(begun) == 2:
                host.stop()
            process(stream, frame, number)

        host._batch = batch  # type: ignore[method-assign]
        worker = threading.Thread(target=host.run)
        worker.start()
        worker.join(60)
        assert not worker.is_alive(), f"attempt {attempt} does not end"
    job.run(spark)
    assert sum(n for (n,) in answers(job.conf, "events")) == 120


@pytest.mark.spark
def test_sigterm_ends_a_running_job_between_batches_with_exit_code_0(tmp_path: Path) -> None:
    write(tmp_path / "incoming", "f", trades(range(40)))
    job = Job(tmp_path, {"kind": "json", "path": "incoming"}, top='trigger = "0 seconds"')
    process = job.process()
    deadline = time.monotonic() + 240
    try:
        while not job.committed() or sum(n for (n,) in answers(job.conf, "events")) < 40:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, said
    assert "Traceback" not in said and "Exception" not in said and "leaked" not in said, said


# What a user meets

CONF = """app = "app.siddhi"
checkpoint = "checkpoint"
{top}
[sources.Trades]
kind = "json"
path = "incoming"

[store]
kind = "delta"
path = "tables"
"""

WRONG: dict[str, tuple[Callable[[str], str], str]] = {
    "no source": (
        lambda conf: conf.replace("[sources.Trades]", "[sources.Tades]"),
        "stream Trades has no source (add [sources.Trades])",
    ),
    "unknown kind": (
        lambda conf: conf.replace('"json"', '"jsn"'),
        "[sources.Trades] has the unknown kind 'jsn' (did you mean 'json'?)",
    ),
    "unknown key": (lambda conf: 'triger = "1 second"\n' + conf, "unknown key `triger` (did you mean `trigger`?)"),
    "no TOML": (lambda conf: conf + "[[[", "is not TOML"),
    "no app": (lambda conf: conf.replace("app.siddhi", "gone.siddhi"), "cannot read the app"),
    "bad app": (lambda conf: conf.replace("app.siddhi", "bad.siddhi"), "bad.siddhi, line 1, column "),
    "bad trigger": (lambda conf: 'trigger = "often"\n' + conf, "trigger is 'often' (a length of time"),
    "no store": (
        lambda conf: conf.replace('"delta"', '"detla"'),
        "[store] has the unknown kind 'detla' (did you mean 'delta'?)",
    ),
    "shards of nothing": (
        lambda conf: "statement_shards = 4\n" + conf,
        "statement_shards divides statements, and the app has none",
    ),
    "no path": (lambda conf: conf.replace('path = "incoming"\n', ""), "[sources.Trades] lacks `path`"),
    "no Delta table": (
        lambda conf: conf.replace('"json"', '"delta"'),
        "is no Delta table (it must be there when the job starts)",
    ),
    "tables under a file": (lambda conf: conf.replace('"tables"', '"app.siddhi/tables"'), "cannot write"),
    "checkpoint under a file": (
        lambda conf: conf.replace('"checkpoint"', '"app.siddhi/c"'),
        "cannot write the checkpoint",
    ),
    "no folder": (
        lambda conf: conf.replace('"incoming"', '"incomming"'),
        "incomming (`create = true` makes one for files to come)",
    ),
    "incoming under a file": (
        lambda conf: conf.replace('"incoming"', '"app.siddhi/in"\ncreate = true'),
        "cannot make the folder",
    ),
    "sink of nothing": (
        lambda conf: conf + '[sinks.Nope]\nkind = "console"\n',
        "[sinks.Nope] names no stream of the app",
    ),
}


@pytest.fixture
def command(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> Callable[[Path], tuple[int, str]]:
    """`rollup run` in this process, on the tests' session: exit code and what it printed on standard error."""

    def run(conf: Path, *arguments: str) -> tuple[int, str]:
        import sys

        from rollup.cli.main import app

        before, handlers = sys.argv, {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)}
        sys.argv = ["rollup", "run", str(conf), "--once", *arguments]
        capsys.readouterr()
        try:
            app()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        finally:
            sys.argv = before
            for number, handler in handlers.items():
                signal.signal(number, handler)
        return code, capsys.readouterr().err

    return run


def folder_with(path: Path, conf: str) -> Path:
    """An app, input and a configuration; the configuration's path."""
    (path / "app.siddhi").write_text(TRADES)
    (path / "bad.siddhi").write_text("define steam Trades (symbol string);")
    write(path / "incoming", "f", trades(range(10)))
    (path / "job.toml").write_text(conf)
    return path / "job.toml"


@pytest.mark.spark
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_and_exit_code_2(
    tmp_path: Path, command: Callable[[Path], tuple[int, str]], name: str
) -> None:
    change, wanted = WRONG[name]
    code, said = command(folder_with(tmp_path, change(CONF.format(top=""))))
    assert code == 2, said
    assert said.count("\n") == 1 and said.startswith("rollup: "), said
    assert wanted in said


@pytest.mark.spark
def test_a_file_that_is_not_sorted_by_time_is_not_taken_in_silence(
    tmp_path: Path, command: Callable[[Path], tuple[int, str]]
) -> None:
    """The default loses no event and stops nothing; without a word nobody learns that buckets are wrong."""
    conf = folder_with(tmp_path, CONF.format(top=""))
    write(tmp_path / "incoming", "sorted by symbol", sorted(trades(range(400)), key=lambda trade: trade["symbol"]))
    code, said = command(conf)
    assert code == 0
    warning = next(line for line in said.splitlines() if "warning" in line)
    assert "of 410 events" in warning and "merged into later buckets" in warning
    assert "the files are probably not sorted by time" in warning and 'policy = "correct"' in warning
    assert said.splitlines()[-1].startswith("rollup: TradeAgg: ") and "of 410 events" in said.splitlines()[-1]


@pytest.mark.spark
def test_a_checkpoint_of_another_app_or_of_tables_that_are_gone_is_refused(
    tmp_path: Path, command: Callable[[Path], tuple[int, str]]
) -> None:
    conf = folder_with(tmp_path, CONF.format(top=""))
    assert command(conf)[0] == 0
    write(tmp_path / "elsewhere", "f", trades(range(20)))  # as many would be the same file, copied
    conf.write_text(CONF.format(top="").replace('"incoming"', '"elsewhere"'))
    code, said = command(conf)
    assert (code, said.count("\n")) == (2, 1), said
    assert f"the stream Trades was read from {tmp_path / 'incoming'}" in said and "`moved_from" in said
    conf.write_text(CONF.format(top=""))
    (tmp_path / "tables").rename(tmp_path / "moved")
    code, said = command(conf)
    assert (code, said.count("\n")) == (2, 1), said
    assert "has batches behind it, but" in said


@pytest.mark.spark
def test_a_damaged_checkpoint_is_told_in_one_line(tmp_path: Path, command: Callable[[Path], tuple[int, str]]) -> None:
    conf = folder_with(tmp_path, CONF.format(top=""))
    assert command(conf)[0] == 0
    offsets = tmp_path / "checkpoint" / "Trades" / "offsets" / "0"
    offsets.write_text("v7\nnonsense\n")
    code, said = command(conf)
    assert (code, said.count("\n")) == (2, 1), said
    assert said.startswith(f"rollup: {offsets} is damaged: ")
