"""The options that name a savepoint, in the spelling of each line of Flink."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.model.engine import (
    CLAIM_MODE,
    IGNORE_UNCLAIMED,
    RECOVERY_PATH,
    in_every_spelling,
    is_of_line,
    line_numbers,
    line_of,
    recovery_option,
)


@pytest.mark.parametrize(
    ("version", "option"),
    [
        ("1.19", "execution.savepoint.path"),
        ("1.19.1", "execution.savepoint.path"),
        ("1.20", "execution.state-recovery.path"),
        ("1.20.3", "execution.state-recovery.path"),
        ("2.4-SNAPSHOT", "execution.state-recovery.path"),
    ],
)
def test_a_version_is_told_the_option_that_it_knows(version: str, option: str) -> None:
    assert recovery_option(RECOVERY_PATH, version) == option


def test_where_the_version_is_not_known_both_spellings_say_the_same() -> None:
    given = {RECOVERY_PATH: "file:/s", CLAIM_MODE: "NO_CLAIM", IGNORE_UNCLAIMED: "false"}
    said = in_every_spelling(given)
    for version in ("1.19", "2.3"):
        assert {option: said[recovery_option(option, version)] for option in given} == given


def test_lines_of_versions() -> None:
    assert [line_of(each) for each in ("1.20.3", "2.3", "8", None)] == ["1.20", "2.3", "8", ""]
    assert [each for each in ("2.3.0", "2.3", "2.30.1", "2", None) if is_of_line(each, "2.3")] == ["2.3.0", "2.3"]
    assert sorted(["1.20", "2.0", "1.9"], key=line_numbers) == ["1.9", "1.20", "2.0"]
