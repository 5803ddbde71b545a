"""Verdicts on public changes, and the share of public programs that are read completely.

A corpus is a folder with ``real-changes.jsonl.gz`` (``id, old, new, cosmetic, judgement``) and
``pyflink-programs.jsonl.gz`` (``id, path, text``), one JSON object a line. The texts belong to others: they are read
where they lie, and no report quotes more of them than findings do.

Printed are the shares of answers on every engine, and the rules and reasons that decide over what is unknown or
incompatible. ``--planner always`` has Flink's planner judge engine ``flink``, where its jars are installed.
``--list unknown`` lists the changes of one answer with what decides over each.
A program is read whole where a check of it against itself is compatible; the share of those that use the Table API
since 1.14 and declare their tables is printed, too.

Exit status: 0 measured, 2 the folder holds no corpus.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Finding, InputError, Outcome, Report, Side, check
from airflow_flinkcompat.compat.checker import IN_BATCH, NO_INSERT
from airflow_flinkcompat.compat.deployable import bad_input
from airflow_flinkcompat.compat.rules.statements import statement_not_read as NOT_READ
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.model import ENGINES, PlannerMode, language_of
from airflow_flinkcompat.planner.judgement import PlannerUnavailable, judge
from airflow_flinkcompat.sql import ScriptError
from airflow_flinkcompat.sql.script import AS_SUBMITTED
from dev.measure import services

CHANGES, PROGRAMS = "real-changes.jsonl.gz", "pyflink-programs.jsonl.gz"
_TABLE_API = re.compile(r"\bTableEnvironment\b|\bStreamTableEnvironment\b")
_BEFORE_1_14 = re.compile(
    r"\b(?:BatchTableEnvironment|CsvTable(?:Source|Sink)|use_(?:old|blink)_planner|register_table_(?:source|sink)"
    r"|with_schema|insert_into|sql_update|pyflink\.table\.descriptors)\b"
    r"|\bTableConfig\(\)|\bt_env\.execute\("
)
"""Parts of the Table API until 1.13: selectable planners, descriptors and sources as objects."""
_DECLARES = re.compile(r"\bCREATE\s+(?:TEMPORARY\s+)?TABLE\b|\bTableDescriptor\b|\bfrom_elements\(", re.IGNORECASE)
_JARS = (
    *services.JARS["2.3"],
    "flink-sql-avro",
    "flink-sql-avro-confluent-registry",
    "flink-sql-parquet",
    "flink-sql-orc",
)
"""Connectors and formats that a user of these scripts would name; the catalogue covers the rest."""
NO_QUERY, TEMPLATE, SELECTS, BATCHES = "no query", "template", "bare SELECTs", "batch jobs"
REFUSED_NEW, REFUSED_OLD = "refused new", "refused old"
ANSWERS = (*(each.value for each in Outcome), REFUSED_NEW, REFUSED_OLD, TEMPLATE, SELECTS, BATCHES)
"""Every answer, except for sides without a statement or a query to judge."""


@dataclass(frozen=True)
class Told:
    """Verdict on one change for one engine. ``deciding`` are the findings that determine the outcome."""

    id: str
    engine: str
    outcome: str
    deciding: tuple[Finding, ...] = ()
    stateful: bool = False
    cosmetic: bool = False
    judgement: str = ""

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(sorted({finding.rule for finding in self.deciding}))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder: Path = options.corpus
    if missing := [name for name in (CHANGES, PROGRAMS) if not (folder / name).is_file()]:
        print(f"error: {folder} contains no {' and no '.join(missing)}: pass the folder of a corpus", file=sys.stderr)
        return 2
    changes = [told for change in read(folder / CHANGES) for told in tell(change, options.planner)]
    if options.list:
        print("\n".join(_listed(changes, options.list, options.engine)))
        return 0
    text = "\n".join(_report(changes, list(read(folder / PROGRAMS)), options.planner))
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev.measure corpus", description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the corpus")
    parser.add_argument(
        "--planner", choices=("always", "never"), default="never", help="ask Flink's planner on engine flink, or not"
    )
    parser.add_argument("--list", metavar="ANSWER", help="list the changes of this answer, and what decides over each")
    parser.add_argument("--engine", choices=ENGINES, default="flink", help="of --list (default: flink)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report into a file, too")
    return parser


def read(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def tell(change: dict[str, Any], planner: PlannerMode) -> Iterator[Told]:
    about: dict[str, Any] = {"cosmetic": bool(change.get("cosmetic")), "judgement": str(change.get("judgement") or "")}
    for engine in ENGINES:
        old, new = (Side(change[name], engine=engine, source=f"{name}.sql") for name in ("old", "new"))
        try:
            report = check(old, new)
        except (InputError, ScriptError):
            yield Told(change["id"], engine, NO_QUERY, **about)
            continue
        answer = ""
        if planner == "always" and engine == "flink":
            try:
                report = judge(old, new, planner, tuple(map(jars.fetch, _JARS)))
            except PlannerUnavailable:
                pass  # no answer counts as the answer without a planner
            except InputError:
                answer = REFUSED_NEW
        deciding = tuple(
            finding
            for finding in report.findings
            if not finding.overruled_by and finding.outcome is report.outcome is not Outcome.COMPATIBLE
        )
        found = answer_of(report, old, new)
        answer = answer if answer and found != TEMPLATE else found
        yield Told(change["id"], engine, answer, deciding, bool(report.operators), **about)


def answer_of(report: Report, old: Side, new: Side) -> str:
    """A report's answer for a user: bad input ends with exit code 2."""
    refused_new, refused_old = bad_input(new, new.engine), bad_input(old, old.engine, deployed=True)
    unread = [each.message for each in report.findings if each.rule == NOT_READ.code]
    if any(AS_SUBMITTED in each for each in (*refused_new, *refused_old, *unread)):
        return TEMPLATE
    if refused_new or (report.outcome is Outcome.INCOMPATIBLE and report.is_refused):
        return REFUSED_NEW
    unplanned = report.deployed_is_refused or any(
        "refuses the deployed script" in each.message for each in report.deciding
    )
    if refused_old or (unplanned and report.outcome is Outcome.UNKNOWN):
        return REFUSED_OLD
    if any(NO_INSERT in each for each in report.warnings):
        return SELECTS
    if any(IN_BATCH in each for each in report.warnings):
        return BATCHES
    return report.outcome.value


