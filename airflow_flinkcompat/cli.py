"""The command line ``flinkcompat``: the same judgement without Airflow.

Exit codes: 0 passed, 1 failed the gate, 2 bad input or usage (a clear message, no traceback).
"""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click

from airflow_flinkcompat import __version__
from airflow_flinkcompat.compat import ENGINES, InputError, Outcome, Report, Side, check, render_markdown, render_text
from airflow_flinkcompat.compat.catalogue import BY_CODE, as_data, explain, near, overview, select
from airflow_flinkcompat.compat.pages import write_pages
from airflow_flinkcompat.compat.planner import Plans
from airflow_flinkcompat.compat.render import WIDTH
from airflow_flinkcompat.plan import FunctionDeclaration
from airflow_flinkcompat.sql import ScriptError, mask_secrets, read_script, read_text

KINDS = ("scalar", "aggregate", "table")
LANGUAGES = ("java", "scala", "python")
GATES: Mapping[str, Outcome | None] = {
    "partial": Outcome.PARTIAL,
    "unknown": Outcome.UNKNOWN,
    "incompatible": Outcome.INCOMPATIBLE,
    "never": None,
}


def parse_settings(pairs: Iterable[str], what: str = "setting", form: str = "KEY=VALUE") -> dict[str, str]:
    """``K=V`` pairs as a mapping. Raises :class:`InputError` naming the one that is none, as ``what`` of ``form``."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{what} {mask_secrets(pair)!r} is not of the form {form}")
        settings[key.strip()] = value.strip()
    return settings


def parse_function(text: str) -> FunctionDeclaration:
    """``NAME=KIND[:LANGUAGE]`` as a declaration. Raises :class:`InputError` naming what is wrong."""
    name, equals, rest = text.partition("=")
    kind, _, language = rest.partition(":")
    if not equals or not name.strip() or kind not in KINDS or (language and language not in LANGUAGES):
        raise InputError(
            f"function {text!r} is not of the form NAME=KIND[:LANGUAGE] with KIND one of {', '.join(KINDS)} "
            f"and LANGUAGE one of {', '.join(LANGUAGES)}"
        )
    return FunctionDeclaration(name.strip(), kind, language or "java")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="flinkcompat")
def cli() -> None:
    """Know what a change to a Flink SQL job does to its state."""


@cli.command("check")
@click.argument("old")
@click.argument("new")
@click.option(
    "--engine", type=click.Choice(tuple(ENGINES)), default="vvr", show_default=True, help="Whose state semantics."
)
@click.option("--engine-version", help="Version of the engine, for instance 2.3.")
@click.option("--old-engine-version", help="Version the deployed job runs on (default: the same).")
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting in force on both sides.")
@click.option(
    "--old-set", "old_settings", multiple=True, metavar="K=V", help="A setting in force on the old side instead."
)
@click.option("--function", "functions", multiple=True, metavar="NAME=KIND[:LANGUAGE]", help="Declare a function.")
@click.option("--catalog", metavar="FILE", help="DDL of tables the scripts do not declare.")
@click.option("--format", "style", type=click.Choice(("text", "json", "markdown")), default="text", show_default=True)
@click.option(
    "--fail-on", type=click.Choice(tuple(GATES)), default="unknown", show_default=True, help="That and worse."
)
@click.option("--explain-plan", is_flag=True, help="Have Flink's planner compile both scripts and compare the plans.")
@click.option("--gateway", metavar="URL", help="SQL Gateway that plans (default: one started here from the jars).")
@click.option("--plan-dir", metavar="URI", help="Folder the Gateway writes plans to, seen from here too.")
def check_command(
    old: str,
    new: str,
    engine: str,
    engine_version: str | None,
    old_engine_version: str | None,
    settings: tuple[str, ...],
    old_settings: tuple[str, ...],
    functions: tuple[str, ...],
    catalog: str | None,
    style: str,
    fail_on: str,
    explain_plan: bool,
    gateway: str | None,
    plan_dir: str | None,
) -> None:
    """Check the change from script OLD to script NEW.

    Settings given with --set hold on both sides; --old-set replaces or adds to them on the old side. With
    --explain-plan (engine flink) both scripts are planned, and nothing is started.
    """
    if explain_plan and engine != "flink":
        raise InputError("--explain-plan compares plans of open-source Flink: add --engine flink")
    if (gateway or plan_dir) and not explain_plan:
        raise InputError("--gateway and --plan-dir belong to --explain-plan: add it")
    shared = parse_settings(settings)
    declared = tuple(parse_function(text) for text in functions)
    ddl = read_script(catalog).text if catalog else ""

    def side(path: str, own: Mapping[str, str], version: str | None) -> Side:
        return Side(read_text(path), {**shared, **own}, declared, ddl, engine, version, path)

    before = side(old, parse_settings(old_settings), old_engine_version or engine_version)
    after = side(new, {}, engine_version)
    plans = _plans(before, after, gateway, plan_dir) if explain_plan else None
    report = check(before, after, with_other_engine=True, plans=plans)
    click.echo(render(report, style), nl=False)
    gate = GATES[fail_on]
    if gate is not None and report.outcome.rank >= gate.rank:
        sys.exit(1)


def _plans(old: Side, new: Side, gateway: str | None, folder: str | None) -> Plans:
    """The compiled plans of both sides. Raises :class:`InputError` where they cannot be had."""
    try:
        from airflow_flinkcompat.deploy import DeployError, explain_plans
    except ImportError as error:
        raise InputError(
            f"--explain-plan needs more than the bare install ({error.name} is missing): "
            "pip install 'airflow-flinkcompat[local-flink]'"
        ) from None
    for each in (old, new):
        each.require_query()
    try:
        return explain_plans(old, new, gateway, folder=folder)
    except DeployError as error:
        raise InputError(f"--explain-plan: {error}") from None


def render(report: Report, style: str) -> str:
    """The report as ``text``, ``json`` or ``markdown``, ending in a line break."""
    if style == "json":
        return json.dumps(report.to_dict(), ensure_ascii=False, indent=2) + "\n"
    if style == "markdown":
        return render_markdown(report)
    return render_text(report, min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 72), 120))


@cli.command("batch")
@click.argument("pairs", metavar="PAIRS.jsonl|-")
@click.option("--engine", type=click.Choice(tuple(ENGINES)), default="vvr", show_default=True)
@click.option("--engine-version")
def batch_command(pairs: str, engine: str, engine_version: str | None) -> None:
    """Check many changes: one JSON object {"id","old","new"} a line in, one answer a line out, in order.

    A pair or line that cannot be read answers {"id","line","error"} and the rest go on.
    """
    try:
        stream: IO[bytes] = sys.stdin.buffer if pairs == "-" else open(pairs, "rb")  # noqa: SIM115, PTH123
    except OSError as error:
        raise InputError(f"{pairs}: cannot be read: {error.strerror}") from error
    with stream:
        for answer in batch(stream, engine, engine_version):
            click.echo(json.dumps(answer, ensure_ascii=False))
            sys.stdout.flush()


def batch(lines: Iterable[bytes], engine: str, engine_version: str | None) -> Iterator[dict[str, Any]]:
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
            report = _checked(pair, engine, engine_version)
        except (ValueError, RecursionError) as error:
            message = "the pair is nested too deeply" if isinstance(error, RecursionError) else str(error)
            yield {"id": identity, "line": number, "error": mask_secrets(message)}
        else:
            findings = report.to_dict()["findings"]
            yield {"id": identity, "outcome": report.outcome.value, "findings": findings}


def _checked(pair: Mapping[str, Any], engine: str, version: str | None) -> Report:
    """The report on one line of a batch. Raises ValueError naming what is wrong with it."""
    own = pair.get("engine", engine)
    if not isinstance(own, str) or own not in ENGINES:
        raise InputError(f"engine {own!r} is not one of {', '.join(ENGINES)}")
    functions = _functions(pair.get("functions"))

    def side(name: str) -> Side:
        script = pair.get(name)
        if not isinstance(script, str):
            raise InputError(f'"{name}" must be the text of a script')
        settings = _settings(f"settings_{name}", pair.get(f"settings_{name}"))
        return Side(script, settings, functions, "", own, version if own == engine else None, name)

    return check(side("old"), side("new"))


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
    """Raises :class:`InputError` for half a character: ``\\ud800`` is read, and could be written nowhere."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(f"{what} holds half of a surrogate pair, which is no character") from None


