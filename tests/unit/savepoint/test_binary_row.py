"""Values as fields of stored rows: what is written is read back, and is what Flink had written."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.exec_graph.from_savepoint import operator_layouts
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import (
    field_form,
    field_reader,
    field_writer,
    read_row,
    value_reader,
    value_writer,
    write_row,
)
from tests.support.savepoint.savepoints import FOLDER, keyed

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "TINYINT NOT NULL": st.integers(-(2**7), 2**7 - 1),
    "SMALLINT": st.integers(-(2**15), 2**15 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT NOT NULL": st.integers(-(2**63), 2**63 - 1),
    "DOUBLE": st.floats(allow_nan=False),
    "DATE": st.integers(-(2**20), 2**20),
    "VARCHAR(2147483647)": st.text(st.characters(codec="utf-8")),
    "VARBINARY(10)": st.binary(max_size=10),
    "DECIMAL(10, 2)": st.decimals(-(10**7), 10**7, places=2),
    "DECIMAL(38, 4) NOT NULL": st.decimals(-(10**33), 10**33, places=4),
    "TIMESTAMP(3)": st.integers(-(2**40), 2**40).map(lambda millis: millis * 1000),
    "TIMESTAMP_LTZ(6)": st.integers(-(2**50), 2**50),
}


@pytest.mark.parametrize("type", VALUES)
def test_a_value_is_read_back(type: str) -> None:
    write, read = field_writer(type), field_reader(type)

    @given(VALUES[type] | st.none())
    def back(value: object) -> None:
        row = write_row([write(value)])  # type: ignore[arg-type]
        (field,) = read_row(row, [field_form(type)])
        assert read(field) == value

    back()


BY_THEMSELVES = [type for type in VALUES if not type.startswith(("TIMESTAMP", "VARBINARY"))]


@pytest.mark.parametrize("type", BY_THEMSELVES)
def test_a_value_that_stands_by_itself_is_read_back(type: str) -> None:
    write, read = value_writer(type), value_reader(type)

    @given(VALUES[type])
    def back(value: object) -> None:
        assert read(write(value)) == value  # type: ignore[arg-type]

    back()


@pytest.mark.parametrize("name", ["2.3/group-types", "2.3/tumble", "1.20/tumble", "2.3/group-numbers"])
def test_what_flink_wrote_is_written_again(name: str) -> None:
    """Keys alone: a row of them holds plain values, and one other byte puts it into another key group."""
    path = str(FOLDER / name)
    written = 0
    for operator, each, header, content in keyed(name):
        layout = next(each for each in operator_layouts(operator, path) if each is not None)
        types = [field.type for field in layout.key]
        try:
            writers = [(field_reader(type), field_writer(type)) for type in types]
        except SavepointUnreadable:
            continue
        for row in _key_rows(content, each.begins, header, operator.max_parallelism):
            fields = read_row(row, [field_form(type) for type in types])
            made = [write(read(field)) for (read, write), field in zip(writers, fields, strict=True)]
            assert write_row(made, row[0]) == row
            written += 1
    assert written


def _key_rows(content: bytes, begins: tuple[int, ...], header: Any, groups: int) -> set[bytes]:
    from airflow_flinkcompat.migration.entries import StoredKey
    from airflow_flinkcompat.savepoint.binary import KeyedStateKind
    from airflow_flinkcompat.savepoint.keyed_state import prefix_length, read_entries

    found = set()
    placed = sorted(begin for begin in begins if begin)
    for begin, end in zip(placed, [*placed[1:], len(content)], strict=True):
        for state, key, _ in read_entries(content[begin:end]):
            told = key[prefix_length(groups) :]
            found.add(StoredKey.read(told, header.states[state].kind is KeyedStateKind.TIMERS).row)
    return found


@pytest.mark.parametrize("type", ["ARRAY<INT>", "ROW<`a` INT>", "RAW('x')", "INTERVAL DAY(2) TO SECOND(3)"])
def test_what_was_not_measured_is_refused(type: str) -> None:
    for made in (field_writer, field_reader):
        with pytest.raises(SavepointUnreadable, match="the stored form of"):
            made(type)


def test_a_decimal_keeps_all_of_its_digits() -> None:
    value = Decimal("-12345678901234567890123456789012345678")
    type = "DECIMAL(38, 0)"
    assert field_reader(type)(field_writer(type)(value)) == value
