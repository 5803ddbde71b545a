"""Pairs of every outcome, and some that cannot be judged."""

from __future__ import annotations

from airflow_flinkcompat.fleet.audit.values import AuditPair
from airflow_flinkcompat.model import JobSpec
from tests.support.cli.command import BROKEN, OF_OUTCOME, V1


def pairs(count: int) -> list[AuditPair]:
    """So many pairs, each with a name of its own."""
    texts = [*OF_OUTCOME.values(), BROKEN]
    return [
        AuditPair(f"job {n}", JobSpec(V1, engine="flink"), JobSpec(texts[n % len(texts)], engine="flink"))
        for n in range(count)
    ]
