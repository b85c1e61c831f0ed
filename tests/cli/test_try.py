"""`rollup try`: a file of statements and events on standard input, in three languages, as a person at a terminal does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rollup.cli.languages.trials import CruncherTrial
from rollup.cli.main import cli
from rollup.core.errors import RollupError

EPL = "create schema Trade(symbol string, price double);\n@name('mean') select symbol, avg(price) as m from Trade#length(2);"
SIDDHI = "define stream Trade (symbol string, price double);\nfrom Trade#window.length(2) select symbol, avg(price) as m insert into Mean;"
CRUNCHER = (
    "create stream Trade (symbol str, price double, at ts) time at;\n"
    "create query mean as select symbol, m from Trade (partition by symbol store last 2 with avg(price) as m) as t\n"
    "where t.$row_status is new;"
)
TRADES = [
    {"stream": "Trade", "symbol": "A", "price": 10.0, "at": 5},
    {"stream": "Trade", "symbol": "A", "price": 20.0, "at": 7},
    {"stream": "Trade", "symbol": "A", "price": 30.0, "at": 9},
]


def tried(tmp_path: Path, name: str, text: str, lines: list[object], *options: str) -> tuple[list[object], str, int]:
    """The lines that are printed, what stands on the error stream, the exit code."""
    file = tmp_path / name
    file.write_text(text)
    events = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    ran = CliRunner().invoke(cli, ["try", str(file), *options], input=events)
    if isinstance(ran.exception, RollupError):
        raise ran.exception
    return [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr, ran.exit_code


@pytest.mark.parametrize(
    ("name", "text", "statement"),
    [("a.epl", EPL, "mean"), ("a.siddhi", SIDDHI, "Mean"), ("a.cruncher", CRUNCHER, "mean")],
)
def test_the_extension_says_the_language_and_all_say_the_same(
    tmp_path: Path, name: str, text: str, statement: str
) -> None:
    printed, said, code = tried(tmp_path, name, text, list(TRADES))
    assert printed == [
        {"statement": statement, "at": 5, "insert": [{"symbol": "A", "m": 10.0}]},
        {"statement": statement, "at": 7, "insert": [{"symbol": "A", "m": 15.0}]},
        {"statement": statement, "at": 9, "insert": [{"symbol": "A", "m": 25.0}]},
    ]
    assert (said, code) == ("", 0)


@pytest.mark.parametrize(("name", "text"), [("a.epl", EPL), ("a.siddhi", SIDDHI), ("a.cruncher", CRUNCHER)])
def test_plain_records_are_events_of_the_stream_at_the_time_that_options_name(
    tmp_path: Path, name: str, text: str
) -> None:
    text = text.replace("price double", "price double, ts long")
    plain = [{"symbol": "A", "price": 10.0 * number, "ts": ts} for number, ts in ((1, 5), (2, 9), (3, 7), (4, 11))]
    wrong = [{"symbol": "A", "price": 1.0, "ts": "noon"}, {"symbol": "A", "price": 1.0}]
    options = ("--stream", "Trade", "--time", "ts")
    printed, said, code = tried(tmp_path, name, text, [*plain, *wrong], *options)
    seen = [(line["at"], row["m"]) for line in printed if isinstance(line, dict) for row in line["insert"]]
    assert seen == [(5, 10.0), (9, 15.0), (9, 25.0), (11, 35.0)]
    assert said.splitlines() == [
        "rollup try: line 5: `ts` is 'noon': the time is no timestamp",
        "rollup try: line 6: `ts` is None: the time is null",
        "rollup try: events whose time the clock had passed: 1 (they count at the clock)",
    ]
    assert code == 1


def test_lang_stands_above_the_extension(tmp_path: Path) -> None:
    printed, _, _ = tried(tmp_path, "app.txt", SIDDHI, list(TRADES), "--lang", "siddhi", "--only", "Mean")
    assert len(printed) == 3


def test_a_file_of_no_language_is_refused_with_the_extensions(tmp_path: Path) -> None:
    with pytest.raises(RollupError, match=r"app\.txt: the extension names no language.*\.cruncher"):
        tried(tmp_path, "app.txt", EPL, [])
    with pytest.raises(RollupError, match="'cobol' is no language"):
        tried(tmp_path, "a.epl", EPL, [], "--lang", "cobol")


@pytest.mark.parametrize(
    ("name", "text", "line", "word"),
    [
        ("a.epl", EPL.replace("avg(price)", "avg(prize)"), 2, None),
        ("a.siddhi", SIDDHI.replace("avg(price)", "avg(prize)"), 2, "prize"),
        ("a.cruncher", CRUNCHER.replace("avg(price)", "avg(prize)"), 2, "avg(prize)"),
        ("a.cruncher", CRUNCHER.replace("symbol str", "symbol text"), 1, "create"),
        ("a.cruncher", CRUNCHER.replace("as select", "every select"), 2, "every"),
    ],
)
def test_a_statement_that_cannot_be_is_refused_with_its_place(
    tmp_path: Path, name: str, text: str, line: int, word: str | None
) -> None:
    with pytest.raises(RollupError) as refusal:
        tried(tmp_path, name, text, [])
    assert refusal.value.line == line
    assert word is None or refusal.value.column == text.splitlines()[line - 1].index(word) + 1


@pytest.mark.parametrize(("name", "text"), [("a.epl", EPL), ("a.siddhi", SIDDHI), ("a.cruncher", CRUNCHER)])
def test_an_event_that_does_not_fit_is_refused_alone_with_its_line(tmp_path: Path, name: str, text: str) -> None:
    wrong = [
        {"stream": "Trade", "symbol": "A", "price": "much", "at": 6},
        {"stream": "Trade", "symbol": "A", "price": True},
        {"stream": "Trades", "symbol": "A"},
        {"at": 1},
        {"at": "noon"},
        "[1]",
        "{",
    ]
    printed, said, code = tried(tmp_path, name, text, [TRADES[0], *wrong, TRADES[1]])
    assert len(printed) == 2
    assert [line.split(":")[1] for line in said.splitlines()] == [f" line {number}" for number in range(2, 9)]
    assert code == 1


def test_a_question_is_answered_and_the_clock_lets_rows_go(tmp_path: Path) -> None:
    epl = "create schema S(v int); create window W#time(1 sec) as S; insert into W select * from S;"
    ask = {"query": "select count(*) as n from W"}
    printed, _, _ = tried(
        tmp_path, "a.epl", epl, [{"stream": "S", "v": 1, "at": 0}, ask, {"at": 1000}, ask], "--only", "-"
    )
    assert printed == [{"answer": {"n": 1}}, {"answer": {"n": 0}}]
    siddhi = "define stream S (v int); define table T (v int); from S select v insert into T;"
    asked: list[object] = [{"stream": "S", "v": 1}, {"query": "from T select v;"}]
    assert tried(tmp_path, "a.siddhi", siddhi, asked)[0] == [{"answer": {"v": 1}}]


def test_a_script_has_tables_weights_and_schedules(tmp_path: Path) -> None:
    text = (
        "create stream S (id long, k str, at ts) time at; -- a comment; with a semicolon\n"
        "create table good (k varchar); insert into good values ('a;b');\n"
        "create query two weights S 0.5 as select id from S (partition store last 4 where k in (select k from good)) as w\n"
        "where w.$row_status is new;\n"
        "create query ticked fixed 2 seconds as select count(*) as n from S (partition store last 4) as w;"
    )
    lines: list[object] = [
        {"stream": "S", "id": 1, "k": "a;b", "at": 100},
        {"stream": "S", "id": 2, "k": "c", "at": 200},
        {"query": "insert into good values ('c')"},
        {"stream": "S", "id": 3, "k": "c", "at": 300},
        {"at": 2500},
    ]
    printed, said, code = tried(tmp_path, "a.cruncher", text, lines)
    assert printed == [
        {"statement": "two", "at": 300, "insert": [{"id": 1}, {"id": 3}]},
        {"statement": "ticked", "at": 2000, "insert": [{"n": 3}]},
    ]
    assert (said, code) == ("", 0)


def test_what_comes_and_what_leaves_at_one_instant_are_one_cycle(tmp_path: Path) -> None:
    text = """create stream s (id long, at ts) time at;
    create query q as select x.id as gone, y.id as came from s (partition store last 1 seconds) as x, self#x as y
    where x.$row_status is dead and y.$row_status is new;"""
    lines = [{"stream": "s", "id": 1, "at": 0}, {"stream": "s", "id": 2, "at": 1000}, {"at": 2500}]
    printed, _, code = tried(tmp_path, "a.cruncher", text, lines)
    assert [(each["at"], each["insert"]) for each in printed] == [(1000, [{"gone": 1, "came": 2}])]
    assert code == 0


def test_a_cruncher_takes_what_is_there_together_and_answers_as_one_by_one(tmp_path: Path) -> None:
    text = """create stream s (id long, at ts, k str) time at;
    create query q as select k, n from s (partition by k store last 90 milliseconds with count(id) as n) as x
    where x.$row_status is new;"""
    trials = [CruncherTrial(text, "q", 0) for _ in range(2)]
    heard: list[list[object]] = [[], []]
    for number in range(600):
        for which, trial in enumerate(trials):
            trial.advance(number * 7 // 2)
            trial.send("s", {"id": number, "k": "abc"[number % 3]})
            if which:
                trial.pause()
            heard[which] += trial.heard()
    for which, trial in enumerate(trials):
        trial.finish()
        heard[which] += trial.heard()
    assert heard[0] == heard[1] and len(heard[0]) > 600


APP = """@time('ts') define stream Trade (symbol string, price double, ts long);
define aggregation Agg from Trade select symbol, sum(price) as total group by symbol aggregate by ts every sec, min;
@lang('sql', into='Beside') {
  SELECT STREAM t.symbol, t.price, s.total FROM Trade AS t
  JOIN Agg_SECONDS FOR SYSTEM_TIME AS OF t.rowtime AS s ON t.symbol = s.symbol
}
"""


def test_an_app_with_an_aggregation_and_other_languages_runs_whole(tmp_path: Path) -> None:
    lines = [{"stream": "Trade", "symbol": "A", "price": price, "ts": ts} for price, ts in ((1, 1000), (2, 2000))]
    asked = {"query": "from Agg within '1970-01-01 00:00:**' per 'seconds' select total order by AGG_TIMESTAMP"}
    printed, said, code = tried(tmp_path, "a.siddhi", APP, [*lines, {**lines[0], "price": "x"}, asked])
    assert printed == [
        {"statement": "Beside", "at": 2000, "insert": [{"symbol": "A", "price": 2.0, "total": 1.0}]},
        {"answer": {"total": 1.0}},
        {"answer": {"total": 2.0}},
    ]
    assert "line 3: Trade: price is not a double" in said
    assert code == 1


def test_in_an_app_a_silence_is_told_by_the_clock_alone(tmp_path: Path) -> None:
    text = (
        "@time('ts') define stream S (k string, ts long);\n"
        "define aggregation A from S select count() as n aggregate by ts every sec, min;\n"
        "from every e=S -> not S[k == e.k] for 5 sec select e.k as k insert into Quiet;\n"
    )
    lines: list[object] = [{"stream": "S", "k": "a", "ts": 1000}, {"at": 4000}, {"at": 7000}, {"at": 9000}]
    printed, said, code = tried(tmp_path, "a.siddhi", text, lines)
    assert printed == [{"statement": "Quiet", "at": 7000, "insert": [{"k": "a"}]}]
    assert (said, code) == ("", 0)


def test_of_two_members_of_one_name_the_first_counts_as_in_a_job(tmp_path: Path) -> None:
    app = tmp_path / "app.siddhi"
    app.write_text("define stream S (k string, v int);\nfrom S select k, v insert into O;\n")
    lines = '{"stream": "S", "k": "b", "k": "c", "v": 1}\n{"stream": "S", "v": 1, "v": 2, "k": "d"}\n'
    from typer.testing import CliRunner

    from rollup.cli.main import cli

    out = CliRunner().invoke(cli, ["try", str(app)], input=lines).output
    assert '"k": "b", "v": 1' in out and '"k": "d", "v": 1' in out and '"c"' not in out


def test_a_decimal_has_all_digits_of_its_number(tmp_path: Path) -> None:
    app = (
        "define stream S (k string, price decimal(38, 18), d double, ts long); define aggregation A from S "
        "select k, max(price) as total, max(d) as d group by k aggregate by ts every day ... year;"
    )
    lines = [
        '{"stream": "S", "k": 12345678901234567.89, "price": 12345678901234567890.123456789012345678, "d": 0.30000000000000004, "ts": 0}',
        '{"stream": "S", "k": "b", "price": 0.1, "d": 1.50, "ts": 0}',
        "{\"query\": \"from A within '1970' per 'days' select k, total, d order by k\"}",
    ]
    printed, said, code = tried(tmp_path, "a.siddhi", app, list(lines))
    assert (said, code) == ("", 0)
    assert printed == [
        {
            "answer": {
                "k": "12345678901234568.0",
                "total": "12345678901234567890.123456789012345678",
                "d": 0.30000000000000004,
            }
        },
        {"answer": {"k": "b", "total": "0.100000000000000000", "d": 1.5}},
    ]
