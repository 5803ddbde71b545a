"""Types of the operators' arguments, so that type checkers find misspelt arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NewType, Required

from typing_extensions import TypedDict

from airflow_flinkcompat.model import (
    AcceptName,
    Branch,
    EngineName,
    Language,
    Late,
    Native,
    PlannerMode,
    PlannerNetwork,
    RehearsalFindingName,
)

if TYPE_CHECKING:
    from airflow_flinkcompat.model import Policy
    from airflow_flinkcompat.model.shadow import OnExpected

Template = NewType("Template", str)
"""A Jinja text for an argument with fixed choices: ``engine=Template("{{ params.engine }}")``.

At run time, a ``Template`` is a plain text, which only type checkers distinguish from other texts.
"""

Engine = EngineName | Literal["auto"]


class PolicyTable(TypedDict, total=False):
    """Branch for each outcome; omitted outcomes keep their default."""

    compatible: Branch
    partial: Branch
    unknown: Branch
    incompatible: Literal["restart", "approve", "reject"]
    migratable: Literal["migrate", "restart", "approve", "reject"]
    partly_migratable: Literal["migrate", "restart", "approve", "reject"]
    sink_begins_empty: Literal["resume", "approve", "restart"]


class AnyTask(TypedDict, total=False):
    """Arguments of every Airflow task that do not depend on its place in a DAG."""

    owner: str
    email: str | Sequence[str] | None
    email_on_retry: bool
    email_on_failure: bool
    retries: int | None
    retry_delay: timedelta | float
    retry_exponential_backoff: float
    max_retry_delay: timedelta | float | None
    retry_policy: Any
    start_date: Any
    end_date: Any
    depends_on_past: bool
    ignore_first_depends_on_past: bool
    wait_for_past_depends_before_skipping: bool
    wait_for_downstream: bool
    params: Any
    default_args: dict[str, Any] | None
    priority_weight: int
    weight_rule: Any
    queue: str
    pool: str | None
    pool_slots: int
    sla: timedelta | None
    execution_timeout: timedelta | None
    on_execute_callback: Any
    on_failure_callback: Any
    on_success_callback: Any
    on_retry_callback: Any
    on_skipped_callback: Any
    pre_execute: Any
    post_execute: Any
    trigger_rule: str
    resources: dict[str, Any] | None
    run_as_user: str | None
    map_index_template: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    executor: str | None
    executor_config: dict[str, Any] | None
    do_xcom_push: bool
    multiple_outputs: bool
    inlets: Any
    outlets: Any
    doc: str | None
    doc_md: str | None
    doc_json: str | None
    doc_yaml: str | None
    doc_rst: str | None
    task_display_name: str | None
    logger_name: str | None
    allow_nested_operators: bool
    render_template_as_native_obj: bool | None


class TaskArguments(AnyTask, total=False):
    """Arguments of a task in a DAG."""

    task_id: Required[str]
    dag: Any
    task_group: Any


class DeploymentArguments(TaskArguments, total=False):
    """Arguments of a task about a deployment; ``DeploymentOperator`` describes them."""

    deployment: Required[str]
    flink_conn_id: str
    target: str | None
    ledger: str | None


class ScriptArguments(DeploymentArguments, total=False):
    """Arguments of a task about a script; ``ScriptOperator`` describes them."""

    script: Required[str]
    settings: Mapping[str, str] | None
    functions: Mapping[str, str] | None
    catalog: str | Sequence[str]
    variables: Mapping[str, str] | None
    language: Language | None


class AnySensor(TypedDict, total=False):
    """Arguments of every Airflow sensor, except for intervals and timeouts."""

    soft_fail: bool
    mode: str
    exponential_backoff: bool
    max_wait: timedelta | float | None
    silent_fail: bool
    never_fail: bool


class SensorArguments(ScriptArguments, AnySensor):
    """Arguments of a sensor about a script."""


# Tables of a Deployment, with the arguments of an operator and of every Airflow task. Each table repeats the signature
# of its operator for type checkers; a test compares them.


class ChangedTable(AnyTask, AnySensor, total=False):
    """Arguments of FlinkSqlChangeSensor in ``Deployment(changed=…)``."""

    poke_interval: float | timedelta
    recheck: timedelta
    timeout: float | timedelta
    deferrable: bool
    require_cluster: bool | None


class CheckTable(AnyTask, total=False):
    """Arguments of FlinkSqlCompatibilityOperator in ``Deployment(check=…)``."""

    engine: Engine | Template
    engine_version: str | None
    policy: PolicyTable | Policy | None
    redeploy_unchanged: bool | str
    planner: PlannerMode | Template | None
    jars: Sequence[str]
    planner_network: PlannerNetwork | None
    explain_plan: bool
    plan_dir: str | None
    savepoint_directory: str | None
    accept: Sequence[AcceptName]
    history: Mapping[str, str] | None
    deferrable: bool
    gateway_timeout: float
    settle_seconds: float


class StartTable(AnyTask, total=False):
    """Arguments of every task that starts a job."""

    savepoint_directory: str | None
    settle_seconds: float
    stop_timeout: float
    start_timeout: float
    roll_back: bool
    keep_savepoints: int | None
    deferrable: bool
    patience: float
    poll_interval: float
    rollback_notifiers: Any


class DeployTable(StartTable, total=False):
    """Arguments of FlinkSqlDeployOperator in ``Deployment(deploy=…)``."""

    allow_ended: bool
    source_offsets: str | Mapping[str, str] | None


class MigrateTable(StartTable, total=False):
    """Arguments of FlinkStateMigrationOperator in ``Deployment(migrate=…)``."""

    plan_dir: str | None
    rehearse: bool
    catch_up: bool | Literal["always"]
    spark: bool | None
    spark_master: str | None
    history: Mapping[str, str] | None
    sample: int | None


class RehearseTable(AnyTask, total=False):
    """Arguments of FlinkRestoreRehearsalOperator in ``Deployment(rehearse=…)``."""

    fail_on: Sequence[RehearsalFindingName]
    savepoint_directory: str | None
    settle_seconds: float
    start_timeout: float
    savepoint_timeout: float
    deferrable: bool
    patience: float
    poll_interval: float


class ShadowTable(AnyTask, total=False):
    """Arguments of FlinkShadowRunOperator in ``Deployment(shadow=…)``."""

    duration: str
    timeout: str
    expect: Sequence[str]
    savepoint_directory: str | None
    plan_dir: str | None
    until_rows: int | None
    from_earliest: bool
    when: Sequence[str]
    on_expected: OnExpected


class BackfillTable(AnyTask, total=False):
    """Arguments of FlinkBackfillOperator in ``Deployment(backfill=…)``."""

    tables: Mapping[str, str] | None
    sinks: Mapping[str, str] | None
    order_by: Mapping[str, str] | None
    from_: str | None
    to: str | None
    sent_before: str | None
    late: Late | Template
    native: Native | Template
    chunk: str | None
    journal: str | None
    boundary: str | None
    allow_incomplete: bool
    allow_empty: bool
    hand_over: str | None
    conn_id: str
    spark: Mapping[str, Any] | None


class ApproveTable(AnyTask, total=False):
    """Arguments of FlinkSqlApprovalOperator in ``Deployment(approve=…)``."""

    subject: str | None
    body: str
    backfill: bool | None
    notifiers: Any
    approvers_needed: Literal[1, 2]
    author_may_approve: bool | None
    authors: Mapping[str, str | Sequence[str]] | None
    escalate_to: str | Mapping[str, str] | Sequence[str | Mapping[str, str]]
    escalate_after: timedelta | float | None
    decision_notifiers: Any
    defaults: Literal["Reject"] | Sequence[Literal["Reject"]] | None
    response_timeout: timedelta
