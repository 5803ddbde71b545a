#!/usr/bin/env bash
# setup_environment.sh EXTRAS: makes .venv where it is missing or broken and installs the project into it, editable,
# with the extras (comma-separated). Versions are held by constraints.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
extras=$1
python=.venv/bin/python

if ! "$python" -m pip --version >/dev/null 2>&1; then
    base=$(scripts/find_python.sh)
    echo "Making .venv with $("$base" --version)"
    rm -rf .venv
    # Debian keeps the module that puts pip into an environment in a package of its own.
    if ! "$base" -c 'import ensurepip' 2>/dev/null &&
        ! scripts/apt_install.sh "$("$base" -c 'import sys; print(f"python3.{sys.version_info.minor}-venv")')"; then
        echo "$base cannot make virtual environments: install its venv package, for example python3-venv." >&2
        exit 2
    fi
    "$base" -m venv .venv
fi

if ! .venv/bin/uv --version >/dev/null 2>&1; then
    echo "Installing uv"
    "$python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
fi
echo "Installing airflow-flinkcompat[$extras]"
.venv/bin/uv pip install --python "$python" --constraint constraints.txt --editable ".[$extras]"
