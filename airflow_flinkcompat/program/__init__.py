"""Programs of the Table API as text: which statements they stand for, read from the source and never run.

A program becomes a :class:`~airflow_flinkcompat.sql.Script`: its SQL as it is, its Table API as the SQL that says the
same, marked with the operations it came through, and the parts that were not understood.
"""

from collections.abc import Mapping

from airflow_flinkcompat.program.flip.program import parse_table
from airflow_flinkcompat.program.reader import parse_program, read_program
from airflow_flinkcompat.sql import Script, parse_script

__all__ = [
    "parse_program",
    "parse_table",
    "read_as",
    "read_program",
]


def read_as(
    language: str,
    text: str,
    source: str,
    variables: Mapping[str, str] | None = None,
    catalog: Script | None = None,
    like: Script | None = None,
    files: Mapping[str, str] | None = None,
) -> Script:
    """The statements of a text in ``sql``, ``python`` or ``table``.

    ``variables`` are what only a program's environment knows, ``catalog`` declares tables it does not, ``like`` is a
    script whose statements written the same are not parsed once more, ``files`` are the texts that lie beside a Python
    program, by path. Raises :class:`~airflow_flinkcompat.sql.ScriptError`.
    """
    if language == "python":
        return parse_program(text, source, variables or {}, files)
    if language == "table":
        return parse_table(text, source, variables or {}, catalog)
    return parse_script(text, source, like)
