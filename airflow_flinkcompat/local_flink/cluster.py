"""A whole Flink on loopback: JobManager, TaskManager and SQL Gateway as child processes.

The cluster needs only jars: no Flink scripts and no containers. The SQL Gateway's jar is fetched from Maven Central.
All other jars are in the ``apache-flink-libraries`` wheel (extra ``local-flink``). The cluster uses about 600 MB and is
ready in about ten seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

import httpx

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.targets import DEFAULT, TargetLocation
from airflow_flinkcompat.local_flink import jars
from airflow_flinkcompat.local_flink.processes import (
    LOOPBACK,
    Child,
    LocalFlinkError,
    choose_ports,
    find_java,
    spawn,
    stop_all,
)
from airflow_flinkcompat.model import install_command
from airflow_flinkcompat.secrets.placeholders import Lookup

HOME_VARIABLE = "FLINKCOMPAT_FLINK_HOME"
_DISTRIBUTION = "apache-flink-libraries"
_READY_SECONDS = 180.0
_log = logging.getLogger(__name__)

_PROCESSES: Mapping[str, tuple[str, str, bool]] = {
    # name → (main class, heap, accepts --configDir)
    "jobmanager": ("org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint", "512m", True),
    "taskmanager": ("org.apache.flink.runtime.taskexecutor.TaskManagerRunner", "400m", True),
    "sql-gateway": ("org.apache.flink.table.gateway.SqlGateway", "512m", False),
}
# Use only the JVM's first compiler (C1). A cluster that runs for minutes then needs less than half of the CPU time.
JAVA_OPTIONS = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text", "java.time",
            "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
        )
    ),
)  # fmt: skip
# Flink's own scripts derive the sizes of the memory parts. Without them, a TaskManager starts only if every size is
# set.
_MEMORY = {
    "taskmanager.cpu.cores": "1.0",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.task.off-heap.size": "0m",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.network.min": "64m",
    "taskmanager.memory.network.max": "64m",
    "taskmanager.memory.managed.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m",
    "taskmanager.memory.jvm-overhead.max": "192m",
}
_LOG4J = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
appender.file.name = file
appender.file.type = RollingFile
appender.file.fileName = ${sys:log.file}
appender.file.filePattern = ${sys:log.file}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %-5p %-60c{1.} - %m%n
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


def flink_home(home: Path | None = None) -> Path:
    """The folder with Flink's jars in ``lib/``.

    Args:
        home: The folder to use. None means ``$FLINKCOMPAT_FLINK_HOME`` or, if unset, the installed wheel.

    Returns:
        The folder, as an absolute path.

    Raises:
        LocalFlinkError: The jars are not installed, or the folder does not contain them.
    """
    folder = home or (Path(value) if (value := os.environ.get(HOME_VARIABLE)) else None)
    if folder is None:
        try:
            folder = Path(str(importlib.metadata.distribution(_DISTRIBUTION).locate_file("pyflink")))
        except importlib.metadata.PackageNotFoundError as error:
            raise LocalFlinkError(
                f"Flink's jars are not installed: {install_command('local-flink')}, or set {HOME_VARIABLE} "
                "to a Flink folder (the one that contains lib/)"
            ) from error
    if not list((folder / "lib").glob("flink-dist-*.jar")):
        raise LocalFlinkError(f"{folder / 'lib'} contains no flink-dist-*.jar: it is not the lib folder of Flink")
    return folder.resolve()


def gateway_jar(home: Path) -> Path:
    """The SQL Gateway's jar in the Flink folder, or else the pinned jar. Raises LocalFlinkError."""
    for folder in ("lib", "opt"):
        if own := sorted((home / folder).glob("flink-sql-gateway-[0-9]*.jar")):
            return own[-1]
    dist = sorted((home / "lib").glob("flink-dist-*.jar"))[-1]
    version = re.sub(r"^flink-dist-(.*)\.jar$", r"\1", dist.name)
    pinned = {jar.coordinates: jar for jar in jars.pinned().values() if jar.name.startswith("flink-sql-gateway")}
    if not (fitting := pinned.get(f"org.apache.flink:flink-sql-gateway:{version}")):
        raise LocalFlinkError(
            f"{home} is Flink {version}, but the only pinned SQL Gateways are {' and '.join(pinned)}. Put "
            f"flink-sql-gateway-{version}.jar into {home / 'opt'}"
        )
    return jars.fetch_jar(fitting)


