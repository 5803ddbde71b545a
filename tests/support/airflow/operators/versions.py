"""What differs between the versions of Airflow that the tests run on."""

from __future__ import annotations

import pytest
from airflow.providers.common.compat.sdk import TaskDeferred
from airflow.providers.standard.version_compat import AIRFLOW_V_3_3_PLUS

try:
    from airflow.sdk.exceptions import TaskAwaitingInput as AwaitingAnswer
except ImportError:  # before Airflow 3.3 a trigger waits for the answer
    AwaitingAnswer = TaskDeferred
try:
    from airflow.sdk.exceptions import DownstreamTasksSkipped, TaskDeferralError
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import DownstreamTasksSkipped, TaskDeferralError
try:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization
except ImportError:  # before Airflow 3.2
    from airflow.models.dagbag import DagBag
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

SINCE_3_3 = pytest.mark.skipif(not AIRFLOW_V_3_3_PLUS, reason="Airflow asks a second time since 3.3")
__all__ = ["SINCE_3_3", "AwaitingAnswer", "DagBag", "DagSerialization", "DownstreamTasksSkipped", "TaskDeferralError"]
