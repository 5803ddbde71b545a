"""Spark application of a backfill: ``spark-submit job.py --request FILE.json``, or ``python -m``.

The request is in a file, so that its values do not appear on a command line. The application prints progress and a
reconciliation, then the result as one line of JSON. With ``--result FILE``, the application also writes the result, or
``{"error": …}``, to the file. The exit status is 0 for success, 1 for failure, and 2 for an invalid request or usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__" and not __package__:
    # If Python runs this module as a file, its path contains this folder instead of the folder of the package.
    _here = Path(__file__).resolve()
    _root = [str(_here.parents[2])] if (_here.parents[1] / "__init__.py").is_file() else []
    sys.path[:] = [*_root, *(entry for entry in sys.path if Path(entry).resolve() != _here.parent)]

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, run_backfill
from airflow_flinkcompat.secrets import mask_secrets


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the request from the command line, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="flinkcompat-backfill", description="Recompute a Flink SQL script's rows with Spark."
    )
    parser.add_argument("--request", required=True, metavar="FILE.json", help="a backfill request as JSON")
    parser.add_argument("--result", metavar="FILE.json", help="the file for the result as JSON")
    options = parser.parse_args(arguments)
    path = Path(options.request)
    try:
        request = BackfillRequest.from_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        return _failed(2, f"{path}: cannot be read: {error}")
    except BackfillError as error:
        return _failed(2, f"{path}: {error}")
    try:
        result = run_backfill(request, progress=_print_line)
    except BackfillError as error:
        if options.result is not None:
            Path(options.result).write_text(json.dumps({"error": str(error)}), encoding="utf-8")
        return _failed(1, str(error))
    for line in result.lines():
        _print_line(line)
    text = json.dumps(result.to_dict())
    if options.result is not None:
        Path(options.result).write_text(text, encoding="utf-8")
    print(text, flush=True)
    return 0


def _print_line(line: str) -> None:
    print(f"backfill: {mask_secrets(line)}", flush=True)


def _failed(status: int, message: str) -> int:
    print(f"backfill failed: {message}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
