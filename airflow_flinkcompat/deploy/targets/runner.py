"""A shipped jar that runs a script's statements on a Flink without a ``SqlDriver``.

``runner/SqlRunner.java`` is its source; ``scripts/build_sql_runner.py`` builds the jar reproducibly. It reads ``SET``
and ``RESET`` itself and leaves every other statement to Flink, on 1.19, 1.20 and 2.x.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from airflow_flinkcompat.sql import parse_script

ENTRY_CLASS = "flinkcompat.SqlRunner"
"""Class whose ``main`` accepts ``--statements LIST`` or ``--scriptUri URI``, as the manifest names it."""


def runner_jar() -> Traversable:
    """The shipped jar; ``importlib.resources.as_file`` makes a path of it."""
    return files(__package__).joinpath("runner", "flinkcompat-sql-runner.jar")


def encode_statements(statements: Iterable[str]) -> str:
    """The value of ``--statements``, in one line without blanks or quotes. Raises ValueError without any."""
    encoded = [base64.urlsafe_b64encode(statement.encode()).decode("ascii") for statement in statements]
    if not encoded:
        raise ValueError("a script without a statement runs nothing: write at least its INSERT")
    return ",".join(encoded)


def encode_script(script: str) -> str:
    """A script in that form, with no placeholder left. Raises ScriptError, ValueError."""
    return encode_statements(each.text for each in parse_script(script, "<script>").statements)
