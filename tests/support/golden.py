"""What the product says of everything the repository holds, to compare before and after a move that changes nothing.

``python -m tests.support.golden FOLDER`` writes JSON lines: ``reports.jsonl`` (every fixture case and measured pair on
both engines), ``programs.jsonl`` (every program against itself, on both engines), ``backfills.jsonl`` (the plan of a
backfill of every fixture script, or why there is none), ``migrations.jsonl`` (the state that a rewritten savepoint
keeps, by the compiled plans of every measured pair and stored savepoint), ``histories.jsonl`` (the query that computes
each state of a stored savepoint from past rows) and ``commands.jsonl`` (``--help`` of every command). Two folders are
compared with ``diff -r``;
``python -m tests.support.golden --outcomes OLD NEW`` lists the outcomes that differ.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import click

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, explain, plan
from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.compat import ENGINES, InputError, Side, check, render_text
from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.migration import Accept, migration
from airflow_flinkcompat.exec_graph.model import StateKind
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.queries import state_query
from airflow_flinkcompat.history.sources import AssumedHistory
from airflow_flinkcompat.model import JobSpec, language_of
from airflow_flinkcompat.plan import FunctionDeclaration
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases
from dev.measure import measured, results
from dev.measure.measured import planned
from dev.measure.savepoint_fixtures import SINKS, load_scripts
from tests.support.backfill.documented_windows import DOCUMENTED
from tests.support.backfill.scripts import bids
from tests.support.savepoint.savepoints import FOLDER as SAVEPOINTS
from tests.support.savepoint.savepoints import TAKEN

FIXTURES = Path(__file__).parents[1] / "fixtures"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
Row = dict[str, Any]
Pair = tuple[str, str, Side, Side]
"""An id that is unique, the engine, and both sides."""


def pairs() -> Iterator[Pair]:
    """Every fixture case and measured pair on both engines."""
    for folder in sorted({path.parent for path in (FIXTURES / "vvr").rglob("*.sql")}):
        for case in load_cases(folder):
            yield from _of_case(f"{folder.name}/{case.id}", case)
    for restore in measured.everything():
        yield from ((str(restore), engine, *restore.sides(engine)) for engine in ENGINES)
    for path in sorted(results.FOLDER.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        for entry in data["pairs"]:
            old, new = results.sides(entry, data["flink"])
            yield from ((f"{path.stem}/{entry['id']}", engine, old.on(engine), new.on(engine)) for engine in ENGINES)


def reports() -> Iterator[Row]:
    """The report of every fixture case and measured pair on both engines."""
    yield from _judged(pairs())


def programs() -> Iterator[Row]:
    """The report of every program of the fixtures against itself."""
    for path in sorted((FIXTURES / "table_api").rglob("*")):
        if path.suffix in (".py", ".table") and path.name != "__init__.py":
            text = path.read_text(encoding="utf-8")
            name = str(path.relative_to(FIXTURES))
            for engine in ENGINES:
                side = Side(text, engine=engine, source=path.name, language=language_of(path.name))
                yield from _judged([(name, engine, side, side)])


def backfills() -> Iterator[Row]:
    """The plan of a backfill of every fixture script."""
    for printed in DOCUMENTED:
        yield _planned(printed.title, BackfillRequest(JobSpec(bids(printed.query, printed.columns), source="job.sql")))
    for folder in sorted({path.parent for path in (FIXTURES / "vvr").rglob("*.sql")}):
        for case in load_cases(folder):
            request = BackfillRequest(JobSpec(case.new_script, source="job.sql", functions=_functions(case)))
            yield _planned(f"{folder.name}/{case.id}", request)


def _of_case(name: str, case: Case) -> Iterator[Pair]:
    for engine in ENGINES:
        old, new = (
            Side(script, settings, _functions(case), engine=engine, source=source)
            for script, settings, source in (
                (case.old_script, case.settings_old, "old.sql"),
                (case.new_script, case.settings_new, "new.sql"),
            )
        )
        yield name, engine, old, new


def _functions(case: Case) -> tuple[FunctionDeclaration, ...]:
    return tuple(FunctionDeclaration(*declared) for declared in case.functions)


def _judged(pairs: Iterable[Pair]) -> Iterator[Row]:
    for name, engine, old, new in pairs:
        row: Row = {"id": name, "engine": engine}
        try:
            report = check(old, new)
        except (InputError, ScriptError) as error:
            yield {**row, "outcome": "refused", "error": str(error)}
        else:
            yield {**row, "outcome": report.outcome.value, "report": report.to_dict(), "text": render_text(report)}


def _planned(name: str, request: BackfillRequest) -> Row:
    try:
        planned = plan(request)
        return {"id": name, "outcome": "planned", "text": explain(planned, request), "work": repr(planned.work)}
    except BackfillError as error:
        return {"id": name, "outcome": "refused", "error": str(error)}


def migrations() -> Iterator[Row]:
    """The state that a rewritten savepoint keeps of every measured pair with plans, and of every stored savepoint."""
    plans = [(name, sides) for name, (olds, news) in planned().items() for sides in zip(olds, news, strict=False)]
    stored = {name: read_plan((SAVEPOINTS / name / "plan.json").read_text("utf-8")) for name in TAKEN}
    for name, (old, new) in (*plans, *((name, (same, same)) for name, same in stored.items())):
        symbols = Symbols()
        before, after = (job_state(compiled_state(each, symbols, {}, SINKS), symbols) for each in (old, new))
        for accepted in ((), tuple(Accept)):
            found = migration(before, after, accepted=accepted)
            yield {
                "id": f"{name} {len(accepted)} accepted",
                "outcome": found.kept.value,
                "operators": list(map(_readable, found.operators)),
            }


def histories() -> Iterator[Row]:
    """The query that computes each state of a stored savepoint from past rows, or why there is none."""
    sides = {each.name: each.side for each in load_scripts()}
    for name in TAKEN:
        side = sides[name.partition("/")[2]]
        script = Side(side.script.replace("file://DATA", "file:///data"), dict(side.settings), engine="flink")
        symbols = Symbols()
        plan_of_job = read_plan((SAVEPOINTS / name / "plan.json").read_text("utf-8"))
        for spec in job_state(compiled_state(plan_of_job, symbols, {}, SINKS), symbols).specs:
            if spec.kind is not StateKind.OPERATOR:
                continue
            row: Row = {"id": f"{name} {spec.name}"}
            try:
                yield {**row, "outcome": "computed", "query": _readable(state_query(script, spec, AssumedHistory()))}
            except NotComputable as error:
                yield {**row, "outcome": "not computed", "error": str(error)}


def commands() -> Iterator[Row]:
    """``--help`` of every command."""

    def helps(command: click.Command, context: click.Context) -> Iterator[Row]:
        yield {"id": context.command_path, "outcome": "", "text": command.get_help(context)}
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                found = command.get_command(context, name)
                assert found is not None
                yield from helps(found, click.Context(found, parent=context, info_name=name, terminal_width=100))

    yield from helps(cli, click.Context(cli, info_name="flinkcompat", terminal_width=100))


def _readable(value: Any) -> Any:
    """A value as JSON: fields of dataclasses by name, sets in order, addresses left out."""
    if is_dataclass(value) and not isinstance(value, type):
        kept = ((each.name, _readable(getattr(value, each.name))) for each in fields(value) if each.name not in _ASIDE)
        return {type(value).__name__: {name: one for name, one in kept if one not in (None, [], {}, "", False)}}
    if isinstance(value, Mapping):
        return {str(_readable(key)): _readable(one) for key, one in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((_readable(one) for one in value), key=str)
    if isinstance(value, list | tuple):
        return list(map(_readable, value))
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return _ADDRESS.sub("", repr(value))


_ASIDE = ("compiled", "facets", "conditions", "planned")
"""Fields of a state that show in its layout and meaning, or in no migration."""
KINDS = {
    "reports": reports,
    "programs": programs,
    "backfills": backfills,
    "migrations": migrations,
    "histories": histories,
    "commands": commands,
}


def write(folder: Path) -> None:
    """Write every kind into a folder.

    Args:
        folder: made where it is missing; files of the same names are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for kind, rows in KINDS.items():
        with (folder / f"{kind}.jsonl").open("w", encoding="utf-8") as file:
            for row in rows():
                file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")


def changed(old: Path, new: Path) -> Iterator[str]:
    """What came out otherwise, a line each.

    Args:
        old: a folder that :func:`write` filled before.
        new: one that it filled afterwards.

    Returns:
        Kind, id, engine, both outcomes and the rules that decide now.
    """
    for kind in KINDS:
        before, after = (_outcomes(folder / f"{kind}.jsonl") for folder in (old, new))
        for key in sorted({*before, *after}):
            was, now = before.get(key, ("absent", "")), after.get(key, ("absent", ""))
            if was[0] != now[0]:
                yield "\t".join([kind, *key, was[0], now[0], now[1]])


def _outcomes(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        findings = row.get("report", {}).get("findings", [])
        rules = sorted({each["rule"] for each in findings if each["outcome"] == row["outcome"]})
        found[row["id"], row.get("engine", "")] = row["outcome"], ", ".join(rules) or row.get("error", "")[:100]
    return found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.golden", description="See the module's docstring.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--outcomes", action="store_true", help="List the outcomes that differ between two folders.")
    given = parser.parse_args()
    if given.outcomes:
        print("\n".join(changed(*given.folders)))
    else:
        write(given.folders[0])


if __name__ == "__main__":
    main()
