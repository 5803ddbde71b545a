"""One deployment with a job that runs, on a real Flink, and the ways to harm what is around it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError, Ledger, Operation, Options, Proof, Start, deploy
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.rest import Endpoint
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.cluster import flink_home
from airflow_flinkcompat.local_flink.processes import LOOPBACK, Child, choose_ports, find_java, spawn, stop_all
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import SETTINGS, Files, Side, wait_for

FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one ends minute 0, begins minute 1
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # ends minute 1
MINUTE_0, MINUTE_1 = 'ann,3,"2026-01-01 00:00:00"', 'ann,12,"2026-01-01 00:01:00"'
OPTIONS = Options(settle_seconds=0.5, start_timeout=90, stop_timeout=90, submit_timeout=5)


class Target(SqlGatewayTarget):
    """The real target, with something that happens right before or after one of its calls, once."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.before: dict[str, Callable[[], object]] = {}
        self.after: dict[str, Callable[[], object]] = {}

    def _hit(self, name: str, call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        if name in self.before:
            self.before.pop(name)()
        answer = call(*arguments, **more)
        if name in self.after:
            self.after.pop(name)()
        return answer

    def start(self, *arguments: Any) -> Operation:
        return self._hit("start", super().start, *arguments)  # type: ignore[no-any-return]

    def stop(self, *arguments: Any) -> Operation:
        return self._hit("stop", super().stop, *arguments)  # type: ignore[no-any-return]

    def cancel(self, job_id: str) -> None:
        self._hit("cancel", super().cancel, job_id)

    def restored_from(self, job_id: str) -> Proof:
        return self._hit("restored_from", super().restored_from, job_id)  # type: ignore[no-any-return]


@dataclass
class DeploymentFixture:
    """``name`` is the deployment, its job runs ``old`` from an earlier one, with an open window in its state."""

    flink: LocalFlink
    root: Path
    name: str
    settings: Mapping[str, str] = field(default_factory=dict)
    clients: list[SqlGatewayTarget] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files = Files(self.root)
        self.ledger = Ledger(self.root / "ledger", self.name)
        self.target = self.reached_by()
        self.old = Side(self.files.script(), {**SETTINGS, **self.settings})
        self.changed = Side(self.files.script(), {**SETTINGS, "table.exec.state.ttl": "1 d"})
        self.first = self._deployed()

    def reached_by(self, gateway: Endpoint | str = "", jobmanager: Endpoint | str = "") -> Target:
        """A target whose clients go to these addresses, and do not pause for long between attempts."""
        target = Target(
            SqlGateway(gateway or self.flink.gateway_url, retry_wait=0.1),
            JobManager(jobmanager or self.flink.jobmanager_url, retry_wait=0.1),
        )
        self.clients.append(target)
        return target

    def _deployed(self) -> DeployedEntry:
        self.files.arrive("1.csv", FIRST)
        job_id = new_id()
        settings = {"pipeline.name": self.name, **self.old.settings}
        self.target.start(JobSpec(self.old.script, settings), Start(), job_id)
        wait_for(lambda: self.files.rows() == [MINUTE_0], "minute 0 is written")
        return self.ledger.append(DeployedEntry(job=self.old, start=JobStart(job_id=job_id), owner="an earlier run"))

    def run(self, target: Target | None = None, side: Side | None = None, **more: Any) -> DeployedEntry:
        """One try of the run ``worker``."""
        options = more.pop("options", OPTIONS)
        given = {"checked_old_sha256": self.first.sha256, "owner": "worker", "options": options, **more}
        return deploy(target or self.target, self.ledger, side or self.changed, **given)

    def fails(self, target: Target | None = None, side: Side | None = None, **more: Any) -> tuple[type, str]:
        """The error that one try ends in: its class and its message, which is fit to be read."""
        try:
            entry = self.run(target, side, **more)
        except DeployError as error:
            message = str(error)
            assert "Traceback" not in message, message
            assert "\tat " not in message, message
            assert len(message) < 2500, message
            return type(error), message
        raise AssertionError(f"it did not fail: {entry.kind}")

    @property
    def kinds(self) -> list[str]:
        """Of all entries after the first one, which are all there and can be read."""
        entries = self.ledger.entries()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        return [entry.kind for entry in entries[1:]]

    @property
    def running(self) -> tuple[str, ...]:
        return self.target.running(self.name)

    @property
    def jobs(self) -> set[str]:
        """Ids of all jobs of this deployment that the cluster ever had."""
        return {job.job_id for job in self.target._jobmanager.jobs().values() if job.name == self.name}

    @property
    def savepoints(self) -> list[Path]:
        """Complete ones of this deployment's stops."""
        return [path.parent for path in (self.flink.work_dir / "savepoints" / self.name).glob("*/*/_metadata")]

    def is_untouched(self) -> None:
        """The job of the first entry runs as before, and nothing more was written down."""
        assert self.kinds == []
        self.goes_on(str(self.first.job_id))

    def goes_on(self, job_id: str | None) -> None:
        """This job alone runs, and what it writes holds rows from before and after whatever happened."""
        assert self.running == (job_id,)
        self.files.arrive("2.csv", SECOND)
        wait_for(lambda: len(self.files.rows()) >= 2, "minute 1 is written")
        assert self.files.rows() == [MINUTE_1, MINUTE_0]

    def close(self) -> None:
        with contextlib.suppress(DeployError):
            for job_id in self.running:
                self.target.cancel(job_id)
        for client in self.clients:
            client.close()


class Wire:
    """A way to a server that can be slow, break, lose answers, or close one half of a connection.

    ``delay`` is in seconds, for every piece on its way back; ``lose`` says of a piece on its way there that the answer
    to it is lost: the piece arrives, and the connection is closed towards the client; ``half_close`` says of which one
    only the sending half is closed, while the other still reads. ``open`` False: nobody listens.
    """

    def __init__(self, url: str, delay: float = 0.0, lose: Callable[[bytes], bool] = lambda _: False) -> None:
        host, _, port = url.removeprefix("http://").partition(":")
        self._upstream = (host, int(port))
        self.delay = delay
        self.lose = lose
        self.lost = 0
        self.half_close: Callable[[bytes], bool] = lambda _: False
        self._unheard: set[socket.socket] = set()
        self._closing = threading.Event()
        self._listener: socket.socket | None = None
        self._threads: list[threading.Thread] = []
        self._port = 0
        self.open()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        """Listen, on the same port as ever."""
        self._listener = socket.create_server(("127.0.0.1", self._port))
        self._port = self._listener.getsockname()[1]
        self._start(self._accept, self._listener)

    def shut(self) -> None:
        """Nobody listens any more; connections that are open are cut."""
        assert self._listener is not None
        self._closing.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)
        self._threads.clear()
        self._closing.clear()

    def _start(self, run: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=run, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            upstream = socket.create_connection(self._upstream)
            for side in (client, upstream):
                side.settimeout(0.05)
            ended = threading.Event()
            self._start(self._relay, client, upstream, ended, self._sent)
            self._start(self._relay, upstream, client, ended, self._answered)

    def _relay(
        self, source: socket.socket, sink: socket.socket, ended: threading.Event, passing: Callable[..., bool]
    ) -> None:
        try:
            while not ended.is_set() and not self._closing.is_set():
                try:
                    piece = source.recv(65536)
                except TimeoutError:
                    continue
                if not piece or not passing(piece, source, sink):
                    break
        except OSError:
            pass
        ended.set()
        for side in (source, sink):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _sent(self, piece: bytes, client: socket.socket, sink: socket.socket) -> bool:
        # Settled before the piece goes on: its answer may be back at once.
        half_closed = self.half_close(piece)
        closed = not half_closed and self.lose(piece)
        if half_closed or closed:
            self.lost += 1
            self._unheard.add(client)
        if half_closed:
            client.shutdown(socket.SHUT_WR)
        sink.sendall(piece)
        return not closed

    def _answered(self, piece: bytes, _server: socket.socket, sink: socket.socket) -> bool:
        if sink in self._unheard:
            return True
        if self.delay and self._closing.wait(self.delay):
            return False
        sink.sendall(piece)
        return True


@contextlib.contextmanager
def wire(url: str, **more: Any) -> Iterator[Wire]:
    """A wire for as long as the block lasts."""
    made = Wire(url, **more)
    try:
        yield made
    finally:
        with contextlib.suppress(OSError):
            made.shut()


class FragileFlink(LocalFlink):
    """A local Flink whose parts can be killed and started again, one by one, under their old addresses."""

    def _spawn(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        self._how = {**getattr(self, "_how", {}), name: (command, environment)}
        return super()._spawn(name, command, environment)

    def kill(self, name: str) -> None:
        """SIGKILL, and wait for the end."""
        child = self._child(name)
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        wait_for(lambda: not child.running, f"the {name} ends")

    def revive(self, *names: str) -> None:
        """Start parts again that were killed, and wait until all of Flink is there."""
        self.respawn(*names)
        self._wait_until_ready()

    def respawn(self, *names: str) -> None:
        """Start parts again that were killed."""
        for name in names:
            dead = self._child(name)
            assert dead.guard.stdin is not None
            dead.guard.stdin.close()
            alive = self._spawn(name, *self._how[name])
            self._children = tuple(alive if child is dead else child for child in self._children)

    def _child(self, name: str) -> Child:
        return next(child for child in self._children if child.name == name)


class RecoveringFlink(FragileFlink):
    """One whose JobManager is highly available: what it knows outlives it in a ZooKeeper beside it."""

    def __init__(self, work_dir: Path, **more: Any) -> None:
        super().__init__(work_dir, **more)
        self._zookeeper: Child | None = None

    def start(self) -> None:
        (port,) = choose_ports({"ZooKeeper": None}).values()
        place = self.work_dir / "zookeeper"
        place.mkdir(parents=True)
        (place / "zoo.cfg").write_text(
            f"dataDir={place / 'data'}\nclientPort={port}\nclientPortAddress={LOOPBACK}\ntickTime=500\n"
            "admin.enableServer=false\n"
        )
        main = "org.apache.flink.shaded.zookeeper3.org.apache.zookeeper.server.ZooKeeperServerMain"
        jars = f"{flink_home() / 'lib'}{os.sep}*"
        self._zookeeper = spawn(
            "zookeeper",
            [
                str(find_java()),
                "-Xmx128m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                jars,
                main,
                str(place / "zoo.cfg"),
            ],
            output=place / "out",
            log=place / "log",
            pid_file=place / "pid",
            environment=os.environ,
        )
        self._config |= {
            "high-availability.type": "zookeeper",
            "high-availability.zookeeper.quorum": f"{LOOPBACK}:{port}",
            "high-availability.storageDir": (self.work_dir / "ha").as_uri(),
            # How long a JobManager that was killed still counts as the leader.
            "high-availability.zookeeper.client.session-timeout": "4 s",
            "high-availability.zookeeper.client.connection-timeout": "4 s",
        }
        try:
            super().start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        super().stop()
        if self._zookeeper is not None:
            stop_all([self._zookeeper])
            self._zookeeper = None
