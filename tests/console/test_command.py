"""`rollup ui` as a process: it says where it is, answers, and ends; what it cannot do is a sentence."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.console.served import stored
from tests.gateway.trades import folder

COMMAND = [sys.executable, "-m", "rollup.cli.main", "ui"]


def test_it_says_where_it_is_and_ends_on_a_signal(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    process = subprocess.Popen(
        [*COMMAND, str(conf.path), "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    found = re.fullmatch(r"the console is on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
    assert found is not None
    with urllib.request.urlopen(f"{found[1]}/api/aggregations", timeout=60) as answer:
        assert b"TradeAgg" in answer.read()
    with urllib.request.urlopen(f"{found[1]}/api/changes", timeout=60) as living:
        assert b'{"TradeAgg": 1}' in living.readline(), "a client that stays does not keep it from ending"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert said == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
@pytest.mark.few(1)
def test_others_may_not_look_unless_users_are_named(tmp_path: Path, host: str) -> None:
    conf = stored(tmp_path)
    conf.path.write_text(conf.path.read_text().split("[serve.users]")[0])
    done = subprocess.run([*COMMAND, str(conf.path), "--host", host], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "[serve.users] names nobody who may log in" in done.stderr


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*COMMAND, str(stored(tmp_path).path), "--port", str(port)], capture_output=True, text=True, timeout=60
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"rollup: the console cannot listen on 127.0.0.1, port {port}: .* in use\n", done.stderr)


@pytest.mark.postgres
def test_the_endpoint_serves_it_too_and_one_signal_ends_both(tmp_path: Path) -> None:
    conf = stored(tmp_path)
    with folder() as reached:
        conf.path.write_text(conf.path.read_text().replace("[serve]\n", f'[serve]\ndata = "{reached}/d"\n'))
        process = subprocess.Popen(
            [sys.executable, "-m", "rollup.cli.main", "serve", str(conf.path), "--ui", "--ui-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        found = re.fullmatch(r"the console is on (http://127\.0\.0\.1:\d+)\n", process.stdout.readline())
        assert found is not None
        assert process.stdout.readline().startswith("listening on 127.0.0.1:")
        with urllib.request.urlopen(f"{found[1]}/api/aggregations", timeout=60) as answer:
            assert b"TradeAgg" in answer.read()
        with urllib.request.urlopen(f"{found[1]}/api/changes", timeout=60) as living:
            assert living.readline()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")


def test_the_thrift_server_has_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", "serve", str(stored(tmp_path).path), "--thrift", "--ui"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "rollup: --thrift serves no console (start `rollup ui` beside it)\n")
