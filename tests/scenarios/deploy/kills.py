"""A redeploy in a process that kills or pauses itself at a chosen point, or loses the answer to a call there.

A point is right before or after a call to the outside: an HTTP request, by whatever client, and the moments in which an
entry of the ledger gets its name, or a rewritten savepoint its metadata. Calls are counted within a phase, which is the
last entry that the run has written, so a point is the same in every run.
"""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import astuple, dataclass, field
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self, TypeVar

import httpx
from urllib3.connectionpool import HTTPConnectionPool

from airflow_flinkcompat import compat
from airflow_flinkcompat.deploy import DeployError, Ledger, Options, deploy
from airflow_flinkcompat.deploy.ledger.entries import Review
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import OpenTarget, TargetLocation
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.store import METADATA

T = TypeVar("T")
_ID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
# Imported once for all processes: the clients of the platforms take seconds.
_PRELOADED = ["tests.scenarios.deploy.kills", "tests.scenarios.deploy.targets.stand_in_kills"]
ANY_PHASE = "*"
# A start asks what became of all other processes, and of two that read that at once one gets nothing (and says 255).
_PROCESSES = Lock()


@dataclass(frozen=True)
class Sent:
    """A request as a client sends it. ``headers``: their names in lower case; ``body`` reads it, where it was read."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Callable[[], bytes]


class Calls:
    """Names the requests of a target. Patterns of such names say what matters.

    ``effects``: calls that change a job; ``always``: other calls of which every one matters; ``looks``: those that
    decide what is done next, of which the first in a phase does (``looked``: after it, or before it, which is after the
    call before that). Other calls change nothing and decide nothing.
    """

    effects: ClassVar[str]
    always: ClassVar[str] = r"(?!)"
    looks: ClassVar[str]
    looked: ClassVar[tuple[bool, ...]] = (False,)

    def name(self, sent: Sent) -> str:
        """Method and path, without ids."""
        return f"{sent.method} {_ID.sub('*', sent.path)}"

    def has_effect(self, call: str) -> bool:
        """Whether a call changes a job or the ledger."""
        return bool(re.match(rf"ledger |savepoint is published|{self.effects}", call))

    def matters(self, call: str, time: int, after: bool) -> bool:
        """Whether something is done there, or learnt that decides what is done next."""
        first = time == 1 and after in self.looked and re.match(self.looks, call)
        return bool(first or self.has_effect(call) or re.match(self.always, call))


class FlinkCalls(Calls):
    """Of a SQL Gateway and a JobManager; what is done in a session is named by the statement it is for, too."""

    effects = r"POST /jobs/\*/stop|PATCH /jobs/\*|POST .*/statements INSERT|POST /jars/.*/run"
    always = r"(?!GET)"
    looks = r"GET /jobs/\*/(savepoints/\*|status)|GET /v2/.*/result/.* INSERT"
    looked = (False, True)

    def __init__(self) -> None:
        self._statement = ""

    def name(self, sent: Sent) -> str:
        """Method and path, and the beginning of the statement."""
        path = sent.path.partition("?")[0]
        if path.endswith("/statements"):
            self._statement = " ".join(json.loads(sent.body())["statement"].split()[:2])
        of = f" {self._statement}" if re.search(r"/(statements|operations)\b", path) else ""
        return f"{sent.method} {_ID.sub('*', path)}{of}"


@dataclass(frozen=True)
class Point:
    """Before or after the ``time``-th call of its kind within a phase.

    ``matters``: something is done there, or learnt that decides what is done next; ``has_effect``: the call changes a
    job or the ledger.
    """

    phase: str
    call: str
    time: int
    after: bool
    matters: bool = field(default=True, compare=False)
    has_effect: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        times = f" ({self.time})" if self.time > 1 else ""
        return f"{self.phase or 'first'}: {'after' if self.after else 'before'} {self.call}{times}"

    @property
    def is_request(self) -> bool:
        """Whether the call goes to the target, and not to the ledger or a file."""
        return not self.call.startswith(("ledger ", "savepoint "))


@dataclass(frozen=True)
class Told:
    """What a run in a process of its own came to, in what words, and the points it went through that matter.

    ``lost``: how many answers it lost.
    """

    outcome: str
    message: str
    points: tuple[Point, ...]
    lost: int = 0

    @classmethod
    def of(cls, seen: Path) -> Self:
        told = json.loads(seen.read_text("utf-8"))
        points = (Point(*row) for row in told["points"])
        return cls(told["outcome"], told["message"], tuple(point for point in points if point.matters), told["lost"])


@dataclass(frozen=True)
class Attempt:
    """One call of ``deploy``, in words that another process can be given.

    ``open`` opens the target; ``location`` does, too, for a migration, which may compute from ``history``.
    """

    open: Callable[[], OpenTarget]
    ledger: Path
    deployment: str
    side: JobSpec
    start_mode: str
    checked: str | None
    owner: str
    options: Options
    outcome: str = "compatible"
    calls: type[Calls] = FlinkCalls
    location: TargetLocation | None = None
    history: KnownHistory | None = None
    catch_up: bool = False

    def run(self) -> str:
        """What it came to: the kind of its entry, or the class of its error."""
        return self.said()[0]

    def said(self) -> tuple[str, str]:
        """The same, with the error's message."""
        with self.open() as target, ExitStack() as opened:
            try:
                ledger = Ledger(self.ledger, self.deployment)
                entry = deploy(
                    target,
                    ledger,
                    self.side,
                    start_mode=self.start_mode,
                    checked_old_sha256=self.checked,
                    review=Review(self.outcome),
                    owner=self.owner,
                    migration=self._migration(target, ledger, opened),
                    options=self.options,
                )
            except DeployError as error:
                return type(error).__name__, str(error)
            return entry.kind, entry.message

    def _migration(self, target: Target, ledger: Ledger, opened: ExitStack) -> SavepointMigration | None:
        head = ledger.head()
        if self.start_mode != "migrated" or head is None:
            return None
        assert self.location is not None
        cluster = Cluster(target, self.location)
        old, new = (compat.Side.of(job) for job in (head.job, self.side))
        return SavepointMigration(
            old,
            new,
            cluster,
            head.job_id,
            at_least=MigrationExtent.WHOLE,
            plan_dir=None,
            rehearsed=True,
            history=self.history,
            hold=opened.enter_context,
            log=print,
            catch_up="always" if self.catch_up else False,
        )

    def hit_at(
        self, point: Point | None, seen: Path, by: signal.Signals = signal.SIGKILL, *, losses: int = 0
    ) -> BaseProcess:
        """A process that runs it and sends itself a signal at ``point``; what it comes to is told in ``seen``.

        Right before it pauses itself (SIGSTOP) it makes ``seen`` an empty file. With ``losses`` it gets no signal: of
        so many calls, from the one at ``point`` on and of its name, the answer is lost (or the call itself, before it).
        """
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        process = context.Process(target=_run, args=(self, point, seen, by, losses))
        with _PROCESSES:
            process.start()
        return process


