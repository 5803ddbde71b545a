"""Deployments from a file with a table for each Flink job, validated before DAGs are created.

The command line reads the same project file with the same reader. Only the project file is opened; scripts, connections
and ledgers are not.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetPydanticSchema,
    ValidationError,
    model_validator,
    with_config,
)
from typing_extensions import TypedDict

from airflow_flinkcompat.airflow.operators import task_arguments
from airflow_flinkcompat.airflow.operators.approval import FlinkSqlApprovalOperator
from airflow_flinkcompat.airflow.operators.backfill import FlinkBackfillOperator
from airflow_flinkcompat.airflow.operators.compatibility import FlinkSqlCompatibilityOperator
from airflow_flinkcompat.airflow.operators.deploy import FlinkSqlDeployOperator
from airflow_flinkcompat.airflow.operators.migration import FlinkStateMigrationOperator
from airflow_flinkcompat.airflow.operators.rehearsal import FlinkRestoreRehearsalOperator
from airflow_flinkcompat.airflow.operators.shadow import FlinkShadowRunOperator
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.airflow.tasks import arguments
from airflow_flinkcompat.airflow.tasks.arguments import (
    ApproveTable,
    BackfillTable,
    ChangedTable,
    CheckTable,
    DeployTable,
    MigrateTable,
    RehearseTable,
    ShadowTable,
    Template,
)
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.shadow import ResumeMode, shadow_policy
from airflow_flinkcompat.project.file import DEPLOYMENT_KEYS, ProjectTables, flat_options, read_tables, unknown_key
from airflow_flinkcompat.project.positions import TomlPositions

# Arguments that a deployment sets once for all tasks, and arguments that the structure of the DAG decides.
_SHARED = {
    "deployment", "script", "settings", "functions", "catalog", "variables", "language", "flink_conn_id", "target",
    "ledger", "team",
}  # fmt: skip
_DECIDED = {"branches", "start_mode", "check_task_id", "approval_task_id", "dry_run"}


class DeploymentsError(ValueError):
    """A file of deployments is unusable, in whole or in part; the text names each place."""


def _table(
    operator: type[Any], *, airflow: Mapping[str, Any] | None = None, without: Collection[str] = (), **more: Any
) -> Any:
    """Type of a table with the arguments of ``operator`` and of Airflow's base classes."""
    known = dict(more)
    for cls in operator.__mro__:
        if cls.__module__.startswith("airflow_flinkcompat.") and "__init__" in vars(cls):
            for name, parameter in inspect.signature(vars(cls)["__init__"]).parameters.items():
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                    known.setdefault(name, _annotation(parameter.annotation, cls))
    known = {**task_arguments.TASK, **(airflow or {}), "owner": str, **known}
    kept = {name: kind for name, kind in known.items() if name not in {*_SHARED, *_DECIDED, *without}}
    return _typed(operator.__name__, kept)


def _typed(name: str, keys: Mapping[str, Any]) -> Any:
    return with_config(ConfigDict(extra="forbid"))(TypedDict(name, keys, total=False))  # type: ignore[operator]


def _annotation(annotation: Any, cls: type[Any]) -> Any:
    try:
        # Names of the operator's module, and the types of arguments, which are imported only for type checkers.
        home = vars(sys.modules[cls.__module__])
        found = eval(annotation, home, vars(arguments)) if isinstance(annotation, str) else annotation
    except NameError:  # a heavy import, for type checkers only; the operator itself checks the value
        return Any
    return str if Template in get_args(found) else found


_CALLED = task_arguments.CALLED
_KEY = re.compile(r"\W")
"""Separator after an argument's name at the beginning of a message."""
_TABLES = {
    "default_args": _typed("default_args", {**task_arguments.SENSOR, **task_arguments.APPROVAL, **task_arguments.TASK}),
    "changed": _table(FlinkSqlChangeSensor, airflow=task_arguments.SENSOR, timeout=float),
    # Any type, because Policy itself reports the errors of its table.
    "check": _table(FlinkSqlCompatibilityOperator, policy=Any),
    "approve": _table(FlinkSqlApprovalOperator, airflow=task_arguments.APPROVAL, decision_notifiers=_CALLED),
    "deploy": _table(FlinkSqlDeployOperator, without=("hand_over", "plan_only", "plan_to"), rollback_notifiers=_CALLED),
    "backfill": _table(FlinkBackfillOperator),
    "migrate": _table(
        FlinkStateMigrationOperator,
        without=("hand_over", "source_offsets", "allow_ended", "plan_only", "plan_to"),
        rollback_notifiers=_CALLED,
    ),
    "rehearse": _table(FlinkRestoreRehearsalOperator),
    "shadow": _table(FlinkShadowRunOperator),
}


def _of(name: str) -> GetPydanticSchema:
    return GetPydanticSchema(lambda _source, handler: handler(_TABLES[name]))


def _switched(value: Any) -> Any:
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


def _user(value: Any) -> Any:
    return {"id": value, "name": value} if isinstance(value, str) else value


_Texts = Annotated[dict[str, str], BeforeValidator(flat_options)]


