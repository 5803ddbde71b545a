#!/usr/bin/env bash
# setup_pyflink.sh FOLDER: makes an environment in FOLDER that holds real PyFlink and nothing of this project (850 MB):
# what it needs cannot stand beside what Airflow needs. Versions are held by constraints-pyflink.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1
uv=${UV:-.venv/bin/uv}

# PyFlink has no wheels for newer ones.
probe='import sys; (3, 11) <= sys.version_info < (3, 13) or sys.exit(1); print(sys.executable)'
for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3.12 python3; do
    base=$("$candidate" -c "$probe" 2>/dev/null) && break
done
if [ -z "${base:-}" ]; then
    echo "PyFlink needs Python 3.11 or 3.12: install one, or name it with PYTHON=/path/to/python3.11." >&2
    exit 2
fi
[ -x "$folder/bin/python" ] || "$uv" venv --quiet --python "$base" "$folder"
echo "Installing PyFlink into $folder"
"$uv" pip install --python "$folder/bin/python" --requirements constraints-pyflink.txt
