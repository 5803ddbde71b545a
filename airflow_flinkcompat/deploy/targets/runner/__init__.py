"""A shipped jar that runs a script's statements on a Flink without a ``SqlDriver``.

``SqlRunner.java`` is its source; ``scripts/build_sql_runner.py`` builds the jar reproducibly. It reads ``SET`` and
``RESET`` itself and leaves every other statement to Flink, on 1.19, 1.20 and 2.x.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from importlib.resources import files
from importlib.resources.abc import Traversable

from airflow_flinkcompat.sql import parse_script

__all__ = ["ENTRY_CLASS", "encode_script", "encode_statements", "runner_jar"]

ENTRY_CLASS = "flinkcompat.SqlRunner"
"""Class whose ``main`` accepts ``--statements LIST`` or ``--scriptUri URI``, as the manifest names it."""


def runner_jar() -> Traversable:
    """The jar, as it is shipped with this package.

    Returns:
        A readable resource; ``importlib.resources.as_file`` makes a path of it.
    """
    return files(__package__).joinpath("flinkcompat-sql-runner.jar")


def encode_statements(statements: Iterable[str]) -> str:
    """The statements in the runner's form: one line without blanks or quotes.

    Args:
        statements: One SQL statement each, in order; ``SET`` and ``RESET`` are statements too.

    Returns:
        The value of ``--statements``, and the content of the file of ``--scriptUri``.

    Raises:
        ValueError: There is no statement.
    """
    encoded = [base64.urlsafe_b64encode(statement.encode()).decode("ascii") for statement in statements]
    if not encoded:
        raise ValueError("a script without a statement runs nothing: write at least its INSERT")
    return ",".join(encoded)


def encode_script(script: str) -> str:
    """A script in the runner's form.

    Args:
        script: Its text, with no placeholder left.

    Returns:
        Its statements, in the form of :func:`encode_statements`.

    Raises:
        ScriptError: It cannot be read.
        ValueError: There is no statement.
    """
    return encode_statements(each.text for each in parse_script(script, "<script>").statements)
