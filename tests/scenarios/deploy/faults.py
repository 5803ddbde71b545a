"""The dated results of whole matrices of faults."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).parents[3] / "dev" / "benchmarks" / "results"


@dataclass(frozen=True)
class Result:
    """What became of one case. ``fault`` says where it was hit, ``outcome`` what the retry came to."""

    scenario: str
    fault: str
    outcome: str
    seconds: float
    wrong: str = ""


_COLUMNS = ("Scenario", "Fault", "What the retry came to", "Seconds")


def write(
    name: str,
    title: str,
    results: Sequence[Result],
    notes: Sequence[str] = (),
    left: int = 0,
    columns: Sequence[str] = _COLUMNS,
) -> None:
    """The results of a matrix, as ``NAME-DATE.json`` and ``.md``; ``left`` cases of it were not run (yet)."""
    today = datetime.now(UTC).date().isoformat()
    rows = [asdict(result) for result in results]
    (RESULTS / f"{name}-{today}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
    wrong = [result for result in results if result.wrong]
    lines = [f"# {title}, {today}", "", *notes, ""]
    missing = f" At least {left} more cases were not run: the run was cut." if left else ""
    lines += [f"{len(results)} cases, {len(wrong)} of them wrong.{missing}{_commit()}", ""]
    lines += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for result in results:
        outcome = f"**{result.wrong}**" if result.wrong else result.outcome
        fault, outcome = (text.replace("|", "\\|").replace("\n", " ") for text in (result.fault, outcome))
        lines.append(f"| {result.scenario} | {fault} | {outcome} | {result.seconds:.1f} |")
    (RESULTS / f"{name}-{today}.md").write_text("\n".join(lines) + "\n", "utf-8")


@cache
def _commit() -> str:
    """Which commit was run, in words; nothing where git does not say."""
    asked = (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "../../airflow_flinkcompat/deploy"])
    said = [
        subprocess.run(["git", *words], cwd=RESULTS, capture_output=True, text=True, check=False) for words in asked
    ]
    if said[0].returncode:
        return ""
    more = " and changes of deploy that were not committed" if said[1].stdout.strip() else ""
    return f" Run on commit {said[0].stdout.strip()}{more}."
