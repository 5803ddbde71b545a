"""Files of scripts as a worker finds them, and texts that never show a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException, mask_secret

SQL = ".sql"


class FileMissing(AirflowFailException):
    """No script file is at any of ``places``."""

    def __init__(self, message: str, places: Sequence[Path]) -> None:
        super().__init__(message)
        self.places = tuple(places)


def read_template(path: Path) -> bytes:
    """Read a template; raises FileMissing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileMissing(f"script file {str(path)!r} cannot be read: {error.strerror}", [path]) from None


def decoded(content: bytes, path: Path) -> str:
    """Text of a file, with a final line break so that it is no path; raises AirflowFailException."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise AirflowFailException(f"{path}:{line}: is not UTF-8 text; save the script as UTF-8") from None
    return text if text.endswith("\n") else f"{text}\n"


def find_template(path: str, jinja_env: Any) -> Path:
    """The path of a ``.sql`` file. Raises FileMissing, naming the places searched."""
    places = [] if Path(path).is_absolute() else [Path(root) for root in getattr(jinja_env.loader, "searchpath", ())]
    candidates = [place / path for place in places] or [Path(path)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = f"; looked in {', '.join(map(str, places))}" if places else ""
    raise FileMissing(
        f"script file {path!r} does not exist{looked}. Write an absolute path, or one relative to the DAG's "
        "folder or to a folder of template_searchpath",
        candidates,
    )


def masked(value: Any) -> Any:
    """``value`` with every secret in its texts masked, now and in logs."""
    from airflow_flinkcompat.secrets import mask_secrets

    if isinstance(value, str):
        for secret in secret_values(value):
            mask_secret(secret)
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {key: _masked_option(str(key), item) for key, item in value.items()}
    return value


def masked_words(error: Exception) -> str:
    """Message of an error, secrets masked; its class without a message."""
    from airflow_flinkcompat.secrets import mask_secrets

    return mask_secrets(str(error)) or type(error).__name__


def _masked_option(key: str, value: Any) -> Any:
    """An option's value, judged by its name as in a script."""
    if not isinstance(value, str):
        return masked(value)
    from airflow_flinkcompat.secrets import mask_option

    as_statement = "SET '{}' = '{}';".format(key.replace("'", "''"), value.replace("'", "''"))
    for secret in secret_values(as_statement):
        mask_secret(secret)
    return mask_option(key, value)


def secret_values(text: str) -> list[str]:
    """The literal secrets of a script as written; none for a text that is no script."""
    from airflow_flinkcompat.secrets import find_secrets
    from airflow_flinkcompat.sql import ScriptError, parse_script

    try:
        script = parse_script(text)
    except ScriptError:
        return []
    lines = text.split("\n")
    found = (_between(lines, secret.span) for secret in find_secrets(script))
    # As written and as it is meant: a quote inside is doubled.
    spellings = (text for raw in found for text in (raw.strip("'\"`"), raw.replace("''", "'").strip("'\"`")))
    return [text for text in dict.fromkeys(spellings) if text.strip()]


def _between(lines: list[str], span: Any) -> str:
    """The text of a span (1-based, end inclusive)."""
    rows = lines[span.line - 1 : span.end_line]
    rows[-1] = rows[-1][: span.end_column]
    rows[0] = rows[0][span.column - 1 :]
    return "\n".join(rows)
