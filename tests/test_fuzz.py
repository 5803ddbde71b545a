"""Mutated scripts: a clear error or a verdict, never a traceback, never "compatible" for what was not understood.

``FLINKCOMPAT_FUZZ_SEED`` replays a run; every failure names the key that makes its case again.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import InputError, Outcome, Report, Side, check
from airflow_flinkcompat.plan.unfolding import view
from airflow_flinkcompat.sql import ScriptError, read_script
from tests import fuzzing

SECONDS = 20
"""Processor time no case comes near; a case that needs more grows with its input in a way it must not."""
MEMORY = 4 << 30
"""Address space of a command, in bytes."""
SLOW_SAMPLE, FAST_SAMPLE = 600, 48


def judged(case: fuzzing.Case, engine: str, folder: Path) -> Report | None:
    """The verdict on a mutated script; None where it is refused with a clear error. Anything else raised is a bug."""
    path = folder / "mutated.sql"
    path.write_bytes(case.mutated if isinstance(case.mutated, bytes) else case.mutated.encode("utf-8", "surrogatepass"))
    try:
        sides = Side(case.original.text, engine=engine), Side(read_script(path).text, engine=engine)
        report = check(*sides)
    except (ScriptError, InputError) as refused:
        message = str(refused)
    else:
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
        outputs = [Counter(view(pipeline.sink) for pipeline in side.program.pipelines) for side in (old, new)]
        assert outputs[0] == outputs[1], case


def fuzz(number: int, folder: Path) -> Counter[str]:
    """Judges that many cases, each kind in turn and both engines by turns; how they ended."""
    seed, kinds = fuzzing.seed(), list(fuzzing.MUTATORS)
    print(f"\n{fuzzing.SEED}={seed}: {number} mutated scripts")
    ended: Counter[str] = Counter()
    for i in range(number):
        turn, kind = divmod(i, len(kinds))
        case = fuzzing.case(seed, kinds[kind], turn)
        began = time.process_time()
        report = judged(case, ("vvr", "flink")[turn % 2], folder)
        taken = time.process_time() - began
        assert taken < SECONDS, f"{case} took {taken:.0f} s"
        ended["refused" if report is None else report.outcome.value] += 1
    print(dict(ended))
    return ended


def test_a_sample_of_mutated_scripts(tmp_path: Path) -> None:
    assert fuzz(FAST_SAMPLE, tmp_path).total() == FAST_SAMPLE


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mutated_scripts(tmp_path: Path) -> None:
    """``make test-full`` draws 10,000."""
    number = int(os.environ.get(fuzzing.CASES) or SLOW_SAMPLE)
    ended = fuzz(number, tmp_path)
    assert {"refused", "unknown", "incompatible", "compatible"} <= set(ended)


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
    "1 MB of rows": "INSERT INTO s VALUES " + ", ".join(f"({i}, 'name {i}')" for i in range(45_000)) + ";",
    "1 MB in one string": SELECT.format("'" + "x" * 1_000_000 + "'"),
    "1 MB of comment": "/*" + "x" * 1_000_000 + "*/" + SELECT.format("a"),
    "an open string": SELECT.format("'" + "x" * 1_000_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BIG))
def test_big_scripts_are_answered_in_bounded_time_and_memory(name: str, tmp_path: Path) -> None:
    old, new = tmp_path / "old.sql", tmp_path / "new.sql"
    old.write_text(BIG[name], encoding="utf-8")
    new.write_text(BIG[name] + "\nSELECT d FROM t;", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "airflow_flinkcompat.cli", "check", str(old), str(new)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        cwd=Path(__file__).parent.parent,
    )
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in (0, 1, 2, 3, 4), done.stderr[-500:]
