"""Flink's own planner on each line that has one: what it refuses, and which parts of Flink the probe of state needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import Consequence
from airflow_flinkcompat.planner import Installation, close_all, find, install, predict
from airflow_flinkcompat.planner.installation import LINES
from airflow_flinkcompat.planner.questions import plan
from tests.nightly import mostly_nightly

pytestmark = pytest.mark.slow

TABLES = """\
SET 'parallelism.default' = '1';
CREATE TABLE orders (k STRING, v BIGINT, t TIMESTAMP(3), WATERMARK FOR t AS t) WITH (
  'connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json', 'source.monitor-interval' = '1 s');
CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print');
"""
GROUP = "INSERT INTO totals SELECT k, {} FROM orders GROUP BY k"
WINDOW = (
    "INSERT INTO totals SELECT k, {} FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(t), INTERVAL '1' {})) "
    "GROUP BY k, window_start, window_end"
)


@pytest.fixture(scope="module", params=mostly_nightly([*LINES]))
def flink(request: pytest.FixtureRequest) -> Iterator[Installation]:
    install(request.param)
    yield find(request.param)
    close_all()


def side(flink: Installation, job: str, tables: str = TABLES) -> Side:
    return Side(f"{tables}{job};\n", engine="flink", engine_version=flink.line.name, source="job.sql")


def predicted(flink: Installation, old: str, new: str) -> tuple[Consequence | None, str]:
    said = predict(side(flink, old), side(flink, new), flink, flink).prediction
    assert said.doubt == ""
    return said.consequence, said.operator


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (GROUP.format("SUM(v)"), GROUP.format("SUM(v) + 1"), (None, "")),
        (GROUP.format("SUM(v)"), GROUP.format("MAX(v)"), (None, "")),  # the same layout with another meaning
        (
            GROUP.format("SUM(v)"),
            GROUP.format("CAST(AVG(v) + COUNT(*) AS BIGINT)"),
            (Consequence.REFUSED_AT_RESTORE, "GroupAggregate"),
        ),
        (
            GROUP.format("SUM(v)"),
            GROUP.format("SUM(v)").replace("orders", "(SELECT k, v FROM orders UNION ALL SELECT k, v + 1 FROM orders)"),
            (Consequence.REFUSED_AT_SUBMIT, "GroupAggregate"),
        ),
        (WINDOW.format("SUM(v)", "HOUR"), WINDOW.format("SUM(v)", "MINUTE"), (None, "")),
    ],
    ids=["output", "meaning", "layout", "operator", "size"],
)
def test_how_a_restore_ends(flink: Installation, old: str, new: str, expected: tuple[Consequence | None, str]) -> None:
    assert predicted(flink, old, new) == expected


def test_every_part_of_the_harness_is_there(flink: Installation) -> None:
    """The probe reads fields of Flink's classes by name: where one is renamed, states would be missing here."""
    (job,) = plan(side(flink, WINDOW.format("SUM(v)", "HOUR")), flink).jobs
    found = {each.name: each for each in job.operators}
    window = found["GlobalWindowAggregate"]
    assert (window.keeps, window.basis) == ("yes", "opened")
    assert window.states is not None
    assert {"window-aggs", "_timer_state/event_window-timers", "_timer_state/processing_window-timers"} <= {
        *window.states
    }
    assert [each.basis for each in job.operators if each.name.startswith("Source")] == ["source"]
    assert found["LocalWindowAggregate"].keeps == "no"
    assert job.plan["nodes"]
    assert len(job.savepoint) > 1_000


def test_a_refusal_has_its_place(flink: Installation) -> None:
    refusal = plan(side(flink, "INSERT INTO totals\n  SELECT k, nope FROM orders"), flink).refusal
    assert refusal is not None
    assert (refusal.message, refusal.conclusive) == ("Column 'nope' not found in any table", True)
    assert refusal.place is not None
    assert (str(refusal.place.source), refusal.place.line, refusal.place.column) == ("job.sql", 6, 13)


def test_statements_that_change_what_lasts_are_not_run_but_named(flink: Installation) -> None:
    script = plan(
        side(
            flink,
            "CREATE CATALOG lake WITH ('type' = 'paimon', 'warehouse' = 's3://nowhere');\nDROP TABLE IF EXISTS "
            "lake.d.t;\n" + GROUP.format("SUM(v)"),
        ),
        flink,
    )
    assert script.refusal is None
    assert script.lasting == ("DROP TABLE IF EXISTS lake.d.t",)
    assert script.catalogs == {"lake": "paimon"}


def test_absent_connectors_have_stand_ins_and_a_lookup_by_one_is_a_doubt(flink: Installation) -> None:
    tables = TABLES.replace("filesystem", "absent") + (
        "CREATE TABLE names (k STRING, n BIGINT) WITH ('connector' = 'elsewhere');\n"
    )
    same = side(flink, GROUP.format("COUNT(*)"), tables)
    said = predict(same, same, flink, flink).prediction
    assert (said.stand_ins, said.doubt, said.consequence) == (("absent",), "", None)
    job = (
        "INSERT INTO totals SELECT o.k, n FROM (SELECT *, PROCTIME() AS p FROM orders) AS o "
        "JOIN names FOR SYSTEM_TIME AS OF o.p AS c ON o.k = c.k"
    )
    looked_up = side(flink, job, tables)
    assert "looked up asynchronously" in predict(looked_up, looked_up, flink, flink).prediction.doubt


def test_where_parallelism_is_not_known_both_kinds_of_chains_are_planned(flink: Installation) -> None:
    tables = TABLES.partition("\n")[2]
    old, new = (side(flink, GROUP.format(each), tables) for each in ("SUM(v)", "SUM(v) + 1"))
    assert predict(old, new, flink, flink).prediction.doubt == ""
