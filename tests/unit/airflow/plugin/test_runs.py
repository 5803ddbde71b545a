"""The writer of an entry: what the tasks put together is taken apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.airflow.plugin.ledgers import Writer
from airflow_flinkcompat.airflow.tasks.base import run_name

KEYS = st.text("abcXYZ019_-.", min_size=1)


@given(dag_id=KEYS, run_id=st.text(min_size=1), task_id=KEYS)
def test_the_task_of_an_entry_is_found_again(dag_id: str, run_id: str, task_id: str) -> None:
    context: Any = {"ti": SimpleNamespace(dag_id=dag_id, run_id=run_id, task_id=task_id)}
    assert Writer.of(run_name(context)) == Writer(dag_id, run_id, task_id)


@given(
    owner=st.one_of(st.text(), st.sampled_from(["", "airflow:", "airflow:a", "airflow:a/b", "airflow://t", "ann@h:1"]))
)
def test_others_are_no_tasks(owner: str) -> None:
    found = Writer.of(owner)
    assert found is None or owner == f"airflow:{found.dag_id}/{found.run_id}/{found.task_id}"