class LocalFlink:
    """JobManager, TaskManager and SQL Gateway on loopback, until the ``with`` block ends.

    The three processes never outlive the process that started them, even if that process is killed.

    Args:
        work_dir: Folder for configuration, logs, checkpoints and savepoints. The files remain after the ``with``
            block.
        home: The folder with Flink's jars in ``lib/``. None means ``$FLINKCOMPAT_FLINK_HOME`` or, if unset, the
            installed wheel.
        slots: Number of the TaskManager's task slots.
        rest_port: The port of the JobManager's REST API. If None, a free port is chosen.
        gateway_port: The port of the SQL Gateway. If None, a free port is chosen.
        config: Flink options by key, which extend or override the cluster's default options.
        extra_jars: Jars (connectors, for example) for every class path.
        gateway_only: If True, only the SQL Gateway is started, which can parse and plan statements. The Gateway is
            ready in about two seconds.
        ready_timeout: Seconds within which all processes must answer.
        log: Function that receives each progress message.
    """

    def __init__(
        self,
        work_dir: Path | str,
        *,
        home: Path | None = None,
        slots: int = 8,
        rest_port: int | None = None,
        gateway_port: int | None = None,
        config: Mapping[str, str] | None = None,
        extra_jars: Sequence[Path] = (),
        gateway_only: bool = False,
        ready_timeout: float = _READY_SECONDS,
        log: Callable[[str], None] = _log.info,
    ) -> None:
        self.work_dir = Path(work_dir).resolve()
        self.slots = slots
        self._home = home
        self._wanted = {"the JobManager's REST API": rest_port, "the SQL Gateway": gateway_port, "Flink RPC": None}
        self._config = dict(config or {})
        self._extra_jars = tuple(extra_jars)
        self._parts = ("sql-gateway",) if gateway_only else tuple(_PROCESSES)
        self._ready_timeout = ready_timeout
        self._log = log
        self._children: tuple[Child, ...] = ()
        self.jobmanager_url = ""
        self.gateway_url = ""

    @property
    def savepoint_directory(self) -> str:
        """Default folder of savepoints, as a URI."""
        return (self.work_dir / "savepoints").as_uri()

    @property
    def pids(self) -> dict[str, int]:
        return {child.name: pid for child in self._children if (pid := child.pid) is not None}

    def __enter__(self) -> LocalFlink:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the processes and wait until they answer. Raises LocalFlinkError, JarError."""
        if self._children:
            raise LocalFlinkError("this local Flink is already running")
        rest, gateway, rpc = choose_ports(self._wanted).values()
        java, home = find_java(), flink_home(self._home)
        class_path = [f"{home / 'lib'}{os.sep}*", str(gateway_jar(home)), *map(str, self._extra_jars)]
        self.jobmanager_url, self.gateway_url = f"http://{LOOPBACK}:{rest}", f"http://{LOOPBACK}:{gateway}"
        conf = self._write_configuration(rest, gateway, rpc)
        environment = {
            **os.environ,
            "FLINK_CONF_DIR": str(conf),
            "FLINK_LIB_DIR": str(home / "lib"),
            "FLINK_OPT_DIR": str(home / "opt"),
            "FLINK_PLUGINS_DIR": str(home / "plugins"),
        }
        try:
            for name in self._parts:
                command = _command(java, name, os.pathsep.join(class_path), conf, self.work_dir)
                self._children += (self._spawn(name, command, environment),)
            self._wait_until_ready()
        except BaseException:
            self.stop()
            raise
        jobmanager = f"JobManager {self.jobmanager_url} · " if "jobmanager" in self._parts else ""
        self._log(f"Flink is ready: {jobmanager}SQL Gateway {self.gateway_url}")

    def stop(self) -> None:
        """End all processes: send TERM, then KILL. Do nothing if no process runs."""
        children, self._children = self._children, ()
        stop_all(children)

    def check(self) -> None:
        """Check that every process still runs.

        Raises:
            LocalFlinkError: A process ended. The error message contains the last lines of its log.
        """
        for child in self._children:
            if not child.running:
                raise LocalFlinkError(
                    f"the {child.name} of the local Flink ended with exit code {child.guard.returncode}; its "
                    f"last log lines (more in {child.logs[-1].parent}):\n{child.log_tail() or '(none)'}"
                )

    def _spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        logs = self.work_dir / "log"
        return spawn(
            name,
            command,
            output=logs / f"{name}.out",
            log=logs / f"{name}.log",
            pid_file=self.work_dir / "pids" / name,
            environment=environment,
        )

    def _write_configuration(self, rest: int, gateway: int, rpc: int) -> Path:
        try:
            for folder in ("conf", "log", "pids", "tmp", "checkpoints", "savepoints"):
                (self.work_dir / folder).mkdir(parents=True, exist_ok=True)
            for old in (self.work_dir / "log").iterdir():  # otherwise messages would show old errors
                old.unlink()
            conf = self.work_dir / "conf"
            options = cluster_options(self.work_dir, rest, gateway, rpc, self.slots) | self._config
            # JSON strings are YAML strings.
            lines = (f"{key}: {json.dumps(str(value))}\n" for key, value in options.items())
            (conf / "config.yaml").write_text("".join(lines), encoding="utf-8")
            (conf / "log4j.properties").write_text(_LOG4J, encoding="utf-8")
        except OSError as error:
            raise LocalFlinkError(f"cannot write to the work folder {self.work_dir}: {error}") from error
        return conf

    def _wait_until_ready(self) -> None:
        """Wait until the Gateway answers and, unless only the Gateway runs, all task slots are registered."""
        # Ignore the environment's proxy settings, because loopback is never behind a proxy.
        with httpx.Client(timeout=5, trust_env=False) as client:
            try:
                poll(lambda: self._missing(client), bool, timeout=self._ready_timeout)
            except Overdue as overdue:
                tails = "\n".join(f"{child.name}:\n{child.log_tail()}" for child in self._children)
                raise LocalFlinkError(
                    f"Flink is not ready after {self._ready_timeout:.0f} s: {overdue.last}\n{tails}"
                ) from None

    def _missing(self, client: httpx.Client) -> str:
        self.check()
        try:
            if "jobmanager" in self._parts:
                slots = client.get(f"{self.jobmanager_url}/overview").raise_for_status().json()["slots-total"]
                if slots < self.slots:
                    return f"{slots} of {self.slots} slots are registered"
            client.get(f"{self.gateway_url}/info").raise_for_status()
        except (httpx.HTTPError, ValueError, KeyError) as error:
            return f"no answer yet ({error})"
        return ""


def cluster_options(work_dir: Path, rest: int, gateway: int, rpc: int, slots: int) -> dict[str, str]:
    """The cluster's options: loopback addresses, state under ``work_dir``, no restarts that hide failures."""
    local_addresses = ("jobmanager.rpc.address", "jobmanager.bind-host", "taskmanager.host", "taskmanager.bind-host",
                       "rest.address", "rest.bind-address", "sql-gateway.endpoint.rest.address",
                       "sql-gateway.endpoint.rest.bind-address")  # fmt: skip
    return {
        **dict.fromkeys(local_addresses, LOOPBACK),
        "jobmanager.rpc.port": str(rpc),
        # Leave rest.bind-port unset. The Gateway would also use this option and compete with the JobManager for the
        # port.
        "rest.port": str(rest),
        "sql-gateway.endpoint.rest.port": str(gateway),
        "taskmanager.numberOfTaskSlots": str(slots),
        **_MEMORY,
        "parallelism.default": "1",
        "execution.checkpointing.interval": "2 s",
        "execution.checkpointing.dir": (work_dir / "checkpoints").as_uri(),
        "execution.checkpointing.savepoint-dir": (work_dir / "savepoints").as_uri(),
        # Flink 1.19 has different names for the two folders above, so set both names.
        "state.checkpoints.dir": (work_dir / "checkpoints").as_uri(),
        "state.savepoints.dir": (work_dir / "savepoints").as_uri(),
        "restart-strategy.type": "disable",
        "io.tmp.dirs": str(work_dir / "tmp"),
        "metrics.fetcher.update-interval": "300",
        "web.refresh-interval": "500",
    }


