"""Options that several commands share."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import click

from airflow_flinkcompat.cli.project import Given, with_named_catalog
from airflow_flinkcompat.model import (
    ENGINES,
    FUNCTION_KINDS,
    FUNCTION_LANGUAGES,
    PROGRAM_SUFFIXES,
    Extra,
    FunctionDeclaration,
    InputError,
    Outcome,
    OutOfReachError,
    install_command,
    missing_packages,
)
from airflow_flinkcompat.model.engine import ENGINE_FACTS
from airflow_flinkcompat.model.options import ENGINE_VARIABLE
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import FAIL_ON, GATE, JobOptions, declarations
from airflow_flinkcompat.secrets import mask_secrets

Decorated = Callable[..., Any]
master_option = click.option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")


def job_options(*names: str, where: str = "before the script's own", **words: str) -> Callable[[Decorated], Decorated]:
    """The options of a job, passed to the command as one argument ``given``.

    ``names`` are fields of ``JobOptions`` and ``Given``. ``where`` names the scripts in which a setting is in force,
    and ``words`` replace the help of an option.
    """

    def decorate(command: Decorated) -> Decorated:
        @wraps(command)
        def called(*arguments: Any, **others: Any) -> Any:
            found = {name: _READERS.get(name, _as_it_is)(others.pop(name)) for name in names}
            files = found.pop("catalog", ())
            of_job = JobOptions(**{name: found.pop(name) for name in names if name in _OF_JOB and name in found})
            return command(*arguments, given=Given(with_named_catalog(of_job, files), **found), **others)

        made: Decorated = called
        for name in reversed(names):
            made = job_option(name, words.get(name, ""), where)(made)
        return made

    return decorate


def job_option(name: str, words: str = "", where: str = "", argument: str = "") -> Callable[[Decorated], Decorated]:
    """A declared option, passed as the argument of its name or of ``argument``."""
    option = _DECLARED[name]
    kind = click.Choice(option.choices) if option.choices else _JAR if name == "jars" else None
    return click.option(
        option.flag,
        argument or name,
        metavar=option.metavar,
        type=kind,
        multiple=option.repeats,
        envvar=option.variable or None,
        show_envvar=bool(option.variable),
        help=words or option.on_command_line(where),
    )


def format_option(*names: str) -> Callable[[Decorated], Decorated]:
    """The option that names the output format."""
    kind = click.Choice(names)
    return click.option("--format", "style", type=kind, default="text", show_default=True, help="What is printed.")


def output_option(example: str) -> Callable[[Decorated], Decorated]:
    """The option for files in further formats."""
    words = f"Also write this format to a file, such as {example}; may be repeated."
    return click.option("--output", "outputs", multiple=True, metavar="FORMAT=FILE", help=words)


def parse_outputs(outputs: Iterable[str], formats: Sequence[str]) -> list[tuple[str, Path]]:
    """``FORMAT=FILE`` texts as pairs. Raises :class:`InputError` naming a malformed one."""
    found = []
    for each in outputs:
        name, equals, path = each.partition("=")
        if not equals or not path or name not in formats:
            raise InputError(
                f"--output {each!r} is not of the form FORMAT=FILE with FORMAT one of {', '.join(formats)}"
            )
        found.append((name, Path(path)))
    return found


def require_engine(engine: str | None, **options: str | None) -> None:
    """Require an engine for a version, because the engine of a version is never guessed."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if engine is None and given:
        raise InputError(
            f"{' and '.join(given)}: the engine of the version is unknown: add --engine "
            f"{' or --engine '.join(ENGINES)}, "
            f"set {ENGINE_VARIABLE}, or write engine = … into {FILE_NAME}"
        )
    for name, value in options.items():
        if engine is not None and value is not None and not ENGINE_FACTS[engine].has_version(value):
            raise InputError(f"--{name.replace('_', '-')} {value}: {ENGINE_FACTS[engine].label} has no such version")


_COLOURS = {
    "compatible": "green",
    "passed": "green",
    "unchanged": "green",
    "unknown": "yellow",
    "partial": "yellow",
    "incompatible": "red",
    "failed": "red",
}
_WORDS = "|".join(_COLOURS)
_OUTCOME = re.compile(rf"(?<=\[)(?:{_WORDS})(?=\])|^(?:{_WORDS.upper()})\b", re.MULTILINE)