def _report(changes: Sequence[Told], programs: Sequence[dict[str, Any]], planner: PlannerMode) -> Iterator[str]:
    yield f"# What is said of real changes and programs, {datetime.now(UTC).date().isoformat()}"
    for engine in ENGINES:
        told = [each for each in changes if each.engine == engine and each.outcome != NO_QUERY]
        asked = ", with Flink's planner" if engine == "flink" and planner == "always" else ""
        yield f"\n## Changes on engine {engine}{asked}\n"
        yield from table(
            ("answer", "changes", "share", "without a stateful operator", "only format or comments"),
            (
                (
                    answer,
                    len(of),
                    f"{len(of) / len(told):.0%}",
                    sum(not each.stateful for each in of),
                    sum(each.cosmetic for each in of),
                )
                for answer in ANSWERS
                if (of := [each for each in told if each.outcome == answer])
            ),
        )
        yield f"\nJudged {len(told)}; {sum(each.engine == engine for each in changes) - len(told)} hold no query."
        for outcome in (Outcome.UNKNOWN, Outcome.INCOMPATIBLE):
            of = [each for each in told if each.outcome == outcome.value]
            yield f"\n### Why {outcome.value}\n"
            one, some = Counter(each.rules[0] for each in of if len(each.rules) == 1), Counter[str]()
            for each in of:
                some.update(each.rules)
            rows = ((rule, count, one[rule]) for rule, count in some.most_common())
            yield from table(("rule", "decides over", "alone"), rows)
        reasons = Counter(
            reason
            for each in told
            if each.outcome == Outcome.UNKNOWN.value
            for reason in {finding.reason.value for finding in each.deciding if finding.reason is not None}
        )
        yield "\n### Reasons of unknown\n"
        yield from table(("reason", "changes"), reasons.most_common())
    yield from _programs(programs)


def _programs(programs: Sequence[dict[str, Any]]) -> Iterator[str]:
    causes: Counter[str] = Counter()
    whole, modern = 0, Counter[bool]()
    for program in programs:
        text = program["text"]
        is_modern = bool(_TABLE_API.search(text) and _DECLARES.search(text)) and not _BEFORE_1_14.search(text)
        side = Side(text, language=language_of(program["path"]), source=program["path"])
        try:
            report = check(side, side)
        except (InputError, ScriptError) as error:
            causes[_cause(str(error))] += 1
            modern[False] += is_modern
            continue
        modern[report.outcome is Outcome.COMPATIBLE] += is_modern
        if report.outcome is Outcome.COMPATIBLE:
            whole += 1
        else:
            causes[_cause(next(f.message for f in report.findings if not f.overruled_by))] += 1
    yield "\n## Programs\n"
    yield f"Read whole: {whole} of {len(programs)}."
    yield f"Of those that use the Table API since 1.14 and declare their tables: {modern[True]} of {modern.total()}."
    yield "\n### The first cause that is told of the others\n"
    yield from table(("cause", "programs"), causes.most_common(40))


def _cause(message: str) -> str:
    return message.splitlines()[0][:160].replace("|", "/")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(str, row))} |"


def _listed(changes: Iterable[Told], outcome: str, engine: str) -> Iterator[str]:
    for each in changes:
        if each.engine == engine and each.outcome == outcome:
            yield f"{each.id} {'stateful' if each.stateful else 'stateless'} [{each.judgement}]"
            for finding in each.deciding:
                yield f"    {finding.rule}: {finding.message.splitlines()[0][:300]}"


if __name__ == "__main__":
    raise SystemExit(main())
