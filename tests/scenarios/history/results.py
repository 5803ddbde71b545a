"""A pytest plugin that writes down what each test on a real Flink came to: ``make test-history`` uses it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[3] / "dev" / "benchmarks" / "results"
CAME_TO = "came to"
"""The property in which a test says more than that it passed."""
_TITLE = "# State from history on a real Flink, {}"
_NOTES = (
    "`make test-history` makes this file. Each line is one run of a real Flink: of a change from old to new SQL, of a "
    "job that has never run, of what was prepared, or of a command that was killed. A test passes when all rows that "
    "the job sends, or the bytes that the savepoint holds, are those of the new SQL that ran from scratch; what else "
    "it says stands in its module. Of the measured changes the last column says which are made whole."
)


class Recorder:
    """What tests came to, in the order in which they ended; written down after each of them."""

    def __init__(self) -> None:
        self._began = datetime.now(UTC)
        self._rows: dict[str, tuple[str, float, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.failed:
            told = "; ".join(f"{value}" for name, value in report.user_properties if name == CAME_TO)
            self._rows[report.nodeid] = (report.outcome, report.duration, told)
            self._write()

    def _write(self) -> None:
        day = self._began.date().isoformat()
        counts = Counter(outcome for outcome, *_ in self._rows.values())
        minutes = (datetime.now(UTC) - self._began).total_seconds() / 60
        said = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        lines = [_TITLE.format(day), "", _NOTES, "", f"{said}, in {minutes:.0f} minutes.", ""]
        lines += ["| Test | Came to | Seconds | |", "|---|---|---|---|"]
        for test, (outcome, seconds, told) in sorted(self._rows.items()):
            place, _, name = test.partition("::")
            lines.append(f"| {Path(place).stem}: {name} | {outcome} | {seconds:.1f} | {told} |".replace("\n", " "))
        (RESULTS / f"history-{day}.md").write_text("\n".join(lines) + "\n", "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())
