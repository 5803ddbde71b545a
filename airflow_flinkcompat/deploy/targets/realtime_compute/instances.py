"""The platform's deployments, job instances and savepoints, and deployment fields that a start writes.

The platform has no request ids. At a start, it copies the deployment's configuration into the new job instance.
Therefore a start writes its request id into the configuration, and also into a label that identifies the deployment. A
stop also writes its request id into a label, with the number of earlier failed stops of the same job.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.deploy.flink.statements import JOB_NAME
from airflow_flinkcompat.deploy.target import TERMINAL

REQUEST = "flinkcompat.request-id"
OWN_KEYS = "flinkcompat.settings"
START_LABEL = "flinkcompat-start"
STOP_LABEL = "flinkcompat-stop"
STOPPED_BY = "STOP_WITH_SAVEPOINT"
COMPLETED, SAVEPOINT_FAILED = "COMPLETED", "FAILED"
SQL = "SQLSCRIPT"
_FOLDER = "savepoint-"
# Number of components at the end of a path. Together they identify a deployment and its savepoint.
_TAIL = 3

_MARKS = frozenset({REQUEST, OWN_KEYS})
_STATES = {"STARTING": "INITIALIZING", "CANCELLED": "CANCELED"}
# Fields that users set in the console. The platform fills in all other fields of a deployment.
_CONFIGURABLE = (
    "name",
    "description",
    "engine_version",
    "execution_mode",
    "deployment_target",
    "artifact",
    "flink_conf",
    "labels",
    "local_variables",
    "logging",
    "streaming_resource_setting",
    "batch_resource_setting",
)
# Fields of a new deployment for which the platform never fills in a default.
_ALWAYS_KEPT = ("name", "artifact", "engine_version")


def state_of(job: Any) -> str:
    """The state of a job instance in Flink's terms."""
    state = str(job.status.current_job_status if job.status else "UNKNOWN")
    return _STATES.get(state, state)


def is_active(job: Any) -> bool:
    return state_of(job) not in TERMINAL


def by_age(jobs: Iterable[Any]) -> list[Any]:
    def created(job: Any) -> tuple[int, int]:
        at = str(job.created_at or "")
        return (int(at) if at.isdigit() else 0, int(job.start_time or 0))

    return sorted(jobs, key=created)


def of_request(jobs: Iterable[Any], request_id: str) -> Any | None:
    """The oldest job instance with this request id. Later instances were started manually."""
    return next((job for job in by_age(jobs) if configuration(job).get(REQUEST) == request_id), None)


def configuration(of: Any) -> dict[str, str]:
    """The Flink configuration of a deployment or a job instance, with values as text."""
    own = getattr(of, "user_flink_conf", None) or {}
    return {str(key): _text(value) for key, value in {**(of.flink_conf or {}), **own}.items()}


def start_settings(of: Any) -> dict[str, str] | None:
    """The settings that a start wrote into a deployment or job instance, or None without such a start."""
    found = configuration(of)
    if OWN_KEYS not in found:
        return None
    return {key: found[key] for key in found[OWN_KEYS].split(",") if key in found}


def is_sql(deployment: Any) -> bool:
    """True if a deployment runs a SQL script instead of a jar or program."""
    return deployment.artifact is not None and deployment.artifact.kind == SQL


def script_of(of: Any) -> str | None:
    """The script of a deployment or a job instance, or None if it is no SQL job."""
    sql = of.artifact.sql_artifact if of.artifact else None
    return None if sql is None or sql.sql_script is None else str(sql.sql_script)


@dataclass(frozen=True)
class StopMark:
    """The request id of a stop, and the number of earlier failed stops of the same job."""

    request_id: str
    failed_before: int

    def __str__(self) -> str:
        return f"{self.request_id}-{self.failed_before}"

    @classmethod
    def of(cls, deployment: Any) -> StopMark | None:
        """Read the mark from the label of a deployment."""
        request_id, _, before = str((deployment.labels or {}).get(STOP_LABEL, "")).partition("-")
        return cls(request_id, int(before)) if request_id and before.isdigit() else None


