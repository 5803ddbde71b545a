"""Waiting for files to change, by content, or to appear. It only hashes; the sensor interprets."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

# Two looks at the same content, this far apart: the writer is done.
_SETTLE_SECONDS = 1.0


def fingerprint(contents: Mapping[str, bytes]) -> str:
    """Hash of files by path; independent of their order."""
    digest = hashlib.sha256()
    for path in sorted(contents):
        for part in (path.encode(), contents[path]):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def fingerprint_of(paths: Sequence[str]) -> str | None:
    """Hash of the files as they are now; None while one cannot be read (it may just be replaced)."""
    try:
        return fingerprint({path: Path(path).read_bytes() for path in paths})
    except OSError:
        return None


class FileChangeTrigger(BaseTrigger):
    """Fire once the files' content differs from ``baseline`` and has settled, or after a time.

    The time is ``recheck_seconds``. The baseline is the version that the sensor judged, so an edit between its look and
    this trigger's start is not missed. It also fires once one of ``absent``, files that could not be read, becomes
    readable. The event is ``{"changed": bool, "since": …, "reason": …, "problems": …}``. The last three are the
    sensor's and passed through: the start of its wait (seconds since the epoch), its last report, and the number of
    consecutive looks that ended in a problem.
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
