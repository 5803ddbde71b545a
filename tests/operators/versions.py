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
try:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization
except ImportError:  # before Airflow 3.2
    from airflow.models.dagbag import DagBag
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

__all__ = ["AwaitingAnswer", "DagBag", "DagSerialization", "TaskDeferralError"]