def stop_savepoints(savepoints: Iterable[Any], mark: StopMark | None, request_id: str) -> list[Any]:
    """Savepoints of a job instance's stops, latest first, without those that failed before this request."""
    before = mark.failed_before if mark is not None and mark.request_id == request_id else 0
    stops = sorted((each for each in savepoints if each.savepoint_origin == STOPPED_BY), key=_created_at)
    failed = [each for each in stops if savepoint_state(each) == SAVEPOINT_FAILED][before:]
    kept = [each for each in stops if savepoint_state(each) != SAVEPOINT_FAILED or each in failed]
    return kept[::-1]


def failed_stops(savepoints: Iterable[Any]) -> int:
    """Number of stops of a job instance that left a failed savepoint."""
    failed = (each for each in savepoints if savepoint_state(each) == SAVEPOINT_FAILED)
    return sum(each.savepoint_origin == STOPPED_BY for each in failed)


def _created_at(savepoint: Any) -> int:
    return int(savepoint.created_at or 0)


def savepoint_state(savepoint: Any) -> str:
    """The state of a savepoint: STARTED, COMPLETED, FAILED, or "" if unknown."""
    return str(savepoint.status.state if savepoint.status else "")


def failure_of(status: Any) -> str:
    """The reason that the platform reports for a failed job instance or savepoint."""
    failure = getattr(status, "failure", None)
    reason = (failure.message or failure.reason) if failure else None
    return str(reason or "no reason reported")


def same_location(one_path: str | None, path: str | None) -> bool:
    """True if a location shown by the platform and a Flink path denote the same savepoint.

    The platform may write the bucket differently (``https://oss/bucket`` instead of ``oss://bucket``). The platform may
    also show the parent of Flink's folder, which is called ``savepoint-<job>-<12 random digits>``.
    """
    one, other = (re.sub(r"^\w+://", "", each or "").strip("/").split("/") for each in (one_path, path))
    if one == other or (one[-1] == other[-1] and one[-1].startswith(_FOLDER)):
        return True
    inside = other[:-1] if other[-1].startswith(_FOLDER) else other
    return len(one) >= _TAIL and one[-_TAIL:] in (other[-_TAIL:], inside[-_TAIL:])


def configured(models: Any, deployment: Any, **changes: Any) -> Any:
    """A copy of a deployment with ``changes``, and with all other fields that users can set.

    An object with only the changed fields is not enough, because the SDK always sends the list of variables. An empty
    list would clear the variables.
    """
    copy = models.Deployment().from_map(deployment.to_map())
    fields = {name: changes.get(name, getattr(copy, name)) for name in _CONFIGURABLE}
    return models.Deployment(**fields)


def with_settings(
    deployment: Any | None, settings: Mapping[str, str], request_id: str
) -> tuple[dict[str, Any], frozenset[str]]:
    """The Flink configuration with these settings, and the keys of an earlier start that it removes."""
    own = {key: value for key, value in settings.items() if key != JOB_NAME}
    before = {} if deployment is None else dict(deployment.flink_conf or {})
    gone = frozenset(start_settings(deployment) or {}) - own.keys() if deployment is not None else frozenset()
    rest = {key: value for key, value in before.items() if key not in gone | _MARKS}
    return {**rest, **own, REQUEST: request_id, OWN_KEYS: ",".join(sorted(own))}, gone


def not_as_written(before: Any | None, wanted: Any, found: Any, gone: frozenset[str] = frozenset()) -> Sequence[str]:
    """Fields whose read value differs from the written value. In maps, compare only set and removed keys."""
    differing = []
    for name in _CONFIGURABLE:
        asked, got = getattr(wanted, name), getattr(found, name)
        if name in ("flink_conf", "labels"):
            texts = {str(key): _text(value) for key, value in (got or {}).items()}
            lost = {str(key) for key, value in (asked or {}).items() if texts.get(str(key)) != _text(value)}
            if name == "flink_conf":
                lost |= gone & texts.keys()
            differing += [f"{name} ({', '.join(sorted(lost))})"] if lost else []
        elif (before is not None or name in _ALWAYS_KEPT) and _plain(asked) != _plain(got):
            differing.append(name)
    return differing


def _plain(value: Any) -> Any:
    """Convert a model to values. Empty texts, lists and maps become None."""
    if isinstance(value, list):
        return [_plain(each) for each in value] or None
    if hasattr(value, "to_map"):
        value = value.to_map()
    if isinstance(value, dict):
        return {key: plain for key, each in value.items() if (plain := _plain(each)) is not None} or None
    return None if value == "" else value


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
