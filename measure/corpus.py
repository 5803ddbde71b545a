"""What ``check`` says of real changes, and how many real programs are read whole: ``make measure-corpus``.

A corpus is a folder with ``real-changes.jsonl.gz`` (``id, old, new, cosmetic, judgement``) and
``pyflink-programs.jsonl.gz`` (``id, path, text``), one JSON object a line. The texts belong to others: they are read
where they lie, and no report quotes more of them than findings do.

Printed are the shares of outcomes on every engine, how many of each the command line refuses as bad input instead,
and, for what is unknown or incompatible, the rules that decide.
``--list unknown`` lists the changes of one outcome with what decides over each.
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

from airflow_flinkcompat.compat import Finding, InputError, Outcome, Side, check
from airflow_flinkcompat.compat.deployable import ObstacleKind, obstacles
from airflow_flinkcompat.model import ENGINES, language_of
from airflow_flinkcompat.sql import ScriptError

CHANGES, PROGRAMS = "real-changes.jsonl.gz", "pyflink-programs.jsonl.gz"
_TABLE_API = re.compile(r"\bTableEnvironment\b|\bStreamTableEnvironment\b")
_BEFORE_1_14 = re.compile(
    r"\b(?:BatchTableEnvironment|CsvTable(?:Source|Sink)|use_(?:old|blink)_planner|register_table_(?:source|sink)"
    r"|with_schema|insert_into|sql_update|pyflink\.table\.descriptors)\b"
    r"|\bTableConfig\(\)|\bt_env\.execute\("
)
"""What the Table API had until 1.13: planners to choose, descriptors and sources as objects."""
_DECLARES = re.compile(r"\bCREATE\s+(?:TEMPORARY\s+)?TABLE\b|\bTableDescriptor\b|\bfrom_elements\(", re.IGNORECASE)
NO_QUERY = "no query"
"""What is told of a change where a side holds no statement or no query: there is nothing to judge."""


@dataclass(frozen=True)
class Told:
    """What is said of one change on one engine. ``deciding`` are the findings that make the outcome.

    ``bad_input``: a side is no SQL that could be deployed, so the command line answers with exit code 2 instead.
    """

    id: str
    engine: str
    outcome: str
    deciding: tuple[Finding, ...] = ()
    stateful: bool = False
    cosmetic: bool = False
    bad_input: bool = False
    judgement: str = ""

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(sorted({finding.rule for finding in self.deciding}))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder: Path = options.corpus
    if missing := [name for name in (CHANGES, PROGRAMS) if not (folder / name).is_file()]:
        print(f"error: {folder} holds no {' and no '.join(missing)}: name the folder of a corpus", file=sys.stderr)
        return 2
    changes = [told for change in _rows(folder / CHANGES) for told in _tell(change)]
    if options.list:
        print("\n".join(_listed(changes, options.list, options.engine)))
        return 0
    text = "\n".join(_report(changes, list(_rows(folder / PROGRAMS))))
    print(text)
    if options.write:
        options.write.write_text(text + "\n", encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m measure.corpus", description=__doc__)
    parser.add_argument("corpus", type=Path, help="the folder of the corpus")
    parser.add_argument(
        "--list", metavar="OUTCOME", help="list the changes of this outcome, and what decides over each"
    )
    parser.add_argument("--engine", choices=list(ENGINES), default="flink", help="of --list (default: flink)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the report into a file, too")
    return parser


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _tell(change: dict[str, Any]) -> Iterator[Told]:
    about: dict[str, Any] = {"cosmetic": bool(change.get("cosmetic")), "judgement": str(change.get("judgement") or "")}
    for engine in ENGINES:
        old, new = (Side(change[name], engine=engine, source=f"{name}.sql") for name in ("old", "new"))
        try:
            report = check(old, new)
        except (InputError, ScriptError):
            yield Told(change["id"], engine, NO_QUERY, **about)
            continue
        deciding = tuple(
            finding
            for finding in report.findings
            if not finding.overruled_by and finding.outcome is report.outcome is not Outcome.COMPATIBLE
        )
        about["bad_input"] = any(each.kind is ObstacleKind.SYNTAX for side in (old, new) for each in obstacles(side))
        yield Told(change["id"], engine, report.outcome.value, deciding, bool(report.operators), **about)


def _report(changes: Sequence[Told], programs: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"# What is said of real changes and programs, {datetime.now(UTC).date().isoformat()}"
    for engine in ENGINES:
        told = [each for each in changes if each.engine == engine and each.outcome != NO_QUERY]
        yield f"\n## Changes on engine {engine}\n"
        yield from _table(
            ("outcome", "changes", "share", "without a stateful operator", "only format or comments", "bad input"),
            (
                (
                    outcome,
                    len(of),
                    f"{len(of) / len(told):.0%}" if told else "",
                    sum(not each.stateful for each in of),
                    sum(each.cosmetic for each in of),
                    sum(each.bad_input for each in of),
                )
                for outcome in (each.value for each in Outcome)
                if (of := [each for each in told if each.outcome == outcome])
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
            yield from _table(("rule", "decides over", "alone"), rows)
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
    yield from _table(("cause", "programs"), causes.most_common(40))


def _cause(message: str) -> str:
    return message.splitlines()[0][:160].replace("|", "/")


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
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
