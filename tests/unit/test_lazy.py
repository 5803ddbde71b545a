"""A value that is worked out of another one is worked out once, for each of them."""

from __future__ import annotations

from importlib import import_module

import pytest

from airflow_flinkcompat.lazy import cached_property


class Square:
    def __init__(self, side: int) -> None:
        self.side = side
        self.asked = 0

    @cached_property
    def area(self) -> int:
        """What it covers."""
        self.asked += 1
        return self.side * self.side


def test_it_is_worked_out_once_for_each() -> None:
    small, large = Square(2), Square(3)

    assert [small.area, small.area, large.area] == [4, 4, 9]
    assert (small.asked, large.asked) == (1, 1)


def test_the_class_tells_what_it_is() -> None:
    assert Square.__dict__["area"].__doc__ == "What it covers."
    assert Square.area is Square.__dict__["area"]


def test_modules_that_moved_are_found_under_their_former_paths() -> None:
    former = import_module("airflow_flinkcompat.operators.deploy")
    present = import_module("airflow_flinkcompat.airflow.operators.deploy")
    assert former is present
    assert present.__spec__ is not None
    assert present.__spec__.name == present.__name__
    package = import_module("airflow_flinkcompat.operators")
    assert package.FlinkSqlDeployOperator is present.FlinkSqlDeployOperator
    with pytest.raises(ModuleNotFoundError, match=r"airflow_flinkcompat\.airflow\.operators\.nothing"):
        import_module("airflow_flinkcompat.operators.nothing")
