"""A declaration that changes under tables that exist: added, dropped, renamed, refused, accepted. On real tables,
because the question is what happens to rows that are there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rollup.errors import FencedError, StoreError
from rollup.lifecycle.change import notes
from rollup.lifecycle.compare import readable
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

    from rollup.aggregation.retrieval import plan
    from rollup.lang.siddhi import parse_query

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
    from rollup.stores import delta
    from rollup.stores.delta_change import add_columns

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
