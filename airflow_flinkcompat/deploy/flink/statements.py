"""Preparation of a script for submission. Exactly one statement of the script must define the job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.model import JobSpec, Span
from airflow_flinkcompat.model.engine import RECOVERY_PREFIXES
from airflow_flinkcompat.secrets.detect import are_of_namespace, find_secrets
from airflow_flinkcompat.secrets.placeholders import (
    Lookup,
    PlaceholderError,
    Resolved,
    placeholder_faults,
    resolve_value,
)
from airflow_flinkcompat.sql import ScriptError, Statement, parse_script
from airflow_flinkcompat.sql.nodes import CreateTable, ResetOption, SetOption

JOB_NAME = "pipeline.name"


_GAP = r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)"
_BLANK = re.compile(f"{_GAP}*", re.DOTALL)
_WORD = re.compile(r"\w+")
_PLACE = re.compile(r"\bline (\d+), column (\d+)")
_BEGIN_SET = re.compile(rf"\ABEGIN{_GAP}+STATEMENT{_GAP}+SET{_GAP}*;", re.IGNORECASE | re.DOTALL)
_EXECUTE = re.compile(r"\AEXECUTE\b", re.IGNORECASE)

_WRAP = "wrap the statements in EXECUTE STATEMENT SET BEGIN …; END; to define one job with one savepoint"
_JOBS = (("INSERT",), ("EXECUTE", "STATEMENT", "SET"), ("BEGIN", "STATEMENT", "SET"), ("EXECUTE", "INSERT"))
_QUERIES = (("SELECT",), ("WITH",), ("VALUES",))
_REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("EXECUTE", "PLAN"), "a compiled plan cannot be deployed. Write the INSERT that the plan was compiled from"),
    (("COMPILE",), "a compiled plan cannot be deployed. Write the INSERT itself"),
    (("STOP", "JOB"), "the deployment itself stops jobs. Remove the statement"),
    (("UPDATE",), "the statement runs a separate job. Move the statement out of the script"),
    (("DELETE",), "the statement runs a separate job. Move the statement out of the script"),
    (
        ("TRUNCATE",),
        "the statement changes data at each validation or start of the script. Move the statement out of it",
    ),
    (("CALL",), "a procedure may run a separate job. Move the statement out of the script"),
    (
        ("CREATE", "MATERIALIZED"),
        "the statement starts a job that the deployment does not own. Move the statement out of the script",
    ),
    (
        ("CREATE", "OR", "ALTER", "MATERIALIZED"),
        "the statement starts a job that the deployment does not own. Move the statement out of the script",
    ),
)


NO_PROGRAMS = (
    "{source} is a Table API program, but {target} runs only SQL scripts. Stop the job with a savepoint (`flink "
    "stop`). Start the program in a separate task (`flink run -py …`, with `-s` and the savepoint to resume). Then "
    "record the job: `flinkcompat ledger adopt {deployment} --job-id ID --script {source}`"
)


class ScriptRefused(DeployError):
    """The script cannot be deployed as written. The error message names the place and the remedy."""


@dataclass(frozen=True)
class Prepared:
    """Statements that prepare the session, in order, and the statement that defines the job."""

    setup: tuple[Statement, ...]
    job: Statement
    job_name: str | None

    @property
    def job_sql(self) -> str:
        """The job's statement in a form that is a single statement, without ``BEGIN STATEMENT SET; … END``."""
        return as_one_statement(self.job.text)

    @property
    def explain_sql(self) -> str:
        """EXPLAIN of the job, in a form that Flink 1.20 and 2.3 accept (``EXPLAIN STATEMENT SET BEGIN …``)."""
        return _EXECUTE.sub("EXPLAIN", self.job_sql, count=1) if self.explain_shift == 0 else f"EXPLAIN {self.job_sql}"

    @property
    def explain_shift(self) -> int:
        """Number of columns by which a leading EXPLAIN shifts the job's first line; 0 if it replaces EXECUTE."""
        return len("EXPLAIN ") if _leading_words(self.job.text)[0] == "INSERT" else 0


