"""Subject of a DAG run: the task that wrote an entry, by ``run_name``, and its tasks' deployments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

_AIRFLOW = "airflow:"


@dataclass(frozen=True)
class Writer:
    """A task of a DAG run."""

    dag_id: str
    run_id: str
    task_id: str

    @classmethod
    def of(cls, owner: str) -> Self | None:
        """The task that an entry's ``owner`` names."""
        if not owner.startswith(_AIRFLOW):
            return None
        dag_id, _, rest = owner.removeprefix(_AIRFLOW).partition("/")
        run_id, _, task_id = rest.rpartition("/")
        return cls(dag_id, run_id, task_id) if dag_id and run_id and task_id else None


def deployments_of(dag_id: str, run_id: str) -> frozenset[str]:
    """Deployments that tasks of a run name, whatever their ledgers hold by now."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    rendered = select(RenderedTaskInstanceFields.rendered_fields).where(
        RenderedTaskInstanceFields.dag_id == dag_id, RenderedTaskInstanceFields.run_id == run_id
    )
    with create_session() as session:
        kept = SerializedDagModel.get(dag_id, session=session)
        dag: dict[str, Any] = ((kept.data if kept else None) or {}).get("dag", {})
        of_run = list(session.scalars(rendered))
    tasks = [task["__var"] for task in dag.get("tasks", ())]
    named = [*tasks, *(task.get("partial_kwargs", {}) for task in tasks), *of_run]
    return frozenset(name for each in named if isinstance(name := each.get("deployment"), str))
