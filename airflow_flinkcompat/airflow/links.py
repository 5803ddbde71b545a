"""Addresses of the deployment pages in Airflow, and the links on a task's page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PAGE_ROUTE = "flink"
"""URL route of the page of deployments in Airflow's navigation."""


def path_of_airflow() -> str:
    """Path prefix of Airflow's addresses: ``[api] base_url`` without its host."""
    from airflow.configuration import conf

    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def change_page(ledger_id: str, deployment: str, number: int) -> str:
    """Path of a change's page in Airflow's UI; ``number`` is any ledger entry of the change."""
    place = urlencode({"ledger": ledger_id, "deployment": deployment, "change": number})
    return f"{path_of_airflow()}/plugin/{PAGE_ROUTE}?{place}"


class FlinkChangeLink(BaseOperatorLink):
    """Link to the page of a task's change; operators store the address in ``change_url``."""

    name = "Flink change"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the link. Airflow calls this in the worker after the task ran or was suspended."""
        return getattr(operator, "change_url", "") or ""


class FlinkJobLink(BaseOperatorLink):
    """Link to the job's page in Flink's UI; operators store the address in ``job_url``."""

    name = "Flink job"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the link. Airflow calls this in the worker after the task ran."""
        return getattr(operator, "job_url", "") or ""
