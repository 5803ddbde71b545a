# Everything runs in .venv, which is made and kept up to date on the way; `make help` lists the targets.
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

# Which line of Flink make measure-flink runs the pairs on, which older one takes the savepoints where that is another,
# and extra arguments for it: MEASURE_ARGS='--only cumulate'
FLINK ?= 2.3
FLINK_OLD ?=
MEASURE_ARGS ?=
# Extra arguments for make bench-backfill: BENCH_ARGS='--only HOP --runs 1'
BENCH_ARGS ?=

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

# Where the public scripts and programs lie that make measure-corpus judges.
CORPUS ?= ../shared/corpus

# Extra arguments for make site
SITE_ARGS ?=

# Extra arguments for make test-matrix: MATRIX_ARGS='--airflow 3.2 --python 3.12'
MATRIX_ARGS ?=

# Extra arguments for make release-check: RELEASE_ARGS='--write benchmarks/results/release-check-2026-11-26.md'
RELEASE_ARGS ?=

# Where make golden writes; two folders are compared with diff -r.
GOLDEN ?= build/golden

.PHONY: help setup pyflink java lint format docs frontend planner site release-check test-fast test test-kubernetes test-history test-matrix test-full demo golden bench-check bench-cli bench-imports bench-backfill bench-rehearsal bench-downtime bench-kubernetes-downtime bench-ledger-index bench-deployment-list bench-audit bench-migrate bench-bootstrap bench-bootstrap-switch bench-planner measure-flink measure-migrations measure-planner measure-random measure-corpus up down lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: java $(VENV)/.spark-ready ## Make .venv with everything, see that there is a Java 17 or 21, start Spark once

pyflink: $(PYFLINK)/.ready ## Make .venv-pyflink with real PyFlink, 850 MB

java:
	@$(WITH_JAVA) echo "Java: $$JAVA_HOME"

lint: $(VENV)/.all-ready ## Style, types and import contracts
	@ruff check .
	@ruff format --check .
	@mypy
	@lint-imports

format: $(VENV)/.core-ready ## Format the code and mend what ruff can mend
	@ruff check --fix .
	@ruff format .

docs: $(VENV)/.core-ready ## Write docs/rules and docs/reference anew: rules, commands and what Python code imports
	@flinkcompat rules --write docs/rules
	@python -W ignore -m scripts.write_reference

site: $(VENV)/.core-ready ## Make the site of the pages in build/site; a dead link or heading fails [SITE_ARGS='--site-dir public']
	@NO_MKDOCS_2_WARNING=1 mkdocs build $(SITE_ARGS)
	@echo "The site: build/site/index.html"

release-check: $(VENV)/.core-ready ## Build what a release uploads into dist, check it, try the wheel with each extra in an environment of its own [RELEASE_ARGS='--extra s3']
	@python scripts/release_check.py $(RELEASE_ARGS)

frontend: $(VENV)/.all-ready ## Build the pages inside Airflow from frontend/ anew (Node 20, or one from PyPI)
	@python -W ignore -m scripts.write_openapi
	@scripts/build_frontend.sh

planner: $(VENV)/.core-ready ## Build the jar of Flink's planner from planner/ anew (JDK 17, Maven)
	@$(WITH_JAVA) python -m scripts.build_planner

test-fast: $(VENV)/.all-ready ## The quick tests: no JVM, no scheduler, no process that takes a second
	@scripts/test_fast.sh $(PYTEST_ARGS)

test: setup lint ## Lint and every test, with a real Flink, Airflow and Spark; a skipped test fails
	@$(WITH_JAVA) HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-ci} FLINKCOMPAT_NO_SKIPS=1 pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder $(PYTEST_ARGS)