def _command(java: Path, name: str, class_path: str, conf: Path, work_dir: Path) -> list[str]:
    main_class, heap, takes_directory = _PROCESSES[name]
    return [
        str(java),
        f"-Xmx{heap}",
        *JAVA_OPTIONS,
        f"-Dlog.file={work_dir / 'log' / name}.log",
        f"-Dlog4j.configurationFile={(conf / 'log4j.properties').as_uri()}",
        f"-Djava.io.tmpdir={work_dir / 'tmp'}",
        "-cp",
        class_path,
        main_class,
        *(["--configDir", str(conf)] if takes_directory else []),
    ]


@contextlib.contextmanager
def local_cluster(
    lookup: Lookup | None = None, extra_jars: Sequence[Path] = (), home: Path | None = None
) -> Iterator[Cluster]:
    """A local Flink that plans scripts and runs jobs that belong to no deployment.

    Args:
        lookup: Returns the value of a placeholder. If None, no connections are known.
        extra_jars: Jars, such as connectors, that are added to the class path.
        home: The folder of Flink. If None, the default folder is used.

    Yields: The target and its location, until the context ends.

    Raises:
        LocalFlinkError: Flink cannot be started.
    """
    with (
        tempfile.TemporaryDirectory(prefix="flinkcompat-cluster-") as folder,
        LocalFlink(folder, home=home, extra_jars=extra_jars) as flink,
    ):
        where = TargetLocation(DEFAULT, {"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
        with where.open(lookup) as target:
            yield Cluster(target, where, temporary=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a local Flink until TERM or INT, and print the addresses of JobManager and SQL Gateway."""
    parser = argparse.ArgumentParser(prog="python -m airflow_flinkcompat.local_flink", description=main.__doc__)
    parser.add_argument(
        "--work-dir", type=Path, required=True, help="folder for configuration, logs, checkpoints and savepoints"
    )
    parser.add_argument("--rest-port", type=int, help="port of the JobManager's REST API (default: a free port)")
    parser.add_argument("--gateway-port", type=int, help="port of the SQL Gateway (default: a free port)")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="a Flink option of the cluster; repeatable"
    )
    options = parser.parse_args(arguments)
    if wrong := [pair for pair in options.config if "=" not in pair]:
        parser.error(f"--config {wrong[0]!r} is not KEY=VALUE")
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    flink = LocalFlink(
        options.work_dir,
        slots=options.slots,
        rest_port=options.rest_port,
        gateway_port=options.gateway_port,
        config=dict(pair.split("=", 1) for pair in options.config),
    )
    try:
        with flink:
            print(f"jobmanager {flink.jobmanager_url}\ngateway {flink.gateway_url}", flush=True)
            while not asked.wait(1):
                flink.check()
    except LocalFlinkError as error:
        with contextlib.suppress(BrokenPipeError):
            print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
