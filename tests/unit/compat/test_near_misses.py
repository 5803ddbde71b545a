"""Changes that look like harmless ones, each with what is to be said of it on engine ``flink``.

They were thought out to have a change called compatible that is refused or restored wrong; the likes of those that were
are among the pairs of ``dev/measure/pairs/connectors.toml`` too.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat import Side, check

FILE = Path(__file__).parents[2] / "fixtures" / "near-misses.toml"


def _changes() -> Iterator[tuple[str, dict[str, Any]]]:
    for script in tomllib.loads(FILE.read_text("utf-8"))["scripts"]:
        for change in script["changes"]:
            yield script["sql"], change


def _changed(sql: str, change: dict[str, Any]) -> str:
    for old, new in change.get("change", {}).items():
        assert old in sql, f"{change['name']}: {old!r} does not stand in the script"
        sql = sql.replace(old, new)
    return str(change.get("new", sql))


@pytest.mark.parametrize(("sql", "change"), [pytest.param(*each, id=each[1]["name"]) for each in _changes()])
def test_a_near_miss_is_judged_as_what_it_is(sql: str, change: dict[str, Any]) -> None:
    old = Side(sql, settings=change.get("settings_old", {}))
    new = Side(_changed(sql, change), settings=change.get("settings_new", {}))

    assert check(old, new, engine="flink").outcome == change["outcome"]


def test_there_are_near_misses_on_both_sides_of_the_line() -> None:
    outcomes = [change["outcome"] for _, change in _changes()]

    assert len(outcomes) >= 60
    assert outcomes.count("compatible") >= 10
    assert outcomes.count("incompatible") >= 10
