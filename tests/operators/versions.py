"""What differs between the versions of Airflow that the tests run on."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import TaskDeferred

try:
    from airflow.sdk.exceptions import TaskAwaitingInput as AwaitingAnswer
except ImportError:  # before Airflow 3.3 a trigger waits for the answer
    AwaitingAnswer = TaskDeferred
try:
    from airflow.sdk.exceptions import TaskDeferralError
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import TaskDeferralError

__all__ = ["AwaitingAnswer", "TaskDeferralError"]
