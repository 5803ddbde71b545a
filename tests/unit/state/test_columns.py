"""Names of columns and tables."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.state.columns import distinct


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a_2", "a_3"]),
        (["a", "a", "a_2"], ["a", "a_3", "a_2"]),
        (["a_2", "a", "a"], ["a_2", "a", "a_3"]),
    ],
)
def test_names_differ(names: list[str], expected: list[str]) -> None:
    assert distinct(names) == expected
