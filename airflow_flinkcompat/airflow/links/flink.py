"""Links on the task page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class FlinkJobLink(BaseOperatorLink):
    """The job's page in Flink's own UI; operators that know a job keep its address in ``job_url``."""

    name = "Flink job"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Read the link in the worker after the task ran; Airflow keeps the result as an XCom."""
        return getattr(operator, "job_url", "") or ""
