"""The console's pages and data, asked without a browser; expected numbers are added up from the events."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from rollup.conf import load
from rollup.console.explorer import View
from rollup.console.guard import Guard
from rollup.core.errors import ConfigError
from rollup.stores.dead_letters import DEAD, DeadLetters
from tests.console.served import MARKUP, client, stored
from tests.gateway.trades import APP, KEEPING, at, events

DAY = 86_400_000
PAGES = ("/", "/explore/TradeAgg", "/a/TradeAgg", "/s", "/ask", "/dead")


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with client(stored(tmp_path_factory.mktemp("console"))) as made:
        yield made


def daily(column: int = 1, symbol: str | None = None) -> dict[int, float]:
    found = defaultdict[int, float](float)
    for event in events("2018-01"):
        if symbol in (None, event[0]):
            found[event[3] // DAY * DAY] += event[column]
    return dict(found)


def lines(found: Any) -> dict[str, dict[int, float]]:
    return {line["name"]: {when: value for when, value in zip(found["at"], line["values"], strict=True) if value is not None}
            for line in found["lines"]}  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_every_page_stands_without_a_script(console: TestClient, path: str) -> None:
    page = console.get(path)
    assert page.status_code == 200
    assert "TradeAgg" in page.text or path in ("/s", "/dead")
    assert "script-src" not in page.headers["content-security-policy"], "scripts are those of default-src: our own"


def test_a_line_is_what_the_events_add_up_to(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days").json()
    assert lines(found) == {"total": daily()}
    assert found["level"] == "days"


def test_a_split_has_a_line_a_key_and_the_rest_as_others(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days&split=symbol&top=1").json()
    assert lines(found) == {"B": daily(symbol="B"), "others": daily(symbol="A")}, "B's prices are the higher ones"
    chosen = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days&is.symbol=A").json()
    assert lines(chosen) == {"total": daily(symbol="A")}


def test_a_key_that_is_shown_under_another_name_is_one(tmp_path: Path) -> None:
    with client(stored(tmp_path, APP.replace("select symbol,", "select symbol as share,"))) as console:
        asked = "/api/series/TradeAgg?measure=total&range=2018-01&per=days"
        assert lines(console.get(f"{asked}&split=share&is.share=A").json()) == {"A": daily(symbol="A")}


def test_decimals_are_lines_and_decimals_and_times_are_keys(tmp_path: Path) -> None:
    app = "define stream Trades (price decimal(10, 2), day date, seen timestamp, ts long); define aggregation A from Trades select price, day, seen, sum(price) as total group by price, day, seen aggregate by ts every day ... year;"
    noon = at("2018-01-05T12:00:00")
    rows = [("1.50", "2018-01-05", "2018-01-05T12:00:00Z", noon), ("2.25", "2018-01-06", "2018-01-05T13:00:00Z", noon)]
    with client(stored(tmp_path, app, rows)) as console:
        asked = "/api/series/A?measure=total&range=2018-01&per=days"
        assert lines(console.get(asked).json()) == {"total": {noon // DAY * DAY: 3.75}}
        for key, first in (("price", "1.50"), ("day", "2018-01-05"), ("seen", "2018-01-05 12:00:00+00:00")):
            split = lines(console.get(f"{asked}&split={key}&top=2").json())
            assert sorted(value for line in split.values() for value in line.values()) == [1.5, 2.25], key
            chosen = console.get(
                asked, params={f"is.{key}": first, "measure": "total", "range": "2018-01", "per": "days"}
            )
            assert lines(chosen.json()) == {"total": {noon // DAY * DAY: 1.5}}
        assert console.get("/explore/A?measure=total&range=2018-01").status_code == 200


def test_a_comparison_lies_on_the_same_days(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=total&from=2018-01-08&to=2018-01-15&per=days&before=week").json()
    days = daily()
    week = range(at("2018-01-08"), at("2018-01-15"), DAY)
    assert lines(found) == {"total": {d: days[d] for d in week}, "a week before": {d: days[d - 7 * DAY] for d in week}}


def test_days_of_another_zone_come_from_hours(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days&zone=Asia/Tokyo").json()
    shifted = defaultdict[int, float](float)
    for _, price, _, when in events("2018-01"):
        shifted[(when + 9 * 3_600_000) // DAY * DAY - 9 * 3_600_000] += price
    assert lines(found) == {"total": dict(shifted)}
    assert "is not told" in found["said"][0]


@pytest.mark.parametrize(
    ("range_", "level"),
    [("2018", "days"), ("2018-01-05", "minutes"), ("2018-01-05 09:00", "seconds"), ("2018-01", "hours")],
)
def test_the_level_is_the_finest_that_fits_the_width(console: TestClient, range_: str, level: str) -> None:
    assert console.get(f"/api/series/TradeAgg?measure=total&range={range_}&width=800").json()["level"] == level


def test_without_a_range_all_is_shown(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=trades&per=months").json()
    assert lines(found) == {"trades": {at("2018-01-01"): float(len(events("2018-01")))}}
    assert (found["from"], found["to"]) == (at("2018-01-01T09:00"), at("2018-01-28T15:00:01"))


def test_open_buckets_are_told_from_closed_ones(console: TestClient) -> None:
    found = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days").json()
    assert at("2018-01-20") < found["openFrom"] <= at("2018-01-28"), "events of the newest day may still come"


def test_a_range_with_nothing_says_where_something_is(console: TestClient) -> None:
    said = console.get("/api/series/TradeAgg?measure=total&range=2020-01").json()["said"]
    assert said == ["there is nothing in this range; TradeAgg goes from 2018-01-01 09:00 to 2018-01-28 15:00"]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ("measure=nosuch", "measure is 'nosuch' (one of total"), ("split=price", "split is 'price'"), ("per=weeks", "per is"),
        ("top=0", "top is '0'"), ("top=999", "top is '999'"), ("width=x", "width is 'x'"), ("zone=Mars/Phobos", "unknown zone"),
        ("range=soon", "is no time pattern"), ("from=2018-01-02&to=2018-01-01", "ends before it begins"),
        ("from=x&to=2018-01-01", "is not a timestamp"), ("before=never", "before is 'never'"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_an_address_is_named(console: TestClient, asked: str, says: str) -> None:
    found = console.get(f"/api/series/TradeAgg?{asked}")
    assert found.status_code == 400
    assert says in f"{found.json()['error']} ({found.json()['hint']}"
    page = console.get(f"/explore/TradeAgg?{asked}")
    assert page.status_code == 400
    assert "Not possible" in page.text


def test_exports_hold_the_table(console: TestClient) -> None:
    asked = "/export/TradeAgg?measure=total&range=2018-01&per=days&split=symbol"
    rows = list(csv.reader(io.StringIO(console.get(f"{asked}&format=csv").text)))
    assert rows[0] == ["time", "B", "A"]
    assert rows[1] == ["2018-01-01T00:00:00+00:00", "6.0", "3.0"]
    table = pq.read_table(io.BytesIO(console.get(f"{asked}&format=parquet").content))
    assert table.column("A").to_pylist() == list(daily(symbol="A").values())
    assert console.get(f"{asked}&format=exe").status_code == 400


def test_questions_of_both_languages_are_answered(console: TestClient) -> None:
    for text in (
        "from TradeAgg within '2018-01' per 'months' select sum(trades) as n",
        "select sum(trades)::bigint as n from TradeAgg within '2018-01' per 'months'",
    ):
        found = console.get("/api/query", params={"q": text}).json()
        assert found["rows"] == [{"n": len(events("2018-01"))}]
        assert f">{len(events('2018-01'))}<" in console.get("/ask", params={"q": text}).text


def test_times_of_an_answer_are_those_of_the_configurations_zone_on_the_page_and_in_files(tmp_path: Path) -> None:
    stored(tmp_path)
    path = tmp_path / "rollup.toml"
    path.write_text('zone = "Asia/Kolkata"\n' + path.read_text())
    day = "from TradeAgg within '2018-01-02 09:**:**' per 'hours' in zone 'UTC' select AGG_TIME, AGG_TIMESTAMP, trades limit 1"
    with client(load(path)) as made:
        assert made.get("/ask", params={"q": day}).text.count("2018-01-02 14:30:00") == 2
        assert "times in Asia/Kolkata" in made.get("/ask", params={"q": day}).text
        header, row = csv.reader(io.StringIO(made.get("/answer", params={"q": day}).text))
        assert header == ["AGG_TIME", "AGG_TIMESTAMP", "trades"]
        assert row[:2] == ["2018-01-02T14:30:00+05:30"] * 2
        assert made.get("/answer", params={"q": day, "format": "exe"}).status_code == 400
        assert made.get("/api/query", params={"q": day}).json()["rows"][0]["AGG_TIMESTAMP"] == at("2018-01-02T09:00:00")


def test_questions_of_the_configuration_are_links(tmp_path: Path) -> None:
    stored(tmp_path)
    path = tmp_path / "rollup.toml"
    asked = "from TradeAgg within '2018-01' per 'months' select sum(trades) as n"
    path.write_text(path.read_text() + f'[questions]\n"<b>a month</b> & more" = "{asked}"\n')
    with client(load(path)) as made:
        page = made.get("/ask").text
        assert f'<a href="/ask?q={quote(asked, "")}">&lt;b&gt;a month&lt;/b&gt; &amp; more</a>' in page
    path.write_text(path.read_text() + "b = 5\n")
    with pytest.raises(ConfigError, match="questions"):
        load(path)


def test_tables_of_the_configuration_are_named_and_join(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    (tmp_path / "shops.csv").write_text("symbol,town\nA,Rome\n")
    conf.path.write_text(
        conf.path.read_text() + '[tables.shops]\npath = "shops.csv"\n[tables.gone]\npath = "none.csv"\n'
    )
    with client(load(conf.path)) as console:
        page = console.get(
            "/ask", params={"q": "select town from shops join TradeAgg within '2018' per 'years' using (symbol)"}
        )
        assert "Rome" in page.text
        known = console.get("/api/aggregations").text + page.text
        assert "shops" in known and "town" in known


def test_a_refused_question_points_at_its_place(console: TestClient) -> None:
    page = console.get("/ask", params={"q": "from TradeAgg within '2018-01'\nper 'days' select nosuch"})
    assert page.status_code == 400
    assert f"per &#39;days&#39; select nosuch\n{' ' * 18}^" in page.text


@pytest.mark.parametrize("file", ["/etc/hostname", "rollup.toml", "../secret"])
def test_a_question_reads_no_file_of_the_machine(console: TestClient, tmp_path: Path, file: str) -> None:
    found = console.get("/api/query", params={"q": f"select * from read_text('{file}')"})
    assert found.status_code == 400
    assert "disabled" in found.json()["error"]


def test_names_and_values_are_texts_in_every_page(tmp_path: Path) -> None:
    rows = [(MARKUP, 1.0, 1, at("2018-01-01T00:00:00")), ("O'Hare", 2.0, 1, at("2018-01-01T00:00:01"))]
    conf = stored(tmp_path, APP, rows)
    letters = {"stream": "Trades", "reason": MARKUP, "position": MARKUP, "raw": MARKUP}
    DeadLetters(conf.tables).append(DEAD.empty_table().from_pylist([letters], schema=DEAD), "q", 0)
    with client(conf) as console:
        for path in (
            *PAGES,
            f"/ask?q={quote(MARKUP[:200])}",
            f"/explore/TradeAgg?measure={quote(MARKUP[:200])}",
            f"/{quote(MARKUP[:60])}",
        ):
            assert "<img src=x" not in console.get(path).text, path
        found = console.get("/api/series/TradeAgg?measure=total&range=2018-01&per=days&is.symbol=O'Hare").json()
        assert lines(found) == {"total": {at("2018-01-01"): 2.0}}
        refused = console.get("/api/series/TradeAgg?measure=total&range=2018-01&split=symbol")
        assert refused.status_code == 400
        assert "both kinds of quotes" in refused.json()["error"]


def test_a_formula_in_a_key_is_none_in_an_export(tmp_path: Path) -> None:
    conf = stored(tmp_path, APP, [("=cmd()", 1.0, 1, at("2018-01-01T00:00:00"))])
    with client(conf) as console:
        text = console.get("/export/TradeAgg?measure=total&range=2018-01&per=days&split=symbol").text
    assert text.splitlines()[0] == "time,'=cmd()"


def test_statements_show_what_they_keep(tmp_path: Path) -> None:
    with client(stored(tmp_path, KEEPING)) as console:
        page = console.get("/s").text
        assert "create window Last#unique(symbol)" in page
        assert "The first rows of Last" in page


def test_damage_is_an_alert_and_no_end(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    for file in (conf.tables / "_rollup" / "TradeAgg").rglob("*"):
        if file.is_file():
            file.write_bytes(b"damaged")
    with client(conf) as console:
        page = console.get("/")
    assert page.status_code == 200
    assert 'class="alert"' in page.text


def test_another_sites_page_may_not_ask(console: TestClient) -> None:
    cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert console.get("/api/query?q=select+1", headers=cross).status_code == 403
    assert console.get("/", headers={"host": "evil.example"}).status_code == 400, "a name that leads here"
    assert console.get("/", headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2f..%2fconf.py", "/explore/..%2f..%2fetc"]
)
def test_no_path_leads_out(console: TestClient, path: str) -> None:
    assert console.get(path).status_code in (400, 404)


def test_nothing_is_changed_by_any_page(console: TestClient) -> None:
    for path in (*PAGES, "/api/query", "/api/series/TradeAgg"):
        for method in ("POST", "PUT", "DELETE"):
            assert console.request(method, path).status_code == 405, path


def test_beyond_this_machine_only_who_logs_in_sees_anything(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nobody may log in.*\[serve.users\]"):
        Guard("0.0.0.0", {}, encrypted=False)
    with client(stored(tmp_path), "192.0.2.7", {"ann": "right"}) as console:
        for path in (*PAGES, "/export/TradeAgg", "/nosuch"):
            found = console.get(path)
            assert found.status_code in (303, 404) and "TradeAgg" not in found.text, path
        assert console.get("/api/status").status_code == 401
        for user, password in (("ann", "wrong"), ("eve", ""), ("ann", "")):
            assert console.post("/login", data={"user": user, "password": password}).status_code == 401
        assert console.get("/").status_code == 303
        came = console.post("/login?to=/s", data={"user": "ann", "password": "right"})
        assert (came.status_code, came.headers["location"]) == (303, "/s")
        cookie = came.headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie
        assert console.get("/").status_code == 200
        for elsewhere in ("//evil.example", "/\\evil.example", "https://evil.example"):
            found = console.post("/login", params={"to": elsewhere}, data={"user": "ann", "password": "right"})
            assert found.headers["location"] == "/"


def test_who_may_read_a_part_sees_no_word_of_the_rest(tmp_path: Path) -> None:
    other = "define aggregation HiddenAgg from Trades select sum(price) as s aggregate by ts every sec ... year;"
    conf = stored(tmp_path, APP + other, events("2018-01", symbols="AZ"))
    conf.path.write_text(
        conf.path.read_text().replace('"secret" }', '"secret", reads = ["TradeAgg"], where = "symbol = \'A\'" }')
        + '[questions]\n"Hidden" = "from HiddenAgg within today per \'days\'"\n'
    )
    with client(load(conf.path), "192.0.2.7", {"ann": "right"}) as console:
        console.post("/login", data={"user": "ann", "password": "right"})
        assert console.get("/").headers["location"] == "/explore"
        assert console.get("/explore").headers["location"] == "/explore/TradeAgg"
        for path in (*PAGES, "/explore/HiddenAgg", "/export/HiddenAgg", "/nosuch", "/api/aggregations", "/api/status"):
            found = console.get(path)
            assert ("Hidden" in found.text) == (path.endswith("HiddenAgg")), path  # which the address says itself
        rows = {"from TradeAgg within '2018' per 'years' select symbol, trades": [{"symbol": "A", "trades": 84}],
                "select symbol, trades::int as n from TradeAgg within '2018' per 'years'": [{"symbol": "A", "n": 84}],
                "EXPLAIN from TradeAgg within '2018-01' per 'days'": 30}  # fmt: skip
        # 27 days of one symbol are closed; of the last day rows of the day, the hour and the second are open.
        for text, wanted in rows.items():
            answer = console.get("/api/query", params={"q": text}).json()["rows"]
            assert (sum(row["rows"] for row in answer) if isinstance(wanted, int) else answer) == wanted
        for text in (
            "from HiddenAgg within '2018' per 'years'",
            "select * from HiddenAgg within '2018' per 'years'",
            f"select * from read_parquet('{conf.tables}/TradeAgg_DAYS/*.parquet')",
            f"select * from '{conf.tables}/HiddenAgg_DAYS/*.parquet'",
            f"select * from read_text('{conf.path}')",
            "select * from DEAD_LETTERS",
        ):
            found = console.get("/api/query", params={"q": text})
            assert found.status_code == 400, text
            assert "rows" not in found.json()


def test_a_view_and_its_link_are_one(console: TestClient, tmp_path: Path) -> None:
    import rollup

    asker = rollup.open(stored(tmp_path).path)
    given = {
        "measure": "high",
        "split": "symbol",
        "top": "3",
        "range": "2018-01",
        "zone": "Asia/Tokyo",
        "is.symbol": "A&b=c",
    }
    view = View.of(asker, "TradeAgg", given)
    from urllib.parse import parse_qsl

    assert View.of(asker, "TradeAgg", dict(parse_qsl(view.link()))) == view
