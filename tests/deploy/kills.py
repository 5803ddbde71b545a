"""A redeploy in a process that kills or pauses itself at a chosen point: right before or after a call to the outside.

Calls are the HTTP requests of both REST clients and the moments in which an entry of the ledger gets its name, or a
rewritten savepoint its metadata. They are counted within a phase, which is the last entry that the run has written, so
a point is the same in every run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import httpx

from airflow_flinkcompat import compat
from airflow_flinkcompat.deploy import DeployError, Ledger, Options, SqlGatewayTarget, deploy
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.restore_test import Cluster
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.savepoint.store import METADATA
from airflow_flinkcompat.state.migration import MigrationExtent
from tests.deploy.jobs import Side

_ID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")
# Looks that decide what a run does next; the others change nothing and decide nothing.
_LOOKS = re.compile(r"GET /jobs/\*/(savepoints/\*|status)|GET /v2/.*/result/.* INSERT")
_EFFECTS = re.compile(r"ledger |savepoint is published|POST /jobs/\*/stop|PATCH /jobs/\*|POST .*/statements INSERT")


@dataclass(frozen=True)
class Point:
    """Before or after the ``time``-th call of its kind within a phase."""

    phase: str
    call: str
    time: int
    after: bool

    def __str__(self) -> str:
        times = f" ({self.time})" if self.time > 1 else ""
        return f"{self.phase or 'first'}: {'after' if self.after else 'before'} {self.call}{times}"

    @property
    def matters(self) -> bool:
        """Whether something is done there, or learnt that decides what is done next."""
        return not self.call.startswith("GET") or (self.time == 1 and bool(_LOOKS.match(self.call)))

    @property
    def has_effect(self) -> bool:
        """Whether the call changes a job or the ledger."""
        return bool(_EFFECTS.match(self.call))


@dataclass(frozen=True)
class Told:
    """What a run in a process of its own came to, in what words, and the points it went through that matter."""

    outcome: str
    message: str
    points: tuple[Point, ...]

    @classmethod
    def of(cls, seen: Path) -> Self:
        told = json.loads(seen.read_text("utf-8"))
        points = (Point(*row) for row in told["points"])
        return cls(told["outcome"], told["message"], tuple(point for point in points if point.matters))


@dataclass(frozen=True)
class Attempt:
    """One call of ``deploy``, in words that another process can be given."""

    gateway_url: str
    jobmanager_url: str
    ledger: Path
    deployment: str
    side: Side
    start_mode: str
    checked: str | None
    owner: str
    options: Options
    outcome: str = "compatible"

    def run(self) -> str:
        """What it came to: the kind of its entry, or the class of its error."""
        return self.said()[0]

    def said(self) -> tuple[str, str]:
        """The same, with the error's message."""
        with SqlGatewayTarget(self.gateway_url, self.jobmanager_url) as target:
            try:
                ledger = Ledger(self.ledger, self.deployment)
                entry = deploy(
                    target,
                    ledger,
                    self.side,
                    start_mode=self.start_mode,
                    checked_old_sha256=self.checked,
                    outcome=self.outcome,
                    owner=self.owner,
                    migration=self._migration(target, ledger),
                    options=self.options,
                )
            except DeployError as error:
                return type(error).__name__, str(error)
            return entry.kind, entry.message

    def _migration(self, target: SqlGatewayTarget, ledger: Ledger) -> SavepointMigration | None:
        head = ledger.head()
        if self.start_mode != "migrated" or head is None:
            return None
        addresses = {"gateway": self.gateway_url, "jobmanager": self.jobmanager_url}
        cluster = Cluster(target, TargetLocation("sql-gateway", addresses))
        old, new = (compat.Side.of(job) for job in (head.job, self.side))
        return SavepointMigration(
            old, new, cluster, head.job_id, at_least=MigrationExtent.WHOLE, plan_dir=None, rehearsed=True, log=print
        )

    def hit_at(self, point: Point | None, seen: Path, by: signal.Signals = signal.SIGKILL) -> BaseProcess:
        """A process that runs it and sends itself a signal at ``point``; what it comes to is told in ``seen``.

        Right before it pauses itself (SIGSTOP) it makes ``seen`` an empty file.
        """
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["tests.deploy.kills"])
        process = context.Process(target=_run, args=(self, point, seen, by))
        process.start()
        return process


@dataclass
class _Faults:
    hit_at: Point | None
    reached: Callable[[], None]
    seen: list[Point] = field(default_factory=list)
    phase: str = ""
    statement: str = ""
    counted: Counter[tuple[str, str]] = field(default_factory=Counter)

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        phase = self.phase
        self.counted[phase, name] += 1
        time = self.counted[phase, name]
        self._reach(Point(phase, name, time, after=False))
        yield
        self._reach(Point(phase, name, time, after=True))

    def _reach(self, point: Point) -> None:
        if point == self.hit_at:
            self.reached()
        self.seen.append(point)

    def name(self, request: httpx.Request) -> str:
        """Method and path without ids; what is done in a session also by the statement it is for."""
        path = _ID.sub("*", request.url.path)
        if path.endswith("/statements"):
            self.statement = " ".join(json.loads(request.content)["statement"].split()[:2])
        of = f" {self.statement}" if re.search(r"/(statements|operations)\b", path) else ""
        return f"{request.method} {path}{of}"

    def install(self) -> None:
        """In this process, for good."""
        send, link = httpx.HTTPTransport.handle_request, os.link

        def handle_request(transport: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            with self.call(self.name(request)):
                return send(transport, request)

        def named(source: Any, place: Any, **more: Any) -> None:
            if Path(place).name == METADATA:  # a savepoint is there from now on
                with self.call("savepoint is published"):
                    link(source, place, **more)
                return
            kind = json.loads(Path(source).read_bytes())["kind"]
            with self.call(f"ledger {kind}"):
                link(source, place, **more)
            self.phase = kind

        httpx.HTTPTransport.handle_request = handle_request  # type: ignore[method-assign]
        os.link = named


def _run(attempt: Attempt, point: Point | None, seen: Path, by: signal.Signals) -> None:
    def reached() -> None:
        if by == signal.SIGSTOP:
            seen.touch()
        os.kill(os.getpid(), by)

    faults = _Faults(point, reached)
    faults.install()
    outcome, message = attempt.said()
    points = [[each.phase, each.call, each.time, each.after] for each in faults.seen]
    hidden = seen.with_suffix(".hidden")
    hidden.write_text(json.dumps({"outcome": outcome, "message": message, "points": points}), "utf-8")
    hidden.rename(seen)