@cli.command("rules")
@click.argument("code", required=False)
@click.option("--engine", type=click.Choice(tuple(ENGINES)), help="With --outcome: on that engine (default: on any).")
@click.option("--outcome", type=click.Choice([each.value for each in Outcome]), help="Only rules with that outcome.")
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--write", "folder", metavar="DIR", help="Write a page for each rule into DIR instead.")
def rules_command(code: str | None, engine: str | None, outcome: str | None, style: str, folder: str | None) -> None:
    """The catalogue of rules, or one rule explained with its example."""
    if folder is not None:
        try:
            changed = write_pages(Path(folder))
        except OSError as error:
            raise InputError(f"{error.filename or folder}: cannot be written: {error.strerror}") from error
        click.echo(f"{folder}: {len(changed)} pages changed" if changed else f"{folder}: up to date")
        return
    rules = select(engine, Outcome(outcome) if outcome else None)
    if code is not None:
        if code not in BY_CODE:
            meant = ", ".join(near(code))
            hint = f"did you mean {meant}?" if meant else "`flinkcompat rules` lists them"
            raise InputError(f"there is no rule {mask_secrets(code)!r}; {hint}")
        rules = (BY_CODE[code],)
    if style == "json":
        data = [as_data(rule) for rule in rules]
        click.echo(json.dumps(data[0] if code else data, ensure_ascii=False, indent=2))
    else:
        click.echo(explain(rules[0]) if code else overview(rules), nl=False)