test-kubernetes: export FLINKCOMPAT_NIGHTLY := 1
test-kubernetes: setup ## The tests on a real Kubernetes API server with Flink's real operator; builds the server once (Go 1.24, 16 minutes)
	@if ! python -m tests.local_kubernetes.binary; then exit 0; fi; $(WITH_JAVA) pytest --numprocesses 0 -m kubernetes $(PYTEST_ARGS) tests/local_kubernetes

test-history: export FLINKCOMPAT_NIGHTLY := 1
test-history: setup ## All changes whose state is computed from history, on a real Flink; writes what they came to, some two hours
	@$(WITH_JAVA) pytest --numprocesses 2 --dist loadscope --no-loadscope-reorder -m slow -p tests.history.results $(PYTEST_ARGS) tests/history

test-matrix: $(VENV)/.core-ready ## The tests of Airflow and Python on each version that the package takes, in environments of their own [MATRIX_ARGS='--airflow 3.1']
	@python scripts/version_matrix.py --write benchmarks/results/matrix-$$(date -u +%F).md $(MATRIX_ARGS)

test-full: export FLINKCOMPAT_NIGHTLY := 1
test-full: export HYPOTHESIS_PROFILE := thorough
test-full: export FLINKCOMPAT_FUZZ_CASES := 10000
# A hang still costs one test alone; hundreds of drawn examples on a real Spark take longer than a daily test may.
test-full: export PYTEST_TIMEOUT := 3600
test-full: pyflink test demo ## make test with the nightly tests, many more examples and real PyFlink, then make demo

demo: setup ## The whole story with a real Flink, Airflow and Spark; leaves nothing running
	@$(WITH_JAVA) python -m demo

golden: $(VENV)/.all-ready ## Write what is said of every fixture and measured pair into GOLDEN, to compare around a move
	@python -m tests.golden $(GOLDEN)

bench-check: $(VENV)/.core-ready ## Time a check beside parsing alone, for scripts of all sizes
	@python -m benchmarks.check

bench-cli: $(VENV)/.core-ready ## Measure the processor time of a start of the command line
	@python -m benchmarks.cli --write benchmarks/results/cli-$$(date -u +%F).md

bench-imports: $(VENV)/.core-ready ## Time what importing the operators adds to a DAG file
	@python -m benchmarks.imports --write benchmarks/results/imports-$$(date -u +%F).md

bench-backfill: setup ## Time a backfill beside Spark, Flink and DuckDB on the same files [BENCH_ARGS='--large']
	@$(WITH_JAVA) python -m benchmarks.backfill $(BENCH_ARGS)

bench-rehearsal: setup ## Rehearse measured restores beside their running jobs, write found beside measured
	@$(WITH_JAVA) python -m benchmarks.rehearsal

bench-downtime: setup ## Time how long a redeployed job stands still, beside raw REST calls that do the same
	@$(WITH_JAVA) python -m benchmarks.downtime --write benchmarks/results/downtime-$$(date -u +%F).md

bench-kubernetes-downtime: setup ## The same on Kubernetes, beside the upgrade of Flink's operator in one step; builds the API server once
	@if ! python -m tests.local_kubernetes.binary; then exit 0; fi; $(WITH_JAVA) python -m benchmarks.kubernetes_downtime --write benchmarks/results/kubernetes-downtime-$$(date -u +%F).md

bench-ledger-index: $(VENV)/.core-ready ## Time a list of a thousand deployments with the ledger's index and without
	@python -m benchmarks.ledger_index --write benchmarks/results/ledger-index-$$(date -u +%F).md

bench-deployment-list: setup ## Time the list of a thousand deployments that Airflow's pages show
	@python -m benchmarks.deployment_list --write benchmarks/results/deployment-list-$$(date -u +%F).md
bench-audit: setup ## Time an audit of 100,000 pairs in one process, in two and on Spark; the rows must be the same [BENCH_ARGS='--pairs 5000']
	@$(WITH_JAVA) python -m benchmarks.audit --write benchmarks/results/audit-$$(date -u +%F).md $(BENCH_ARGS)