def prepare(script: str, source: str = "<script>", *, variables: bool = True) -> Prepared:
    """Check that the script defines exactly one job and does not decide its initial state.

    ``variables`` is True if the platform's ``${secret_values.NAME}`` may replace secrets.

    Raises ScriptRefused if the script has no INSERT, several separate INSERTs, or a statement that starts a different
    job. Also raises ScriptRefused for a SET of a recovery option, a literal secret, a misplaced placeholder, or a
    statement after the job's statement.
    """
    try:
        parsed = parse_script(script, source)
    except ScriptError as error:
        raise ScriptRefused(str(error)) from None
    if unended := next((each.unended for each in parsed.statements if each.unended is not None), None):
        raise ScriptRefused(f"{unended}: a ; is missing before this statement")
    if secrets := [each for each in find_secrets(parsed) if not (variables and are_of_namespace(each.variables))]:
        places = ", ".join(f"{secret.key} at {secret.span}" for secret in secrets)
        raise ScriptRefused(
            f"the script contains secrets in plain text ({places}). Store the secrets in an Airflow connection and "
            "write "
            "${conn.<connection id>.password} instead"
        )
    for place, why in placeholder_faults(parsed.text, source):
        raise ScriptRefused(f"{place}: {why}")
    jobs = []
    for statement in parsed.statements:
        part = role(statement)
        if part is Role.QUERY:
            raise ScriptRefused(f"{statement.span}: a bare query has no sink. Write INSERT INTO … before the query")
        if part is Role.JOB:
            jobs.append(statement)
        _refuse_recovery(statement)
    if not jobs:
        raise ScriptRefused(f"{source}: the script defines no job, because it contains no INSERT")
    if len(jobs) > 1:
        places = ", ".join(str(job.span) for job in jobs)
        raise ScriptRefused(f"the script defines {len(jobs)} jobs ({places}), but a deployment is one job: {_WRAP}")
    index = parsed.statements.index(jobs[0])
    if rest := parsed.statements[index + 1 :]:
        raise ScriptRefused(
            f"{rest[0].span}: a statement after the job's statement has no effect on the job. Move the statement up "
            "or remove it"
        )
    setup = parsed.statements[:index]
    return Prepared(setup, jobs[0], _options(setup).get(JOB_NAME))


def set_options(script: str, source: str) -> dict[str, str]:
    """The options that apply to the script's job, from its SET and RESET statements in order."""
    return _options(prepare(script, source).setup)


def _options(setup: Iterable[Statement]) -> dict[str, str]:
    options: dict[str, str] = {}
    for statement in setup:
        options.update(_set_option(statement))
        if isinstance(statement.tree, ResetOption):
            if statement.tree.this is None:
                options.clear()
            else:
                options.pop(statement.tree.this.name, None)
    return options


class Role(StrEnum):
    """Role of a statement: it defines a job, is a query without a sink, or prepares the session."""

    JOB = "job"
    QUERY = "query"
    SETUP = "setup"


def role(statement: Statement) -> Role:
    """The role of a statement. Raises ScriptRefused if the statement starts other jobs or changes data."""
    words = _leading_words(statement.text)
    if _begins(words, _JOBS):
        return Role.JOB
    if _begins(words, _QUERIES) or isinstance(statement.tree, exp.Query):
        return Role.QUERY
    for begin, why in _REFUSED:
        if _begins(words, (begin,)):
            raise ScriptRefused(f"{statement.span}: {why}")
    if isinstance(statement.tree, CreateTable) and statement.tree.args.get("expression") is not None:
        raise ScriptRefused(
            f"{statement.span}: CREATE TABLE … AS SELECT starts a separate job. Declare the table, then INSERT INTO it"
        )
    return Role.SETUP