class Approver(BaseModel):
    """A user who may answer, with the id of the auth manager and a display name."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str
    name: str


class Deployment(BaseModel):
    """One Flink job and its redeploy settings.

    The fields from ``script`` to ``ledger`` apply to all tasks. If the connection sets no target, ``target`` sets it; a
    connection with a different target is refused. ``approvers`` are the only users who may answer (an id, or ``{"id",
    "name"}``). If ``approvers`` is empty, every user with the right to answer in the DAG may answer. ``owner`` is the
    owner of the tasks. The ledger records ``owner`` and ``team`` as responsible.

    ``changed``, ``check``, ``approve``, ``deploy``, ``migrate``, ``rehearse``, ``shadow`` and ``backfill`` are tables
    of arguments for the task's operator. Numbers are durations in seconds. These tables also accept the arguments of
    every Airflow task (callbacks, outlets, pool_slots …). ``default_args`` applies to every task that accepts the
    argument. Callbacks and notifiers are objects or import paths, ``package.module:name``, also in a table of ``path``
    and ``arguments``. ``notifiers`` are called when a decision is needed, after a decision, and after a rollback,
    unless ``approve`` and ``deploy`` set others.

    Without ``backfill`` (None or False), history is not recomputed. If ``backfill`` has a ``boundary``, the job starts
    with a hand-over. With ``migrate`` (True or a table), an incompatible change keeps its state if the state can be
    rewritten; the table ``deploy`` applies to the migration task, too. With ``backfill_sent``, a backfill follows a
    migration that computed state from history. This backfill recomputes the windows that were already emitted, with the
    locations and arguments of ``backfill``. With ``warm_restart``, a restart begins with state computed from history,
    if history supplies all of the state. Use ``warm_restart`` for changes whose state no migration keeps in full. The
    history is read from the tables that ``check`` lists as ``history``. With ``rehearse`` (True or a table), a restore
    is rehearsed before the job resumes. A refused restore, or any finding in ``fail_on`` of this table, prevents the
    resume. With ``start_mode="shadow"``, a shadow run with the arguments in ``shadow`` compares the rows of both
    scripts before the job resumes or a person decides, and ``migrate`` catches up with the job before the stop. With
    ``plan_only``, no task starts or stops a job. The spec is planned, and written to the file ``plan_to`` if set. After
    the plan was carried out, the check records the job.
    ``plan_only`` excludes tasks that recompute, rehearse or migrate.

    Raises pydantic's ValidationError, which is a ValueError.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    script: str = Field(min_length=1)
    settings: _Texts = {}
    functions: dict[str, str] = {}
    catalog: str | tuple[str, ...] = ""
    variables: _Texts = {}
    flink_conn_id: str = "flink_default"
    target: str | None = None
    ledger: str | None = None
    plan_only: bool = False
    plan_to: str | None = None
    approvers: tuple[Annotated[Approver, BeforeValidator(_user)], ...] = ()
    notifiers: task_arguments.CALLED = ()
    owner: str = "airflow"
    team: str | None = None
    tags: tuple[str, ...] = ()
    default_args: Annotated[dict[str, Any], _of("default_args")] = {}
    changed: Annotated[dict[str, Any], _of("changed")] = {}
    check: Annotated[dict[str, Any], _of("check")] = {}
    approve: Annotated[dict[str, Any], _of("approve")] = {}
    deploy: Annotated[dict[str, Any], _of("deploy")] = {}
    migrate: Annotated[Annotated[dict[str, Any], _of("migrate")] | None, BeforeValidator(_switched)] = None
    rehearse: Annotated[Annotated[dict[str, Any], _of("rehearse")] | None, BeforeValidator(_switched)] = None
    start_mode: ResumeMode = "savepoint"
    shadow: Annotated[dict[str, Any], _of("shadow")] = {}
    backfill: Annotated[dict[str, Any], _of("backfill")] | Literal[False] | None = None
    backfill_sent: bool = False
    warm_restart: bool = False

    if TYPE_CHECKING:
        # For type checkers only: the arguments accept more types than the fields store.
        def __init__(
            self,
            *,
            name: str,
            script: str,
            settings: Mapping[str, Any] = ...,
            functions: Mapping[str, str] = ...,
            catalog: str | Sequence[str] = ...,
            variables: Mapping[str, Any] = ...,
            flink_conn_id: str = ...,
            target: str | None = ...,
            ledger: str | None = ...,
            plan_only: bool = ...,
            plan_to: str | None = ...,
            approvers: Sequence[str | Mapping[str, str] | Approver] = ...,
            notifiers: Any = ...,
            owner: str = ...,
            team: str | None = ...,
            tags: Sequence[str] = ...,
            default_args: Mapping[str, Any] = ...,
            changed: ChangedTable = ...,
            check: CheckTable = ...,
            approve: ApproveTable = ...,
            deploy: DeployTable = ...,
            migrate: MigrateTable | bool | None = ...,
            rehearse: RehearseTable | bool | None = ...,
            start_mode: ResumeMode = ...,
            shadow: ShadowTable = ...,
            backfill: BackfillTable | Literal[False] | None = ...,
            backfill_sent: bool = ...,
            warm_restart: bool = ...,
        ) -> None: ...

    @model_validator(mode="after")
    def _plans_alone(self) -> Self:
        others = [name for name in ("migrate", "rehearse", "backfill") if getattr(self, name) not in (None, False)]
        if self.plan_only and others:
            raise ValueError(f"plan_only accepts no {others[0]}, because its tasks deploy nothing: omit one of them")
        shadow_policy(vars(self))
        if self.backfill_sent and not (self.has_backfill and self.migrate is not None):
            raise ValueError("backfill_sent needs a migration: add migrate and backfill, or omit it")
        if self.warm_restart and (not self.has_backfill or self.hands_over):
            raise ValueError(
                "warm_restart leaves earlier rows to a backfill without a boundary: add backfill, or omit warm_restart"
            )
        history = {**self.check, **(self.migrate or {})}.get("history")
        if self.warm_restart and (self.migrate is None or not history):
            raise ValueError(
                "warm_restart computes state from history if no migration keeps it: add migrate, and name "
                "the tables as history in check"
            )
        if self.plan_to and not self.plan_only:
            raise ValueError("plan_to needs plan_only: add it, or omit plan_to")
        return self

    @property
    def has_backfill(self) -> bool:
        """True if history is recomputed after a start without state."""
        return self.backfill not in (None, False)

    @property
    def hands_over(self) -> bool:
        """True if the backfill ends at a boundary, at which the windows of the live job begin."""
        return bool(self.backfill and self.backfill.get("boundary"))


