"""Changes whose restores were measured: each goes on as though the new job had always run, or is not computed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.deploy.errors import TargetError
from airflow_flinkcompat.deploy.flink.gateway import GatewayError
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.migration import NotMigratable
from dev.measure import measured
from dev.measure.pair_runner import PairRunner
from dev.measure.pairs import Pair, load_pairs, measured_again
from tests.scenarios.history.results import CAME_TO
from tests.scenarios.history.test_on_flink import TABLE, Case, bench, goes_on, in_folder, kept, told

__all__ = ["bench"]
pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(300)]
LEAST = 150
"""How many of them history makes whole."""
UNORDERED = "several rows of a key are equal in sort order, and their order of arrival is unknown"
_PLACE = re.compile(r"file://\w*/")
_WHOLE = {RestoreEffect.RIGHT, RestoreEffect.MOVED, RestoreEffect.REWRITTEN, RestoreEffect.COMPUTED}


def load_measured() -> Iterator[Pair]:
    """Pairs of SQL over files of ``dev/measure/data``, each change once."""
    restores = (*measured.narrow(), *measured.load(measured.WIDE))
    found = (*load_pairs("2.3"), *(measured_again(restore, "") for restore in restores))
    for pair in {(pair.old, pair.new): pair for pair in found}.values():
        if all(
            side.language == "sql" and set(_PLACE.findall(side.script)) == {"file://DATA/"}
            for side in (pair.old, pair.new)
        ):
            yield pair


@pytest.fixture(scope="module")
def whole() -> list[str]:
    """The ids of those that went on."""
    return []


def is_whole(change: Migration) -> bool:
    """Whether history adds something, and nothing begins empty."""
    lines = [line for line in change.operators if line.new is not None]
    kept = all(line.effect in _WHOLE and not (line.new_fields or line.accepted) for line in lines)
    return kept and not change.refused and any(line.from_history for line in lines)


@pytest.mark.parametrize("pair", load_measured(), ids=lambda pair: pair.id)
def test_the_job_goes_on_as_though_it_had_always_run(
    pair: Pair,
    bench: PairRunner,
    spark: SparkSession,
    whole: list[str],
    record_property: Callable[[str, str], None],
) -> None:
    try:
        old, new = bench.complete(pair.old), bench.complete(pair.new)
        found = kept(old, new, bench)
    except (TargetError, GatewayError):
        record_property(CAME_TO, "not planned by Flink, or not as a compiled plan")
        return
    history = KnownHistory({name: "" for name in TABLE.findall(new.script) if name != "Printed"})
    before, after = (JobSide(each.script, dict(each.settings), engine="flink") for each in (old, new))
    change, _ = history.extend(found, after, before)
    if not is_whole(change):
        record_property(CAME_TO, "history does not make it whole")
    else:
        try:
            assert goes_on(Case(pair.id, old, new, told(change)), bench, in_folder)
        except NotMigratable as error:
            if UNORDERED not in str(error):
                raise
            record_property(CAME_TO, "refused by its rows, of which nothing tells which came first")
            return
        record_property(CAME_TO, "whole")
        whole.append(pair.id)


def test_most_of_what_changes_state_is_computed(whole: list[str]) -> None:
    assert len(whole) >= LEAST
