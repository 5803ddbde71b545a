#!/usr/bin/env bash
# Runs the quick tests in two processes: the tests of these folders, and everything else; about as long each.
# Workers of pytest-xdist would each collect all of it, and report every test to a third process: on 2 idle cores that
# took 252 s of processor time, this 167 (2026-11-23).
# Usage: scripts/test_fast.sh [arguments for pytest]; fails where a test fails, or where none is selected.
set -euo pipefail

folders=(
    tests/compat tests/frontends tests/plan tests/sql tests/cli
    tests/migration tests/savepoint tests/airflow/triggers tests/demo tests/secrets tests/airflow/hooks tests/fleet tests/lsp tests/exec_graph
)
export HYPOTHESIS_PROFILE=quick

report=$(mktemp)
trap 'rm -f "$report"' EXIT
pytest -m "not slow" "${folders[@]/#/--ignore=}" "$@" >"$report" 2>&1 &
others=$!

first=0
pytest -m "not slow" "${folders[@]}" "$@" || first=$?
second=0
wait "$others" || second=$?
cat "$report"

# pytest exits with 5 where it selects nothing, which one of the two may.
none=5
[[ $first -ne $none || $second -ne $none ]]
[[ ($first -eq 0 || $first -eq $none) && ($second -eq 0 || $second -eq $none) ]]
