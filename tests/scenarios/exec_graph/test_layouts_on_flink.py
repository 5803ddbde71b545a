"""A real Flink stores what plans predict, also with a time to live, in mini-batches, and in two phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace

import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import JobSettings, compiled_state, job_state
from airflow_flinkcompat.exec_graph.from_savepoint import layout_differences
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.savepoint_fixtures import SINKS, Script, load_scripts

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]
TTL = "table.exec.state.ttl"
MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "100 ms",
    "table.exec.mini-batch.size": "10",
}
TWO_PHASES = {"table.optimizer.distinct-agg.split.enabled": "true", "table.optimizer.agg-phase-strategy": "TWO_PHASE"}
VARIANTS = {"ttl": {TTL: "1 h"}, "mini-batch": MINI_BATCH, "split": {**MINI_BATCH, **TWO_PHASES}}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("layouts")
    (folder / "data").mkdir()
    with (
        LocalFlink(folder / "flink", slots=4, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as made,
    ):
        yield made


@pytest.mark.parametrize("case", list(load_scripts()), ids=lambda case: case.name)
@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_a_savepoint_holds_what_its_plan_predicts(settings: Mapping[str, str], case: Script, bench: PairRunner) -> None:
    every = dict(case.side.settings) | settings
    side = bench.complete(replace(case.side, settings=tuple(every.items())))
    symbols = Symbols()
    told = compiled_state(
        read_plan(bench.compiled(side)), symbols, {}, SINKS, settings=JobSettings(expires=TTL in every)
    )
    assert layout_differences(job_state(told, symbols).specs, bench.savepoint(side).path) == ()
