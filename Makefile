# Everything runs in .venv, which is made and kept up to date on the way. `make help` lists the ten targets for every day;
# CONTRIBUTING.md names the others.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
# Several hundred processes of a test run import the same modules: compiling them anew in each takes half of its time.
unexport PYTHONDONTWRITEBYTECODE
# spark-submit, airflow and flinkcompat are found by name.
export PATH := $(BIN):$(PATH)
# Extra arguments for pytest: make test PYTEST_ARGS='-k deploy'
PYTEST_ARGS ?=

# Arguments for programs: make bench-backfill BENCH_ARGS='--only HOP', make measure-pairs FLINK=1.20 MEASURE_ARGS='--only cumulate'
BENCH_ARGS ?=
MEASURE_ARGS ?=
MEASURE_LINES := $(if $(FLINK),--flink $(FLINK)) $(if $(FLINK_OLD),--flink-old $(FLINK_OLD))
# The public scripts and programs that make measure-corpus judges
CORPUS ?= ../shared/corpus
SITE_ARGS ?=
# make test-matrix MATRIX_ARGS='--airflow 3.2 --python 3.12'
MATRIX_ARGS ?=
# make release-check RELEASE_ARGS='--extra s3'
RELEASE_ARGS ?=
# The folder that make golden writes; two of them are compared with diff -r.
GOLDEN ?= build/golden

# What the command line and its tools use, and everything.
CORE_EXTRAS := airflow,jars,dev
ALL_EXTRAS := all,dev
# Real PyFlink, which cannot stand beside what Airflow needs.
PYFLINK := .venv-pyflink
SETUP_INPUTS := pyproject.toml constraints.txt scripts/setup_environment.sh

# Finds or installs a Java 17 or 21 and hands it to what follows on the line.
WITH_JAVA := JAVA_HOME=$$(scripts/ensure_java.sh) && export JAVA_HOME PATH="$$JAVA_HOME/bin:$$PATH" &&

$(VENV)/.core-ready: $(SETUP_INPUTS)
	@scripts/setup_environment.sh $(CORE_EXTRAS)
	@touch $@

$(VENV)/.all-ready: $(SETUP_INPUTS)
	@scripts/setup_environment.sh $(ALL_EXTRAS)
	@touch $@ $(VENV)/.core-ready

# The first start of Spark takes longer than others: it is made here, and counts against no time-out.
$(VENV)/.spark-ready: $(VENV)/.all-ready scripts/prepare_spark.py
	@$(WITH_JAVA) python scripts/prepare_spark.py
	@touch $@

$(PYFLINK)/.ready: constraints-pyflink.txt scripts/setup_pyflink.sh | $(VENV)/.core-ready
	@scripts/setup_pyflink.sh $(PYFLINK)
	@touch $@

CORE_TESTS := $(addprefix tests/unit/,model sql plan exec_graph savepoint migration compat)

.PHONY: help setup lint test-core test test-full demo up down docs release-check
.PHONY: pyflink java format site frontend planner golden lock clean test-kubernetes test-history test-matrix

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: java $(VENV)/.spark-ready ## Make .venv with everything, check for Java 17 or 21, start Spark once

lint: $(VENV)/.all-ready ## Check style, types, import contracts and first lines of docstrings
	@ruff check .
	@ruff format --check .
	@mypy
	@lint-imports
	@python -m dev.house --check

test-core: $(VENV)/.all-ready ## Run the quick tests of the core in about a minute: no JVM, no Airflow
	@HYPOTHESIS_PROFILE=quick pytest --numprocesses 2 -m "not slow" $(PYTEST_ARGS) $(CORE_TESTS)

test: setup lint ## Run lint and every test with a real Flink, Airflow and Spark; a skipped test fails
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} FLINKCOMPAT_NO_SKIPS=1 pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

