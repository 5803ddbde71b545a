"""Outcomes of pairs: the comparison of printed rows, the result files, and the verdict of ``check``.

A file has the shape of ``tests/fixtures/measured/flink-2.3-restores.json``, so ``dev/measure/measured.py`` reads it
too: the scripts are whole (``statements_are_dml``), and ``predicted`` holds outcome, consequence and deciding rules.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Consequence, Outcome, Report, Side, check
from dev.measure.pairs import Pair

RIGHT = "restored_right"
ON_THIS_DATA = "restored_right_on_this_data"
UPSERT_ONLY = "restored_right_upsert_only"
WRONG = "restored_WRONG"
REFUSED_AT_SUBMIT = "refused_at_submit"
REFUSED_AT_RESTORE = "refused_at_restore"
FAILED_LATER = "failed_while_running"
NOT_PLANNED = "not_planned"
OUTCOMES = {
    RIGHT: "RUNNING, same changelog (or same net changelog) as a from-scratch run of the new SQL",
    ON_THIS_DATA: "right here, wrong on other data",
    UPSERT_ONLY: "RUNNING, right when applied by key; the retractions (-U/-D) carry rows of the old SQL",
    WRONG: "RUNNING without any error, wrong rows",
    REFUSED_AT_SUBMIT: "JobManager: the savepoint does not fit the new program's operators (the submission call fails)",
    REFUSED_AT_RESTORE: "job accepted, then a task fails while its state is restored",
    FAILED_LATER: "restored, RUNNING, fails when a row or watermark is processed",
    NOT_PLANNED: "the planner of the new line refuses the SQL, before any savepoint is read",
}
"""The outcomes, and their effect for the operator of the job."""
SETTINGS = {
    "parallelism.default": "1",
    # Checkpoints are taken only on request, so each covers all rows that were read before.
    "execution.checkpointing.interval": "1 h",
    "pipeline.auto-watermark-interval": "20 ms",
}
HOW = (
    "One JobManager, one TaskManager, SQL Gateway; heap state, canonical savepoint by stop without drain, no restarts, "
    "ignore-unclaimed-state=false; session of both sides: "
    + ", ".join(f"{key}={value}" for key, value in SETTINGS.items())
    + ". before.csv of each table is read before the savepoint, after.csv lies beside it when the new SQL starts. "
    "expected_rows: what a run of the new SQL from scratch prints once after.csv arrives; restored_rows: what the "
    "restored job prints; compared as multisets, then by net effect. file://DATA stands for the folder of the rows, "
    "file://OUT for that of a filesystem sink, whose rows are read from its files, finished or not. "
    "PyFlink programs are executed by PyFlink of the same version, their environments made as by flink run. "
    "Topics and tables are of a Kafka 4.1.2 and a PostgreSQL beside it, written in scripts without what tells runs "
    "apart; rows of topics that are read are JSON, what was written is read committed."
)
FOLDER = Path(__file__).parent / "results"
NAMES = ("flink", "programs", "connectors", "lakes")
"""Names of results files: scripts over files, PyFlink programs, Kafka and PostgreSQL, lake formats."""
UPGRADE = "upgrade"
"""Names of results files from one line to another."""
EXPECTED_CONSEQUENCE = {
    REFUSED_AT_SUBMIT: Consequence.REFUSED_AT_SUBMIT,
    REFUSED_AT_RESTORE: Consequence.REFUSED_AT_RESTORE,
    WRONG: Consequence.SILENTLY_WRONG,
}
_CONSEQUENCES = {**EXPECTED_CONSEQUENCE, NOT_PLANNED: Consequence.REFUSED_AT_SUBMIT}
AGREEMENTS = ("agree", "agree, with another consequence", "no verdict", "too strict", "FALSE COMPATIBLE")
"""Possible results of :func:`agreement`."""
Entry = Mapping[str, Any]
"""One pair of a results file."""


def agreement(verdict: str, consequence: str, outcome: str) -> str:
    """Agreement of a verdict and its consequence with the outcome of a restore, in a few words."""
    match verdict:
        case Outcome.COMPATIBLE:
            return "agree" if outcome == RIGHT else "FALSE COMPATIBLE"
        case Outcome.INCOMPATIBLE if outcome == RIGHT:
            return "too strict"
        case Outcome.INCOMPATIBLE:
            return "agree" if consequence == _CONSEQUENCES.get(outcome) else "agree, with another consequence"
    return "no verdict"


@dataclass(frozen=True)
class Measured:
    """Outcome of one pair. ``old`` and ``new`` are the executed scripts, with ``file://DATA`` as folder."""

    pair: Pair
    old: str
    new: str
    outcome: str
    exception: str | None = None
    restored_rows: tuple[str, ...] | None = None
    expected_rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One run on Flink ``version``, on ``date`` (ISO): what its results file says of it.

    ``old`` is the version that took the savepoints, where that is another one.
    """

    version: str
    date: str
    old: str = ""
    how: str = HOW
    outcomes: Mapping[str, str] = field(default_factory=lambda: OUTCOMES)

    def document(self, entries: Iterable[Entry]) -> dict[str, Any]:
        """The results file, without predictions."""
        taken = {"flink_old": self.old} if self.old else {}
        pairs = [{**each, **taken, "date": self.date} for each in entries]
        head = {"flink": self.version, "date": self.date, "how": self.how, "outcomes": self.outcomes}
        return {**head, "tables": {}, "pairs": pairs}


class Writer:
    """Add results to a file as they arrive, so that a run that ends early loses nothing."""

    def __init__(self, path: Path, run: Run, keep: bool) -> None:
        """``keep``: results of other pairs that the file holds stay."""
        self._path, self._run, self._keep = path, run, keep

    def add(self, entry: Entry) -> None:
        data = self._run.document([entry])
        write(merge(read(self._path), data) if self._keep else data, self._path)
        self._keep = True

    def drop(self, id_: str) -> None:
        """Remove the result of a pair that has none any more."""
        if id_ in ids(self._path):
            data = read(self._path)
            write({**data, "pairs": [entry for entry in data["pairs"] if entry["id"] != id_]}, self._path)


def ids(path: Path) -> set[str]:
    """Pairs with a result in a file; none if the file does not exist."""
    return {entry["id"] for entry in read(path)["pairs"]} if path.exists() else set()


def holds(path: Path, pair: Pair) -> bool:
    """True if a file has a result of the current form of a pair."""
    entries = read(path)["pairs"] if path.exists() else []
    wanted = {"id": pair.id, **texts(pair.old.script, pair.new.script), **settings(pair)}
    return any(all(entry[key] == value for key, value in wanted.items()) for entry in entries)


def texts(old: str, new: str) -> dict[str, str]:
    return {"old": old.strip().removesuffix(";"), "new": new.strip().removesuffix(";")}


def settings(pair: Pair) -> dict[str, dict[str, str]]:
    return {"settings_old": dict(pair.old.settings), "settings_new": dict(pair.new.settings)}


def entry_of(measured: Measured) -> dict[str, Any]:
    pair = measured.pair
    return {
        "id": pair.id,
        "area": pair.area,
        "description": pair.about,
        "outcome": measured.outcome,
        "statements_are_dml": True,
        **texts(measured.old, measured.new),
        "language_old": pair.old.language,
        "language_new": pair.new.language,
        **settings(pair),
        "exception": measured.exception,
        "restored_rows": None if measured.restored_rows is None else list(measured.restored_rows),
        "expected_rows": list(measured.expected_rows),
        "notes": pair.caveat,
    }


def predicted(entry: Entry, version: str) -> dict[str, Any]:
    """The entry with the current verdict of ``check``."""
    report = judged(entry, version)
    consequence = stated_consequence(report)
    prediction = {
        "outcome": report.outcome.value,
        "consequence": None if consequence is None else consequence.value,
        "rules": [finding.rule for finding in report.deciding],
    }
    return {**entry, "predicted": prediction}


def judged(entry: Entry, version: str) -> Report:
    return check(*sides(entry, version))


def sides(entry: Entry, version: str) -> tuple[Side, Side]:
    """Both sides of an entry, each on the version it ran on; ``version`` is that of the file."""
    return _side(entry, "old", entry.get("flink_old", version)), _side(entry, "new", version)


def _side(entry: Entry, name: str, version: str) -> Side:
    language = entry.get(f"language_{name}", "sql")
    text, file = (entry[name] + ";\n", f"{name}.sql") if language == "sql" else (entry[name], f"{name}.py")
    return Side(text, entry[f"settings_{name}"], engine="flink", engine_version=version, source=file, language=language)


def stated_consequence(report: Report) -> Consequence | None:
    """The predicted end of the restore: the first event wins, a refusal before wrong rows."""
    said = {finding.consequence for finding in report.deciding}
    return next((each for each in Consequence if each in said), None)


def is_unsafe(entry: Entry) -> bool:
    """True if it is called compatible but was restored wrongly: the one mistake that must not happen."""
    return bool(entry["predicted"]["outcome"] == Outcome.COMPATIBLE and entry["outcome"] != RIGHT)


def mark(entry: Entry) -> str:
    """One word on prediction and measurement."""
    outcome, real = entry["predicted"]["outcome"], entry["outcome"]
    if is_unsafe(entry):
        return "UNSAFE"
    if outcome == Outcome.COMPATIBLE:
        return "right"
    if real == RIGHT:
        return "too careful"
    if outcome == Outcome.UNKNOWN:
        return "doubted"
    expected = EXPECTED_CONSEQUENCE.get(real)
    return "right" if expected and entry["predicted"]["consequence"] == expected else "caught"


def report(data: Mapping[str, Any]) -> str:
    """Predictions and outcomes, a line for each pair, and the summary."""
    entries: Sequence[Entry] = data["pairs"]
    lines = [("pair", "predicted", "measured", "")]
    for entry in entries:
        said = entry["predicted"]
        words = f"{said['outcome']}: {said['consequence']}" if said["consequence"] else said["outcome"]
        lines.append((entry["id"], words, entry["outcome"].replace("_", " "), mark(entry)))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([*table, "", summary(data)])


def summary(data: Mapping[str, Any]) -> str:
    """Outcomes, and how well they were predicted, in one line."""
    entries: Sequence[Entry] = data["pairs"]
    ends = Counter(entry["outcome"].replace("_", " ") for entry in entries)
    right = [entry for entry in entries if entry["outcome"] == RIGHT]
    known = sum(entry["predicted"]["outcome"] == Outcome.COMPATIBLE for entry in right)
    unsafe = [entry["id"] for entry in entries if is_unsafe(entry)]
    told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(ends.items()))
    return (
        f"Flink {data['flink']}, {data['date']}: {len(entries)} pairs: {told}. Unsafe misses: {len(unsafe)}"
        f"{' (' + ', '.join(unsafe) + ')' if unsafe else ''}. Recognised {known} of {len(right)} restored right."
    )


def write(data: Mapping[str, Any], path: Path) -> None:
    """Write a file; a run that is interrupted leaves it unchanged."""
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(path)


def read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def renew(path: Path) -> dict[str, Any]:
    """Results of a file with current predictions."""
    data = read(path)
    return {**data, "pairs": [predicted(entry, data["flink"]) for entry in data["pairs"]]}


def newest(line: str, name: str = "flink") -> Path | None:
    """The newest results file of a line, or of ``1.20-to-2.3`` with :data:`UPGRADE` as its name."""
    return max(FOLDER.glob(f"{name}-{line}-*.json"), default=None)


def upgrades() -> tuple[Path, ...]:
    """The newest results file of each pair of lines: savepoint on the first line, restore on the second."""
    found = sorted(FOLDER.glob(f"{UPGRADE}-*-to-*.json"))
    return tuple({path.name.rsplit("-", 3)[0]: path for path in found}.values())


def merge(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The old file with the new results in place of its own; each pair holds the date on which it was run."""
    again = {entry["id"] for entry in new["pairs"]}
    pairs = [*new["pairs"], *(entry for entry in old["pairs"] if entry["id"] not in again)]
    return {**old, "pairs": sorted(pairs, key=lambda entry: entry["id"])}


