"""Triggers that wait for changed files, or for a new version of a deployment's script.

``FileChangeTrigger`` only hashes files; the sensor decides if the version needs a check. ``FlinkScriptTrigger`` decides
in the triggerer, so that no run waits. A triggerer has no task context, so it cannot render a template. A script that
is a template is compared only by the content of its files.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent
from jinja2 import FileSystemLoader
from jinja2.sandbox import SandboxedEnvironment

from airflow_flinkcompat.airflow.tasks.base import ScriptOperator, readable_errors
from airflow_flinkcompat.airflow.tasks.files import BUNDLES, Place, masked_words

if TYPE_CHECKING:
    from airflow_flinkcompat.model import JobSpec

# If two reads at this interval have the same content, the writer has finished.
_SETTLE_SECONDS = 1.0


def fingerprint(contents: Mapping[str, bytes]) -> str:
    """Hash of files and their paths, independent of their order."""
    digest = hashlib.sha256()
    for path in sorted(contents):
        for part in (path.encode(), contents[path]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def fingerprint_of(paths: Sequence[str]) -> str | None:
    """Hash of the present files; None while a file cannot be read, for example during its replacement."""
    try:
        return fingerprint({path: Path(path).read_bytes() for path in paths})
    except OSError:
        return None


class FileChangeTrigger(BaseTrigger):
    """Fire when the files differ from ``baseline`` and have settled, or after ``recheck_seconds``.

    The baseline is the version that the sensor judged, so an edit before the start of this trigger is not missed. The
    trigger also fires when a file in ``absent``, which could not be read, becomes readable. The event is ``{"changed":
    bool, "since": …, "reason": …, "problems": …}``. The sensor gets back ``since`` (the start of its wait in seconds
    since the epoch), ``reason`` (its last reported reason) and ``problems`` (the number of consecutive problems).
    """

    def __init__(
        self,
        paths: Sequence[str],
        baseline: str,
        poll_interval: float,
        recheck_seconds: float,
        since: float,
        absent: Sequence[str] = (),
        reason: str = "",
        problems: int = 0,
    ) -> None:
        super().__init__()
        self.paths = list(paths)
        self.baseline = baseline
        self.poll_interval = poll_interval
        self.recheck_seconds = recheck_seconds
        self.since = since
        self.absent = list(absent)
        self.reason = reason
        self.problems = problems

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("paths", "baseline", "poll_interval", "recheck_seconds", "since", "absent", "reason", "problems")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        recheck_at = time.monotonic() + self.recheck_seconds
        while time.monotonic() < recheck_at:
            if await self._changed():
                yield self._event(changed=True)
                return
            await asyncio.sleep(self.poll_interval)
        yield self._event(changed=False)

    def _event(self, *, changed: bool) -> TriggerEvent:
        return TriggerEvent({"changed": changed, "since": self.since, "reason": self.reason, "problems": self.problems})

    def _seen(self) -> str | None:
        appeared = [path for path in self.absent if Path(path).is_file() and os.access(path, os.R_OK)]
        return fingerprint_of([*self.paths, *appeared])

    async def _changed(self) -> bool:
        seen = await asyncio.to_thread(self._seen)
        while seen not in (None, self.baseline):
            await asyncio.sleep(min(_SETTLE_SECONDS, self.poll_interval))
            again = await asyncio.to_thread(self._seen)
            if again == seen:
                return True
            seen = again
        return False


_SETTLE_SECONDS = 1.0
_MOST_DOUBLINGS = 6


@dataclass(frozen=True)
class _Seen:
    """The files and the version at one check of the script.

    ``content`` is a hash of the version's parts, and ``stamp`` a hash of the files on this machine. ``version`` is None
    if a text is a template.
    """

    content: str
    stamp: str
    version: JobSpec | None
    commit: str | None


class FlinkScriptTrigger(BaseEventTrigger):
    """Fire each time the script of a deployment is a version that needs a check.

    ``arguments`` are arguments of :class:`~airflow_flinkcompat.airflow.tasks.base.ScriptOperator`, except for absolute
    paths. ``places`` contains these paths, as a bundle ("" for none) and a path in it; see ``place_of`` of
    :mod:`~airflow_flinkcompat.airflow.tasks.files`. ``folders`` are the folders for relative paths, each as a bundle
    and a path. Files are hashed every ``poll_interval`` seconds. The ledger is read when a file changes, and every
    ``recheck`` seconds. A problem that a person must fix results in one warning in the triggerer's log, and does not
    end the watch.

    The event's payload: ``deployment``, ``reason``, ``content`` (hash of the files) and ``commit`` of the bundle.
    """

    def __init__(
        self,
        arguments: dict[str, Any],
        places: Mapping[str, Sequence[str]],
        folders: Sequence[Sequence[str]],
        poll_interval: float = 10.0,
        recheck: float = 600.0,
    ) -> None:
        super().__init__()
        self.arguments = arguments
        self.places = {name: list(place) for name, place in places.items()}
        self.folders = [list(folder) for folder in folders]
        self.poll_interval = poll_interval
        self.recheck = recheck
        # The files that the last check of the script read.
        self._read: list[str] = []

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("arguments", "places", "folders", "poll_interval", "recheck")
        return f"{type(self).__module__}.{type(self).__qualname__}", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        stamp, looked_at, fired = None, float("-inf"), ""
        reported, problems = "", 0
        while True:
            pause = self.poll_interval
            try:
                now = await asyncio.to_thread(self._stamp)
                if now is None or now != stamp or time.monotonic() - looked_at >= self.recheck:
                    seen = await asyncio.to_thread(self._look)
                    await asyncio.sleep(min(_SETTLE_SECONDS, self.poll_interval))
                    if await asyncio.to_thread(self._stamp) != seen.stamp:
                        continue  # a file is being written
                    reason = "" if seen.content == fired else await asyncio.to_thread(self._reason, seen)
                    stamp, looked_at = seen.stamp, time.monotonic()
                    if reason:
                        fired = seen.content
                        yield TriggerEvent(self._payload(seen, reason))
                reported, problems = "", 0
            # a failed watcher would never run again, so wait until a person has fixed the problem
            except Exception as error:
                words = await asyncio.to_thread(masked_words, error)
                if words != reported:
                    reported = words
                    self.log.warning("The script of %s cannot be watched: %s", self._deployment, words)
                pause = min(self.recheck, self.poll_interval * 2 ** min(problems, _MOST_DOUBLINGS))
                stamp, problems = None, problems + 1
            await asyncio.sleep(pause)

    @property
    def _deployment(self) -> str:
        return str(self.arguments["deployment"])

    def _payload(self, seen: _Seen, reason: str) -> dict[str, Any]:
        return {"deployment": self._deployment, "reason": reason, "content": seen.content, "commit": seen.commit}

    def _reason(self, seen: _Seen) -> str:
        """Reason for a run; "" if no run is needed."""
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
        from airflow_flinkcompat.airflow.tasks.offers import offer_of, was_checked

        if seen.version is None:
            return "the files changed, or the watch restarted; only a run can render the template"
        with readable_errors():
            hook = FlinkHook(self.arguments.get("flink_conn_id", "flink_default"), target=self.arguments.get("target"))
            entries = hook.ledger(self._deployment, self.arguments.get("ledger")).entries()
        offer = offer_of(seen.version, entries)
        return offer.reason if offer.offered and not was_checked(seen.version, entries) else ""

    def _stamp(self) -> str | None:
        """Hash of the last read files in the newest versions of their bundles; None if no file was read."""
        for place in self._every_place:
            BUNDLES.path(place)
        return fingerprint_of(self._read) if self._read else None

    def _look(self) -> _Seen:
        folders = [BUNDLES.path(_place(folder)) for folder in self.folders]
        paths = {name: BUNDLES.path(_place(place)) for name, place in self.places.items()}
        self._read = []
        task = _texts({**self.arguments, **{name: str(path) for name, path in paths.items()}}, folders)
        side = task.proposed_side("flink", None)  # this also reads the files next to a program
        self._read = sorted(task.files)
        # Paths relative to the bundle, whose folder differs between triggerers.
        roots = [*map(str, folders), *(str(path.parent) for path in paths.values()), ""]
        files = {_relative(path, roots): content for path, content in task.files.items()}
        rest = repr(sorted((name, value) for name, value in self.arguments.items() if name != "ledger"))
        return _Seen(
            content=fingerprint({**files, "": rest.encode()}),
            stamp=fingerprint(task.files),
            version=None if task.needs_context else side,
            commit=next(filter(None, map(BUNDLES.commit, self._every_place)), None),
        )

    @property
    def _every_place(self) -> list[Place]:
        return [*map(_place, self.places.values()), *map(_place, self.folders)]


class _NeedsContext(Exception):
    """A text is a template, which needs a task context."""


class _WatchedScript(ScriptOperator):
    """Operator without a DAG, which reads a deployment's texts in the same way as the deployment's tasks."""

    needs_context = False

    def _before_rendering(self, jinja_env: Any) -> None:
        super()._before_rendering(jinja_env)
        if any(_is_template(getattr(self, name)) for name in self.template_fields):
            raise _NeedsContext


def _is_template(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_is_template, value.values()))
    return isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#"))


def _texts(arguments: Mapping[str, Any], folders: Sequence[Path]) -> _WatchedScript:
    """Read the texts and render them without a context. Raises AirflowFailException."""
    task = _WatchedScript(task_id="watched", **arguments)
    environment = SandboxedEnvironment(loader=FileSystemLoader([str(folder) for folder in folders]), cache_size=0)
    try:
        task.render_template_fields({}, environment)
    except _NeedsContext:
        task.needs_context = True
    return task


def _place(names: Sequence[str]) -> Place:
    bundle, inside = names
    return str(bundle), str(inside)


def _relative(path: str, roots: Sequence[str]) -> str:
    return next(path.removeprefix(root) for root in roots if path.startswith(root))
