"""Restore the programs of Flink's restore tests on a newer line, and compare the verdicts.

* **Plans**: the compiled plans and savepoints that the tests' jar of each line publishes are restored on the newer line
  by the tests of the newer line.
* **SQL**: the SQL of each test is planned on an older line, stopped with a canonical savepoint, planned again on the
  newer line and restored. The verdict is that of ``flinkcompat audit`` with the planners of both lines.

Maven fetches the jars of the tests. The tables of the tests have Flink's test connector. For the verdict, a source is a
topic of Kafka, a sink with a key and a table of a lookup are tables of PostgreSQL, and other sinks print.

Exit status: 0 no program with verdict compatible was refused or wrong, 1 one was.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from zipfile import ZipFile

from airflow_flinkcompat.fleet.audit.judging import audit_pair
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult
from airflow_flinkcompat.model import JobSpec
from dev.measure import corpus, results
from dev.measure.pairs import CACHE, RELEASES
from dev.tools import publish

_SOURCE = Path(__file__).parent / "RestoreTests.java"
_TESTS = "restore-tests/"
_GROUP = "org.apache.flink"
_ARTIFACTS = (
    *("flink-table-planner_2.12", "flink-table-runtime", "flink-table-api-java-bridge", "flink-clients"),
    *("flink-test-utils", "flink-connector-files", "flink-statebackend-rocksdb"),
)
_TEST_JARS = (
    *("flink-table-planner_2.12", "flink-table-api-java", "flink-table-common", "flink-table-runtime"),
    *("flink-streaming-java", "flink-runtime", "flink-core"),
)
_OTHERS = (("org.junit.jupiter", "junit-jupiter", "5.10.1"), ("org.assertj", "assertj-core", "3.23.1"))
_TABLE = re.compile(
    r"CREATE TABLE (?P<name>\S+) \((?P<columns>.*?)\n\)(?P<between>.*?) WITH \((?P<options>.*?)\);\n", re.S
)
_OPTION = re.compile(r"'(?P<key>[\w.-]+)' = '(?P<value>[^']*)'")
_KAFKA = "'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092'"
_APPENDING = f"'connector' = 'kafka', {_KAFKA}, 'format' = 'json'"
_RETRACTING = f"'connector' = 'kafka', {_KAFKA}, 'format' = 'debezium-json'"
_UPSERTING = f"'connector' = 'upsert-kafka', {_KAFKA}, 'key.format' = 'json', 'value.format' = 'json'"
_JDBC = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/x', 'table-name' = 't'"
_FAILURES = (
    ("not planned", results.NOT_PLANNED),
    ("Cannot load Plan", results.NOT_PLANNED),
    ("allowNonRestoredState", results.REFUSED_AT_SUBMIT),
    ("Cannot map checkpoint/savepoint state", results.REFUSED_AT_SUBMIT),
    ("StateMigrationException", results.REFUSED_AT_RESTORE),
    ("must not be incompatible", results.REFUSED_AT_RESTORE),
)
_VERDICTS = (
    *(AuditResult.COMPATIBLE.value, AuditResult.CONDITIONAL.value),
    *(AuditResult.INCOMPATIBLE.value, AuditResult.UNKNOWN.value),
)
NOT_RUN = "not run"


@dataclass(frozen=True)
class Ran:
    """One program of a restore test.

    Attributes:
        line: The line that published the plan, or that took the savepoint.
        node: The exec node under test, with its version.
        program: The name of the program.
        outcome: The result of the restore, of :mod:`dev.measure.results`.
        message: The message of Flink, or the rows.
        verdict: The verdict on the SQL; "" without one. Its first cause follows, and the consequence of that cause.
    """

    line: str
    node: str
    program: str
    outcome: str
    message: str = ""
    verdict: str = ""
    cause: str = ""
    consequence: str = ""

    @property
    def agreement(self) -> str:
        """Agreement of verdict and restore in a few words."""
        return results.agreement(self.verdict, self.consequence, self.outcome)


class LineTests:
    """The classes of Flink's tests on one line."""

    def __init__(self, line: str) -> None:
        self.line, self._release = line, RELEASES[line]

    @property
    def jar(self) -> Path:
        """The tests' jar of the planner."""
        (found,) = (each for each in self._classes if each.name.endswith(f"planner_2.12-{self._release}-tests.jar"))
        return found

    @cached_property
    def _classes(self) -> list[Path]:
        """The jars of the tests; Maven downloads those that are missing."""
        dependencies = [
            *((_GROUP, each, self._release, "jar") for each in _ARTIFACTS),
            *((_GROUP, each, self._release, "test-jar") for each in _TEST_JARS),
            *((*each, "jar") for each in _OTHERS),
        ]
        listed = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
            f"<type>{type}</type></dependency>"
            for group, name, version, type in dependencies
        )
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder, "pom.xml")
            project.write_text(
                "<project><modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId>"
                f"<version>1</version><dependencies>{listed}</dependencies></project>"
            )
            output = Path(folder, "classes")
            goal = ("dependency:build-classpath", f"-Dmdep.outputFile={output}")
            subprocess.run(["mvn", "-q", "-f", project, *goal], check=True, stdout=subprocess.DEVNULL)
            return [Path(each) for each in output.read_text().split(":")]

    def run(self, mode: str, folder: Path, line: str) -> list[Ran]:
        """Run the tests in a mode of ``RestoreTests.java``."""
        opened = (f"--add-opens=java.base/java.{each}=ALL-UNNAMED" for each in ("lang", "util", "util.concurrent"))
        folder.mkdir(parents=True, exist_ok=True)
        logging = folder.parent / "log4j2.properties"
        logging.write_text("rootLogger.level = OFF\n")
        command = ["java", f"-Dlog4j.configurationFile={logging}", *opened, "-cp", ":".join(map(str, self._classes))]
        with (folder.parent / f"{folder.name}-{mode}.log").open("w") as log:
            done = subprocess.run(
                [*command, _SOURCE, self.jar, mode, folder], stdout=subprocess.PIPE, stderr=log, text=True, check=True
            )
        rows = (row.split("\t") for row in done.stdout.splitlines())
        return [
            Ran(line, node.removeprefix("stream-exec-"), program, outcome_of(result, message), message)
            for node, program, result, message in rows
        ]


