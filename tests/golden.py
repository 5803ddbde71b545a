"""What the product says of everything the repository holds, to compare before and after a move that changes nothing.

``python -m tests.golden FOLDER`` writes JSON lines: ``reports.jsonl`` (every fixture case and measured pair on both
engines), ``programs.jsonl`` (every program against itself, on both engines) and ``backfills.jsonl`` (the plan of a
backfill of every fixture script, or why there is none). Two folders are compared with ``diff -r``;
``python -m tests.golden --outcomes OLD NEW`` lists the outcomes that differ.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, explain, plan
from airflow_flinkcompat.compat import ENGINES, InputError, Side, check, render_text
from airflow_flinkcompat.model import JobSpec, language_of
from airflow_flinkcompat.plan import FunctionDeclaration
from airflow_flinkcompat.sql import ScriptError
from measure import results
from tests import measured
from tests.backfill.documented_windows import DOCUMENTED
from tests.backfill.scripts import bids
from tests.fixture_cases import Case, load_cases

FIXTURES = Path(__file__).parent / "fixtures"
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


KINDS = {"reports": reports, "programs": programs, "backfills": backfills}


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
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="See the module's docstring.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--outcomes", action="store_true", help="List the outcomes that differ between two folders.")
    given = parser.parse_args()
    if given.outcomes:
        print("\n".join(changed(*given.folders)))
    else:
        write(given.folders[0])


if __name__ == "__main__":
    main()
