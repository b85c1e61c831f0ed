"""`lateness` of a source and `[late] policy`: what a configuration says in time is the app's own buffer to everything that compiles the app.

What a buffer does is tested where the annotation is. So this is about which aggregations get
one, how long it is, and that nothing else of the app changes.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from rollup.conf import Conf, load
from rollup.core.errors import ConfigError
from rollup.hosts.local import LocalHost
from rollup.plan.aggregation import Policy

APP = """-- two sources and a stream between
define stream S (k string, ts long); define stream T (k string, at string);
from S[k != ''] select k, ts insert into D;
define aggregation Plain from S select k, count() as n group by k aggregate by ts every sec ... min;
@OutOfOrder('correct')
define aggregation Derived from D select count() as n aggregate by ts every min ... hour;
@BufferSize('3') define aggregation Own from S select count() as n aggregate by ts every sec;
define aggregation Arrived from S select count() as n aggregate every sec; define aggregation Other from T select count() as n aggregate by at every sec;
"""


def conf(folder: Path, first: str = "", second: str = "", more: str = "") -> Conf:
    """A configuration of the app with more lines for its two sources."""
    (folder / "app.siddhi").write_text(APP)
    sources = "".join(f'[sources.{s}]\nkind = "rate"\n{each}\n' for s, each in (("S", first), ("T", second)))
    text = f'app = "app.siddhi"\ncheckpoint = "c"\n{sources}[store]\nkind = "delta"\npath = "t"\n{more}'
    (folder / "rollup.toml").write_text(text)
    return load(folder / "rollup.toml")


def buffers(found: Conf) -> dict[str, int]:
    """The buffer of each aggregation."""
    return {name: aggregation.buffer for name, aggregation in found.program().aggregations.items()}


def test_lateness_is_the_buffer_of_every_aggregation_by_event_time_that_has_none(tmp_path: Path) -> None:
    none = {"Plain": 0, "Derived": 0, "Own": 3, "Arrived": 0, "Other": 0}
    assert buffers(conf(tmp_path)) == none
    assert buffers(conf(tmp_path, 'lateness = "90 sec"')) == none | {"Plain": 90, "Derived": 2}
    assert buffers(conf(tmp_path, second='lateness = "1 min"')) == none | {"Other": 60}
    both = conf(tmp_path, 'lateness = "1 sec"', 'lateness = "1 hour 1 sec"')
    assert buffers(both) == none | {"Plain": 1, "Derived": 1, "Other": 3601}
    assert str(both.program().aggregations["Derived"].policy) == "correct"


@pytest.mark.parametrize(("late", "own"), [(10_000, True), (11_000, False)])
def test_an_event_as_late_as_that_counts_in_its_own_bucket_and_a_later_one_does_not(
    tmp_path: Path, late: int, own: bool
) -> None:
    host, newest = LocalHost(conf(tmp_path, 'lateness = "10 seconds"').program()), 1_514_764_800_999
    host.send("S", [("a", newest), ("a", newest - late)])
    found = host.query("from Plain within 0L, 253402300799000L per 'seconds' select AGG_TIMESTAMP, n").to_pylist()
    starts = {row["AGG_TIMESTAMP"]: row["n"] for row in found}
    assert ((newest - late) // 1000 * 1000 in starts) == own
    assert sum(starts.values()) == 2


@pytest.mark.parametrize("given", ['"soon"', '"all"', "10", '"0 seconds"'])
def test_what_is_no_length_of_time_is_refused_by_name(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigError, match=r"\[sources.S\]: lateness .* is no length of time \(e.g. \"10 seconds\"\)"):
        conf(tmp_path, f"lateness = {given}").program()


def test_lateness_stands_at_its_source(tmp_path: Path) -> None:
    path = conf(tmp_path).path
    path.write_text(f'lateness = "10 seconds"\n{path.read_text()}')
    with pytest.raises(ConfigError, match="unknown key `lateness`"):
        load(path)


@pytest.mark.parametrize("policy", ["merge", "drop", "correct"])
def test_the_policy_of_the_configuration_holds_for_aggregations_by_event_time_that_declare_none(
    tmp_path: Path, policy: str
) -> None:
    found = conf(tmp_path, more=f'[late]\npolicy = "{policy}"\n').program().aggregations
    said = {name: str(aggregation.policy) for name, aggregation in found.items()}
    assert said == dict.fromkeys(("Plain", "Own", "Other"), policy) | {"Derived": "correct", "Arrived": "merge"}


def test_a_declaration_of_the_app_stands_above_the_policy_of_the_configuration(tmp_path: Path) -> None:
    path = conf(tmp_path, more='[late]\npolicy = "correct"\n').path
    text = APP.replace("@BufferSize('3')", "@BufferSize('3') @IgnoreEventsOlderThanBuffer('false')")
    (tmp_path / "app.siddhi").write_text(text.replace("@OutOfOrder('correct')", "@IgnoreEventsOlderThanBuffer('true')"))
    found = load(path).program().aggregations
    assert (str(found["Own"].policy), str(found["Derived"].policy)) == ("merge", "drop")


def test_buffer_and_policy_of_the_configuration_hold_together(tmp_path: Path) -> None:
    found = conf(tmp_path, 'lateness = "5 sec"', more='[late]\npolicy = "correct"\n').program().aggregations["Plain"]
    assert (found.buffer, str(found.policy)) == (5, "correct")


def test_plan_says_who_decides_about_late_events(tmp_path: Path) -> None:
    def says(found: Conf) -> dict[str, str]:
        program = found.program()
        return {each.name: program.rollups.lateness.says(each) for each in program.app.aggregations}

    assert says(conf(tmp_path))["Plain"] == "the default; [late] policy changes it"
    given = says(conf(tmp_path, more='[late]\npolicy = "correct"\n'))
    assert (given["Plain"], given["Derived"]) == ("says [late] of the configuration", "says the app")


def test_what_compiles_the_app_elsewhere_gets_the_same_buffers(tmp_path: Path) -> None:
    program = conf(tmp_path, 'lateness = "5 sec"', more='[late]\npolicy = "correct"\n').program()
    there = pickle.loads(pickle.dumps(program.rollups)).program().aggregations
    told = {name: (each.buffer, each.policy) for name, each in program.aggregations.items()}
    assert {name: (each.buffer, each.policy) for name, each in there.items()} == told
    assert told["Plain"] == (5, Policy.CORRECT)
