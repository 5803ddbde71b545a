"""Planner predictions for measured restores, compared with their outcomes.

Sets are the measured restores of the repository and, where ``FLINKCOMPAT_MEASURED`` names their folder, the attack and
the field set. Each pair is a line of JSON in ``--to``; a run goes on where it was left.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from airflow_flinkcompat.compat import InputError, Side, check
from airflow_flinkcompat.compat.checker import check_planned
from airflow_flinkcompat.compat.deployable import UNREADABLE, obstacles
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.local_flink import LocalFlinkError, jars
from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import Installation, find
from airflow_flinkcompat.planner.questions import predict
from airflow_flinkcompat.sql import ScriptError
from dev.measure import measured, services

FOLDER = Path(os.environ.get("FLINKCOMPAT_MEASURED") or Path(__file__).parents[3] / "shared" / "measured")
JARS = services.JARS | {"1.20": (*services.JARS["1.20"], "flink-sql-connector-postgres-cdc")}
_SINK = re.compile(r"\bResult\b")
"""The sink that :mod:`dev.measure.measured` declares, a word that Flink reserves."""
REFUSED = {"refused_at_submit": "refused at submit", "refused_at_restore": "refused at restore"}
RIGHT = ("restored_right", "restored_right_upsert_only", "right", "compatible")


@dataclass(frozen=True)
class Pair:
    """A change with its measured outcome, or with its known truth in the attack and field sets."""

    set: str
    id: str
    real: str
    old: str
    new: str
    versions: tuple[str, str]
    settings: tuple[Mapping[str, str], Mapping[str, str]] = field(default=({}, {}))
    catalog: str = ""

    def sides(self) -> tuple[Side, Side]:
        before, after = (
            Side(text, settings, engine="flink", engine_version=version, source=name, catalog=self.catalog)
            for text, settings, version, name in zip(
                (self.old, self.new), self.settings, self.versions, ("old.sql", "new.sql"), strict=True
            )
        )
        return before, after


def pairs(line: str) -> Iterator[Pair]:
    """Every pair whose new side runs on a line."""
    # Bare queries are planned with a sink of their own schema.
    older = (each for each in measured.everything() if not each.version.startswith("2.3"))
    bare = (*measured.narrow(), *measured.load(measured.WIDE), *older)
    for name, found in (("restores", bare), ("connectors", measured.connectors())):
        for one in found:
            if one.version.startswith(f"{line}.") or one.version == line:
                old = ".".join((one.old_version or one.version).split(".")[:2])
                before, after = (_SINK.sub("`Result`", text) for text in (one.old, one.new))
                yield Pair(
                    "upgrades" if old != line else name, one.id, one.outcome, before, after, (old, line),
                    (one.settings_old, one.settings_new),
                )  # fmt: skip
    tables = FOLDER / "field-plan-tables.sql"
    catalogs = {"field": tables.read_text(encoding="utf-8") if tables.is_file() else ""}
    for name in ("attack", "field"):
        for path in sorted(FOLDER.glob(f"{name}-*.jsonl.gz")):
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                for each in map(json.loads, lines):
                    if each["version"] == line:
                        real = str(each.get("truth") or each.get("expected") or "not known")
                        settings = [each.get(f"settings_{side}", {}) for side in ("old", "new")]
                        old = each.get("old_version") or line
                        yield Pair(
                            name, each["id"], real, each["old"], each["new"], (old, line), (settings[0], settings[1]),
                            _declared(each, catalogs.get(name, "")),
                        )  # fmt: skip


_FILES = re.compile(r"'connector' = 'filesystem'[^)]*")
_KAFKA = (
    "'connector' = 'kafka', 'topic' = 'sales', 'properties.bootstrap.servers' = 'k:9092', "
    "'properties.group.id' = 'g', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'"
)


def _declared(pair: Mapping[str, Any], tables: str) -> str:
    """The tables of a pair that declares none, in the form that its id names."""
    if "CREATE TABLE" in pair["new"]:
        return ""
    if pair["id"].startswith("shape-") and not pair["id"].endswith("-wm-pt"):
        tables = tables.replace(", pt AS PROCTIME()", "")
        if "-kf-" in pair["id"]:
            tables = _FILES.sub(_KAFKA, tables)
        if pair["id"].endswith("-fs"):
            tables = re.sub(r", WATERMARK FOR \w+ AS \w+", "", tables)
    return tables


def judged(pair: Pair, planners: Mapping[str, Installation]) -> dict[str, Any]:
    """Verdicts on a pair: by the rules alone, and with the planner."""
    row: dict[str, Any] = {"set": pair.set, "id": pair.id, "real": pair.real}
    old, new = pair.sides()
    begin = perf_counter()
    try:
        row["read"] = (
            "bad input" if any(each.kind in UNREADABLE for each in obstacles(new)) else check(old, new).outcome.value
        )
    except (InputError, ScriptError) as error:
        row["read"] = f"bad input: {error}"[:300]
    row["read_seconds"] = round(perf_counter() - begin, 3)
    begin = perf_counter()
    try:
        before, after = (planners[version] for version in pair.versions)
        planned = predict(old, new, before, after)
        said = planned.prediction
        row |= {
            "doubt": said.doubt, "message": said.refusal.message if said.refusal else "",
            "effects": [each.message for each in said.restore.states], "stand_ins": said.stand_ins,
            "predicted": _end(said),
        }  # fmt: skip
        for side, script in (("old", planned.old), ("new", planned.new)):
            if script.refusal is not None:
                kind = "refused at plan" if script.refusal.conclusive else "not planned"
                row[f"{side}_refusal"] = [kind, script.refusal.message]
        row["planned_seconds"] = round(perf_counter() - begin, 3)
        report = check_planned(old, new, said, planned.plans)
        row |= {"verdict": report.outcome.value, "plans": planned.plans is not None}
        if row["read"] == "bad input":
            row["verdict"] = "bad input"  # the command line refuses it before anything is judged
    except (InputError, ScriptError, LocalFlinkError) as error:
        row |= {"verdict": "bad input", "error": str(error)[:300]}
    if row.get("new_refusal", [""])[0] == "refused at plan":
        row["verdict"] = "refused at plan"
    return row


def _end(said: Prediction) -> str:
    consequence = said.refusal and said.refusal.effect.consequence
    return consequence.value if consequence else "not refused"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Number of rows by set and real outcome."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["set"], row["real"]), []).append(row)
    lines = [
        "| set | real outcome | n | predicted by the planner | verdict with it | verdict without |",
        "|" + "---|" * 6,
    ]
    for (name, real), each in sorted(found.items()):
        kinds = [(row.get("doubt") and "cannot tell") or row.get("predicted", "no answer") for row in each]
        said = (kinds, [row["verdict"] for row in each], [row["read"].partition(":")[0] for row in each])
        counts = (", ".join(f"{kind} {n}" for kind, n in Counter(column).most_common()) for column in said)
        lines.append(f"| {name} | {real} | {len(each)} | {' | '.join(counts)} |")
    return "\n".join(lines)


def disagreements(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Changes with different verdicts by the rules alone and with the planner."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if (read := row["read"].partition(":")[0]) != row["verdict"]:
            found.setdefault((read, row["verdict"]), []).append(f"{row['set']} {row['id']}")
    for (read, verdict), names in sorted(found.items()):
        yield f"{read} by the rules alone, {verdict} with the planner: {len(names)} ({', '.join(names)})"


def faults(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Predicted refusals that did not happen, missed refusals, and false ``compatible`` verdicts."""
    for row in rows:
        said, real, right = row.get("predicted"), REFUSED.get(row["real"], row["real"]), row["real"].startswith(RIGHT)
        name = f"{row['set']} {row['id']} ({row['real']})"
        if said in REFUSED.values() and right:
            yield f"false refusal: {name}: {row['message']}"
        at_all = row["set"] == "attack" and said in REFUSED.values()  # which refusal it was, was not noted there
        if real in REFUSED.values() and said != real and not at_all:
            yield f"missed refusal: {name}: {row.get('doubt') or said}; verdict {row['verdict']}"
        if row["verdict"] == "refused at plan" and right:
            yield f"false refusal at plan: {name}: {row['new_refusal'][1]}"
        if row["verdict"] == "compatible" and not right and row["real"] != "not known":
            yield f"false compatible: {name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m dev.measure planner", description=__doc__)
    parser.add_argument("--flink", choices=sorted(JARS), default="2.3", help="the line that plans the new side")
    parser.add_argument("--to", type=Path, help="the file of rows (default: .measure/planner-LINE.jsonl)")
    parser.add_argument("--only", help="a set, or the beginning of an id")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    options = parser.parse_args(arguments)
    line = options.flink
    path = options.to or Path(__file__).parents[2] / ".measure" / f"planner-{line}.jsonl"
    path.parent.mkdir(exist_ok=True)
    done = {(r["set"], r["id"]) for r in map(json.loads, path.open(encoding="utf-8"))} if path.exists() else set()
    planners = {each: find(each, tuple(map(jars.fetch, names))) for each, names in JARS.items()}
    with path.open("a", encoding="utf-8") as stream:
        for pair in pairs(line):
            wanted = options.only is None or pair.set == options.only or pair.id.startswith(options.only)
            if wanted and (pair.set, pair.id) not in done and pair.versions[0] in planners:
                print(json.dumps(judged(pair, planners)), file=stream, flush=True)
    close_all()
    rows = [json.loads(each) for each in path.open(encoding="utf-8")]
    lists = ("", *faults(rows)), ("", *disagreements(rows))
    report = "\n".join([table(rows), *(f"* {each}" if each else "" for found in lists for each in found)]) + "\n"
    if options.write:
        options.write.write_text(report, encoding="utf-8")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
