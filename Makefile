# `make help` lists the targets. Everything lives in .venv; nothing is installed on the machine.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV ?= .venv
export VENV
PY := $(VENV)/bin/python
NAME ?= cascade

# Tests and benchmarks start hundreds of Pythons: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test unit coverage demo bench bench-smoke soak crash lint format docs site clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r n t; do printf '  make %-12s %s\n' "$$n" "$$t"; done

# The stamps make a second `make setup` do nothing; each is touched only when its step succeeded.
setup: $(VENV)/.stamp-archive ## create .venv with all packages, a Java if there is none, and the Java libraries

$(VENV)/.stamp-python: pyproject.toml scripts/setup.sh
	@scripts/setup.sh python
	@touch $@

$(VENV)/.stamp-java: $(VENV)/.stamp-python rollup/java.py
	@scripts/setup.sh java
	@touch $@

$(VENV)/.stamp-jars: $(VENV)/.stamp-java rollup/jars.xml rollup/jars.py
	@scripts/setup.sh jars
	@touch $@

$(VENV)/.stamp-browser: $(VENV)/.stamp-python
	@scripts/setup.sh browser
	@touch $@

$(VENV)/.stamp-archive: $(VENV)/.stamp-jars $(VENV)/.stamp-browser rollup/archive.py
	@scripts/setup.sh archive
	@touch $@

test: setup lint ## set everything up, then lint, types and all tests
	$(PY) -m pytest -q -m "not slow" -n 3 --dist loadfile  # on two processors: tests also wait for servers

unit: setup ## the quick tests, for while you work: no JVM, server or browser, a few variants of each
	$(PY) -m pytest -q -m unit --hypothesis-profile=unit -n 2 --dist loadfile --durations 10 --durations-min 3

coverage: setup ## branch coverage of the package by all tests but the slow ones, with what they miss; half an hour
	$(PY) -m pytest -q -m "not slow" --hypothesis-profile=unit -n 2 --dist loadfile --cov --cov-report=term-missing:skip-covered

lint: setup ## ruff, pyright, and the directions of imports
	$(PY) -m ruff check .
	$(VENV)/bin/lint-imports
	$(VENV)/bin/lint-imports --config scripts/rings.toml --no-cache  # what it keeps does not tell types apart
	$(PY) -m pyright

format: setup ## let ruff put imports and layout right
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

demo: setup ## the main job on the 336,776 flights of 2013, with a table at the end
	$(VENV)/bin/rollup demo

bench: setup ## one benchmark, as JSON lines: make bench NAME=cascade
	$(PY) -m benchmarks.$(NAME)

bench-smoke: setup ## quick benchmarks for a moment, to prove that they run
	$(PY) -m benchmarks.smoke

soak: setup ## one hour of micro-batches in a row, memory watched
	$(PY) -m benchmarks.soak

crash: setup ## the long tests: kills at every point and at random moments, every case on Spark and PostgreSQL, random statements, load
	$(PY) -m pytest -q -m "slow and not superset"

docs: setup ## write the generated pages under docs/
	$(PY) -m tests.conformance.support
	$(PY) -m tests.conformance.places

site: setup ## the documentation as a site on port 8000, built anew while you write
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs serve --strict

clean: ## remove .venv and everything that was generated
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