def outcome_of(result: str, message: str) -> str:
    """The outcome of :mod:`dev.measure.results` for a result and a message of ``RestoreTests.java``."""
    if result == "failed":
        return next((outcome for text, outcome in _FAILURES if text in message), results.FAILED_LATER)
    return {"right": results.RIGHT, "not run": NOT_RUN}.get(result, results.WRONG)


def published(lines: Sequence[LineTests], folder: Path) -> Iterator[Ran]:
    """Restore the plans and savepoints that each line publishes on the last line, each content once."""
    seen: set[tuple[bytes, ...]] = set()
    for each in reversed(lines):
        with ZipFile(each.jar) as jar:
            names = [name for name in jar.namelist() if name.startswith(_TESTS) and not name.endswith("/")]
            cases: dict[str, list[str]] = {}
            for name in sorted(names):
                cases.setdefault("/".join(name.split("/")[1:3]), []).append(name)
            for case, files in cases.items():
                content = (case.encode(), *map(jar.read, files))
                if content not in seen:
                    seen.add(content)
                    for name in files:
                        place = folder / each.line / name.removeprefix(_TESTS)
                        place.parent.mkdir(parents=True, exist_ok=True)
                        place.write_bytes(jar.read(name))
        yield from lines[-1].run("plans", folder / each.line, each.line)


def planned_again(old: LineTests, new: LineTests, folder: Path) -> Iterator[Ran]:
    """Plan the SQL of each test on both lines, and restore the savepoint of the older one."""
    old.run("save", folder, old.line)
    for ran in new.run("restore", folder, old.line):
        if ran.outcome != NOT_RUN:
            script = (folder / f"stream-exec-{ran.node.rpartition('_')[0]}" / ran.program / "script.sql").read_text()
            yield judged(ran, script, (old.line, new.line))


def judged(ran: Ran, script: str, lines: tuple[str, str]) -> Ran:
    """Add the verdict on a script."""
    text = with_connectors(script)
    old, new = (JobSpec(text, results.SETTINGS, engine="flink", engine_version=line) for line in lines)
    row = audit_pair(AuditPair(ran.program, old, new, planner="always"))
    message, consequence = (row.causes[0].message, row.causes[0].consequence) if row.causes else ("", "")
    return replace(ran, verdict=row.result.value, cause=message, consequence=consequence)


