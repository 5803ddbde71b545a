"""Plan random pairs, restore some on a real Flink, compare prediction and outcome.

Every pair of ``dev/measure/random_pairs.py`` is judged by the rules alone and with Flink's planner. Pairs of each
prediction are drawn and run, or those that ``--only`` names, with a Kafka and a PostgreSQL next to Flink. A run resumes
where the last one ended.

Exit status: 0 every prediction held, 1 some did not, 2 it could not be run.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.local_flink import LocalFlinkError, jars
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import find
from dev.measure import planner, results, services
from dev.measure.pairs import CACHE, VERSIONS
from dev.measure.random_pairs import RandomPair, random_pairs
from dev.measure.results import SETTINGS, Measured
from dev.measure.running import add_arguments, add_drawing, bench_of, deadline, say

FOLDER = results.FOLDER / "random"
SHARES = {"refused at submit": 0.25, "refused at restore": 0.2, "compatible": 0.35, "not refused": 0.2}
"""Share of each prediction in a draw; missing pairs are replaced by pairs of other predictions."""
Row = dict[str, Any]


def judged(drawn: RandomPair, line: str, planners: Mapping[str, Any]) -> Row:
    """Row of a pair: the verdicts by the rules alone and with the planner."""
    old, new = drawn.pair.old, drawn.pair.new
    settings = (SETTINGS | dict(old.settings), SETTINGS | dict(new.settings))
    pair = planner.Pair("random", drawn.pair.id, "", old.script, new.script, (line, line), settings)
    row = planner.judged(pair, planners)
    row = {name: value for name, value in row.items() if not name.endswith("_seconds")}
    return row | {"about": drawn.pair.about, "connectors": drawn.connectors, "digest": digest(drawn)}


def digest(drawn: RandomPair) -> str:
    """Digest by which a stored row is matched with the pair that is generated now."""
    sides = [(side.script, side.settings, side.database) for side in (drawn.pair.old, drawn.pair.new)]
    return sha256(repr(sides).encode()).hexdigest()[:12]


def prediction(row: Mapping[str, Any]) -> str:
    """The prediction of a row as :data:`SHARES` names it; "" where a side is refused before any restore."""
    if row["verdict"] in ("bad input", "refused at plan") or "old_refusal" in row:
        return ""
    said = str(row["predicted"])
    return said if said in planner.REFUSED.values() or row["verdict"] != "compatible" else "compatible"


def draw(rows: Sequence[Mapping[str, Any]], count: int, seed: int) -> list[str]:
    """The ids of rows to be run, by shares of their predictions; a greater count only adds to them."""
    shuffled = sorted(rows, key=lambda row: sha256(f"{seed} {row['id']}".encode()).digest())
    waiting = {name: [str(row["id"]) for row in shuffled if prediction(row) == name] for name in SHARES}
    found: list[str] = []
    taken = dict.fromkeys(SHARES, 0)
    while len(found) < count and any(waiting.values()):
        name = min((name for name in SHARES if waiting[name]), key=lambda name: taken[name] / SHARES[name])
        found.append(waiting[name].pop(0))
        taken[name] += 1
    return found


def faults(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Predictions that did not hold, and what the rules alone falsely call compatible."""
    run = [row for row in rows if row["real"]]
    yield from planner.faults(run)
    for row in run:
        if row["read"] == "compatible" and not row["real"].startswith(planner.RIGHT):
            yield f"false compatible by the rules alone: {row['id']} ({row['real']}); with the planner {row['verdict']}"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Generated pairs, predictions and findings, as Markdown."""
    said = Counter(prediction(row) or "a side is refused at plan, or bad input" for row in rows)
    alone = Counter(row["read"].partition(":")[0] for row in rows)
    lines = [
        f"{len(rows)} pairs planned: {_counted(said)}. By the rules alone: {_counted(alone)}.",
        "",
        planner.table([row for row in rows if row["real"]]),
        "",
        *(f"* {fault}" for fault in faults(rows)),
    ]
    return "\n".join(lines) + "\n"


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {name}" for name, number in counts.most_common())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m dev.measure random", description=__doc__)
    add_arguments(parser)
    add_drawing(parser, "random")
    parser.add_argument("--draw", type=int, default=100, help="of these, pairs to restore (default: 100)")
    options = parser.parse_args(arguments)
    try:
        rows, failures = _run(options)
    except (DeployError, LocalFlinkError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(table(rows))
    for failure in failures:
        print(f"error: could not be run: {failure}", file=sys.stderr)
    return 2 if failures else int(any(faults(rows)))


def _run(options: argparse.Namespace) -> tuple[list[Row], list[str]]:
    """All rows, and what is wrong with pairs that could not be run."""
    line = options.flink
    today = datetime.now(UTC).date().isoformat()
    newest = max(FOLDER.glob(f"flink-{line}-*.jsonl"), default=None)
    path: Path = options.out or newest or FOLDER / f"flink-{line}-{today}.jsonl"
    head: Row = {"flink": VERSIONS[line], "date": today, "seed": options.seed, "count": options.count}
    drawn = {each.pair.id: each for each in random_pairs(options.count, options.seed, line)}
    known = [json.loads(text) for text in path.read_text("utf-8").splitlines()[1:]] if path.exists() else []
    rows: dict[str, Row] = {row["id"]: row for row in known if _is_of(row, drawn)}
    planners = {line: find(line, tuple(map(jars.fetch, planner.JARS[line])))}
    try:
        for name, each in drawn.items():
            if name not in rows:
                rows[name] = judged(each, line, planners) | {"real": ""}
                _write(path, head, drawn, rows)
    finally:
        close_all()
    left = [row for name, row in rows.items() if drawn[name].runs and "not run" not in row]
    named = [name for name in rows if options.only and re.search(options.only, name)]
    wanted = named or draw(left, options.draw, options.seed)
    pairs = [drawn[name].pair for name in wanted if not rows[name]["real"]]
    if not pairs:
        return list(rows.values()), []

    def add(measured: Measured) -> None:
        row = rows[measured.pair.id]
        row["real"] = measured.outcome
        if measured.exception:
            row["exception"] = measured.exception.partition("\n")[0][:300]
        if measured.outcome == "restored_WRONG":
            row |= {"restored": measured.restored_rows, "expected": measured.expected_rows}
        _write(path, head, drawn, rows)

    folder = CACHE / f"random-{line}"
    shutil.rmtree(folder, ignore_errors=True)
    with ExitStack() as stack:
        servers = stack.enter_context(services.services(folder / "services"))
        bench = stack.enter_context(bench_of(line, folder, services.jars(line), servers))
        failures = bench.measure(pairs, options.threads, say, deadline(options.minutes), add, bench.run)
    for name, row in rows.items():
        if why := next((each for each in failures if each.startswith(f"{name}: ")), ""):
            row["not run"] = why.removeprefix(f"{name}: ").partition("\n")[0][:300]
    _write(path, head, drawn, rows)
    return list(rows.values()), failures


def _is_of(row: Mapping[str, Any], drawn: Mapping[str, RandomPair]) -> bool:
    return row["id"] in drawn and row["digest"] == digest(drawn[row["id"]])


def _write(path: Path, head: Row, drawn: Mapping[str, RandomPair], rows: Mapping[str, Row]) -> None:
    """A run that ends while it writes leaves the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    lines = (json.dumps(each, ensure_ascii=False) for each in (head, *(rows[name] for name in drawn if name in rows)))
    unfinished.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    raise SystemExit(main())
