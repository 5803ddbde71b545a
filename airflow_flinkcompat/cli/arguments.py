"""Options that several commands share."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any
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
from airflow_flinkcompat.model.options import ENGINE_VARIABLE, LEDGER_VARIABLE
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import FAIL_ON, GATE, JobOptions, declarations
from airflow_flinkcompat.secrets import mask_secrets

Decorated = Callable[..., Any]
master_option = click.option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")


jobs_ledger_option = click.option(
    "--ledger",
    metavar="[URI]",
    is_flag=False,
    flag_value="",
    help=f"Judge the deployed versions in this ledger (without URI: the ledger of {LEDGER_VARIABLE} or the project "
    "file).",
)


def job_options(*names: str, where: str = "before the script's own", **words: str) -> Callable[[Decorated], Decorated]:
    """Add the options of a job, which the command receives as one argument ``given``.

    ``names`` are fields of ``JobOptions`` and ``Given``. ``where`` names the scripts to which a setting applies.
    ``words`` replaces the help of an option.
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
    """Add a declared option, which the command receives as the argument ``name`` or ``argument``."""
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
    """Add the option ``--format``."""
    kind = click.Choice(names)
    return click.option(
        "--format", "style", type=kind, default="text", show_default=True, help="The format of the output."
    )


def output_option(example: str) -> Callable[[Decorated], Decorated]:
    """Add the option ``--output``, which also writes other formats to files."""
    words = f"Also write this format to a file, such as {example}; may be repeated."
    return click.option("--output", "outputs", multiple=True, metavar="FORMAT=FILE", help=words)


@contextmanager
def output_files(style: str, outputs: Iterable[str], formats: Sequence[str]) -> Iterator[list[tuple[str, IO[str]]]]:
    """Open the standard output and each file of ``--output``, with their formats.

    The files appear when all are complete; after an error, former files remain as they are.
    """
    places = parse_outputs(outputs, formats)
    partial = {path: path.with_name(f".{path.name}.partial") for _, path in places}
    try:
        with ExitStack() as files:
            opened = [(name, files.enter_context(_writable(path, partial[path]))) for name, path in places]
            yield [(style, sys.stdout), *opened]
    except BaseException:
        for each in partial.values():
            each.unlink(missing_ok=True)
        raise
    for path, each in partial.items():
        each.replace(path)


def _writable(path: Path, partial: Path) -> IO[str]:
    """Open the partial file of ``path``. Raises InputError if ``path`` cannot be written."""
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        return partial.open("w", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"--output {path} cannot be written: {error.strerror}. Name a file in a folder that exists"
        ) from None


def parse_outputs(outputs: Iterable[str], formats: Sequence[str]) -> list[tuple[str, Path]]:
    """Parse ``FORMAT=FILE`` texts. Raises :class:`InputError` for a malformed text."""
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
    """Raise InputError for a version without an engine, or a version that the engine lacks."""
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
    """Colour the outcomes in a report; ``click.echo`` removes colours outside of terminals."""
    if os.environ.get("NO_COLOR"):
        return text
    return _OUTCOME.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0].lower()], bold=True), text)


def fails_gate(outcome: Outcome, fail_on: str) -> bool:
    """True if an outcome is as bad as ``fail_on``, or worse."""
    gate = FAIL_ON[fail_on]
    return gate is not None and outcome.rank >= gate.rank


def parse_settings(pairs: Iterable[str], what: str = "setting", form: str = "KEY=VALUE") -> dict[str, str]:
    """Parse ``K=V`` pairs.

    Raises :class:`InputError` for a malformed pair; ``what`` and ``form`` describe the pair in the message.
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{what} {mask_secrets(pair)!r} is not of the form {form}")
        if settings.setdefault(key.strip(), value.strip()) != value.strip():
            raise InputError(f"{what} {key.strip()} is set twice, to different values")
    return settings


def require_program(option: str, found: Mapping[str, str], *paths: str) -> None:
    """Raise :class:`InputError` if an option for programs has values, but no path is a program."""
    if found and not any(path.endswith(PROGRAM_SUFFIXES) for path in paths):
        raise InputError(f"{option} is for programs, but no file ends in .py or .table: leave the option out")


def parse_function(text: str) -> FunctionDeclaration:
    """Parse a declaration ``NAME=KIND[:LANGUAGE]``. Raises :class:`InputError` for any other form."""
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
            raise InputError(f"--jar {jar}: is not a jar: pass a jar file")
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
"""Parser for the values of each option, by option name."""
_OF_JOB = declarations(JobOptions)
_DECLARED = {**_OF_JOB, **declarations(Given), **GATE}


@contextmanager
def command_errors(what: str, *extras: Extra, prefix: str = "") -> Iterator[None]:
    """Turn missing packages and errors of a target or ledger into errors of the command line.

    ``what`` is the command that needs the packages of ``extras``. ``prefix`` begins messages about a target or ledger.
    """
    from airflow_flinkcompat.deploy.errors import DeployError

    try:
        yield
    except ImportError as error:
        raise _bare_install(what, error, *extras) from None
    except DeployError as error:
        from airflow_flinkcompat.deploy.ledger.ledger import DeploymentNameError
        from airflow_flinkcompat.deploy.ledger.store import LedgerError

        of_ledger = isinstance(error, LedgerError) and not isinstance(error, DeploymentNameError)
        kind = OutOfReachError if of_ledger or error.unanswered else InputError
        raise kind(f"{prefix}{error}") from None


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def print_progress(line: str) -> None:
    """Print a line to standard error, with masked secrets."""
    click.echo(mask_secrets(line), err=True)


def require_spark(what: str, *extras: Extra) -> None:
    """Raise InputError if PySpark is missing, before the command contacts a cluster."""
    if find_spec("pyspark") is None:
        raise _bare_install(what, ModuleNotFoundError(name="pyspark"), *extras, "spark")


def _bare_install(what: str, error: ImportError, *extras: Extra) -> InputError:
    """Error about missing packages, with the command that installs them."""
    missing = missing_packages(*extras) or (str(error.name),)
    return InputError(
        f"{what} needs packages that are not installed ({', '.join(missing)}): {install_command(*extras)}"
    )