@dataclass(frozen=True)
class Deployments:
    """Content of a file: the usable deployments, and one line for each problem."""

    path: Path
    positions: TomlPositions
    deployments: tuple[Deployment, ...]
    problems: tuple[str, ...] = ()

    def problem(self, deployment: Deployment, error: Exception) -> str:
        """Problem line for a deployment whose arguments an operator refuses."""
        return _placed(self.positions, deployment.name, str(error))


def read_deployments(path: str | os.PathLike[str]) -> Deployments:
    """Read the deployments of a file. Each table overrides ``[defaults]`` and the top of the file.

    An unusable deployment is reported as a problem, and does not affect the other deployments.

    Args:
        path: A TOML file in UTF-8; in a ``pyproject.toml``, the table ``[tool.flinkcompat]``.

    Returns:
        The deployments that can be used, and a line for each problem.

    Raises:
        DeploymentsError: The file cannot be read, is not TOML, or ``defaults`` or ``deployments`` is not a table.
    """
    try:
        return deployments_of(read_tables(path))
    except InputError as error:
        raise DeploymentsError(str(error)) from None


def deployments_of(tables: ProjectTables) -> Deployments:
    """The deployments in the tables of a file; see :func:`read_deployments`."""
    problems = [*tables.problems, *chain.from_iterable(tables.broken.values())]
    found = []
    for name, table in tables.deployments.items():
        try:
            found.append(Deployment.model_validate({**table, "name": name}))
        except ValidationError as error:
            problems += [_placed(tables.positions, name, line, key) for key, line in _readable(error)]
    return Deployments(tables.path, tables.positions, tuple(found), tuple(problems))


def _placed(positions: TomlPositions, name: str, line: str, key: str = "") -> str:
    """Problem line with the place of ``key``, or of the key at the beginning of the message."""
    key = key or _KEY.split(line, 1)[0]  # of messages such as "policy: …" or "engine 'spark' is not one of …"
    return f"{positions.place(key, name)}: deployment {name!r}: {line}"


def _readable(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Key and message of each mistake in a deployment. Values are not shown, because they may be secrets."""
    for row in error.errors(include_url=False, include_input=False, include_context=False):
        # Pydantic also names the members of unions, which are not in the file.
        loc = (part + 1 if isinstance(part, int) else part for part in row["loc"])  # people count from 1
        place = [str(part) for part in loc if not str(part).startswith(("literal[", "function-", "TypedDict"))]
        place = [part for part in place if part != FlinkBackfillOperator.__name__]
        key = ".".join(place)
        match row["type"]:
            case "extra_forbidden":
                yield key, f"{key}: {unknown_key(place[-1], _keys(place[:-1]))}"
            case "missing":
                yield key, f"{key}: is missing"
            case "literal_error" if place == ["backfill"]:
                continue  # another error about this table is already reported
            case "value_error":
                message = row["msg"].removeprefix("Value error, ")
                yield key, f"{key}: {message}" if key else message
            case _ if place == ["name"]:
                yield "", "a name has 1 to 128 letters, digits, '.', '_' or '-' and begins with a letter or digit"
            case _:
                yield key, f"{key}: {row['msg'][0].lower()}{row['msg'][1:]}"


def _keys(place: list[str]) -> tuple[str, ...]:
    if not place:
        return DEPLOYMENT_KEYS
    return tuple(_TABLES[place[0]].__annotations__) if place[0] in _TABLES else tuple(Approver.model_fields)
