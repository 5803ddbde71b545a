"""The Airflow connections ``flink`` and ``alibaba_realtime_compute``: a target and its ledger.

The default target of ``flink`` is a SQL Gateway and a JobManager.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, mask_secret
from airflow.sdk import BaseHook

from airflow_flinkcompat.model.options import LEDGER_VARIABLE

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.compat.plan_comparison import Plans
    from airflow_flinkcompat.deploy import Ledger
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster
    from airflow_flinkcompat.deploy.targets import OpenTarget, TargetLocation
    from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, Lookup

_GATEWAY_PORT = 8083
_JOBMANAGER_PORT = 8081
# Connection types that belong to one target.
_TARGET_OF_TYPE = {"alibaba_realtime_compute": "realtime-compute"}
# Keys of the extra with which a target itself moves jobs from an older Flink line.
_FORMER = ("former_manifest", "former_runtime_environment", "former_engine_version")
# Targets whose job ids are Flink's.
_NAMED_AS_IN_FLINK = ("sql-gateway", "jobmanager")


class FlinkHook(BaseHook):
    """Hook of a connection of type ``flink``, which opens the connection's target and ledger.

    Host, port and schema (http or https) locate the SQL Gateway. Login and password are used for basic authentication;
    a password alone is a bearer token. Keys of the extra: ``target`` (a name of ``deploy.targets``; default: the SQL
    Gateway), ``jobmanager_url`` (default: the Gateway's host, port 8081), ``ui_url`` (address of Flink's UI in a
    browser; default: ``jobmanager_url``) and ``ledger`` (URI). The keys of ``deploy.access`` configure access to both
    servers: ``ca_file``, ``client_cert``, ``proxy`` …, each with the prefix ``jobmanager_`` if the JobManager differs.
    ``planner_conn_id`` is a connection to a SQL Gateway of the same version, for a target that cannot plan scripts.
    ``former_conn_id`` is the connection of an older line's cluster, from which redeploys move jobs to this cluster.

    Args:
        flink_conn_id: The id of the connection.
        target: The target that a task requires. If the connection also sets a target, both must be equal.
    """

    conn_name_attr = "flink_conn_id"
    default_conn_name = "flink_default"
    conn_type = "flink"
    hook_name = "Apache Flink"

    def __init__(self, flink_conn_id: str = default_conn_name, *, target: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.flink_conn_id = flink_conn_id
        self.target = target

    @cached_property
    def connection(self) -> Connection:
        return self.get_connection(self.flink_conn_id)

    @cached_property
    def _extra(self) -> Mapping[str, Any]:
        return self.connection.extra_dejson or {}

    @property
    def gateway_url(self) -> str:
        """``http://host:port`` of the SQL Gateway. Raises AirflowFailException if the connection has no host."""
        return self._url(_GATEWAY_PORT, self.connection.port)

    @property
    def jobmanager_url(self) -> str:
        """``http://host:port`` of the JobManager's REST API."""
        address = str(self._extra.get("jobmanager_url") or "").rstrip("/")
        return address or self._url(_JOBMANAGER_PORT, None)

    @property
    def ui_url(self) -> str:
        """Address of Flink's UI for a browser, without user, password, query or fragment."""
        address = self._configured_ui_url
        return _bare(address if _is_address(address) else self.jobmanager_url)

    def job_url(self, job_id: str | None, *, asking: bool = True) -> str:
        """Address of a job's page for a browser.

        Args:
            job_id: The job's id on its target; None if there is no job.
            asking: True if the target may be queried, which blocks until it answers.

        Returns:
            The address. If the target does not use Flink's job ids, the target is queried. Without an answer, the
            address is ``ui_url``, or empty without a ``ui_url``. If ``asking`` is False, an address that only the
            target knows is empty.
        """
        from airflow_flinkcompat.deploy.target import JobPages

        if not job_id:
            return ""
        if self.names_jobs_as_flink:
            return f"{self.ui_url}/#/job/running/{job_id}/overview"
        if not _is_address(self._configured_ui_url):
            return ""
        if not self.target_has(JobPages):
            return _bare(self._configured_ui_url)
        return self._page_by_target(job_id) if asking else ""

    def _page_by_target(self, job_id: str) -> str:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.target import JobPages, JobRef
        from airflow_flinkcompat.secrets import mask_secrets

        ui_url = _bare(self._configured_ui_url)
        try:
            with self.get_conn() as target:
                found = target.page_of(JobRef(job_id), ui_url) if isinstance(target, JobPages) else None
        except (DeployError, AirflowException) as error:  # a missing link must not fail a task
            self.log.info("the page of job %s is unknown: %s", job_id, mask_secrets(str(error)))
            found = None
        return found or ("" if "{" in ui_url else ui_url)

    @property
    def names_jobs_as_flink(self) -> bool:
        """True if the target identifies jobs by Flink's ids, which Flink's own commands and pages accept."""
        return not self.exists or self.target_name in _NAMED_AS_IN_FLINK

    def target_has(self, capability: type) -> bool:
        """True if the target has a capability (a protocol of ``deploy.target``), or if the target is unknown."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.targets import target_class

        if not self.exists:
            return True
        try:
            found: object = target_class(self.target_name)
        except DeployError:  # no such target: opening it raises the error
            return True
        return not isinstance(found, type) or issubclass(found, capability)

    @property
    def _configured_ui_url(self) -> str:
        return str(self._extra.get("ui_url") or "").strip() if self.exists else ""

    def _url(self, default_port: int, port: int | None) -> str:
        host = (self.connection.host or "").strip()
        if not host:
            raise AirflowFailException(
                f"connection {self.flink_conn_id!r} has no host: set the SQL Gateway's host, port and schema"
            )
        if host.count(":") > 1 and "[" not in host and "://" not in host:
            host = f"[{host}]"  # a bare IPv6 address
        parts = urlsplit(host if "://" in host else f"//{host}")
        scheme = parts.scheme or self.connection.schema or "http"
        if scheme not in ("http", "https"):
            raise AirflowFailException(
                f"connection {self.flink_conn_id!r} has the scheme {scheme!r}: http or https is needed"
            )
        name = parts.hostname or host
        name = f"[{name}]" if ":" in name else name  # IPv6
        return f"{scheme}://{name}:{port or parts.port or default_port}{parts.path}".rstrip("/")

    @property
    def target_name(self) -> str:
        """Name of the target in ``deploy.targets``.

        Raises AirflowFailException if the task and the connection set different targets.
        """
        from airflow_flinkcompat.deploy.targets import DEFAULT

        named = self._extra.get("target") or _TARGET_OF_TYPE.get(self.connection.conn_type or "")
        if self.target and named and self.target != named:
            raise AirflowFailException(
                f"connection {self.flink_conn_id!r} is of target {named!r}, and the deployment asks for "
                f"{self.target!r}: name a connection of that target (flink_conn_id), or change one of them"
            )
        return str(named or self.target or DEFAULT)

    def get_conn(self) -> OpenTarget:
        """Open the connection's target, for a ``with`` block. Raises AirflowFailException."""
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.targets import Access, target_class

        place = f"connection {self.flink_conn_id!r}"
        lookup = connection_lookup(self.get_connection)
        access = Access(self._address, self.access, place, lookup, mask_in_logs, self.get_hook)
        try:
            found = target_class(self.target_name).connect(access)
            if self._former is None:
                return found
            from airflow_flinkcompat.deploy.two_lines import two_lines

            return two_lines(self._former.get_conn(), found)
        except DeployError as error:
            raise AirflowFailException(str(error) if place in str(error) else f"{place}: {error}") from None

    @property
    def has_former(self) -> bool:
        """True if redeploys move jobs from an older Flink line to the line of this connection."""
        return self._former is not None or any(self._extra.get(key) for key in _FORMER)

    @cached_property
    def _former(self) -> FlinkHook | None:
        """The hook of the cluster from which jobs move to this cluster; None if no jobs move."""
        conn_id = str(self._extra.get("former_conn_id") or "")
        if conn_id == self.flink_conn_id:
            raise AirflowFailException(
                f"connection {conn_id!r}: former_conn_id names this connection itself: name the connection of the "
                "cluster that ran the jobs before, or remove the key"
            )
        return FlinkHook(conn_id) if conn_id else None

    @contextmanager
    def rehearsal_cluster(self) -> Iterator[Cluster]:
        """Open the cluster for a rehearsal. Raises AirflowFailException if the target is unusable."""
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster

        with self.get_conn() as target:
            yield Cluster(target, self.location())

    @contextmanager
    def planner(self) -> Iterator[Cluster]:
        """Open the SQL Gateway of ``planner_conn_id``, or else a local Flink. Raises AirflowFailException."""
        from airflow_flinkcompat.local_flink import LocalFlinkError, local_cluster

        with ExitStack() as stack:
            if self._planner is not None:
                found = stack.enter_context(self._planner.rehearsal_cluster())
            else:
                try:
                    found = stack.enter_context(local_cluster(connection_lookup(self.get_connection)))
                except LocalFlinkError as error:
                    raise self._without_planner(f"or let a Flink start on this worker: {error}") from None
            yield found

    @cached_property
    def _planner(self) -> FlinkHook | None:
        conn_id = str(self._extra.get("planner_conn_id") or "")
        return FlinkHook(conn_id) if conn_id else None

    def _without_planner(self, remedy: str) -> AirflowFailException:
        lacks = f"the target {self.target_name!r} plans no scripts" if self.exists else "it does not exist"
        return AirflowFailException(
            f"connection {self.flink_conn_id!r}: {lacks}; name a connection of a SQL Gateway of the same version as "
            f"planner_conn_id in the extra, {remedy}"
        )

    def location(self) -> TargetLocation:
        """Addresses and credentials with which a different process can open the target."""
        from airflow_flinkcompat.deploy.targets import TargetLocation

        addresses = {}
        for which, url in self._addresses.items():
            with suppress(AirflowFailException):  # the target does not need this address
                addresses[which] = url()
        former = None if self._former is None else asdict(self._former.location())
        return TargetLocation(self.target_name, addresses, self.access, former)

    def _address(self, which: str) -> str:
        """Address of one server of the target; without a known default, ``<which>_url`` in the extra."""
        if which in self._addresses:
            return self._addresses[which]()
        address = str(self._extra.get(f"{which}_url") or "").rstrip("/")
        if not address:
            raise AirflowFailException(
                f"connection {self.flink_conn_id!r}: target {self.target_name!r} needs the address of its {which}: set "
                f"{which}_url in the extra"
            )
        return address

    @property
    def _addresses(self) -> Mapping[str, Callable[[], str]]:
        """For each server, a function that returns its address or raises AirflowFailException."""
        return {"gateway": lambda: self.gateway_url, "jobmanager": lambda: self.jobmanager_url}

    @property
    def access(self) -> dict[str, Any]:
        """Values for ``deploy.access``, including secrets."""
        return {**self._extra, "login": self.connection.login, "password": self.connection.password}

    def engine(self) -> tuple[str, str]:
        """Engine and version of the target, such as ``("flink", "2.3.0")``. Raises DeployError."""
        with self.get_conn() as target:
            found = target.engine()
        return found.engine, found.version

    def explain_plans(self, old: Side, new: Side, folder: str | None = None) -> Plans:
        """Compile both sides on the target or its planner, which writes the plans to ``folder``."""
        from airflow_flinkcompat.deploy import explain_plans
        from airflow_flinkcompat.deploy.target import PlanCompiler, Target

        with ExitStack() as stack:
            planner: PlanCompiler | Target | None = stack.enter_context(self.get_conn()) if self.exists else None
            if planner is not None and not isinstance(planner, PlanCompiler) and self._planner is not None:
                planner = stack.enter_context(self._planner.get_conn())
            if not isinstance(planner, PlanCompiler):
                raise self._without_planner("or run `flinkcompat planner install` on the worker")
            return explain_plans(old, new, planner, folder=folder)

    def ledger_uri(self, uri: str | None = None) -> str:
        """The ledger's URI: ``uri``, else that of the connection, else ``$FLINKCOMPAT_LEDGER``.

        Raises AirflowFailException if no ledger is set.
        """
        if found := uri or self._ledger_of_connection() or os.environ.get(LEDGER_VARIABLE):
            return str(found)
        raise AirflowFailException(
            f"no ledger is set: pass ledger=…, or set `ledger` in the extra of connection {self.flink_conn_id!r}, "
            f"or the environment variable {LEDGER_VARIABLE}"
        )

    def _ledger_of_connection(self) -> str | None:
        if not self.exists:
            return None
        return self._extra.get("ledger") or (self._former._ledger_of_connection() if self._former else None)

    @cached_property
    def exists(self) -> bool:
        """True if the connection exists. Approval, sensor and a check with an engine can run without it."""
        from airflow.providers.common.compat.sdk import AirflowNotFoundException

        try:
            return self.connection is not None
        except AirflowNotFoundException:
            return False

    def ledger(self, deployment: str, uri: str | None = None) -> Ledger:
        """Open the ledger of one deployment."""
        from airflow_flinkcompat.deploy import Ledger

        return Ledger(self.ledger_uri(uri), deployment)

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection. Returns True and a description of the target, or False and the masked error."""
        from airflow_flinkcompat.deploy.target import JobDescriptions
        from airflow_flinkcompat.deploy.targets import DEFAULT
        from airflow_flinkcompat.secrets import mask_secrets

        try:
            with self.get_conn() as target:
                found = target.engine()
                jobs = target.jobs() if isinstance(target, JobDescriptions) else None
            if self._configured_ui_url and not _is_address(self._configured_ui_url):
                raise AirflowFailException(
                    f"connection {self.flink_conn_id!r}: ui_url {self._configured_ui_url!r} is not an address for "
                    "a browser: write https://host/path"
                )
        except Exception as error:  # the UI shows every error
            return False, mask_secrets(str(error))
        runs = "SQL Gateway" if self.target_name == DEFAULT else f"target {self.target_name}, engine {found.engine}"
        known = "" if jobs is None else f"; it has {len(jobs)} job{'' if len(jobs) == 1 else 's'}"
        return True, f"{runs} {found.version}{known}"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _bare(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl().rstrip("/")


def mask_in_logs(value: str) -> None:
    """Mask a secret in later Airflow logs of this process, unless the secret is too short."""
    from airflow_flinkcompat.secrets.redact import SHORTEST
    from airflow_flinkcompat.secrets.spellings import variants

    for variant in variants(value) if len(value) >= SHORTEST else ():
        mask_secret(variant)


def connection_lookup(get_connection: Callable[[str], Connection]) -> Lookup:
    """Resolve ``${conn.<id>.<attribute>}`` from Airflow's connections, and mask their secrets in logs."""

    def lookup(placeholder: AnyPlaceholder) -> str:
        from airflow.providers.common.compat.sdk import AirflowNotFoundException

        from airflow_flinkcompat.secrets.placeholders import EnvPlaceholder, env_in_deployment

        if isinstance(placeholder, EnvPlaceholder):
            raise AirflowFailException(env_in_deployment(placeholder))
        conn_id, attribute = placeholder.conn_id, placeholder.attribute
        try:
            connection = get_connection(conn_id)
        except AirflowNotFoundException:
            raise AirflowFailException(f"{placeholder}: there is no Airflow connection {conn_id!r}") from None
        if attribute.startswith("extra."):
            value = (connection.extra_dejson or {}).get(attribute.removeprefix("extra."))
        else:
            value = getattr(connection, attribute, None)
        if value is None or value == "":
            raise AirflowFailException(f"{placeholder}: connection {conn_id!r} has no {attribute}")
        if placeholder.is_secret:
            mask_in_logs(str(value))
        return str(value)

    return lookup


class RealtimeComputeHook(FlinkHook):
    """Hook of a connection of type ``alibaba_realtime_compute``, which opens a namespace and its ledger.

    Login and password are the id and the secret of an access key. Keys of the extra: ``endpoint`` or ``region``,
    ``workspace``, ``namespace``, ``alibaba_conn_id`` (a connection of type ``alibaba_cloud`` whose access key is used
    instead), ``engine_version``, ``deployment_target``, ``ledger``, and ``ui_url`` (address of the console in a
    browser).
    """

    conn_name_attr = "realtime_compute_conn_id"
    default_conn_name = "realtime_compute_default"
    conn_type = "alibaba_realtime_compute"
    hook_name = "Alibaba Cloud Realtime Compute for Apache Flink"

    def __init__(self, realtime_compute_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(flink_conn_id=realtime_compute_conn_id, **kwargs)
