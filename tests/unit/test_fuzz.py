"""Mutated scripts: a clear error or a verdict, never a traceback, never "compatible" for what was not understood.

``FLINKCOMPAT_FUZZ_SEED`` replays a run; every failure names the key that makes its case again.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import InputError, Outcome, Report, Side, check
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.sql import ScriptError, Statement
from airflow_flinkcompat.sql.script import read_script
from airflow_flinkcompat.sql.statement_parser import Flink
from tests.support import fuzzing
from tests.support.lexemes import content
from tests.support.nightly import mostly_nightly

SECONDS = 20
"""Processor time no case comes near; a case that needs more grows with its input in a way it must not."""
BIG_SECONDS, MEBIBYTES = 180, 2_048
"""Processor time and memory that no command on a big script comes near."""
RESULT = "FLINKCOMPAT_FUZZ_RESULT"
"""The file that the slow run writes its result to, if named."""
SAMPLE = 160


@dataclass
class Tally:
    """How the cases of a run ended, by kind; the slowest of them, with its processor seconds."""

    ended: dict[str, Counter[str]] = field(default_factory=dict)
    read: int = 0
    slowest: tuple[float, str] = (0.0, "")

    @property
    def outcomes(self) -> Counter[str]:
        return sum(self.ended.values(), Counter())

    def result(self) -> str:
        """The run as JSON."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        return json.dumps(
            {
                "seed": fuzzing.seed(),
                "cases": self.outcomes.total(),
                "outcomes": dict(sorted(self.outcomes.items())),
                "by kind": {kind: dict(sorted(counted.items())) for kind, counted in self.ended.items()},
                "statements held against their print": self.read,
                "slowest case": {"key": self.slowest[1], "processor seconds": round(self.slowest[0], 2)},
                "peak memory of the process, MiB": peak,
            },
            indent=1,
        )


def judged(case: fuzzing.Case, engine: str, folder: Path, tally: Tally) -> Report | None:
    """The verdict on a mutated script; None where it is refused with a clear error. Anything else raised is a bug."""
    path = folder / "mutated.sql"
    path.write_bytes(case.mutated if isinstance(case.mutated, bytes) else case.mutated.encode("utf-8", "surrogatepass"))
    try:
        sides = Side(case.original.text, engine=engine), Side(read_script(path).text, engine=engine)
        report = check(*sides)
    except (ScriptError, InputError) as refused:
        message = str(refused)
    else:
        tally.read += sum(kept_whole(case, statement) for statement in sides[1].parsed.statements)
        if report.outcome in (Outcome.COMPATIBLE, Outcome.PARTIAL):
            understood(case, *sides, report)
        return report
    assert message, case
    return None


def understood(case: fuzzing.Case, old: Side, new: Side, report: Report) -> None:
    """What could not be read stands on both sides, word for word, and "unchanged" means that all that is kept is."""
    assert [problem.text for problem in new.program.problems] == [p.text for p in old.program.problems], case
    rules = {finding.rule for finding in report.deciding}
    assert rules, case
    if "unchanged" in rules:
        assert case.kind != "reworded" or case.mutated == case.original.text, case
        outputs = [
            Counter(resolve_operators(pipeline.sink) for pipeline in side.program.pipelines) for side in (old, new)
        ]
        assert outputs[0] == outputs[1], case


def kept_whole(case: fuzzing.Case, statement: Statement) -> bool:
    """Whether a statement was read and could be held against its print, which then says all that it says."""
    if statement.tree is None or (said := content(statement.text)) is None:
        return False
    printed = content(statement.tree.sql(dialect=Flink))
    assert printed is None or said == printed, f"{case}: {said - printed} became {printed - said}"
    return printed is not None


