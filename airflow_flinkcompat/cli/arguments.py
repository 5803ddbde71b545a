"""Options that several commands take, and what they mean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
from airflow_flinkcompat.project import DEFAULT_GATE, FAIL_ON, FILE_NAME
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy import DeployError

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
ENGINE_VARIABLE = "FLINKCOMPAT_ENGINE"
engine_option = click.option(
    "--engine",
    type=click.Choice(tuple(ENGINES)),
    envvar=ENGINE_VARIABLE,
    show_envvar=True,
    help="The engine that runs the job (default: both are judged, and the worse verdict counts).",
)
"""The engine whose rules judge; None if neither the option nor the environment names one."""
engine_version_option = click.option("--engine-version", help="Version of the engine, for instance 2.3.")
function_option = click.option(
    "--function", "functions", multiple=True, metavar="NAME=KIND[:LANGUAGE]", help="Declare a function."
)
old_set_option = click.option(
    "--old-set", "old_settings", multiple=True, metavar="K=V", help="A setting in force on the old side instead."
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(tuple(FAIL_ON)),
    help=f"Exit with 1 for this outcome and worse (default: that of the project file, else {DEFAULT_GATE}).",
)
master_option = click.option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")


def set_option(where: str = "on both sides", about: str = "") -> Option:
    """The option for settings, which are in force there."""
    words = f"{about}{'a' if about else 'A'} setting in force {where}."
    return click.option("--set", "settings", multiple=True, metavar="K=V", help=words)


def format_option(*names: str) -> Option:
    """The option that names the format of what is printed."""
    kind = click.Choice(names)
    return click.option("--format", "style", type=kind, default="text", show_default=True, help="What is printed.")


def output_option(example: str) -> Option:
    """The option for files in further formats."""
    words = f"Also write this format to a file, as {example}; again for another one."
    return click.option("--output", "outputs", multiple=True, metavar="FORMAT=FILE", help=words)


def parse_outputs(outputs: Iterable[str], formats: Sequence[str]) -> list[tuple[str, Path]]:
    """``FORMAT=FILE`` each. Raises :class:`InputError` naming the one that is none."""
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
    """A version is one of a named engine: which one it belongs to is never guessed."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if engine is None and given:
        raise InputError(
            f"{' and '.join(given)}: a version of which engine? Add --engine {' or --engine '.join(ENGINES)}, "
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
    """A report with its outcomes in colour, for ``click.echo``, which leaves colours out of what is no terminal."""
    if os.environ.get("NO_COLOR"):
        return text
    return _OUTCOME.sub(lambda found: click.style(found[0], fg=_COLOURS[found[0].lower()], bold=True), text)


def fails_gate(outcome: Outcome, fail_on: str) -> bool:
    """Check if an outcome is the one that ``--fail-on`` names, or a worse one."""
    gate = FAIL_ON[fail_on]
    return gate is not None and outcome.rank >= gate.rank


def parse_settings(pairs: Iterable[str], what: str = "setting", form: str = "KEY=VALUE") -> dict[str, str]:
    """``K=V`` pairs as a mapping. Raises :class:`InputError` naming the one that is none, as ``what`` of ``form``."""
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{what} {mask_secrets(pair)!r} is not of the form {form}")
        if settings.setdefault(key.strip(), value.strip()) != value.strip():
            raise InputError(f"{what} {key.strip()} is given twice, with other values")
    return settings


def parse_variables(pairs: Iterable[str], paths: Iterable[str]) -> dict[str, str]:
    """``--var NAME=VALUE`` as a mapping. Raises :class:`InputError`: one is none, or no path is that of a program."""
    found = parse_settings(pairs, "variable", "NAME=VALUE")
    if found and not any(path.endswith(PROGRAM_SUFFIXES) for path in paths):
        raise InputError("--var belongs to programs: no file ends in .py or .table")
    return found


def parse_function(text: str) -> FunctionDeclaration:
    """``NAME=KIND[:LANGUAGE]`` as a declaration. Raises :class:`InputError` naming what is wrong."""
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


def cli_error(error: DeployError, what: str = "") -> InputError | OutOfReachError:
    """An error of the layer below as the command line tells it."""
    from airflow_flinkcompat.deploy.ledger.history import DeploymentNameError
    from airflow_flinkcompat.deploy.ledger.store import LedgerError

    text = f"{what}: {error}" if what else str(error)
    of_ledger = isinstance(error, LedgerError) and not isinstance(error, DeploymentNameError)
    return OutOfReachError(text) if of_ledger or error.unanswered else InputError(text)


def require_spark(what: str, *extras: Extra) -> None:
    """Check that PySpark is there, before anything is asked of a cluster."""
    if find_spec("pyspark") is None:
        raise bare_install(what, ModuleNotFoundError(name="pyspark"), *extras, "spark")


def bare_install(what: str, error: ImportError, *extras: Extra) -> InputError:
    """The error of a command that lacks packages that the bare install leaves out."""
    missing = missing_packages(*extras) or (str(error.name),)
    return InputError(
        f"{what} needs packages that are not installed ({', '.join(missing)}): {install_command(*extras)}"
    )
