"""Lazy values are made once, and quick values are those that dataclasses would make."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from importlib import import_module

import pytest

from airflow_flinkcompat.lazy import cached_property, quick_init


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


@dataclass(frozen=True)
class Plain:
    a: int
    b: str = "b"
    c: int = field(default=3, compare=False, kw_only=True)
    d: int | None = None

    def __post_init__(self) -> None:
        self.__dict__["sum"] = self.a + self.c


@quick_init
@dataclass(frozen=True)
class Quick(Plain):
    e: int = 5


@pytest.mark.parametrize("given", [((1,), {}), ((1, "x", 4, 6), {"c": 2}), ((), {"a": 1, "e": 2})])
def test_it_holds_what_it_is_given_and_defaults(given: tuple[tuple[object, ...], dict[str, object]]) -> None:
    args, named = given
    reference = dataclass(frozen=True)(type("Quick", (Plain,), {"__annotations__": {"e": int}, "e": 5}))

    assert vars(Quick(*args, **named)) == vars(reference(*args, **named))


@pytest.mark.parametrize("given", [((), {}), ((1, "x", 4, 6, 7), {}), ((1,), {"a": 1}), ((1,), {"z": 1})])
def test_a_call_that_does_not_fit_is_refused(given: tuple[tuple[object, ...], dict[str, object]]) -> None:
    with pytest.raises(TypeError):
        Quick(*given[0], **given[1])


def test_it_stays_frozen_and_can_be_replaced_compared_and_pickled() -> None:
    value = Quick(1, c=9)

    with pytest.raises(FrozenInstanceError):
        value.a = 2  # type: ignore[misc]
    assert replace(value, a=2) == Quick(2)
    assert hash(value) == hash(Quick(1))
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_default_that_is_made_anew_is_refused() -> None:
    @dataclass(frozen=True)
    class Listed:
        each: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="Listed"):
        quick_init(Listed)