def judge(restored: Sequence[str], expected: Sequence[str], old: Sequence[str] = (), before: Sequence[str] = ()) -> str:
    """RIGHT, UPSERT_ONLY or WRONG for rows like ``sink +I[…]``; their order is ignored.

    ``old`` are the rows the old SQL printed up to its savepoint, ``before`` those the new SQL from scratch printed for
    the same rows: where one of them fires early, only all rows together tell what the sink holds in the end.
    """
    if Counter(restored) == Counter(expected) or net(restored) == net(expected):
        return RIGHT
    if net([*old, *restored]) == net([*before, *expected]):
        return RIGHT
    return UPSERT_ONLY if _upserts(restored) == _upserts(expected) else WRONG


def net(rows: Iterable[str]) -> dict[str, int]:
    """Final count of each row, if not 0: +I and +U count up, -U and -D count down."""
    counts: Counter[str] = Counter()
    for row in rows:
        sink, kind, values = parts(row)
        counts[f"{sink} {values}"] += 1 if kind.startswith("+") else -1
    return {row: count for row, count in counts.items() if count}


def _upserts(rows: Iterable[str]) -> Counter[tuple[str, str]]:
    return Counter((sink, values) for sink, kind, values in map(parts, rows) if kind.startswith("+"))


def parts(row: str) -> tuple[str, str, str]:
    """``sink``, ``+I`` and ``[…]``."""
    sink, _, change = row.partition(" ")
    return sink, change[:2], change[2:]
