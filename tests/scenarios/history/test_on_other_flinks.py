"""The same with two subtasks, and on the older line of Flink: at night."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import home
from tests.scenarios.history.test_on_flink import Case, goes_on, load_cases

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]
UNTIMED = [case for case in load_cases() if not any(word in case.new.script for word in ("TABLE(", "INTERVAL"))]
"""With two subtasks that read one file, the one that reads none would hold all windows and intervals back."""
TWO_SUBTASKS = (("parallelism.default", "2"), ("table.exec.source.idle-timeout", "1 s"))
"""The rig waits for the watermark of all rows, and one subtask reads the only file."""
FROM_THE_BEGINNING = re.compile(r"ORDER BY ts( ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)?\)")
"""An OVER by event time, which Flink 1.20 stores in another way: there nothing is computed."""
EVERY_THIRD = [
    case
    for case in load_cases()
    if not any(" OVER " in each.script and FROM_THE_BEGINNING.search(each.script) for each in (case.old, case.new))
][::3]


@pytest.fixture(scope="module")
def line(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def bench(line: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairRunner]:
    folder = tmp_path_factory.mktemp("bootstrap")
    with (
        LocalFlink(folder / "flink", home=home(line), slots=8, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as made,
    ):
        (folder / "data").mkdir()
        yield made


@pytest.mark.parametrize("case", UNTIMED, ids=lambda case: case.title)
@pytest.mark.parametrize("line", ["2.3"], indirect=True)
def test_two_subtasks(case: Case, line: str, bench: PairRunner, spark: SparkSession) -> None:
    old, new = (replace(side, settings=(*side.settings, *TWO_SUBTASKS)) for side in (case.old, case.new))
    assert goes_on(replace(case, old=old, new=new), bench, in_folder)


@pytest.mark.parametrize("case", EVERY_THIRD, ids=lambda case: case.title)
@pytest.mark.parametrize("line", ["1.20"], indirect=True)
def test_on_the_older_line(case: Case, line: str, bench: PairRunner, spark: SparkSession) -> None:
    assert goes_on(case, bench, in_folder)


def in_folder(script: str, folder: Path) -> str:
    return script.replace("file://DATA", folder.as_uri())
