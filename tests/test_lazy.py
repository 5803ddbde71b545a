"""A value that is worked out of another one is worked out once, for each of them."""

from __future__ import annotations

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
