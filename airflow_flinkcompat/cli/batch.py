"""``flinkcompat batch``, which checks many changes from JSON lines."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click

from airflow_flinkcompat.cli.arguments import fails_gate, job_options, parse_function, require_engine
from airflow_flinkcompat.cli.check import judged, with_waivers
from airflow_flinkcompat.cli.project import Given, judging, named_deployment, project_for, with_catalogs
from airflow_flinkcompat.cli.scripts import waivers_beside
from airflow_flinkcompat.compat import Report, Reports, Side
from airflow_flinkcompat.compat.deployable import bad_input, obstacles
from airflow_flinkcompat.model import ENGINES, FunctionDeclaration, InputError, Outcome, Waiver
from airflow_flinkcompat.planner.judgement import without_notice
from airflow_flinkcompat.project.file import FILE_NAME
from airflow_flinkcompat.project.job_options import DEFAULT_GATE
from airflow_flinkcompat.project.settings import ProjectFile
from airflow_flinkcompat.project.waivers import read_waivers
from airflow_flinkcompat.secrets import mask_secrets

_NOTICE = "notice"
"""Key of the notice that no planner is installed, which is printed once at the end."""


@click.command("batch")
@click.argument("pairs", metavar="PAIRS.jsonl|-")
@job_options(
    "engine",
    "engine_version",
    "fail_on",
    "planner",
    "jars",
    "config",
    fail_on="Exit with code 1 for this outcome and worse (default: the value in the project file, else never; "
    f"{DEFAULT_GATE} without an engine).",
)
def batch_command(pairs: str, given: Given) -> None:
    """Check many changes. Input: one JSON object {"id","old","new"} per line. Output: one answer per line.

    A line may set its "engine". If neither the line nor the command sets an engine, both engines are judged. Then the
    answer shows the outcome and findings of the worse verdict, and "engines" contains both verdicts. A line that cannot
    be read, or has a script with syntax errors, is answered with {"id","line","error"}. The other lines are still
    judged. A new script with literal secrets is judged, too, and "warnings" reports the secrets.

    A line may name a "deployment" of the project file. Then the options of this deployment and the waivers next to its
    script apply. Any other line is judged with the common options of the project file. A line may also contain
    "waivers", the text of a waivers file (flinkcompat accept). A waived finding stays in the answer, and "gate_outcome"
    is the outcome that the gate uses.

    The worst answer decides the exit code: 1 if an answer fails the gate of --fail-on, 2 if an answer is an error and a
    gate is set.
    """
    project = project_for(given.config, Path())
    common = judging(project, None, given)
    require_engine(common.options.engine, engine_version=given.options.engine_version)
    common.print_options()
    fail_on = given.fail_on or (project.fail_on if project else None)
    engine, project = common.options.engine, with_catalogs(project)
    try:
        stream: IO[bytes] = sys.stdin.buffer if pairs == "-" else open(pairs, "rb")  # noqa: SIM115, PTH123
    except OSError as error:
        raise InputError(f"{pairs}: cannot be read: {error.strerror}") from error
    with stream:
        code, notices = 0, dict[str, None]()
        for answer in batch(stream, given, project):
            if notice := answer.pop(_NOTICE, None):
                notices[notice] = None
            click.echo(json.dumps(answer, ensure_ascii=False))
            sys.stdout.flush()
            code = max(code, _exit_code(answer, fail_on, engine))
    for notice in notices:
        click.echo(f"flinkcompat: {notice}", err=True)
    sys.exit(code)


def _exit_code(answer: Mapping[str, Any], fail_on: str | None, engine: str | None) -> int:
    """The exit code for one answer. Without an engine, the default gate applies."""
    if "error" in answer:
        return 2 if (fail_on or (DEFAULT_GATE if engine is None else "never")) != "never" else 0
    gate = fail_on or (DEFAULT_GATE if "engines" in answer else "never")
    return int(fails_gate(Outcome(answer.get("gate_outcome", answer["outcome"])), gate))


def batch(lines: Iterable[bytes], given: Given, project: ProjectFile | None) -> Iterator[dict[str, Any]]:
    """Answer every line that is not blank, in order."""
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
            answer = _answered(pair, given, project)
        except (ValueError, RecursionError) as error:
            message = "the pair is nested too deeply" if isinstance(error, RecursionError) else str(error)
            yield {"id": identity, "line": number, "error": mask_secrets(message)}
        else:
            yield {"id": identity, **answer}


def _answer(report: Report | Reports, waived: bool) -> dict[str, Any]:
    """Outcome and findings of a change. For two engines, the worse verdict is followed by both verdicts."""
    gate = {"gate_outcome": report.gate_outcome.value} if waived else {}
    if isinstance(report, Reports):
        engines = {each.engine: _answer(each, waived) for each in report.each}
        return {**_answer(report.each[0], waived), **gate, "engines": engines}
    shown = report.to_dict()
    planned: dict[str, Any] = {key: shown[key] for key in ("ground", "disagrees") if key in shown}
    return {"outcome": report.outcome.value, **planned, **gate, "findings": shown["findings"]}


def _answered(pair: Mapping[str, Any], given: Given, project: ProjectFile | None) -> dict[str, Any]:
    """Answer to a line: the verdict, and warnings about literal secrets and waivers.

    Raises ValueError if the line or one of its scripts is invalid.
    """
    asked = replace(given.options, functions=_functions(pair.get("functions")))
    named = pair.get("engine", asked.engine)
    if "engine" in pair:
        if not isinstance(named, str) or named not in ENGINES:
            raise InputError(f"engine {named!r} is not one of {', '.join(ENGINES)}")
        usual = asked.engine or (project.common.engine if project else None)
        asked = replace(asked, engine=named, engine_version=asked.engine_version if named == usual else None)
    deployment = _text(pair, "deployment", "the name of a deployment in the project file")
    if deployment is not None and project is None:
        raise InputError(f'"deployment" needs a {FILE_NAME}, but none was found: add --config FILE')
    options = judging(project, None, Given(asked, deployment=deployment)).options
    waivers = _waivers(pair, project, deployment)

    def side(name: str) -> Side:
        script = _text(pair, name, "the text of a script")
        if script is None:
            raise InputError(f'"{name}" must be the text of a script')
        settings = {**options.settings, **_settings(f"settings_{name}", pair.get(f"settings_{name}"))}
        engine = options.engine or ENGINES[0]
        return Side(script, settings, options.functions, options.catalog, engine, options.engine_version, name)

    old, new = side("old"), side("new")
    if malformed := [
        *bad_input(replace(new, beside=old), options.engine),
        *bad_input(old, options.engine, deployed=True),
    ]:
        raise InputError("; ".join(malformed))
    report, notice = judged((old, new), ("old", "new"), options), ""
    said: tuple[str, ...] = ()
    if isinstance(report, Report):
        report, notice = without_notice(report)
        said = (report.doubt,) if report.doubt else ()
    found, notes = with_waivers(report, waivers, (old, new), (deployment or "", deployment or "OLD NEW"))
    warnings = [mask_secrets(str(each)) for each in (*obstacles(new), *said, *notes)]
    answer = {**_answer(found, bool(waivers)), **({"warnings": warnings} if warnings else {})}
    return {**answer, _NOTICE: notice} if notice else answer


def _waivers(pair: Mapping[str, Any], project: ProjectFile | None, deployment: str | None) -> tuple[Waiver, ...]:
    """The waivers in a line, or else the waivers next to the script of its deployment."""
    text = _text(pair, "waivers", "the text of a file of waivers")
    if text is not None:
        return read_waivers(text, "waivers")
    if project is None or deployment is None:
        return ()
    return waivers_beside(os.path.relpath(project.folder / named_deployment(project, deployment).script))


def _text(pair: Mapping[str, Any], key: str, what: str) -> str | None:
    """The text under a key of the line; None if absent. Raises :class:`InputError` for any other value."""
    value = pair.get(key)
    if key in pair and not isinstance(value, str):
        raise InputError(f'"{key}" must be {what}')
    return value


def _functions(declared: Any) -> tuple[FunctionDeclaration, ...]:
    """Parse declarations such as ``["f=scalar"]`` or ``{"f": "scalar"}``. Raises :class:`InputError`."""
    if isinstance(declared, Mapping):
        declared = [f"{name}={kind}" for name, kind in declared.items()]
    if declared is None:
        return ()
    if not isinstance(declared, list) or not all(isinstance(text, str) for text in declared):
        raise InputError('"functions" must be a list ["NAME=KIND[:LANGUAGE]"] or an object {"NAME": "KIND[:LANGUAGE]"}')
    return tuple(map(parse_function, declared))


def _settings(name: str, settings: Any) -> dict[str, str]:
    """Parse settings; ``true`` and numbers become their JSON text. Raises :class:`InputError`."""
    if settings is None:
        return {}
    if not isinstance(settings, Mapping):
        raise InputError(f'"{name}" must be an object of settings')
    for key, value in settings.items():
        if not isinstance(value, str | int | float):  # bool is an int
            raise InputError(f'"{name}": the value of {key!r} must be a text, a number, true or false')
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in settings.items()}


def _no_number(text: str) -> float:
    raise InputError(f"{text} is not a number in JSON")


def _finite(text: str) -> float:
    """Parse a number. Raises :class:`InputError` if JSON cannot express it."""
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _require_unicode(what: str, value: Any) -> None:
    r"""Raise :class:`InputError` for half of a surrogate pair such as ``\ud800``: UTF-8 cannot encode it."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} contains half of a surrogate pair, which is not a character") from None