def planned_sql(job: Statement) -> str:
    """The job's statement as COMPILE PLAN requires it: an INSERT, or ``STATEMENT SET BEGIN … END``."""
    return _EXECUTE.sub("", as_one_statement(job.text), count=1).lstrip()


def as_one_statement(text: str) -> str:
    """The text of a statement or a statement set, in a form that Flink parses as one statement."""
    return _BEGIN_SET.sub("EXECUTE STATEMENT SET BEGIN", text, count=1)


def prepare_job(job: JobSpec, *, variables: bool = False) -> Prepared:
    """Check that a job's settings and script can be deployed. Raises ScriptRefused."""
    check_settings(job.settings, variables=variables)
    return prepare(job.script, job.source, variables=variables)


def check_settings(settings: Mapping[str, str], *, variables: bool = True) -> None:
    """Raise ScriptRefused if settings contain a recovery option or a literal secret."""
    for key in settings:
        if key.startswith(RECOVERY_PREFIXES):
            raise ScriptRefused(f"the setting {key!r} is refused: {_recovery_remedy(key)}")
    for key, value in settings.items():
        as_statement = "SET '{}' = '{}';".format(*(text.replace("'", "''") for text in (key, value)))
        secrets = find_secrets(parse_script(as_statement, "settings"))
        if not all(variables and are_of_namespace(secret.variables) for secret in secrets):
            raise ScriptRefused(
                f"the setting {key!r} contains a secret in plain text. Store the secret in an Airflow connection and "
                "write "
                "${conn.<connection id>.password} instead"
            )


def resolve_settings(settings: Mapping[str, str], lookup: Lookup) -> dict[str, Resolved]:
    """Settings with their placeholders resolved and not escaped as in SQL. Raises ScriptRefused."""
    resolved = {}
    for key, value in settings.items():
        try:
            resolved[key] = resolve_value(value, lookup)
        except PlaceholderError as error:
            raise ScriptRefused(f"the setting {key!r}: {error}") from None
    return resolved


def relocate(message: str, span: Span, *, prefix: int = 0) -> str:
    """Convert ``line l, column c`` of a statement after ``prefix`` characters to the script's position."""

    def place(match: re.Match[str]) -> str:
        line, column = int(match.group(1)), int(match.group(2))
        if line == 1:
            column += span.column - 1 - prefix
        return f"line {line + span.line - 1}, column {max(column, 1)}"

    return _PLACE.sub(place, message)


def _refuse_recovery(statement: Statement) -> None:
    # Refuse an unparsable SET even if it only mentions a recovery option.
    if _leading_words(statement.text)[:1] == ("SET",) and any(key in statement.text for key in RECOVERY_PREFIXES):
        keys = [key for key, _ in _set_option(statement)]
        if not keys or keys[0].startswith(RECOVERY_PREFIXES):
            raise ScriptRefused(f"{statement.span}: the SET is refused: {_recovery_remedy(*keys)}")


def _recovery_remedy(key: str = "") -> str:
    return f"the deployment's start mode decides from which state a job starts. Remove {key or 'the statement'}"


def _set_option(statement: Statement) -> tuple[tuple[str, str], ...]:
    tree = statement.tree
    if isinstance(tree, SetOption) and tree.this is not None:
        return ((tree.this.name, tree.expression.name),)
    return ()


def _begins(words: tuple[str, ...], beginnings: tuple[tuple[str, ...], ...]) -> bool:
    return any(words[: len(beginning)] == beginning for beginning in beginnings)


def _blank(text: str) -> str:
    match = _BLANK.match(text)
    return match.group(0) if match else ""


def _leading_words(text: str, count: int = 4) -> tuple[str, ...]:
    """The statement's first words in upper case, without comments, or ``("",)`` if there are none."""
    words: list[str] = []
    position = 0
    while len(words) < count:
        position += len(_blank(text[position:]))
        match = _WORD.match(text, position)
        if not match:
            break
        words.append(match.group(0).upper())
        position = match.end()
    return tuple(words) or ("",)
