"""Waits until the proposed script is worth a check."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowSensorTimeout
from airflow.sdk import BaseSensorOperator

from airflow_flinkcompat.operators.base import ScriptOperator, readable_errors, side_of
from airflow_flinkcompat.triggers.change import FileChangeTrigger, fingerprint

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import LedgerEntry

# The last word about a version that keeps it from being offered again.
_TURNED_DOWN = ("rejected", "failed", "unchanged")


@dataclass(frozen=True)
class Offer:
    """Whether the proposed version is offered, and why (not)."""

    offered: bool
    reason: str


class FlinkSqlChangeSensor(ScriptOperator, BaseSensorOperator):
    """Waits until the proposed script, settings, functions or catalog differ from what the ledger says is deployed.

    A version that was rejected, or that failed to deploy, is not offered again; one that was approved after that is.
    While it waits in the triggerer only the script's files are hashed; the ledger is looked at when they change, and
    every ``recheck`` besides.

    :param poke_interval: seconds between two looks at the files.
    :param recheck: how often the ledger is looked at although no file changed.
    :param deferrable: wait in the triggerer (default), or in a worker as ``mode`` says.
    """

    template_fields: Sequence[str] = ScriptOperator.template_fields
    ui_color = "#e6f1f2"

    def __init__(
        self,
        *,
        poke_interval: float | timedelta = 10,
        recheck: timedelta = timedelta(minutes=10),
        deferrable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(poke_interval=poke_interval, **kwargs)
        self.recheck = recheck
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        """``{"reason": …}`` once a version is offered."""
        if self.deferrable:
            return self._offer_or_wait(time.time())
        return super().execute(context)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> Any:
        """The texts were read anew when this task was taken up again."""
        self.log.info("The script's files changed" if event["changed"] else "Looking at the ledger again")
        return self._offer_or_wait(float(event["since"]))

    def poke(self, context: Context) -> bool:
        """One look, in a worker; the files are read anew."""
        self.reread(context)
        offer = self._look()
        self.log.info("%s", offer.reason)
        return offer.offered

    def _offer_or_wait(self, since: float) -> Any:
        offer = self._look()
        self.log.info("%s", offer.reason)
        if offer.offered:
            return {"deployment": self.deployment, "reason": offer.reason}
        left = self.timeout - (time.time() - since)
        if left <= 0:
            raise AirflowSensorTimeout(f"nothing new for {self.deployment} within {self.timeout:.0f} s")
        self.defer(
            trigger=FileChangeTrigger(
                paths=sorted(self.files),
                baseline=fingerprint(self.files),
                poll_interval=self.poke_interval,
                recheck_seconds=min(self.recheck.total_seconds(), left),
                since=since,
            ),
            method_name="execute_complete",
        )

    def _look(self) -> Offer:
        with readable_errors():
            return judge(self.proposed_side("flink", None), self.open_ledger().entries())


def judge(side: Side, entries: Sequence[LedgerEntry]) -> Offer:
    """Whether ``side`` is to be offered, by the ledger's entries (oldest first). The side's engine does not count."""
    name = side.source
    head = next((entry for entry in reversed(entries) if entry.is_head), None)
    if head is not None and _is_about(head, side):
        return Offer(False, f"{name} is what entry {head.number} deployed at {head.at}")
    last = next((entry for entry in reversed(entries) if _is_about(entry, side)), None)
    if last is not None and last.kind in _TURNED_DOWN:
        return Offer(False, f"this version of {name} is not offered again ({last.kind} at {last.at}): {last.message}")
    if head is None:
        return Offer(True, f"nothing is deployed yet: {name} is offered")
    return Offer(True, f"{name} differs from what entry {head.number} deployed at {head.at}")


def _is_about(entry: LedgerEntry, side: Side) -> bool:
    """Whether an entry speaks of this version: by content where it holds any, else by hash."""
    if entry.script:
        return _content(side_of(entry)) == _content(side)
    if not entry.sha256:
        return False
    return replace(side, engine=entry.engine or side.engine, engine_version=entry.engine_version).sha256 == entry.sha256


def _content(side: Side) -> tuple[Any, ...]:
    functions = sorted((f.name, f.kind, f.language, f.definition) for f in side.functions)
    # Jinja drops a last line break that a script adopted on the command line has.
    text = side.script.rstrip()
    given = dict(side.variables), dict(side.files), dict(side.settings)
    return side.language, text, given, functions, side.catalog.rstrip()
