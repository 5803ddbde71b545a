"""The engines as values: every table by engine is whole, and adjusters stand in their order."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat.changes.settings import KNOWN_DEFAULTS
from airflow_flinkcompat.compat.checker import ENGINE_BY_NAME
from airflow_flinkcompat.compat.reports.catalogue import ENTRIES
from airflow_flinkcompat.compat.rule_builders.part_rules import NOTICED_ABOVE
from airflow_flinkcompat.compat.rules import ALL, BY_CODE
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import ENGINES, Outcome
from airflow_flinkcompat.model.engine import ENGINE_FACTS


@pytest.mark.parametrize("table", [ENGINE_FACTS, ENGINE_BY_NAME, KNOWN_DEFAULTS, NOTICED_ABOVE])
def test_every_engine_has_its_entry(table: dict[str, object]) -> None:
    assert set(table) == set(ENGINES)


def test_every_rule_has_a_verdict_of_every_engine() -> None:
    for rule in ENTRIES:
        assert set(rule.verdicts) == set(ENGINES), rule.code
        assert {*rule.case_dependent, *rule.not_applicable} <= set(ENGINES), rule.code


def test_a_rule_yields_to_a_rule_that_is_worse() -> None:
    for rule in ALL:
        if rule.yields_to:
            assert BY_CODE[rule.yields_to].verdicts["vvr"].outcome is Outcome.INCOMPATIBLE


def test_adjusters_run_in_a_visible_order() -> None:
    """What comes later decides over what came before: nothing is made safe after ids were found to be renumbered."""
    names = {
        name: [adjuster.__name__ for adjuster in (*engine.verdict_adjusters, *engine.finding_adjusters)]
        for name, engine in ENGINE_BY_NAME.items()
    }
    assert names == {
        "vvr": ["row_window_adjuster", "table_api_adjuster", "undeclared_table_adjuster", "unknown_value_adjuster"],
        "flink": [
            "respelled_adjuster",
            "consequence_adjuster",
            "measured_line_adjuster",
            "table_api_adjuster",
            "undeclared_table_adjuster",
            "unknown_value_adjuster",
            "shared_job_adjuster",
            "key_order_adjuster",
            "unchained_sink_adjuster",
            "resolved_lookup_adjuster",
            "exec_graph_adjuster",
            "operator_ids_adjuster",
        ],
    }


@pytest.mark.parametrize(
    ("engine", "version", "line"),
    [("flink", "1.20.3", "1.20"), ("vvr", "8.0.11", "1.17"), ("vvr", "11.1", "1.20"), ("vvr", "99.1", None)],
)
def test_the_line_of_flink_that_an_engine_is_made_of(engine: str, version: str, line: str | None) -> None:
    side = Side("", engine=engine, engine_version=version)
    assert ENGINE_FACTS[engine].flink_line(side.version) == line