def coloured(text: str) -> str:
    """A report with coloured outcomes for ``click.echo``, which removes colours outside of terminals."""
    if os.environ.get("NO_COLOR"):
        return text
    return _OUTCOME.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0].lower()], bold=True), text)


def fails_gate(outcome: Outcome, fail_on: str) -> bool:
    """Check if an outcome is the one that ``--fail-on`` names, or a worse one."""
    gate = FAIL_ON[fail_on]
    return gate is not None and outcome.rank >= gate.rank


def parse_settings(pairs: Iterable[str], what: str = "setting", form: str = "KEY=VALUE") -> dict[str, str]:
    """``K=V`` pairs as a mapping. Raises :class:`InputError` naming a bad pair, ``what`` and ``form``."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{what} {mask_secrets(pair)!r} is not of the form {form}")
        if settings.setdefault(key.strip(), value.strip()) != value.strip():
            raise InputError(f"{what} {key.strip()} is set twice, to different values")
    return settings


def require_program(option: str, found: Mapping[str, str], *paths: str) -> None:
    """Raise :class:`InputError` if an option of programs has values, and no path is a program."""
    if found and not any(path.endswith(PROGRAM_SUFFIXES) for path in paths):
        raise InputError(f"{option} is for programs, and no file ends in .py or .table: leave it out")


def parse_function(text: str) -> FunctionDeclaration:
    """``NAME=KIND[:LANGUAGE]`` as a declaration; raises :class:`InputError` naming the fault."""
    name, equals, rest = text.partition("=")
    try:
        if equals and name.strip():
            return FunctionDeclaration.of(name.strip(), rest.removesuffix(":"))
    except InputError:
        pass
    raise InputError(
        f"function {text!r} is not of the form NAME=KIND[:LANGUAGE] with KIND one of {', '.join(FUNCTION_KINDS)} "
        f"and LANGUAGE one of {', '.join(FUNCTION_LANGUAGES)}"
    )


def _require_jars(jars: tuple[Path, ...]) -> tuple[Path, ...]:
    for jar in jars:
        if not is_zipfile(jar):
            raise InputError(f"--jar {jar}: is no jar: name a jar file")
    return jars


def _as_it_is(value: Any) -> Any:
    return value


_JAR = click.Path(exists=True, dir_okay=False, resolve_path=True, path_type=Path)
_READERS: Mapping[str, Callable[[Any], Any]] = {
    "settings": parse_settings,
    "old_settings": parse_settings,
    "functions": lambda texts: tuple(map(parse_function, texts)),
    "variables": lambda pairs: parse_settings(pairs, "variable", "NAME=VALUE"),
    "jars": _require_jars,
}
"""Functions that parse the values of options, by the names of the options."""
_OF_JOB = declarations(JobOptions)
_DECLARED = {**_OF_JOB, **declarations(Given), **GATE}


@contextmanager
def command_errors(what: str, *extras: Extra, prefix: str = "") -> Iterator[None]:
    """Turn missing packages, and errors of a target or ledger, into errors of the command line.

    ``what`` needs the packages of ``extras``; ``prefix`` begins the message of an error.
    """
    from airflow_flinkcompat.deploy.errors import DeployError

    try:
        yield
    except ImportError as error:
        raise _bare_install(what, error, *extras) from None
    except DeployError as error:
        from airflow_flinkcompat.deploy.ledger.history import DeploymentNameError
        from airflow_flinkcompat.deploy.ledger.store import LedgerError

        of_ledger = isinstance(error, LedgerError) and not isinstance(error, DeploymentNameError)
        kind = OutOfReachError if of_ledger or error.unanswered else InputError
        raise kind(f"{prefix}{error}") from None


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_progress(line: str) -> None:
    """Print a line on standard error, secrets masked."""
    click.echo(mask_secrets(line), err=True)


def require_spark(what: str, *extras: Extra) -> None:
    """Check that PySpark is installed, before anything is requested of a cluster."""
    if find_spec("pyspark") is None:
        raise _bare_install(what, ModuleNotFoundError(name="pyspark"), *extras, "spark")


def _bare_install(what: str, error: ImportError, *extras: Extra) -> InputError:
    """The error of a command whose packages are not part of the bare install."""
    missing = missing_packages(*extras) or (str(error.name),)
    return InputError(
        f"{what} needs packages that are not installed ({', '.join(missing)}): {install_command(*extras)}"
    )
