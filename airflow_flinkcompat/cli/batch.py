"""``flinkcompat batch``: many changes as JSON lines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

import click

from airflow_flinkcompat.cli.arguments import (
    engine_option,
    fails_gate,
    parse_function,
    require_engine,
)
from airflow_flinkcompat.compat import Report, Reports, Side, check, check_engines
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.model import ENGINES, FunctionDeclaration, InputError, Outcome
from airflow_flinkcompat.project import DEFAULT_GATE, FAIL_ON
from airflow_flinkcompat.secrets import mask_secrets


@click.command("batch")
@click.argument("pairs", metavar="PAIRS.jsonl|-")
@engine_option
@click.option("--engine-version", help="Version of the engine that is named, for instance 2.3.")
@click.option(
    "--fail-on",
    type=click.Choice(tuple(FAIL_ON)),
    help=f"Exit with 1 for this and worse (default: never, and {DEFAULT_GATE} where no engine is named).",
)
def batch_command(pairs: str, engine: str | None, engine_version: str | None, fail_on: str | None) -> None:
    """Check many changes: one JSON object {"id","old","new"} a line in, one answer a line out, in order.

    A line may name its "engine". Where neither it nor the command does, both are judged: the answer's outcome and
    findings are those of the worse verdict, and "engines" holds each engine's own. A pair or line that cannot be read,
    for errors of syntax in a script too, answers {"id","line","error"} and the rest go on. Literal secrets of the new
    script keep no verdict back: they are named in "warnings".

    The exit code is that of the worst answer: 1 where one fails the gate of --fail-on, 2 where one is an error and
    there is a gate.
    """
    require_engine(engine, engine_version=engine_version)
    try:
        stream: IO[bytes] = sys.stdin.buffer if pairs == "-" else open(pairs, "rb")  # noqa: SIM115, PTH123
    except OSError as error:
        raise InputError(f"{pairs}: cannot be read: {error.strerror}") from error
    with stream:
        code = 0
        for answer in batch(stream, engine, engine_version):
            click.echo(json.dumps(answer, ensure_ascii=False))
            sys.stdout.flush()
            code = max(code, _exit_code(answer, fail_on, engine))
    sys.exit(code)


def _exit_code(answer: Mapping[str, Any], fail_on: str | None, engine: str | None) -> int:
    """What one answer means for the exit code. Where an engine is named there is no gate, unless one is asked for."""
    if "error" in answer:
        return 2 if (fail_on or (DEFAULT_GATE if engine is None else "never")) != "never" else 0
    gate = fail_on or (DEFAULT_GATE if "engines" in answer else "never")
    return int(fails_gate(Outcome(answer["outcome"]), gate))


def batch(lines: Iterable[bytes], engine: str | None, engine_version: str | None) -> Iterator[dict[str, Any]]:
    """One answer for every line that is not blank, as it comes."""
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        identity: Any = None
        try:
            pair = json.loads(raw.decode("utf-8"), parse_constant=_no_number, parse_float=_finite)
            if not isinstance(pair, dict):
                raise InputError('a line must be a JSON object {"id", "old", "new"}')
            _require_unicode("id", pair.get("id"))
            identity = pair.get("id")
            _require_unicode("the line", pair)
            report, secrets = _checked(pair, engine, engine_version)
        except (ValueError, RecursionError) as error:
            message = "the pair is nested too deeply" if isinstance(error, RecursionError) else str(error)
            yield {"id": identity, "line": number, "error": mask_secrets(message)}
        else:
            yield {"id": identity, **_answer(report), **({"warnings": secrets} if secrets else {})}


def _answer(report: Report | Reports) -> dict[str, Any]:
    """Outcome and findings; of the worse verdict where both engines were asked, with those of each."""
    if isinstance(report, Reports):
        return {**_answer(report.each[0]), "engines": {each.engine: _answer(each) for each in report.each}}
    return {"outcome": report.outcome.value, "findings": report.to_dict()["findings"]}


def _checked(pair: Mapping[str, Any], engine: str | None, version: str | None) -> tuple[Report | Reports, list[str]]:
    """The report on one line of a batch, and the literal secrets that keep its new side from being deployed.

    Raises ValueError naming what is wrong with the line, errors of syntax included.
    """
    own = pair.get("engine", engine)
    if "engine" not in pair and engine is None:
        own = None
    elif not isinstance(own, str) or own not in ENGINES:
        raise InputError(f"engine {own!r} is not one of {', '.join(ENGINES)}")
    functions = _functions(pair.get("functions"))

    def side(name: str) -> Side:
        script = pair.get(name)
        if not isinstance(script, str):
            raise InputError(f'"{name}" must be the text of a script')
        settings = _settings(f"settings_{name}", pair.get(f"settings_{name}"))
        named = own or next(iter(ENGINES))
        return Side(script, settings, functions, "", named, version if own == engine else None, name)

    old, new = side("old"), side("new")
    found = obstacles(new)
    if malformed := [str(each) for each in (*found, *obstacles(old)) if each.kind is ObstacleKind.SYNTAX]:
        raise InputError("; ".join(malformed))
    secrets = [mask_secrets(str(each)) for each in found]
    return check_engines(old, new) if own is None else check(old, new), secrets


def _functions(declared: Any) -> tuple[FunctionDeclaration, ...]:
    """``["f=scalar"]`` or ``{"f": "scalar"}`` as declarations. Raises :class:`InputError` where it is neither."""
    if isinstance(declared, Mapping):
        declared = [f"{name}={kind}" for name, kind in declared.items()]
    if declared is None:
        return ()
    if not isinstance(declared, list) or not all(isinstance(text, str) for text in declared):
        raise InputError('"functions" must be a list ["NAME=KIND[:LANGUAGE]"] or an object {"NAME": "KIND[:LANGUAGE]"}')
    return tuple(map(parse_function, declared))


def _settings(name: str, settings: Any) -> dict[str, str]:
    """Settings as texts: ``true`` and numbers as JSON writes them. Raises :class:`InputError` naming a bad one."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InputError(f'"{name}" must be an object of settings')
    for key, value in settings.items():
        if not isinstance(value, str | int | float):  # bool is an int
            raise InputError(f'"{name}": the value of {key!r} must be a text, a number, true or false')
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}


def _no_number(text: str) -> float:
    raise InputError(f"{text} is no number in JSON")


def _finite(text: str) -> float:
    """Raises :class:`InputError` for a number that could not be written back."""
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _require_unicode(what: str, value: Any) -> None:
    r"""Raises :class:`InputError` for half a character: ``\ud800`` is read, and could be written nowhere."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} holds half of a surrogate pair, which is no character") from None