def fuzz(number: int, folder: Path) -> Tally:
    """Judges that many cases, each kind in turn and both engines by turns."""
    seed, kinds = fuzzing.seed(), list(fuzzing.MUTATORS)
    print(f"\n{fuzzing.SEED}={seed}: {number} mutated scripts")
    tally = Tally({kind: Counter() for kind in kinds})
    for i in range(number):
        turn, kind = divmod(i, len(kinds))
        case = fuzzing.case(seed, kinds[kind], turn)
        began = time.process_time()
        report = judged(case, ("vvr", "flink")[turn % 2], folder, tally)
        taken = time.process_time() - began
        assert taken < SECONDS, f"{case} took {taken:.0f} s"
        tally.slowest = max(tally.slowest, (taken, case.key))
        tally.ended[case.kind]["refused" if report is None else report.outcome.value] += 1
    print(tally.result())
    return tally


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("select a from t /* x */ where b <> '1'", "SELECT a\nFROM t -- x\nWHERE b != '1'", True),
        ("SELECT a AS b FROM t", "SELECT a b FROM TABLE(t)", True),
        ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t", False),
        ("SELECT SUM(DISTINCT a) FROM t", "SELECT SUM(a) FROM t", False),
        ("SELECT a FROM t WHERE b < 1", "SELECT a FROM t WHERE b <= 1", False),
    ],
)
def test_what_two_statements_say_is_told_apart(one: str, other: str, same: bool) -> None:
    assert (content(one) == content(other)) is same


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mutated_scripts(tmp_path: Path) -> None:
    """``make test-full`` draws 10,000; the result of one such run is kept in dev/benchmarks/results."""
    tally = fuzz(fuzzing.number_of_cases(SAMPLE), tmp_path)
    if os.environ.get(RESULT):
        Path(os.environ[RESULT]).write_text(tally.result() + "\n", encoding="utf-8")
    assert {"refused", "unknown", "incompatible", "compatible"} <= set(tally.outcomes)
    assert tally.read > 0


SELECT = "SELECT {0} FROM t;"
BIG = {
    "200 parentheses": SELECT.format("(" * 200 + "a" + ")" * 200),
    "200 subqueries": "SELECT a FROM " + "(SELECT a FROM " * 200 + "t" + ")" * 200 + ";",
    "200 CASE": SELECT.format("CASE WHEN a > 1 THEN " * 200 + "a" + " END" * 200),
    "200 calls": SELECT.format("ABS(" * 200 + "a" + ")" * 200),
    "200 views": "CREATE VIEW v0 AS SELECT a FROM t;\n"
    + "".join(f"CREATE VIEW v{i} AS SELECT a + a AS a FROM v{i - 1};\n" for i in range(1, 200))
    + "SELECT a FROM v199;",
    "3,000 queries": "SELECT a, SUM(b) FROM t WHERE c = 'x' GROUP BY a;\n" * 3_000,
    "3,000 sinks": "".join(f"INSERT INTO s{i} SELECT a, SUM(b) FROM t GROUP BY a;\n" for i in range(3_000)),
    "1 MB of rows": "INSERT INTO s VALUES " + ", ".join(f"({i}, 'name {i}')" for i in range(45_000)) + ";",
    "1 MB in one string": SELECT.format("'" + "x" * 1_000_000 + "'"),
    "1 MB of comment": "/*" + "x" * 1_000_000 + "*/" + SELECT.format("a"),
    "an open string": SELECT.format("'" + "x" * 1_000_000),
}
MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss // 1024, usage.ru_utime + usage.ru_stime)
"""
"""A process of its own between the tests and the command: a child's peak memory begins with that of its parent."""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", mostly_nightly(list(BIG), 3))
def test_big_scripts_are_answered_in_bounded_time_and_memory(name: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old.sql", tmp_path / "new.sql"
    old.write_text(BIG[name], encoding="utf-8")
    new.write_text(BIG[name] + "\nSELECT d FROM t;", encoding="utf-8")
    command = [sys.executable, "-m", "airflow_flinkcompat.cli", "check", str(old), str(new)]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    code, mebibytes, seconds = (float(part) for part in done.stdout.split())
    print(f"{name}: exit {code:.0f}, {mebibytes:.0f} MiB, {seconds:.1f} s")
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert code in (0, 1, 2, 3, 4), done.stderr[-500:]
    assert mebibytes < MEBIBYTES
    assert seconds < BIG_SECONDS
