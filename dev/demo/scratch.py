"""The last version from scratch: Flink itself, over everything that ever arrived, as one batch job."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from airflow_flinkcompat.deploy import SqlGateway
from airflow_flinkcompat.sql import parse_script
from dev.demo.orders import Row
from dev.demo.parts import Parts
from dev.demo.waiting import LIMIT_SECONDS, require
from dev.demo.world import World, result_rows


def compute(world: World, parts: Parts, say: Callable[[str], None]) -> list[Row]:
    """The rows that v4 gives over archive and live folder together. Raises DemoError.

    The script is v4's own text; only the two tables' folders are changed, and the source is bounded.
    """
    say("computing v4 from scratch with Flink in batch mode, over archive and live folder")
    shutil.rmtree(world.from_scratch, ignore_errors=True)
    *setup, insert = [statement.text for statement in parse_script(world.version(4), "orders_v4.sql").statements]
    elsewhere = [
        "ALTER TABLE orders RESET ('source.monitor-interval')",
        f"ALTER TABLE orders SET ('path' = '{world.live.parent.as_uri()}')",
        f"ALTER TABLE totals SET ('path' = '{world.from_scratch.as_uri()}')",
    ]
    settings = {"execution.runtime-mode": "batch", "pipeline.name": "from scratch"}
    with SqlGateway(parts.flink.gateway_url) as gateway, gateway.session(settings) as session:
        for statement in [*setup, *elsewhere]:
            session.execute(statement)
        job_id = session.execute(insert).job_id
        require(job_id, "Flink accepted the from-scratch run but named no job")
        state = parts.jobs.wait_terminal(str(job_id), timeout=LIMIT_SECONDS)
    status = parts.jobs.status(str(job_id))
    require(state == "FINISHED", f"the from-scratch run ended as {state}: {status.failure if status else 'unknown'}")
    return result_rows(world.from_scratch)