@cli.command("backfill")
@click.argument("script", metavar="SCRIPT.sql")
@click.option("--from", "from_", metavar="TS", help="Publish windows from here on.")
@click.option("--to", metavar="TS", help="Publish windows that end by then.")
@click.option("--table", "tables", multiple=True, metavar="NAME=URI", help="Read a table from another place.")
@click.option("--sink", "sinks", multiple=True, metavar="NAME=URI", help="Write a sink to another place instead.")
@click.option("--set", "settings", multiple=True, metavar="K=V", help="A setting in force before the script's own.")
@click.option("--catalog", metavar="FILE", help="DDL of tables the script does not declare.")
@click.option("--master", metavar="URL", help="Spark master (default: all cores of this machine).")
@click.option(
    "--late",
    type=click.Choice(("include", "drop")),
    default="include",
    show_default=True,
    help="Rows that a live job's watermark would have found too late.",
)
@click.option(
    "--native",
    type=click.Choice(("auto", "off")),
    default="auto",
    show_default=True,
    help="Whether DuckDB may aggregate parquet files inside Spark's tasks, where that is less work.",
)
@click.option("--chunk", metavar="LENGTH", help="Compute the range in parts, as 1d or 6h; a later run takes them up.")
@click.option("--journal", metavar="URI", help="Where finished chunks are kept (default: beside a sink's folder).")
@click.option("--boundary", metavar="TS", help="Where the live job's own windows begin; the backfill ends there.")
@click.option("--allow-incomplete", is_flag=True, help="The source went quiet: it need not have passed the boundary.")
@click.option("--hand-over", metavar="FILE", help="With --boundary: write what the deployment has to know.")
@click.option("--dry-run", is_flag=True, help="Say what would be read, computed and written; start nothing.")
@click.option("--format", "style", type=click.Choice(("text", "json")), default="text", show_default=True)
def backfill_command(
    script: str,
    from_: str | None,
    to: str | None,
    tables: tuple[str, ...],
    sinks: tuple[str, ...],
    settings: tuple[str, ...],
    catalog: str | None,
    master: str | None,
    late: str,
    native: str,
    chunk: str | None,
    journal: str | None,
    boundary: str | None,
    allow_incomplete: bool,
    hand_over: str | None,
    dry_run: bool,
    style: str,
) -> None:
    """Recompute SCRIPT over history with Spark: exactly the windows that lie wholly inside [from, to).

    Progress goes to standard error, the reconciliation to standard output. With --boundary the windows of a live job
    begin where these end, and the record of --hand-over (written before anything runs, with --dry-run as well) tells
    where its sources have to start.
    """
    if not dry_run:
        try:
            import pyspark  # noqa: F401
        except ImportError:
            raise InputError("backfill needs Spark: pip install 'airflow-flinkcompat[spark]'") from None
    if (hand_over or allow_incomplete) and not boundary:
        raise InputError("--hand-over and --allow-incomplete belong to --boundary: add it")
    if journal and not chunk:
        raise InputError("--journal belongs to --chunk: add it")
    from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, parse_duration, parse_time, run_backfill
    from airflow_flinkcompat.backfill import explain as explain_backfill
    from airflow_flinkcompat.backfill import plan as plan_backfill

    read = read_script(script)
    try:
        request = BackfillRequest(
            script_text=read.text,
            source=script,
            settings=parse_settings(settings),
            catalog=read_script(catalog).text if catalog else "",
            from_=parse_time(from_) if from_ else None,
            to=parse_time(to) if to else None,
            tables=parse_settings(tables, "table", "NAME=URI"),
            sinks=parse_settings(sinks, "sink", "NAME=URI"),
            master=master,
            late=late,
            native=native,
            boundary=parse_time(boundary) if boundary else None,
            allow_incomplete=allow_incomplete,
            chunk=parse_duration(chunk) if chunk else None,
            journal=journal,
        )
        planned = plan_backfill(request)
        if hand_over and planned.hand_over:
            Path(hand_over).write_text(planned.hand_over.to_json(), encoding="utf-8")
        if dry_run:
            click.echo(explain_backfill(planned, request), nl=False)
            return
        for line in planned.hand_over.lines() if planned.hand_over else ():
            click.echo(line, err=True)
        result = run_backfill(request, lambda line: click.echo(mask_secrets(line), err=True))
    except BackfillError as error:
        raise InputError(str(error)) from error
    if style == "json":
        click.echo(json.dumps(result.to_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(mask_secrets("\n".join(result.lines())))


def main() -> None:
    """Entry point: usage and input errors end with exit code 2 and one clear message."""
    try:
        code = cli.main(prog_name="flinkcompat", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(2)
    except BrokenPipeError:
        # The reader closed the pipe (head): nothing is wrong here.
        sys.stderr.close()
        sys.exit(0)
    except (ScriptError, InputError) as error:
        click.echo(f"flinkcompat: {mask_secrets(str(error))}", err=True)
        sys.exit(2)
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        click.echo(f"flinkcompat: {mask_secrets(place)}input or output failed: {error.strerror or error}", err=True)
        # What could not be written would be tried once more at exit.
        with contextlib.suppress(OSError):
            sys.stdout.close()
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
