"""A declaration that changes under tables that exist: added, dropped, renamed, refused, accepted. On real tables,
because the question is what happens to rows that are there."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, StoreError
from rollup.lifecycle.change import compare, declaration, notes
from rollup.lifecycle.replay.compare import readable
from rollup.program import compile_app
from rollup.stores.registry import open_store
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark
from tests.lifecycle.conftest import EVERY_STORE, ON_POSTGRES, NewStore, execute, stored, trades
from tests.lifecycle.filejob import APP, MIDNIGHT, FileJob, Place

Cli = Callable[..., tuple[int, str]]


def begun(place: Place, extra: str = "") -> tuple[Place, list[tuple[str, float, int, int]]]:
    """A job that has taken the first half of some trades."""
    place, events = changed(place, extra=extra), trades(1000)
    place.add(*events[:500])
    FileJob(place.conf).run()
    return place, events


def changed(place: Place, **fields: str) -> Place:
    return replace(place, **fields).write()  # type: ignore[arg-type]


def test_the_same_declaration_in_other_words_is_no_change(place: Place) -> None:
    place, _ = begun(place)
    text = (place.root / "app.siddhi").read_text()
    (place.root / "app.siddhi").write_text(
        text.replace("avg(price)", "  avg( price )").replace("as total", "as sumOfQuantity")
    )
    assert not FileJob(place.conf).change


@EVERY_STORE
def test_an_added_aggregate_is_filled_from_now_on_and_answers_say_from_when(place: Place, rollup: Cli) -> None:
    place, events = begun(place)
    place = changed(place, extra=", min(quantity) as least")
    job = FileJob(place.conf)
    assert job.change.added == ("AGG_MIN_quantity",)
    since = job.book.page().valid["AGG_MIN_quantity"]
    assert since > MIDNIGHT and {row["AGG_MIN_quantity"] for row in stored(place, "SECONDS")} == {None}
    place.add(*events[500:])
    job.run()
    later = [row for row in stored(place, "SECONDS") if row["AGG_TIMESTAMP"] >= since]  # type: ignore[operator]
    assert later and all(row["AGG_MIN_quantity"] is not None for row in later)
    assert rollup("verify", place.conf.path, "--from", readable(since), "--to", "2018-02-01")[0] == 0
    assert rollup("status", place.conf.path)[1].count("AGG_MIN_quantity: complete from") == 1

    from rollup.lang.siddhi.apps import parse_query
    from rollup.retrieval.questions import plan

    ask = plan(
        parse_query("from TradeAgg within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, least, total"),
        job.program.aggregations,
    )
    assert notes(job.book.page(), ask) == [
        f"least was added later: buckets that start before {readable(since)} are without the events before that"
    ]
    ask = plan(
        parse_query("from TradeAgg within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, total"),
        job.program.aggregations,
    )
    assert notes(job.book.page(), ask) == []


@ON_POSTGRES
@pytest.mark.few(1)
def test_a_replay_fills_an_added_column_and_takes_its_frontier_away(place: Place, rollup: Cli) -> None:
    place, events = begun(place)
    place = changed(place, extra=", min(quantity) as least, stdDev(price) as spread, quantity as lastQuantity")
    place.add(*events[500:])
    FileJob(place.conf).run()
    assert rollup("verify", place.conf.path, "--raw")[0] == 1
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-02-01")[0] == 0
    assert rollup("verify", place.conf.path, "--raw")[0] == 0
    assert FileJob(place.conf).book.page().valid == {}


@ON_POSTGRES
def test_a_dropped_aggregate_keeps_what_it_has_and_the_job_goes_on(place: Place, rollup: Cli) -> None:
    place, events = begun(place, ", min(quantity) as least")
    had = {(row["AGG_TIMESTAMP"], row["symbol"]): row["AGG_MIN_quantity"] for row in stored(place, "SECONDS")}
    place = changed(place, extra="")
    job = FileJob(place.conf)
    assert job.change.dropped == ("AGG_MIN_quantity",)
    place.add(*events[500:])
    job.run()
    now = {(row["AGG_TIMESTAMP"], row["symbol"]): row["AGG_MIN_quantity"] for row in stored(place, "SECONDS")}
    assert {key: now[key] for key in had} == had and None in now.values()
    assert rollup("verify", place.conf.path)[0] == 0
    assert "AGG_MIN_quantity: dropped, kept in the tables" in rollup("status", place.conf.path)[1]
    assert FileJob(place.conf).run().pipeline.number == job.pipeline.number, "a restart finds nothing to change"


@EVERY_STORE
@pytest.mark.few(1)
def test_a_dropped_aggregate_that_comes_back_is_filled_again(place: Place, rollup: Cli) -> None:
    place, events = begun(place, ", min(quantity) as least")
    had = {(row["AGG_TIMESTAMP"], row["symbol"], row["AGG_MIN_quantity"]) for row in stored(place, "SECONDS")}
    place = changed(place, extra="")
    FileJob(place.conf)
    place = changed(place, extra=", min(quantity) as least")
    place.add(*events[500:])
    job = FileJob(place.conf).run()
    assert job.book.page().ended == {} and "AGG_MIN_quantity" in job.book.page().valid
    assert had <= {(row["AGG_TIMESTAMP"], row["symbol"], row["AGG_MIN_quantity"]) for row in stored(place, "SECONDS")}
    assert rollup("replay", place.conf.path, "--from", "2018-01-01", "--to", "2018-02-01")[0] == 0
    assert rollup("verify", place.conf.path, "--raw")[0] == 0


def test_a_renamed_value_is_called_what_it_is(place: Place, rollup: Cli) -> None:
    place, _ = begun(place)
    (place.root / "app.siddhi").write_text((place.root / "app.siddhi").read_text().replace("lastPrice", "closing"))
    code, output = rollup("change", place.conf.path)
    assert (
        code == 0
        and "closing looks like lastPrice under a new name; its values from before stay in lastPrice" in output
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("group by symbol", "group by symbol, quantity", "the group keys"),
        ("every sec ... year", "every sec ... month", "the durations"),
        ("quantity long", "quantity double", "column AGG_SUM_quantity has another type"),
        ("ts long", "ts string", "the kind of time"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_what_to_do_and_nothing_is_touched(
    place: Place, rollup: Cli, old: str, new: str, message: str
) -> None:
    place, _ = begun(place)
    before = stored(place, "SECONDS")
    (place.root / "app.siddhi").write_text((place.root / "app.siddhi").read_text().replace(old, new))
    with pytest.raises(StoreError, match=f"{message}.*declare it under another name"):
        FileJob(place.conf)
    code, output = rollup("change", place.conf.path)
    assert code == 1 and "refused" in output and stored(place, "SECONDS") == before


def test_another_filter_needs_a_clear_yes(place: Place, rollup: Cli) -> None:
    place, events = begun(place)
    (place.root / "app.siddhi").write_text(
        APP.format(annotations="@OutOfOrder('correct') ", extra="").replace("from Trades", "from Trades[quantity > 10]")
    )
    place.add(*events[500:])
    with pytest.raises(StoreError, match=r"means something else now: the filter.*rollup change CONF --accept"):
        FileJob(place.conf)
    assert rollup("change", place.conf.path, "--accept")[0] == 0
    assert FileJob(place.conf).run().pipeline.number == 2


def test_a_change_killed_half_way_is_done_again(place: Place, rollup: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollup.stores.delta import store as delta
    from rollup.stores.delta.change import add_columns

    place, events = begun(place)
    place, count = changed(place, extra=", min(quantity) as least"), [0]

    def killed(*arguments: object) -> None:
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        add_columns(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(delta, "add_columns", killed)
    with pytest.raises(KeyboardInterrupt):
        FileJob(place.conf)
    monkeypatch.undo()
    place.add(*events[500:])
    assert FileJob(place.conf).run().change.added == ("AGG_MIN_quantity",)
    assert rollup("verify", place.conf.path)[0] == 0


@pytest.mark.parametrize("new_store", [pytest.param("postgres", marks=pytest.mark.postgres), "sqlite"], indirect=True)
def test_a_job_of_the_old_declaration_cannot_commit_after_a_change(place: Place, rollup: Cli) -> None:
    place, events = begun(place)
    old = FileJob(place.conf)
    place = changed(place, extra=", min(quantity) as least")
    place.add(*events[500:])
    assert rollup("change", place.conf.path, "--accept")[0] == 0
    with pytest.raises(FencedError):
        old.pipeline.rewrite({})
    FileJob(place.conf).run()
    assert rollup("verify", place.conf.path)[0] == 0


@pytest.mark.parametrize("new_store", [pytest.param("postgres", marks=pytest.mark.postgres), "sqlite"], indirect=True)
def test_a_dropped_column_that_comes_back_as_another_type_is_refused_and_keeps_what_it_has(place: Place) -> None:
    place, _ = begun(place, ", min(quantity) as least")
    place = changed(place, extra="")
    FileJob(place.conf)
    before = stored(place, "MINUTES")
    execute(place, 'alter table "TradeAgg_SECONDS" drop column "AGG_MIN_quantity"')
    execute(place, 'alter table "TradeAgg_SECONDS" add column "AGG_MIN_quantity" text')
    place = changed(place, extra=", min(quantity) as least")
    with pytest.raises(StoreError, match=r"(?i)'AGG_MIN_quantity' of table 'TradeAgg_SECONDS' is text, not"):
        FileJob(place.conf)
    assert stored(place, "MINUTES") == before


@ON_POSTGRES
def test_the_command_line_says_beside_an_answer_which_column_was_added_later(place: Place, rollup: Cli) -> None:
    place, _ = begun(place)
    place = changed(place, extra=", min(quantity) as least")
    job = FileJob(place.conf)
    since = readable(job.book.page().valid["AGG_MIN_quantity"])
    within = "within '2018-01-** **:**:**' per 'months'"
    output = rollup("query", place.conf.path, f"from TradeAgg {within} select symbol, least")[1]
    assert f"rollup: least was added later: buckets that start before {since}" in output
    assert "added later" not in rollup("query", place.conf.path, f"from TradeAgg {within} select symbol, total")[1]


@EVERY_STORE
@pytest.mark.few(1)
def test_the_first_value_that_is_ordered_by_time_is_not_beaten_by_rows_from_before(
    place: Place, new_store: NewStore, rollup: Cli
) -> None:
    place, events = begun(place)
    app = (place.root / "app.siddhi").read_text()
    bare = Place(place.root / "bare", place.annotations, store=new_store())
    bare.root.mkdir()
    bare.write()
    (bare.root / "app.siddhi").write_text(app.replace(", price as lastPrice", ""))
    bare.add(*events[:500])
    FileJob(bare.conf).run()
    (bare.root / "app.siddhi").write_text(app)
    for each in (place, bare):
        each.add(*events[500:])
        FileJob(each.conf).run()
    text = "from TradeAgg within '2018-01-** **:**:**' per 'months' select symbol, lastPrice order by symbol"
    # The newest trades came after the change, so both know the last price, and only the bare one lacks older ones.
    wanted, found = (rollup("query", each.conf.path, text, "--format", "json")[1] for each in (place, bare))
    prices = [line for line in found.splitlines() if line.startswith("{")]
    assert prices == wanted.splitlines() and "null" not in found


NAMED = (
    "define stream S (a int, b int, ts long); define aggregation A from S[a*b > 5] select {} aggregate by ts every sec;"
)


def earlier(items: str, *shared: str) -> dict[str, Any]:
    """A declaration as it was written before it had a form: expressions in the words of an older program."""
    new = declaration(compile_app(NAMED.format(items)).aggregations["A"])
    values = {name: [kind, f"TRY({words})"] for name, (kind, words) in new["values"].items()}
    values |= {name: ["int64", "TRY(…)"] for name in shared}
    return {name: value for name, value in new.items() if name != "form"} | {
        "filter": "TRY(a * b) > 5",
        "values": values,
    }


def test_a_declaration_of_an_earlier_form_is_the_same_when_its_columns_are() -> None:
    new = declaration(compile_app(NAMED.format("sum(a*b) as x")).aggregations["A"])
    assert not compare(earlier("sum(a*b) as x"), new)
    assert compare(earlier("sum(a*b) as x"), new | {"filter": None}).meaning


def test_columns_that_expressions_once_shared_are_refused_with_what_to_do() -> None:
    new = declaration(compile_app(NAMED.format("avg(a*b) as x, stdDev(a/b) as y")).aggregations["A"])
    old = earlier("count() as n", "AGG_SUM_a_b", "AGG_COUNT_a_b", "AGG_COUNT_a_b_")
    assert "were shared by expressions that now have columns of their own" in compare(old, new).refused[0]


def test_another_order_of_the_select_list_is_no_change() -> None:
    one, other = (
        declaration(compile_app(NAMED.format(items)).aggregations["A"])
        for items in ("sum(a+b) as x, sum(a-b) as y", "sum(a-b) as y, sum(a+b) as x")
    )
    assert not compare(one, other)


@EVERY_STORE
@pytest.mark.few(1)
def test_until_a_change_is_accepted_every_command_reads_the_tables_as_they_are(place: Place, rollup: Cli) -> None:
    place, _ = begun(place)
    question = "from TradeAgg within '2018-**-** **:**:**' per '{per}' select AGG_TIMESTAMP, symbol, total"

    def asked(per: str, more: str = "") -> list[dict[str, object]]:
        code, said = rollup("query", place.conf.path, question.format(per=per) + more, "--format", "json")
        assert code == 0, said
        return sorted(map(json.loads, said.splitlines()), key=lambda row: (row["AGG_TIMESTAMP"], row["symbol"]))

    before = {per: asked(per) for per in ("seconds", "days")}
    place = changed(place, extra=", min(quantity) as least")
    code, said = rollup("change", place.conf.path)
    assert code == 0 and "added: AGG_MIN_quantity" in said
    assert f"not done yet: `rollup change {place.conf.path} --accept` does it" in said
    for per, answer in before.items():
        assert asked(per) == answer
        assert {row["least"] for row in asked(per, ", least")} == {None}
        sql = f"select sum(total) as s, count(least) as n from TradeAgg within '2018-**-** **:**:**' per '{per}'"
        code, said = rollup("query", place.conf.path, sql, "--format", "json")
        assert code == 0 and json.loads(said)["n"] == 0
    assert rollup("verify", place.conf.path)[0] == 0
    assert rollup("status", place.conf.path)[0] == 0
    code, said = rollup("recover", place.conf.path)
    assert code == 0 or "--accept" in said, "a database is looked at as a job does"
    whole = ("--from", "2018-01-01", "--to", "2018-02-01")
    assert rollup("replay", place.conf.path, *whole, "--dry-run")[0] == 0
    for command in (("replay", *whole), ("maintain",)):
        code, said = rollup(command[0], place.conf.path, *command[1:])
        assert code == 2 and "AGG_MIN_quantity" in said and "--accept" in said
    assert stored(place, "SECONDS") and "AGG_MIN_quantity" not in stored(place, "SECONDS")[0], "nothing was changed"
    assert rollup("change", place.conf.path, "--accept")[0] == 0
    assert rollup("change", place.conf.path)[1] == "TradeAgg: nothing has changed\n"
    assert rollup("replay", place.conf.path, *whole)[0] == 0
    assert None not in {row["least"] for row in asked("days", ", least")}


@EVERY_STORE
def test_tables_whose_rows_mean_something_else_are_not_read_as_if_they_did(place: Place, rollup: Cli) -> None:
    place, _ = begun(place)
    app = (place.root / "app.siddhi").read_text()
    question = "from TradeAgg within '2018-**-** **:**:**' per 'days' select AGG_TIMESTAMP, total"
    (place.root / "app.siddhi").write_text(
        app.replace("select symbol,", "select symbol, quantity,").replace(
            "group by symbol", "group by symbol, quantity"
        )
    )
    for command in (("query", question), ("verify",)):
        code, said = rollup(command[0], place.conf.path, *command[1:])
        assert code == 2 and "quantity" in said and "rollup change" in said, said


def test_a_python_process_that_lives_long_sees_a_changed_app_and_a_changed_configuration(place: Place) -> None:
    import rollup as library

    place, _ = begun(place)
    path = place.conf.path
    question = "from TradeAgg within '2018-**-** **:**:**' per 'days' select symbol, {column}"
    first = library.open(path)
    assert library.open(path) is first, "an unchanged one is kept"
    assert library.query(path, question.format(column="total")).num_rows
    changed(place, extra=", min(quantity) as least")
    assert library.query(path, question.format(column="least"))["least"].null_count
    path.write_text(path.read_text().replace('app = "app.siddhi"', 'app = "other.siddhi"'))
    (place.root / "other.siddhi").write_text(APP.format(annotations="", extra=", max(quantity) as utmost"))
    assert library.query(path, question.format(column="utmost")).schema.names == ["symbol", "utmost"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("", "@zone('Europe/Berlin') ", "whose zone cuts the buckets (each row's own → Europe/Berlin)"),
        ("@zone('Europe/Berlin') ", "", "whose zone cuts the buckets (Europe/Berlin → each row's own)"),
        ("", "@zone('Z') ", "whose zone cuts the buckets (each row's own → +00:00)"),
        ("@zone('Z') ", "@zone('+01:00') ", "whose zone cuts the buckets (+00:00 → +01:00)"),
        ("@zone('Z') ", "@zone('+0000') ", None),
    ],
)
def test_another_zone_of_buckets_is_refused(before: str, after: str, said: str | None) -> None:
    app = (
        "define stream S (v int, t string); {}define aggregation A from S select sum(v) as s aggregate by t every day;"
    )
    old, new = (declaration(compile_app(app.format(zone)).aggregations["A"]) for zone in (before, after))
    refused = compare(old, new).refused
    assert any(said in line for line in refused) if said else not refused


def test_tables_of_texts_that_were_written_before_a_declared_zone_cut_them_are_refused_under_one() -> None:
    app = "define stream S (v int, t string); define aggregation A from S select sum(v) as s aggregate by t every day;"
    undeclared, declared = (declaration(compile_app(app, zone).aggregations["A"]) for zone in (None, "Europe/Berlin"))
    old = {name: value for name, value in declared.items() if name != "cut"}
    assert "each row's own → Europe/Berlin" in compare(old, declared).refused[0]
    assert not compare({**{name: v for name, v in undeclared.items() if name != "cut"}}, undeclared)


def test_new_keys_and_durations_beside_the_old_are_filled_by_replays_and_verified_as_they_are(
    tmp_path: Path, rollup: Cli
) -> None:
    stream = "define stream S (k string, m string, v long, ts long);\n"
    old = "define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... hour;\n"
    new = "define aggregation B from S select k, m, sum(v) as s group by k, m aggregate by ts every sec ... year;\n"
    january = 1_704_067_200_000
    rows = [{"k": "ab"[n % 2], "m": "xyz"[n % 3], "v": n, "ts": january + n * 7 * 3_600_000} for n in range(230)]

    def write(name: str, some: list[dict[str, Any]]) -> None:
        (tmp_path / "in" / name).write_text("".join(json.dumps(row) + "\n" for row in some))

    def right(rows: list[dict[str, Any]], width: int) -> list[tuple[Any, ...]]:
        sums = Counter[tuple[str, str, int]]()
        for row in rows:
            sums[row["k"], row["m"], row["ts"] // width] += row["v"]
        return sorted(((k, m, total) for (k, m, _), total in sums.items()), key=repr)

    (tmp_path / "in").mkdir()
    write("0.json", rows[:200])
    job = Job(tmp_path, {"kind": "json", "path": "in"}, app=stream + old, streams=("S",))
    job.run(ModelSpark())  # type: ignore[arg-type]
    (tmp_path / "app.siddhi").write_text(stream + old + new)
    job.run(ModelSpark())  # type: ignore[arg-type]
    for start, end in (("2024-01-01", "2024-02-01"), ("2024-02-01", "2024-03-01")):
        assert rollup("replay", job.path, "--aggregation", "B", "--from", start, "--to", end)[0] == 0
    assert answers(job.conf, "k, m, s", "days", "B") == right(rows[:200], 86_400_000)
    assert rollup("verify", job.path, "--raw")[0] == 0
    program = job.conf.program()
    sizes = open_store(job.conf, program.aggregations["B"], ColumnEngine(threads=1)).snapshot().sizes()
    assert all(sizes[level].rows for level in program.aggregations["B"].levels if level < Duration.YEARS)
    write("1.json", rows[200:])
    job.run(ModelSpark())  # type: ignore[arg-type]
    assert answers(job.conf, "k, m, s", "days", "B") == right(rows, 86_400_000)
    assert rollup("verify", job.path, "--raw")[0] == 0
