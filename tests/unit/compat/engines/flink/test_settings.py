"""Settings compare by the value in force, whatever their spelling, and only where a default is known."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import ENGINES, Outcome, Side, check
from airflow_flinkcompat.compat.changes import settings as data
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.settings import TABLE

QUERY = """\
CREATE TABLE orders (customer STRING, amount BIGINT) WITH ('connector' = 'filesystem');
SELECT customer, SUM(amount) FROM orders GROUP BY customer;
"""


def changed(engine: str, old: dict[str, str], new: dict[str, str]) -> list[str]:
    change = Change(Side(QUERY, old, engine=engine), Side(QUERY, new, engine=engine))
    return [difference.key for difference in change.differences]


@pytest.mark.parametrize(
    ("key", "texts"),
    [
        ("table.exec.state.ttl", ("1 h", "1h", "60 min", "3600s", "3600000", "3600000 ms")),
        ("table.exec.mini-batch.enabled", ("true", "TRUE", " true ")),
        ("table.optimizer.agg-phase-strategy", ("ONE_PHASE", "one_phase")),
        ("table.optimizer.state-compatibility.ignore-sink", ("false", "False")),
    ],
)
def test_spellings_of_one_value_are_equal(key: str, texts: tuple[str, ...]) -> None:
    assert len({data.value(key, text) for text in texts}) == 1
    for engine in ENGINES:
        assert changed(engine, {key: texts[0]}, {key: texts[-1]}) == []


def test_what_is_no_duration_stays_as_it_is() -> None:
    assert data.value("table.exec.state.ttl", "1 fortnight") == "1 fortnight"
    assert data.value("pipeline.name", "A") != data.value("pipeline.name", "a")


@pytest.mark.parametrize("key", sorted(data.KNOWN_DEFAULTS["flink"]))
def test_a_default_written_out_is_no_change_on_flink(key: str) -> None:
    default = data.default(key, "flink")
    assert default
    assert changed("flink", {}, {key: default}) == changed("flink", {key: default}, {}) == []


def test_defaults_of_vvr_are_known_only_where_its_pages_name_them() -> None:
    assert changed("vvr", {}, {"table.exec.mini-batch.enabled": "false"}) == ["setting/table.exec.mini-batch.enabled"]
    for key, default in data.CHECK.items():
        assert changed("vvr", {}, {key: default}) == []


def test_an_older_name_is_the_same_setting() -> None:
    for older, name in {
        "state.backend": "state.backend.type",
        "state.backend.incremental": "execution.checkpointing.incremental",
        "pipeline.operator-chaining": "pipeline.operator-chaining.enabled",
        "state.savepoints.dir": "execution.checkpointing.savepoint-dir",
    }.items():
        assert changed("flink", {older: "x"}, {name: "x"}) == []
        assert changed("flink", {older: "x"}, {name: "y"}) == [f"setting/{name}"]


def test_every_row_of_the_table_has_a_source() -> None:
    for key, rows in TABLE.items():
        assert rows, key
        assert all(verdict.grounds for _, verdict in rows), key


def test_a_key_of_no_class_of_flink_is_read_by_nothing() -> None:
    """The SQL client's former file of settings had it."""
    old, new = (Side(QUERY, {"execution.parallelism": each}, engine="flink", engine_version="2.3") for each in "12")
    assert check(old, new).outcome is Outcome.COMPATIBLE
