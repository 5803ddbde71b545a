"""Addresses of the pages of deployments inside Airflow, and the links on a task's page."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

PAGE_ROUTE = "flink"
"""The page in the navigation, as the plugin registers it."""


def path_of_airflow() -> str:
    """Path prefix of Airflow's addresses: ``[api] base_url`` without its host."""
    from airflow.configuration import conf

    return urlsplit(conf.get("api", "base_url", fallback="") or "").path.rstrip("/")


def change_page(ledger_id: str, deployment: str, number: int) -> str:
    """Path of a change's page for a browser that is signed in to Airflow; ``number``: an entry about it."""
    place = urlencode({"ledger": ledger_id, "deployment": deployment, "change": number})
    return f"{path_of_airflow()}/plugin/{PAGE_ROUTE}?{place}"


class FlinkChangeLink(BaseOperatorLink):
    """The page of the change that a task is about; operators keep its address in ``change_url``."""

    name = "Flink change"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Read the link in the worker after the task ran or was parked; Airflow keeps the result as an XCom."""
        return getattr(operator, "change_url", "") or ""


class FlinkJobLink(BaseOperatorLink):
    """The job's page in Flink's own UI; operators that know a job keep its address in ``job_url``."""

    name = "Flink job"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Read the link in the worker after the task ran; Airflow keeps the result as an XCom."""
        return getattr(operator, "job_url", "") or ""
