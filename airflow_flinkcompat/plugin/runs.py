"""Which task of which DAG run wrote an entry: what ``run_name`` puts together, taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

_AIRFLOW = "airflow:"


@dataclass(frozen=True)
class Writer:
    """A task of a DAG run."""

    dag_id: str
    run_id: str
    task_id: str

    @classmethod
    def of(cls, owner: str) -> Self | None:
        """The task that an entry's ``owner`` names.

        Args:
            owner: ``airflow:<dag>/<run>/<task>``, or another writer. A run's id may hold slashes, the others cannot.

        Returns:
            The task; None for a writer that is no task.
        """
        if not owner.startswith(_AIRFLOW):
            return None
        dag_id, _, rest = owner.removeprefix(_AIRFLOW).partition("/")
        run_id, _, task_id = rest.rpartition("/")
        return cls(dag_id, run_id, task_id) if dag_id and run_id and task_id else None