def exit_code(process: BaseProcess, seconds: float) -> int | None:
    """How a process has ended; None where it has not, after so many seconds."""
    wait([process.sentinel], seconds)
    with _PROCESSES:
        return process.exitcode


@dataclass
class _Faults:
    calls: Calls
    hit_at: Point | None
    reached: Callable[[], None]
    losses: int = 0
    lost: int = 0
    seen: list[Point] = field(default_factory=list)
    phase: str = ""
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)

    def call(self, name: str, do: Callable[[], T], reset: Exception) -> T:
        """Do a call between its two points. ``reset``: what its client sees of a connection that is reset."""
        phase = self.phase
        self.counted[phase, name] += 1
        time = self.counted[phase, name]
        self._reach(self._point(phase, name, time, after=False), reset)
        answer = do()
        self._reach(self._point(phase, name, time, after=True), reset)
        return answer

    def _point(self, phase: str, name: str, time: int, *, after: bool) -> Point:
        calls = self.calls
        return Point(phase, name, time, after, calls.matters(name, time, after), calls.has_effect(name))

    def _reach(self, point: Point, reset: Exception) -> None:
        self.seen.append(point)
        if self.losses:
            if self.lost < self.losses and self._is_lost(point):
                self.lost += 1
                raise reset
        elif point == self.hit_at:
            self.reached()

    def _is_lost(self, point: Point) -> bool:
        at = self.hit_at
        assert at is not None
        begun = self.lost > 0 or at.phase == ANY_PHASE
        return point == at or (begun and (point.call, point.after) == (at.call, at.after))

    def install(self) -> None:
        """In this process, for good: under httpx, and under urllib3, which the clients of the platforms stand on."""
        send, make, link = httpx.HTTPTransport.handle_request, HTTPConnectionPool._make_request, os.link

        def handle_request(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            path = request.url.raw_path.decode()
            sent = Sent(request.method, path, request.headers, lambda: request.content)
            reset = httpx.ReadError(os.strerror(errno.ECONNRESET), request=request)
            return self.call(self.calls.name(sent), lambda: send(transport, request), reset)

        def make_request(
            pool: HTTPConnectionPool,
            conn: Any,
            method: str,
            url: str,
            body: Any = None,
            headers: Any = None,
            **more: Any,
        ) -> Any:
            sent = Sent(method, url, {key.lower(): _text(headers[key]) for key in headers or ()}, lambda: _bytes(body))
            reset = ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            return self.call(
                self.calls.name(sent), lambda: make(pool, conn, method, url, body=body, headers=headers, **more), reset
            )

        def named(source: Any, place: Any, **more: Any) -> None:
            torn = OSError(errno.EIO, os.strerror(errno.EIO))
            if Path(place).name == METADATA:  # a savepoint is there from now on
                self.call("savepoint is published", lambda: link(source, place, **more), torn)
                return
            if Path(place).parent.name == "snapshots":  # of the ledger's index, which whoever comes by makes
                link(source, place, **more)
                return
            kind = json.loads(Path(source).read_bytes())["kind"]
            self.call(f"ledger {kind}", lambda: link(source, place, **more), torn)
            self.phase = kind

        httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
        HTTPConnectionPool._make_request = make_request  # type: ignore[method-assign]
        os.link = named


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _bytes(body: Any) -> bytes:
    return body.encode() if isinstance(body, str) else bytes(body or b"")


def _run(attempt: Attempt, point: Point | None, seen: Path, by: signal.Signals, losses: int) -> None:
    def reached() -> None:
        if by == signal.SIGSTOP:
            seen.touch()
        os.kill(os.getpid(), by)

    faults = _Faults(attempt.calls(), point, reached, losses)
    faults.install()
    outcome, message = attempt.said()
    points = [astuple(each) for each in faults.seen]
    hidden = seen.with_suffix(".hidden")
    hidden.write_text(
        json.dumps({"outcome": outcome, "message": message, "points": points, "lost": faults.lost}), "utf-8"
    )
    hidden.rename(seen)