bench-migrate: setup ## Time the migration of large savepoints, alone and on Spark; 20 GB of disk, deleted at the end
	@$(WITH_JAVA) python -m benchmarks.migration --write benchmarks/results/migration-$$(date -u +%F).md

bench-bootstrap: setup ## Time the state of 100 million rows of history beside Flink that replays them; 20 GB of disk, deleted at the end [BENCH_ARGS='--rows 10000000']
	@$(WITH_JAVA) python -m benchmarks.bootstrap --write benchmarks/results/bootstrap-$$(date -u +%F).md $(BENCH_ARGS)

bench-bootstrap-switch: setup ## Time a switch to state from history behind 1, 5 and 20 million rows [BENCH_ARGS='--rows 1000000']
	@$(WITH_JAVA) python -m benchmarks.bootstrap_switch --write benchmarks/results/bootstrap-switch-$$(date -u +%F).md $(BENCH_ARGS)

bench-planner: setup ## Time Flink's own planner beside the SQL Gateway: cold, warm, 30 jobs, memory [BENCH_ARGS='--scripts 100']
	@$(WITH_JAVA) python -m benchmarks.planner --write benchmarks/results/planner-bench-$$(date -u +%F).md $(BENCH_ARGS)

# The pairs of PyFlink programs: make measure-flink MEASURE_ARGS=--programs
measure-flink: setup $(if $(findstring --programs,$(MEASURE_ARGS)),pyflink) ## Run change pairs on a real Flink [FLINK=2.3|1.20; 2.2|2.1|2.0|1.19: the base set], or from one line to another [FLINK_OLD=1.20], write predicted beside real
	@$(WITH_JAVA) python -m measure --flink $(FLINK) $(if $(FLINK_OLD),--flink-old $(FLINK_OLD)) $(MEASURE_ARGS)

measure-migrations: setup ## Migrate the state of changes on a real Flink, compare with runs from scratch [FLINK=2.3|1.20] [FLINK_OLD=1.20]; goes on where it was left
	@$(WITH_JAVA) python -m measure.run_migrations --flink $(FLINK) $(if $(FLINK_OLD),--flink-old $(FLINK_OLD)) $(MEASURE_ARGS)
	@$(if $(FLINK_OLD),,$(WITH_JAVA) python -m measure.run_stacked --flink $(FLINK) $(STACKED_ARGS))

measure-planner: setup ## What Flink's planner predicts of every measured pair, beside how it ended [FLINK=2.3|1.20]
	@$(WITH_JAVA) python -m measure.planner --flink $(FLINK) $(MEASURE_ARGS)

measure-random: setup ## Plan random pairs, restore some of them on a real Flink, write predicted beside real [FLINK=2.3|1.20] [MEASURE_ARGS='--seed 2']; resumes where it was left
	@$(WITH_JAVA) python -m measure.run_random --flink $(FLINK) $(MEASURE_ARGS)

measure-corpus: $(VENV)/.core-ready ## What is said of the real changes and programs in CORPUS [MEASURE_ARGS='--list unknown']
	@python -m measure.corpus $(CORPUS) $(MEASURE_ARGS)

up: setup ## The same parts in the background, with the first version deployed, to look at
	@$(WITH_JAVA) python -m demo up

down: $(VENV)/.core-ready ## Stop what make up left running
	@python -m demo down

lock: $(VENV)/.core-ready ## Renew constraints.txt from pyproject.toml
	@uv pip compile --universal --upgrade --quiet --no-header --no-annotate --python-version 3.11 \
		--extra all --extra dev pyproject.toml --output-file constraints.txt
	@echo apache-flink==2.3.0 | uv pip compile --upgrade --quiet --no-header --no-annotate --python-version 3.11 \
		- --output-file constraints-pyflink.txt

clean: ## Remove .venv, caches and build results
	rm -rf $(VENV) $(PYFLINK) .matrix build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