test-full: export FLINKCOMPAT_NIGHTLY := 1
test-full: export HYPOTHESIS_PROFILE := thorough
test-full: export FLINKCOMPAT_FUZZ_CASES := 10000
# A hang still costs one test alone; hundreds of drawn examples on a real Spark take longer than a daily test may.
test-full: export PYTEST_TIMEOUT := 3600
test-full: pyflink test demo ## Run test with the nightly tests, more examples and real PyFlink, then demo

demo: setup ## Play the whole story with a real Flink, Airflow and Spark; leaves nothing running
	@$(WITH_JAVA) python -m dev.demo

up: setup ## Start the parts of the demo in the background, with the first version deployed
	@$(WITH_JAVA) python -m dev.demo up

down: $(VENV)/.core-ready ## Stop what make up started
	@python -m dev.demo down

docs: $(VENV)/.core-ready ## Write docs/rules and docs/reference from the code
	@flinkcompat rules --write docs/rules
	@python -W ignore -m scripts.write_reference

release-check: $(VENV)/.core-ready ## Build a release into dist and try the wheel with each extra
	@python scripts/release_check.py $(RELEASE_ARGS)

# Programs of dev/benchmarks and dev/measure; `python -m dev.benchmarks` and `python -m dev.measure` list them.
bench-%: setup
	@$(WITH_JAVA) python -m dev.benchmarks $* $(BENCH_ARGS)

measure-%: setup
	@$(WITH_JAVA) python -m dev.measure $* $(if $(filter corpus corpus-restores upgrade-audits upgrade-restores,$*),$(CORPUS)) $(MEASURE_LINES) $(MEASURE_ARGS)

# Real PyFlink, 850 MB, in an environment of its own
pyflink: $(PYFLINK)/.ready

java:
	@$(WITH_JAVA) echo "Java: $$JAVA_HOME"

format: $(VENV)/.core-ready
	@ruff check --fix .
	@ruff format .

# The site of the pages in build/site; a dead link or heading fails.
site: $(VENV)/.core-ready
	@NO_MKDOCS_2_WARNING=1 mkdocs build $(SITE_ARGS)
	@echo "The site: build/site/index.html"

# The bundle of the pages in Airflow (Node 20, or one from PyPI)
frontend: $(VENV)/.all-ready
	@python -W ignore -m scripts.write_openapi
	@scripts/build_frontend.sh

# The jar of the planner (JDK 17, Maven)
planner: $(VENV)/.core-ready
	@$(WITH_JAVA) python -m scripts.build_planner

# Reports of every fixture and measured pair, to compare before and after a move
golden: $(VENV)/.all-ready
	@python -m tests.support.golden $(GOLDEN)

# A real Kubernetes API server with Flink's operator, built once (Go 1.24, 16 minutes)
test-kubernetes: export FLINKCOMPAT_NIGHTLY := 1
test-kubernetes: setup
	@if ! python -m dev.local_kubernetes.binary; then exit 0; fi; $(WITH_JAVA) pytest --numprocesses 0 -m kubernetes $(PYTEST_ARGS) tests/scenarios/local_kubernetes

# Every change whose state is computed from history, on a real Flink: about two hours
test-history: export FLINKCOMPAT_NIGHTLY := 1
test-history: setup
	@$(WITH_JAVA) pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder -m slow -p tests.scenarios.history.results $(PYTEST_ARGS) tests/scenarios/history

# Tests of Airflow and Python on each supported version, in environments of their own
test-matrix: $(VENV)/.core-ready
	@python scripts/version_matrix.py --write dev/benchmarks/results/matrix-$$(date -u +%F).md $(MATRIX_ARGS)

# Renews constraints.txt from pyproject.toml.
lock: $(VENV)/.core-ready
	@uv pip compile --universal --upgrade --quiet --no-header --no-annotate --python-version 3.11 \
		--extra all --extra dev pyproject.toml --output-file constraints.txt
	@echo apache-flink==2.3.0 | uv pip compile --upgrade --quiet --no-header --no-annotate --python-version 3.11 \
		- --output-file constraints-pyflink.txt

clean:
	rm -rf $(VENV) $(PYFLINK) .matrix build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
