#!/usr/bin/env bash
# Prints the path of a Python that this project runs on. Tries $PYTHON first.
# Exit 2 with one sentence where there is none.
set -euo pipefail

# Version managers put names on the PATH that fail when they are called, so each candidate is run, not just found.
probe='import sys; sys.version_info >= (3, 11) or sys.exit(1); print(sys.executable)'
for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3.13 python3 python; do
    if path=$("$candidate" -c "$probe" 2>/dev/null); then
        printf '%s\n' "$path"
        exit 0
    fi
done
echo "No Python 3.11 or newer was found: install one, or name it with PYTHON=/path/to/python3.11." >&2
exit 2
