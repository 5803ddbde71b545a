"""Every kind of exec node is asked for its meaning, layout, rewriting and lowering; what is unknown is listed here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.nodes import FAMILIES, layout
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols
from tests.unit.exec_graph.test_symbols import UNION

NO_STATE = {
    "calc", "correlate", "drop-update-before", "exchange", "expand", "local-group-aggregate", "local-window-aggregate",
    "mini-batch-assigner", "union", "watermark-assigner",
}  # fmt: skip
"""Kinds that keep nothing."""
WITHOUT_MEANING = {
    "async-calc", "async-correlate", "group-table-aggregate", "ml-predict-table-function", "python-async-calc",
    "python-calc", "python-correlate", "python-group-aggregate", "python-group-table-aggregate",
    "python-group-window-aggregate", "python-over-aggregate", "sort", "values", "vector-search-table-function",
}  # fmt: skip
WITHOUT_LAYOUT = WITHOUT_MEANING | {"lookup-join", "table-source-scan"}
WITHOUT_REWRITING = WITHOUT_LAYOUT | {
    "process-table-function",
    "changelog-normalize", "delta-join", "incremental-group-aggregate", "limit", "match", "multi-join", "sink",
    "sort-limit", "temporal-sort", "window-table-function",
}  # fmt: skip
WITHOUT_LOWERING = WITHOUT_REWRITING | {"over-aggregate", "temporal-join"}


def unknown(answer: str) -> set[str]:
    kinds = set(ExecKind) - {ExecKind(each) for each in NO_STATE}
    return {kind.value for kind in kinds if getattr(FAMILIES.get(kind), answer, None) is None}


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("meaning", WITHOUT_MEANING),
        ("layout", WITHOUT_LAYOUT),
        ("rewrite", WITHOUT_REWRITING),
        ("lower", WITHOUT_LOWERING),
    ],
)
def test_what_is_unknown_of_a_kind_is_listed(answer: str, names: set[str]) -> None:
    assert unknown(answer) == names


def test_a_kind_that_keeps_nothing_is_of_no_family() -> None:
    assert not {each.value for each in FAMILIES} & NO_STATE
    assert all(Trait.STATELESS in ExecKind(each).traits for each in NO_STATE)


def test_a_kind_of_a_later_flink_has_an_unknown_layout() -> None:
    later = ExecKind("quantum-join")
    assert later == "quantum-join"
    assert not later.traits
    node = replace(UNION, kind=later)
    columns = ColumnMeanings((), (), (), 0)
    found = layout(node, [columns], Symbols())
    assert isinstance(found, Unknown)
    assert "quantum-join" in found.reason
