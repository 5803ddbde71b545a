"""The compiled plans of the measured restores, as Flink 2.3.0 wrote them.

``python -m dev.measure.measured_plans`` compiles them anew (a minute or two; a Flink as for the slow tests is needed).
"""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from typing import Any
from unittest.mock import patch

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.deploy import DeployError, SqlGatewayPlanner
from airflow_flinkcompat.exec_graph import model
from airflow_flinkcompat.exec_graph.diff import diff_jobs
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import PlanFacts, job_graphs
from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.measured import FOLDER, Restore, load

FILE = FOLDER / "flink-2.3-plans.json.gz"
SOURCES = ("flink-2.3-restores.json", "flink-2.3-restores-wide.json")


@cache
def pairs() -> dict[str, Restore]:
    """Every measured pair on 2.3, bare queries as they are."""
    return {pair.id: pair for name in SOURCES for pair in load(name)}


@cache
def _stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
    return found


@cache
def planned() -> dict[str, Plans]:
    """The plans of both sides by pair; those whose connectors a plain Flink lacks are in :func:`unplanned`."""
    texts, every = _stored()["texts"], _stored()["pairs"]
    return {
        name: tuple(tuple(read_plan(json.dumps(texts[i])) for i in side) for side in sides)  # type: ignore[misc]
        for name, sides in every.items()
    }


def written(name: str) -> list[list[dict[str, Any]]]:
    """The plans of both sides of a pair as Flink wrote them."""
    return [[deepcopy(_stored()["texts"][i]) for i in side] for side in _stored()["pairs"][name]]


def unplanned() -> dict[str, str]:
    """Why a pair has no plans."""
    found: dict[str, str] = _stored()["unplanned"]
    return found


def main() -> None:
    texts: list[str] = []
    made: dict[str, Any] = {}
    refused: dict[str, str] = {}
    known: dict[Any, list[int]] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalFlink(f"{folder}/client", gateway_only=True) as client,
        SqlGatewayPlanner(client.gateway_url) as planner,
    ):
        for name, pair in pairs().items():
            try:
                made[name] = [_compiled(planner, side, folder, known, texts) for side in pair.sides()]
            except DeployError as error:
                refused[name] = str(error)
    data = {"flink": "2.3.0", "texts": [json.loads(text) for text in texts], "pairs": made, "unplanned": refused}
    packed = json.dumps(data, separators=(",", ":"), sort_keys=True).encode()
    FILE.write_bytes(gzip.compress(packed, mtime=0))
    print(f"{len(made)} pairs planned, {len(refused)} not; {FILE.stat().st_size} bytes")


def _compiled(
    planner: SqlGatewayPlanner, side: Side, folder: str, known: dict[Any, list[int]], texts: list[str]
) -> list[int]:
    # RESULT is a reserved word of Flink's, the name of the sink in the measurements.
    script = re.sub(r"\b(CREATE TABLE|INSERT INTO) Result\b", r"\1 `Result`", side.script)
    key = (script, tuple(sorted(side.settings.items())))
    if key not in known:
        first = len(texts)

        def kept(text: str) -> CompiledPlan:
            texts.append(text)
            return read_plan(text)

        with patch("airflow_flinkcompat.deploy.flink.compiled_plans.read_plan", kept):
            planner.compile_plans(Side(script, side.settings, engine="flink", source=side.source), folder)
        known[key] = list(range(first, len(texts)))
    return known[key]


def diff_plans(
    old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], facts: PlanFacts | None = None, *, restored: bool = False
) -> model.Restore:
    return diff_jobs(job_graphs(old, new, facts), (len(old), len(new)), restored=restored)


if __name__ == "__main__":
    main()
