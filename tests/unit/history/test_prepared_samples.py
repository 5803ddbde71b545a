"""What Python computed of some keys is read as it was written; without Spark's JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.history.prepared import by_value
from airflow_flinkcompat.history.recomputing import KeySample, PlainKey, identity
from airflow_flinkcompat.history.sampling import from_json, to_json
from tests.scenarios.history.test_sampling import query

VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
)
PARTIALS = st.one_of(
    VALUES,
    st.tuples(VALUES, VALUES),
    st.lists(VALUES).map(lambda values: {identity([value]): value for value in values}),
)
PLACES = st.tuples(st.integers(0, 3), st.lists(st.integers(), max_size=2).map(tuple), st.tuples(VALUES).map(identity))


def told(sample: KeySample) -> Any:
    """All of it, with the types of values."""
    return sample.below, [(place, repr(key)) for place, key in sample.held.items()]


@given(
    below=st.one_of(st.none(), st.integers()),
    keys=st.lists(
        st.tuples(st.integers(), st.lists(VALUES).map(tuple), st.dictionaries(PLACES, st.lists(PARTIALS, min_size=1))),
        max_size=4,
    ),
)
def test_a_sample_is_read_as_it_was_written(
    below: int | None, keys: list[tuple[int, tuple[Any, ...], dict[Any, Any]]]
) -> None:
    held = {(hashed, identity(key)): PlainKey(key, len(found), found) for hashed, key, found in keys}
    sample = KeySample(below, held)
    assert told(from_json(to_json(sample))) == told(sample)


def test_what_spark_has_of_bytes_is_told_too() -> None:
    sample = KeySample(None, {(1, (b"k",)): PlainKey((bytearray(b"k"),), 1, {(0, (), ()): [bytearray(b"v")]})})
    (key,) = from_json(to_json(sample)).held.values()
    assert (key.key, key.found) == ((b"k",), {(0, (), ()): [b"v"]})


def test_infinite_numbers() -> None:
    values = (float("inf"), float("-inf"), Decimal("1E+5"), -0.0)
    sample = KeySample(None, {(1, identity(values)): PlainKey(values)})
    assert told(from_json(to_json(sample))) == told(sample)


def named() -> str:
    """What is computed of a query with every metric."""
    (rows,) = query("TUMBLE", "file:///rows").plain
    return str(by_value(rows))


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_computed_has_the_same_name_in_each_process() -> None:
    """Though each has an order of sets of its own."""
    told = {
        subprocess.run(
            [sys.executable, "-c", f"from {__name__} import named; print(named())"],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert told == {named()}