def with_connectors(script: str) -> str:
    """The script of a test with real connectors in place of Flink's test connector."""
    looked_up = set(re.findall(r"JOIN\s+(\w+)\s+(?:/\*.*?\*/\s*)?FOR SYSTEM_TIME AS OF \w+\.proc", script))

    def connected(match: re.Match[str]) -> str:
        options = dict(_OPTION.findall(match["options"]))
        if options["use"] == "sink" and "primary key" not in match["columns"].lower():
            connector = "'connector' = 'print'"
        elif options["use"] == "sink" or match["name"] in looked_up:
            connector = _JDBC
        else:
            changes = options.get("changelog-mode", "").split(",")
            connector = _RETRACTING if "UB" in changes else _UPSERTING if "UA" in changes else _APPENDING
        return f"CREATE TABLE {match['name']} ({match['columns']}\n){match['between']} WITH ({connector});\n"

    return _TABLE.sub(connected, script)


def tables(plans: Sequence[Ran], scripts: Sequence[Ran], new: str) -> Iterator[str]:
    """The results as Markdown."""
    lines = [_by(each, "line").items() for each in (plans, scripts)]
    yield "## Compiled plans and savepoints that Flink publishes"
    yield ""
    yield from corpus.table(
        ("published by", "restored right", "refused", "wrong", "not run"),
        ((line, *_counts(rows)) for line, rows in lines[0]),
    )
    yield ""
    yield from (f"* {_named(each)}: {each.outcome}, {_reason(each)}" for each in plans if not _passed(each))
    yield ""
    yield f"## SQL of the tests, planned on each line and again on {new}"
    yield ""
    yield from corpus.table(
        ("from", "restored", *results.AGREEMENTS), ((line, len(rows), *_agreements(rows)) for line, rows in lines[1])
    )
    yield ""
    yield from (
        f"* {_named(each)}: {each.verdict}, {each.cause}; {each.outcome} {_reason(each)}".rstrip()
        for each in scripts
        if each.agreement != "agree" or not _passed(each)
    )
    yield ""
    yield "## By exec node"
    yield ""
    yield from corpus.table(
        ("exec node", "plans", "right", "SQL restored", "right", *_VERDICTS), sorted(_of_nodes(plans, scripts))
    )


def _of_nodes(plans: Sequence[Ran], scripts: Sequence[Ran]) -> Iterator[tuple[object, ...]]:
    planned, again = _by(plans, "node"), _by(scripts, "node")
    for node in {*planned, *again}:
        before, after = planned.get(node, []), again.get(node, [])
        verdicts = Counter(each.verdict for each in after)
        right = (sum(map(_passed, rows)) for rows in (before, after))
        counts = (len(before), next(right), len(after), next(right))
        yield node, *counts, *(verdicts[each] for each in _VERDICTS)


def _by(rows: Iterable[Ran], attribute: str) -> dict[str, list[Ran]]:
    found: dict[str, list[Ran]] = {}
    for each in rows:
        found.setdefault(getattr(each, attribute), []).append(each)
    return found


def _passed(each: Ran) -> bool:
    return each.outcome == results.RIGHT


def _named(each: Ran) -> str:
    return f"{each.line} {each.node} {each.program}"


def _reason(each: Ran) -> str:
    """The last cause in a message, without the place of a file."""
    return re.sub(r"'?(?:file:)?/\S+'?", "…", each.message.rpartition(" <- ")[2])[:200]


def _counts(rows: Sequence[Ran]) -> tuple[int, ...]:
    counts = Counter(each.outcome for each in rows)
    right, wrong, not_run = (counts[each] for each in (results.RIGHT, results.WRONG, NOT_RUN))
    return right, len(rows) - right - wrong - not_run, wrong, not_run


def _agreements(rows: Sequence[Ran]) -> tuple[int, ...]:
    counts = Counter(each.agreement for each in rows)
    return tuple(counts[each] for each in results.AGREEMENTS)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure upgrade-tests", description=__doc__)
    parser.add_argument("--flink", choices=sorted(RELEASES), default="2.3", help="the newer line (default: 2.3)")
    parser.add_argument(
        "--flink-old", choices=sorted(RELEASES), action="append", help="an older line (default: each line before it)"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the result into a file, too")
    options = parser.parse_args(arguments)
    folder = CACHE / "upgrade-tests"
    shutil.rmtree(folder, ignore_errors=True)
    new = LineTests(options.flink)
    order = sorted(RELEASES, key=lambda line: [*map(int, line.split("."))])
    older = [LineTests(line) for line in options.flink_old or order[: order.index(options.flink)]]
    plans = list(published([*older, new], folder / "published"))
    scripts = [ran for each in older for ran in planned_again(each, new, folder / "scripts")]
    publish(tables(plans, scripts, options.flink), options.write)
    return int(any(each.agreement == "FALSE COMPATIBLE" for each in scripts))


if __name__ == "__main__":
    raise SystemExit(main())
