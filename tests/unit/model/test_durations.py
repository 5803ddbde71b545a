"""Durations as text: what is read, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.durations import parse_duration, shown_duration


@given(st.integers(1, 10**12))
def test_lengths_are_read_as_they_are_written(milliseconds: int) -> None:
    length = timedelta(milliseconds=milliseconds)
    assert parse_duration(shown_duration(length)) == length
    assert parse_duration(f" {milliseconds}  ms ") == length


@pytest.mark.parametrize("text", ["", "1", "h", "0d", "-1d", "1.5h", "1 week", "9" * 30 + "d", 3600, None])
def test_a_length_that_is_none_is_an_error(text: object) -> None:
    with pytest.raises(InputError, match=r"is not a duration|is too long for a duration"):
        parse_duration(text)
