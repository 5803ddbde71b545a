"""A job that moves from a cluster of one Flink line to a cluster of the next, and back if the next refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side as Script
from airflow_flinkcompat.deploy import Ledger, Options, RolledBack, deploy
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, Review
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.sequence import rehearse
from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.deploy.two_lines import two_lines
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.measure.pairs import home
from dev.services.csv_job import Files, Side, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]

OPTIONS = Options(settle_seconds=1, start_timeout=90)
FIRST = [("ann", 1, "00:10"), ("ann", 2, "00:20"), ("ann", 5, "01:10")]  # the last one closes minute 0
SECOND = [("ann", 7, "01:20"), ("ann", 1, "02:10")]  # closes minute 1
MINUTE_0, MINUTE_1 = 'ann,3,"2026-01-01 00:00:00"', 'ann,12,"2026-01-01 00:01:00"'


@pytest.fixture(scope="module")
def flink_of_1_20(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFlink]:
    with LocalFlink(tmp_path_factory.mktemp("flink"), home=home("1.20")) as flink:
        yield flink


@pytest.fixture
def former(flink_of_1_20: LocalFlink) -> Iterator[SqlGatewayTarget]:
    with SqlGatewayTarget(flink_of_1_20.gateway_url, flink_of_1_20.jobmanager_url) as target:
        yield target


@pytest.fixture
def both(former: SqlGatewayTarget, target: SqlGatewayTarget) -> Target:
    return two_lines(former, target).__enter__()


def resume(target: Target, ledger: Ledger, side: JobSpec) -> DeployedEntry:
    head = ledger.head()
    given = {"checked_old_sha256": head.sha256 if head else None, "options": OPTIONS, "log": print}
    return deploy(target, ledger, side, start_mode="savepoint" if head else "auto-first", **given)


def test_a_job_moves_with_its_state(
    both: Target, former: SqlGatewayTarget, target: SqlGatewayTarget, ledger: Ledger, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    old, new = Side(files.script(), engine_version="1.20.3"), Side(files.script(), engine_version="2.3.0")
    files.arrive("1.csv", FIRST)
    first = resume(former, ledger, old)
    wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")

    moved = deploy(
        both, ledger, new, start_mode="savepoint", checked_old_sha256=first.sha256, options=OPTIONS, log=print
    )
    assert (former.running(ledger.deployment), target.running(ledger.deployment)) == ((), (moved.job_id,))
    assert moved.evidence[0] == f"restored from {moved.start.savepoint}"
    assert moved.job.engine_version == "2.3.0"
    files.arrive("2.csv", SECOND)
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    assert files.rows() == [MINUTE_1, MINUTE_0]


def test_a_refused_job_runs_again_where_it_was(
    both: Target, former: SqlGatewayTarget, target: SqlGatewayTarget, ledger: Ledger, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    refused = Side(files.script(where=" WHERE amount > 1"), engine_version="2.3.0")
    files.arrive("1.csv", FIRST)
    old = Side(files.script(), engine_version="1.20.3")
    first = resume(former, ledger, old)
    wait_for(lambda: files.rows() == [MINUTE_0], "minute 0 is written")
    with pytest.raises(RolledBack, match="runs again as job"):
        deploy(
            both, ledger, refused, start_mode="savepoint", checked_old_sha256=first.sha256, options=OPTIONS, log=print
        )
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.job.engine_version) == ("rolled-back", "1.20.3")
    assert (former.running(ledger.deployment), target.running(ledger.deployment)) == ((head.job_id,), ())
    files.arrive("2.csv", SECOND)
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    assert files.rows() == [MINUTE_1, MINUTE_0]
    former.cancel(head.start.job_ref)


def test_a_job_moves_with_migrated_state(
    both: Target,
    former: SqlGatewayTarget,
    target: SqlGatewayTarget,
    flink_of_1_20: LocalFlink,
    local_flink: LocalFlink,
    ledger: Ledger,
    tmp_path: Path,
) -> None:
    files = Files(tmp_path)
    script = files.script(select="customer, VAR_POP(amount) * COUNT(*), window_start")
    old, new = (Script(script, {}, engine="flink", engine_version=each) for each in ("1.20.3", "2.3.0"))
    files.arrive("1.csv", FIRST)
    first = resume(former, ledger, old)
    wait_for(lambda: files.rows() == ['ann,0,"2026-01-01 00:00:00"'], "minute 0 is written")
    places = [{"gateway": each.gateway_url, "jobmanager": each.jobmanager_url} for each in (flink_of_1_20, local_flink)]
    cluster = Cluster(both, TargetLocation(addresses=places[1], former={"addresses": places[0]}))
    given: dict[str, Any] = {"at_least": MigrationExtent.WHOLE, "plan_dir": None, "rehearsed": True, "log": print}
    moved = deploy(
        both, ledger, new, start_mode="migrated", checked_old_sha256=first.sha256, review=Review("incompatible"),
        migration=SavepointMigration(old, new, cluster, first.job_id, **given), options=OPTIONS, log=print,
    )  # fmt: skip
    assert (former.running(ledger.deployment), target.running(ledger.deployment)) == ((), (moved.job_id,))
    files.arrive("2.csv", SECOND)
    wait_for(lambda: len(files.rows()) >= 2, "minute 1 is written")
    assert files.rows() == ['ann,0,"2026-01-01 00:00:00"', 'ann,2,"2026-01-01 00:01:00"']
    target.cancel(moved.start.job_ref)


def test_the_move_is_rehearsed_on_both_clusters(
    both: Target,
    former: SqlGatewayTarget,
    target: SqlGatewayTarget,
    flink_of_1_20: LocalFlink,
    local_flink: LocalFlink,
    ledger: Ledger,
    tmp_path: Path,
) -> None:
    files = Files(tmp_path)
    files.arrive("1.csv", FIRST)
    old, new = Side(files.script(), engine_version="1.20.3"), Side(files.script(), engine_version="2.3.0")
    first = resume(former, ledger, old)
    places = [{"gateway": each.gateway_url, "jobmanager": each.jobmanager_url} for each in (flink_of_1_20, local_flink)]
    where = TargetLocation(addresses=places[1], former={"addresses": places[0]})
    found = rehearse(Cluster(both, where), str(first.job_id), old, new, log=print)
    assert (found.finding, found.left) == ("restored", ()), found
    assert any(each.endswith("after both lines read the same rows") for each in found.basis), found.basis
    assert former.running(ledger.deployment) == (first.job_id,)
    former.cancel(first.start.job_ref)
